"""Strings coded while they are decoded: the same numbers as of strings that are decoded, then looked up."""

import numpy as np
import pytest
from hypothesis import example as with_example
from hypothesis import given, settings
from hypothesis import strategies as st

from core_reading import segment_of
from penstock import _native
from wire.example import Feature, write_example, write_feature
from wire.fields import write_delimited

BYTES, FLOAT, INT64 = 1, 2, 3
STRING, CODED = 3, 7


def decode(payloads, layout, vocabulary=None, *, required=True, default=None, strict=False):
    """Decode the field `s`; return what its column is, its mask, and faults as (row, status)."""
    spec = ("s", BYTES, layout, 1, required, default)
    spec = spec if vocabulary is None else (*spec, vocabulary)
    # Fields around it, so that it is not alone in the plan.
    others = [("a", INT64, 0, 1, False, None), ("z", BYTES, STRING, 1, False, None)]
    columns, faults = _native.Decoder([others[0], spec, others[1]], strict).decode([segment_of(payloads)])
    arena, ends, present = columns.arrays(1)
    mask = None if required else present.tolist()
    found = [(fault[0], fault[1]) for fault in faults]
    if layout == CODED:
        return arena.tolist(), mask, found
    if isinstance(arena, tuple):  # large values stay where they were read
        arena, stops = arena
        return (arena, ends[:-1], stops), mask, found
    return (arena, ends[:-1].copy(), ends[1:].copy()), mask, found


def both(payloads, values, **choices):
    """Return codes made on the way, and codes of what was decoded; rows with a fault count as −2."""
    vocabulary = _native.Vocabulary(values)
    codes, mask, faults = decode(payloads, CODED, vocabulary, **choices)
    columns, plain_mask, plain_faults = decode(payloads, STRING, **choices)
    looked_up = vocabulary.find(*(np.ascontiguousarray(each) for each in columns)).tolist()
    assert (mask, faults) == (plain_mask, plain_faults)
    bad = {row for row, _ in faults}
    if mask is not None and choices.get("default") is None:
        # A string that is missing decodes as an empty one, which may be among the values; its code is −1.
        looked_up = [code if is_there else -1 for code, is_there in zip(looked_up, mask, strict=True)]
    return (
        [-2 if row in bad else code for row, code in enumerate(codes)],
        [-2 if row in bad else code for row, code in enumerate(looked_up)],
        mask,
        faults,
    )


def record(value, number=0):
    features = {"a": Feature("int64", [number]), "z": Feature("bytes", [b"behind"])}
    if value is not None:
        features["s"] = Feature("bytes", [value])
    return write_example(features)


# Around the lengths at which the core changes its way: 0, 8, 16 bytes and more.
STRINGS = [b"x" * size for size in (*range(20), 31, 32, 33, 64, 127, 128, 129, 300, 5000)]


def test_every_length_is_found():
    payloads = [record(value, i) for i, value in enumerate(STRINGS)]
    codes, looked_up, _, faults = both(payloads, STRINGS)
    assert codes == looked_up == list(range(len(STRINGS)))
    assert faults == []


def test_values_that_are_not_known_are_minus_one():
    values = [b"", b"cat", b"c" * 40]
    wanted = [
        b"cat",
        b"ca",
        b"cats",
        b"Cat",
        b"cat\0",
        b"",
        b"\0",
        b"c" * 40,
        b"c" * 39,
        b"c" * 41,
        b"c" * 39 + b"d",
    ]
    codes, looked_up, _, _ = both([record(value) for value in wanted], values)
    assert codes == looked_up == [1, -1, -1, -1, -1, 0, -1, 2, -1, -1, -1]


# In a vocabulary of more than 512 values, strings are looked up in steps, a block of 64 rows at a time.
@pytest.mark.parametrize("num_values", [512, 513, 5000])
def test_large_vocabularies_find_strings_of_every_length_and_miss_others(num_values):
    values = [*STRINGS, *(b"%d" % n * (1 + n % 5) for n in range(num_values - len(STRINGS)))]
    others = [value + b"?" for value in values[::3]]
    wanted = [value for pair in zip(values, values[::-1], strict=True) for value in pair]
    wanted[1::7] = [None] * len(wanted[1::7])
    wanted += others
    codes, looked_up, mask, faults = both([record(value) for value in wanted], values, required=False)
    assert codes == looked_up
    numbers = {value: number for number, value in enumerate(values)}
    assert codes == [numbers.get(value, -1) for value in wanted]
    assert mask == [value is not None for value in wanted]
    assert faults == []


def test_empty_vocabulary_knows_nothing():
    assert both([record(b"a"), record(b"")], [])[0] == [-1, -1]


def test_bytes_are_bytes_whatever_they_say():
    values = [b"\xff\xfe", "é".encode(), "e\u0301".encode(), b"\0", b"\0\0"]
    codes, looked_up, _, _ = both([record(value) for value in values[::-1]], values)
    assert codes == looked_up == [4, 3, 2, 1, 0]


@pytest.mark.parametrize("default", [None, [b"cat"], [b"unknown"], [b""]])
def test_missing_value_is_minus_one_or_the_code_of_the_default(default):
    payloads = [record(b"dog"), record(None), record(b""), record(b"cat"), record(None)]
    codes, looked_up, mask, faults = both(payloads, [b"cat", b"dog", b""], required=False, default=default)
    filled = {None: -1, b"cat": 0, b"unknown": -1, b"": 2}[default and default[0]]
    assert codes == looked_up == [1, filled, 2, 0, filled]
    assert mask == [True, False, True, True, False]
    assert faults == []


def test_feature_without_a_kind_is_missing_and_an_empty_list_is_not():
    unset = write_example({"s": Feature(None, [])})
    empty = write_example({"s": Feature("bytes", [])})
    codes, looked_up, mask, faults = both([unset, empty, record(b"a")], [b"a"], required=False)
    assert codes == looked_up == [-1, -2, 0]
    assert mask[0] is False
    assert [row for row, _ in faults] == [1]


def test_required_value_that_is_missing_is_a_fault_as_before():
    codes, looked_up, mask, faults = both([record(b"a"), record(None), record(b"a")], [b"a"])
    assert codes == looked_up == [0, -2, 0]
    assert mask is None
    assert [row for row, _ in faults] == [1]


@pytest.mark.parametrize("required", [True, False])
def test_other_kinds_and_counts_are_faults_as_before(required):
    payloads = [
        record(b"a"),
        write_example({"s": Feature("int64", [1])}),
        write_example({"s": Feature("bytes", [b"a", b"b"])}),
        write_example({"s": Feature("float", [1.0])}),
        write_example({"s": Feature("bytes", [])}),
        record(b"b"),
    ]
    codes, looked_up, _, faults = both(payloads, [b"a", b"b"], required=required)
    assert codes == looked_up == [0, -2, -2, -2, -2, 1]
    assert [row for row, _ in faults] == [1, 2, 3, 4]


def entry(*parts):
    """Return an Example with one map entry for `s`, made of parts in any order."""
    return write_delimited(1, write_delimited(1, b"".join(parts)))


KEY = write_delimited(1, b"s")


def value(*strings):
    return write_delimited(2, write_feature(Feature("bytes", list(strings))))


def raw_value(content):
    return write_delimited(2, content)


GENERAL = {
    "value before key": entry(value(b"cat"), KEY),
    "key twice": entry(KEY, KEY, value(b"cat")),
    "value twice": entry(KEY, value(b"dog"), value(b"cat")),  # merged: two values
    "unknown field": entry(KEY, write_delimited(9, b"junk"), value(b"cat")),
    "entry twice": entry(KEY, value(b"dog")) + entry(KEY, value(b"cat")),
    "features twice": entry(KEY, value(b"cat")) + entry(write_delimited(1, b"a"), value(b"x")),
    "no value": entry(KEY),
    "empty feature": entry(KEY, raw_value(b"")),
    "list twice": entry(
        KEY, raw_value(write_delimited(1, b"") + write_delimited(1, write_delimited(1, b"cat")))
    ),
    "long length": entry(KEY, raw_value(b"\x0a\x85\x00" + b"\x0a\x03cat")),
    "long tag": entry(KEY, raw_value(b"\x8a\x00\x05" + b"\x0a\x03cat")),
    "unknown in list": entry(KEY, raw_value(write_delimited(1, b"\x10\x07" + write_delimited(1, b"cat")))),
    "long value": entry(KEY, value(b"cat" * 100)),
}


@pytest.mark.parametrize("name", GENERAL)
@pytest.mark.parametrize("required", [True, False])
def test_entries_for_the_general_parser_give_the_same(name, required):
    payloads = [record(b"dog"), GENERAL[name], record(b"cat"), GENERAL[name]]
    codes, looked_up, _, faults = both(payloads, [b"cat", b"dog", b"cat" * 100], required=required)
    assert codes == looked_up
    assert codes[0] == 1
    assert codes[2] == 0
    assert codes[1] == codes[3]
    assert codes[1] in {0, 2, -1, -2}
    assert (codes[1] == -2) == bool(faults)


def test_most_odd_entries_hold_the_value():
    payloads = [GENERAL[name] for name in GENERAL]
    codes, looked_up, _, _ = both(payloads, [b"cat", b"dog", b"cat" * 100], required=False)
    assert codes == looked_up
    found = dict(zip(GENERAL, codes, strict=True))
    for name in ("value before key", "key twice", "unknown field", "long length", "long tag", "list twice"):
        assert found[name] == 0, name
    assert found["entry twice"] == 0  # the last one counts
    assert found["no value"] == found["empty feature"] == -1


def test_row_that_is_no_example_is_a_fault_and_the_others_are_not():
    payloads = [record(b"a"), b"\xff\xff\xff", record(b"b")]
    codes, looked_up, _, faults = both(payloads, [b"a", b"b"])
    assert codes == looked_up == [0, -2, 1]
    assert [row for row, _ in faults] == [1]


def test_many_rows_of_many_values_over_many_blocks():
    dice = np.random.default_rng(3)
    values = [f"value {i}".encode() * (1 + i % 4) for i in range(3000)]
    chosen = dice.integers(-300, 3000, 5000).tolist()
    payloads = [record(values[i] if i >= 0 else f"other {i}".encode(), i) for i in chosen]
    codes, looked_up, _, _ = both(payloads, values)
    assert codes == looked_up == [max(-1, i) for i in chosen]


def test_large_records_are_coded_as_small_ones():
    payloads = [
        write_example({"s": Feature("bytes", [b"cat"]), "z": Feature("bytes", [b"x" * 20_000])})
        for _ in range(5)
    ]
    codes, looked_up, _, _ = both(payloads, [b"dog", b"cat"])
    assert codes == looked_up == [1] * 5


small = st.binary(max_size=20)
odd = st.one_of(small, st.none(), st.sampled_from(sorted(GENERAL)))


@settings(max_examples=200)
@given(st.lists(small, max_size=8, unique=True), st.lists(odd, max_size=12), st.booleans(), st.booleans())
@with_example([b""], [None, b""], False, False)
def test_codes_equal_codes_of_decoded_strings(values, wanted, required, has_default):
    payloads = [GENERAL[each] if isinstance(each, str) else record(each) for each in wanted]
    default = [values[-1]] if has_default and values and not required else None
    codes, looked_up, _, _ = both(payloads, values, required=required, default=default)
    assert codes == looked_up


@pytest.mark.parametrize(
    "spec",
    [
        ("s", BYTES, CODED, 1, True, None),  # no vocabulary
        ("s", BYTES, CODED, 1, True, None, None),
        ("s", INT64, CODED, 1, True, None, _native.Vocabulary([b"a"])),
        ("s", FLOAT, CODED, 1, True, None, _native.Vocabulary([b"a"])),
        ("s", BYTES, CODED, 1, False, [], _native.Vocabulary([b"a"])),
        ("s", BYTES, CODED, 1, False, [b"a", b"b"], _native.Vocabulary([b"a"])),
    ],
)
def test_plan_that_cannot_be_is_refused(spec):
    with pytest.raises(ValueError, match=r"a coded field needs a vocabulary|a default has another number"):
        _native.Decoder([spec], False)


def test_invalid_vocabulary_is_refused():
    with pytest.raises((TypeError, RuntimeError)):
        _native.Decoder([("s", BYTES, CODED, 1, True, None, "no vocabulary")], False)


def test_vocabulary_lives_as_long_as_the_plan_that_uses_it():
    decoder = _native.Decoder([("s", BYTES, CODED, 1, True, None, _native.Vocabulary([b"a", b"b"]))], False)
    _native.Vocabulary([b"other"] + [b"%d" % i for i in range(1000)])
    columns, _ = decoder.decode([segment_of([record(b"b"), record(b"a")])])
    assert columns.arrays(0)[0].tolist() == [1, 0]
