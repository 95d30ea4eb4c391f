"""Examples: the map of features, its odd forms, and its faults."""

from itertools import pairwise

import pytest

from oracle_protobuf import RefusedError, protobuf_example
from oracle_wire import wire_example
from raising import mentions, raises_with
from wire.example import Feature, read_example, write_example, write_feature
from wire.fields import WireError, write_delimited

ONE = Feature("int64", [1])
TWO = Feature("int64", [2])
HALF = Feature("float", [0.5])


def key(name: bytes) -> bytes:
    return write_delimited(1, name)


def value(feature: Feature) -> bytes:
    return write_delimited(2, write_feature(feature))


def example(*entries: bytes) -> bytes:
    return write_delimited(1, b"".join(write_delimited(1, entry) for entry in entries))


def test_example_has_the_known_bytes_in_the_order_given() -> None:
    payload = write_example({"b": ONE, "a": Feature("bytes", [b"x"])})
    assert payload.hex() == "0a18" + "0a0a0a016212051a030a0101" + "0a0a0a016112050a030a0178"
    assert read_example(payload) == {"a": Feature("bytes", [b"x"]), "b": ONE}


def test_example_without_features_is_empty() -> None:
    assert write_example({}) == b""
    assert read_example(b"") == {}
    assert read_example(b"\x0a\x00") == {}


def test_example_with_unusual_keys_reads_back() -> None:
    features = dict.fromkeys(("", "\x00", "a/b:c", "ключ", "\U0010ffff", "k" * 65536), ONE)
    assert read_example(write_example(features)) == features
    assert sorted(protobuf_example(write_example(features))) == sorted(features)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (example(key(b"a") + value(ONE), key(b"a") + value(TWO)), {"a": TWO}),
        (example(key(b"a") + value(ONE), key(b"a")), {"a": Feature(None, [])}),
        (example(key(b"a") + value(ONE)) + example(key(b"b") + value(TWO)), {"a": ONE, "b": TWO}),
        (example(key(b"a") + value(ONE)) + example(key(b"a") + value(HALF)), {"a": HALF}),
        (example(key(b"a")), {"a": Feature(None, [])}),
        (example(key(b"a") + value(Feature(None, []))), {"a": Feature(None, [])}),
        (example(value(ONE)), {"": ONE}),
        (example(b""), {"": Feature(None, [])}),
        (example(value(ONE) + key(b"a")), {"a": ONE}),
        (example(key(b"a") + key(b"b") + value(ONE)), {"b": ONE}),
        (example(key(b"a") + value(ONE) + value(TWO)), {"a": Feature("int64", [1, 2])}),
        (example(key(b"a") + value(ONE) + value(HALF)), {"a": HALF}),
        (example(key(b"a") + value(ONE) + value(Feature(None, []))), {"a": ONE}),
        (
            example(key(b"a") + value(ONE) + write_delimited(2, write_feature(HALF) + write_feature(TWO))),
            {"a": TWO},
        ),
        (b"\x48\x01" + example(key(b"a") + value(ONE)) + b"\x4b\x08\x01\x4c", {"a": ONE}),
        (write_delimited(1, b"\x12\x01x" + write_delimited(1, key(b"a") + value(ONE))), {"a": ONE}),
    ],
    ids=[
        "duplicate key",
        "duplicate key without value",
        "features twice",
        "features twice, same key",
        "no value",
        "unset kind",
        "no key",
        "empty entry",
        "value first",
        "two keys",
        "value twice",
        "value twice, other kind",
        "value twice, second empty",
        "value twice, cleared between",
        "unknown beside features",
        "unknown beside an entry",
    ],
)
def test_example_in_odd_forms_is_read_as_protobuf_does(payload: bytes, expected: dict[str, Feature]) -> None:
    assert read_example(payload) == expected
    assert wire_example(payload) == protobuf_example(payload)


@pytest.mark.parametrize("extra", [b"\x48\x01", b"\x4b\x4c", b"\x1a\x00"], ids=["varint", "group", "field 3"])
def test_unknown_field_in_a_map_entry_keeps_the_entry_where_protobuf_drops_it(extra: bytes) -> None:
    payload = example(key(b"a") + value(ONE), key(b"a") + value(TWO) + extra)
    assert read_example(payload) == {"a": TWO}
    assert protobuf_example(payload) == {"a": ("int64", [1])}


@pytest.mark.parametrize(
    ("payload", "facts"),
    [
        (b"\x08\x01", "0 Example.features LENGTH_DELIMITED VARINT"),
        (b"\x0a\x02\x08\x01", "2 LENGTH_DELIMITED VARINT"),
        (example(b"\x08\x01" + value(ONE)), "4 LENGTH_DELIMITED VARINT"),
        (example(key(b"a") + b"\x10\x01"), "7 LENGTH_DELIMITED VARINT"),
    ],
)
def test_known_field_of_a_wrong_wire_type_is_refused_where_protobuf_drops_it(
    payload: bytes, facts: str
) -> None:
    with pytest.raises(WireError) as caught:
        read_example(payload)
    assert caught.value.reason == "wrong_wire_type"
    assert mentions(caught.value, facts)
    assert protobuf_example(payload) == {}


@pytest.mark.parametrize(
    "name",
    [
        b"\xff",
        b"\xc0\x80",
        b"\xe0\x80\x80",
        b"\xed\xa0\x80",
        b"\xed\xa0\x80\xed\xb0\x80",
        b"\xf4\x90\x80\x80",
        b"\xe2\x82",
    ],
    ids=["byte", "overlong 2", "overlong 3", "surrogate", "surrogates", "too large", "cut"],
)
def test_key_that_is_no_utf8_is_refused_even_when_another_follows(name: bytes) -> None:
    for payload in (example(key(name) + value(ONE)), example(key(name) + key(b"a") + value(ONE))):
        with raises_with(WireError, "key UTF-8") as caught:
            read_example(payload)
        assert (caught.value.reason, caught.value.position) == ("invalid_utf8", 6)
        with pytest.raises(RefusedError):
            protobuf_example(payload)


def test_example_cut_at_any_byte_is_refused_but_for_none_and_all() -> None:
    payload = write_example({"a": ONE, "b": HALF, "c": Feature("bytes", [b"x", b""])})
    for stop in range(1, len(payload)):
        with pytest.raises(WireError) as caught:
            read_example(payload[:stop])
        assert caught.value.reason in ("length_overrun", "truncated")


@pytest.mark.parametrize("length", [2**31 - 1, 2**31, 2**63, 2**64 - 1])
def test_example_with_a_huge_length_is_refused(length: int) -> None:
    encoded = bytes(length >> shift & 0x7F | 0x80 for shift in range(0, 63, 7)) + bytes([length >> 63])
    with pytest.raises(WireError):
        read_example(b"\x0a" + encoded)


def test_example_with_inner_length_over_its_message_is_refused() -> None:
    payload = bytearray(example(key(b"a") + value(ONE)) + b"\x48\x01")
    payload[3] += 1
    with raises_with(WireError, "3 11 10"):
        read_example(bytes(payload))


@pytest.mark.parametrize(
    ("payload", "reason", "facts"),
    [
        (example(key(b"a") + value(ONE), key(b"a") + value(TWO)), "duplicate_key", "14 key 'a'"),
        (
            example(key(b"a") + value(ONE)) + example(key(b"b") + value(TWO)),
            "repeated_message",
            "14 Example.features",
        ),
    ],
)
def test_example_with_repeated_parts_and_strict_is_refused(payload: bytes, reason: str, facts: str) -> None:
    with pytest.raises(WireError) as caught:
        read_example(payload, strict=True)
    assert caught.value.reason == reason
    assert mentions(caught.value, facts)


def test_example_with_ten_thousand_keys_reads_back_in_order() -> None:
    features = {f"key{number}": Feature("int64", [number]) for number in range(10_000)}
    read = read_example(write_example(features))
    assert len(read) == 10_000
    assert all(left.values[0] < right.values[0] for left, right in pairwise(read.values()))
