"""Where the core changes its way: short and long keys and entries, blocks of integers, learnt keys."""

import random
from collections.abc import Iterable

import pytest

from core_reading import Outcomes, Refused, expect_outcomes, read_outcomes, segment_of
from each_case import each_case
from oracle_wire import plain, wire_example
from penstock import _native
from wire.example import Feature, write_example, write_feature
from wire.fields import write_delimited, write_varint

BEFORE, BEHIND = Feature("int64", [-1]), Feature("bytes", [b"behind"])


def expected(example: dict[str, Feature], wanted: Iterable[str]) -> Outcomes:
    return expect_outcomes({key: plain(example[key]) for key in wanted if key in example})


def check_all_plans(examples: list[dict[str, Feature]], key: str) -> None:
    """Read examples by plans that want one key, all others, or every key."""
    payloads = [write_example(example) for example in examples]
    every = sorted({key for example in examples for key in example})
    for wanted in ([key], [name for name in every if name != key], every):
        for outcomes, example in zip(read_outcomes(payloads, wanted), examples, strict=True):
            assert outcomes == expected(example, wanted), wanted


# A short entry is compared with a template; the limits are a key of 26 bytes and an entry of 127.
@each_case("key_bytes", range(41))
def test_entries_of_every_length_around_the_limits_are_read(key_bytes: int) -> None:
    key = ("k" * 40)[:key_bytes]
    examples = []
    for size in [*range(3), *range(max(0, 112 - key_bytes), 136 - key_bytes), 250, 251]:
        for feature in (
            Feature("bytes", [b"\x0a" * size]),
            Feature("bytes", [b"x" * (size // 2), b"y" * (size // 2)]),
            Feature("int64", [1] * size),
            Feature("float", [0.5] * (size // 4)),
        ):
            examples.append({"b": BEFORE, key: feature, "c": BEHIND})
    check_all_plans(examples, key)


@pytest.mark.parametrize("size", [16383, 16384, 2_097_151, 2_097_152])
@pytest.mark.parametrize("key", ["", "key", "k" * 26, "k" * 27, "k" * 128])
def test_entries_at_the_next_sizes_of_their_lengths_are_read(key: str, size: int) -> None:
    examples = []
    for around in range(-12, 4):
        content = max(0, size + around - len(key))
        examples.append({"b": BEFORE, key: Feature("bytes", [bytes(content)]), "c": BEHIND})
    payloads = [write_example(example) for example in examples[:: 1 if size < 20_000 else 5]]
    for outcomes, payload in zip(read_outcomes(payloads, [key, "c"]), payloads, strict=True):
        assert outcomes == expected({**_as_features(payload)}, [key, "c"])


def _as_features(payload: bytes) -> dict[str, Feature]:
    return {key: Feature(kind, values) for key, (kind, values) in wire_example(payload).items()}


@pytest.mark.parametrize("key", ["k" * 128, "k" * 300, "é" * 64])
def test_keys_whose_length_takes_two_bytes_are_read(key: str) -> None:
    check_all_plans([{"b": BEFORE, key: Feature("int64", [n]), "c": BEHIND} for n in (0, -1)], key)


# Eight bytes at each end of a key go into the hash.
ALIKE = {
    "ends": [f"beginning{n:04}of the key" for n in range(60)],
    "beginnings": [f"{n:04}" for n in range(60)],
    "zeros": ["\0" * n for n in range(41)],
    "prefixes": ["abcdefghijklmnopqrstuvwxyz0123456789abcd"[:n] for n in range(41)],
    "long": ["x" * 70 + f"{n:02}" + "y" * 70 for n in range(40)],
}


@pytest.mark.parametrize("keys", ALIKE.values(), ids=ALIKE)
@pytest.mark.parametrize("num_wanted", [0, 1, 7, 100])
def test_keys_that_look_alike_are_distinguished_in_any_order(keys: list[str], num_wanted: int) -> None:
    rng = random.Random(f"{keys[1]} {num_wanted}")  # noqa: S311
    examples = []
    for row in range(100):
        chosen = rng.sample(keys, rng.randint(0, len(keys)))
        examples.append({key: Feature("int64", [row, keys.index(key)]) for key in chosen})
    wanted = rng.sample(keys, min(num_wanted, len(keys)))
    payloads = [write_example(example) for example in examples]
    for outcomes, example in zip(read_outcomes(payloads, wanted), examples, strict=True):
        assert outcomes == expected(example, wanted)


def in_order(keys: list[str], row: int) -> dict[str, Feature]:
    return {key: Feature("int64", [row, n]) for n, key in enumerate(keys)}


# The core compares an entry with the one that followed in earlier records before it looks up the key.
@pytest.mark.parametrize("key_bytes", [0, 1, 2, 5, 6, 7, 14, 15, 22, 26, 27])
@pytest.mark.parametrize("is_wanted", [True, False])
def test_an_entry_that_differs_in_one_bit_from_those_before_is_not_taken_for_them(
    key_bytes: int, is_wanted: bool
) -> None:
    key = "abcdefghijklmnopqrstuvwxyz0"[:key_bytes]
    plain_record = write_example({"-": BEFORE, key: Feature("bytes", [b"value"]), "+": BEHIND})
    entry = write_delimited(1, key.encode()) + write_delimited(2, b"")
    begin = plain_record.index(entry[:-1]) - 2
    wanted = ["-", key, "+"] if is_wanted else ["-", "+"]
    changed = []
    for at in range(begin, begin + key_bytes + 10):
        for bit in range(8):
            flipped = bytearray(plain_record)
            flipped[at] ^= 1 << bit
            changed.append(bytes(flipped))
    together = read_outcomes([each for record in changed for each in (plain_record, record)], wanted)
    for outcomes, record in zip(together[1::2], changed, strict=True):
        (alone,) = read_outcomes([record], wanted)
        assert repr(outcomes) == repr(alone)


def test_records_are_read_alike_while_the_order_of_their_keys_lasts_and_changes() -> None:
    rng = random.Random(31)  # noqa: S311
    keys = ["a", "bb", "unwanted", "a key of middle length", "c", "a key that is too long for the table"]
    others = rng.sample(keys, len(keys))
    examples = [in_order(keys, row) for row in range(70)]
    examples += [in_order(keys[:2] + keys[3:], row) for row in range(70)]
    examples += [in_order(others, row) for row in range(70)]
    examples += [in_order(rng.sample(keys, rng.randint(1, len(keys))), row) for row in range(2300)]
    examples += [in_order(others, row) for row in range(70)]
    examples += [in_order(["new", *keys], row) for row in range(70)]
    wanted = [key for key in keys if key != "unwanted"]
    payloads = [write_example(example) for example in examples]
    for outcomes, example in zip(read_outcomes(payloads, wanted), examples, strict=True):
        assert outcomes == expected(example, wanted)


def test_a_key_that_comes_twice_is_read_as_its_last_value_where_it_is_expected() -> None:
    once = b"".join(write_delimited(1, _entry(key, 1)) for key in ("a", "b", "c"))
    twice = write_delimited(1, _entry("a", 2)) + once
    payloads = [write_delimited(1, once)] * 3 + [write_delimited(1, twice), write_delimited(1, once * 2)]
    for outcomes in read_outcomes(payloads, ["a", "b", "c"]):
        assert outcomes == expect_outcomes({key: ("int64", [1]) for key in "abc"})


def _entry(key: str, value: int) -> bytes:
    return write_delimited(1, key.encode()) + write_delimited(2, write_feature(Feature("int64", [value])))


def test_more_unwanted_keys_than_are_learnt_change_nothing() -> None:
    examples = [
        {"a": Feature("int64", [row]), **{f"key {row} {n}": BEFORE for n in range(20)}, "b": BEHIND}
        for row in range(150)
    ]
    payloads = [write_example(example) for example in examples]
    for outcomes, example in zip(read_outcomes(payloads, ["b", "a"]), examples, strict=True):
        assert outcomes == expected(example, ["a", "b"])


def test_a_key_that_is_a_feature_in_one_plan_and_a_list_in_the_next_is_found_in_each() -> None:
    features = write_delimited(1, write_delimited(1, b"\x0a\x01a\x12\x05\x1a\x03\x0a\x01\x07"))
    lists = write_delimited(2, write_delimited(1, b"\x0a\x01a\x12\x07\x0a\x05\x1a\x03\x0a\x01\x09"))
    wanted = ([7], [[9]])
    for keys, list_keys in (["a"], []), ([], ["a"]), (["a"], ["a"]):
        (outcomes,) = read_outcomes([features + lists], keys, list_keys)
        assert not isinstance(outcomes, Refused)
        assert outcomes.get((False, "a", "int64")) == (wanted[0] if keys else None)
        assert outcomes.get((True, "a", "int64")) == (wanted[1] if list_keys else None)


def packed_ints(rng: random.Random, num_bytes: int) -> list[int]:
    """Return integers that take so many bytes in all, of one to ten bytes each."""
    values = []
    while num_bytes:
        size = rng.randint(1, min(10, num_bytes))
        value = (
            rng.getrandbits(7 * size) | 1 << (7 * size - 1) if size < 10 else rng.getrandbits(64) | 1 << 63
        )
        values.append(value - 2**64 if value >= 2**63 else value)
        num_bytes -= size
    return values


def test_packed_integers_of_every_length_around_the_blocks_are_read() -> None:
    rng = random.Random(64)  # noqa: S311
    examples = []
    for num_bytes in [*range(80), *range(120, 140), *range(185, 200), 1000]:
        for _ in range(4):
            examples.append({"a": Feature("int64", packed_ints(rng, num_bytes)), "b": BEHIND})
    check_all_plans(examples, "a")


@pytest.mark.parametrize("size", range(1, 11))
def test_packed_integers_of_one_size_cross_every_block(size: int) -> None:
    value = (1 << 7 * size - 1) - 3 if size < 10 else -2
    if size == 1:
        value = 77
    examples = [{"a": Feature("int64", [value] * n), "b": BEHIND} for n in range(1, 140)]
    check_all_plans(examples, "a")


@each_case("num_before", [0, 1, 7, 8, 53, 54, 55, 62, 63, 64, 65, 127])
@each_case("size", [9, 10, 11, 12, 20, 63, 64, 65, 70])
def test_varint_that_does_not_end_in_time_is_refused_at_every_position(num_before: int, size: int) -> None:
    continued = b"\x80" * (size - 1)
    for bad, is_sound in ((continued + b"\x00", size <= 10), (continued + b"\x80", False)):
        packed = b"\x01" * num_before + bad
        payload = write_delimited(1, write_delimited(1, b"\x0a\x01a" + write_delimited(2, _int_list(packed))))
        (outcomes,) = read_outcomes([payload], ["a"])
        assert isinstance(outcomes, Refused) != is_sound
        if is_sound:
            assert outcomes == expected({"a": Feature("int64", [1] * num_before + [0])}, ["a"])
        fixed = _native.Decoder([("a", 3, 1, num_before + 1, True, None)], False)
        assert (not fixed.decode([segment_of([payload])])[1]) == is_sound


def _int_list(packed: bytes) -> bytes:
    return write_delimited(3, write_varint(1 << 3 | 2) + write_varint(len(packed)) + packed)
