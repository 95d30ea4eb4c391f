"""Features: kinds, merging, and exact bits."""

import struct
from array import array

import pytest

from raising import raises_with
from wire.example import Feature, Kind, read_feature, write_feature
from wire.fields import Span, WireError, write_delimited

INT64 = (-(2**63), -1, 0, 1, 127, 128, 2**63 - 1)
# A quiet and a signalling NaN with payloads, infinities, both zeros, the smallest denormal.
FLOAT_BITS = (0x7FC12345, 0xFF800001, 0x7F800001, 0x7F800000, 0xFF800000, 0x00000000, 0x80000000, 0x00000001)


def read(data: bytes, strict: bool = False) -> Feature:
    return read_feature(Span.whole(data), strict=strict)


def int64_list(content: bytes) -> bytes:
    return write_delimited(3, content)


@pytest.mark.parametrize(
    ("feature", "encoded"),
    [
        (Feature(None, []), ""),
        (Feature("bytes", []), "0a00"),
        (Feature("float", []), "1200"),
        (Feature("int64", []), "1a00"),
        (Feature("bytes", [b"hi", b""]), "0a060a0268690a00"),
        (Feature("float", [1.0]), "12060a040000803f"),
        (Feature("int64", [1, 300]), "1a050a0301ac02"),
    ],
)
def test_feature_of_each_kind_has_the_known_bytes_and_reads_back(feature: Feature, encoded: str) -> None:
    assert write_feature(feature).hex() == encoded
    assert read(bytes.fromhex(encoded)) == feature


def test_int64_at_the_edges_reads_back_exactly() -> None:
    assert read(write_feature(Feature("int64", list(INT64)))).values == list(INT64)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_int64_out_of_range_is_not_written(value: int) -> None:
    with raises_with(ValueError, f"int64 -9223372036854775808 {value}"):
        write_feature(Feature("int64", [value]))


def test_floats_of_any_bits_read_back_exactly() -> None:
    bits = struct.pack(f"={len(FLOAT_BITS)}I", *FLOAT_BITS)
    feature = read(write_feature(Feature("float", array("f", bits))))
    assert isinstance(feature.values, array)
    assert feature.values.tobytes() == bits


def test_floats_in_pieces_keep_their_bits_when_joined() -> None:
    packed = write_delimited(1, struct.pack("<2I", 0x7F800001, 0x3F800000))
    single = b"\x0d" + struct.pack("<I", 0xFF800001)
    feature = read(write_delimited(2, packed + single) + write_delimited(2, packed))
    assert isinstance(feature.values, array)
    assert struct.unpack("=5I", feature.values.tobytes()) == (
        0x7F800001, 0x3F800000, 0xFF800001, 0x7F800001, 0x3F800000
    )  # fmt: skip


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (Feature("float", [float("nan")]), Feature("float", [float("nan")]), True),
        (Feature("float", [0.0]), Feature("float", [-0.0]), False),
        (Feature("int64", []), Feature(None, []), False),
        (Feature("int64", []), Feature("bytes", []), False),
        (Feature("int64", [1]), (1,), False),
    ],
)
def test_features_are_equal_when_kind_and_bits_are(left: Feature, right: object, expected: bool) -> None:
    assert (left == right) is expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\x08\x01\x08\x02", [1, 2]),
        (b"\x0a\x02\x01\x02\x08\x03\x0a\x01\x04", [1, 2, 3, 4]),
        (b"\x0a\x00", []),
        (b"\x08\x81" + b"\x80" * 8 + b"\x00", [1]),
        (b"\x0a\x0a\x81" + b"\x80" * 8 + b"\x00", [1]),
        (b"\x0a\x0a" + b"\xff" * 9 + b"\x02", [2**63 - 1]),
        (b"\x0a\x0a" + b"\xff" * 9 + b"\x7f", [-1]),
        (b"\x8a\x80\x80\x80\x00\x81\x00\x05", [5]),
        (b"\x08\x01\x48\x07\x4b\x08\x07\x4c\x08\x02", [1, 2]),
    ],
    ids=["unpacked", "mixed", "empty", "long", "long packed", "66 bits", "70 bits", "long tag", "unknown"],
)
def test_int64_list_in_odd_forms_is_read_as_protobuf_does(content: bytes, expected: list[int]) -> None:
    assert read(int64_list(content)) == Feature("int64", expected)


@pytest.mark.parametrize("form", [b"\x08", b"\x0a\x0a"], ids=["unpacked", "packed"])
def test_int64_over_64_bits_with_strict_is_refused(form: bytes) -> None:
    assert read(int64_list(form + b"\xff" * 9 + b"\x01"), strict=True) == Feature("int64", [-1])
    with raises_with(WireError, "Int64List.value 64") as caught:
        read(int64_list(form + b"\xff" * 9 + b"\x02"), strict=True)
    assert (caught.value.reason, caught.value.position) == ("varint_overflow", 2 + len(form))


def test_unknown_varint_over_64_bits_with_strict_is_skipped() -> None:
    assert read(b"\x48" + b"\xff" * 9 + b"\x7f", strict=True) == Feature(None, [])


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ("ii", Feature("int64", [1, 1])),
        ("bb", Feature("bytes", [b"x", b"x"])),
        ("if", Feature("float", [2.0])),
        ("ifi", Feature("int64", [1])),
        ("ie", Feature("float", [])),
    ],
)
def test_lists_repeated_add_up_and_another_kind_clears(kinds: str, expected: Feature) -> None:
    parts = {
        "i": Feature("int64", [1]),
        "f": Feature("float", [2.0]),
        "b": Feature("bytes", [b"x"]),
        "e": Feature("float", []),
    }
    assert read(b"".join(write_feature(parts[kind]) for kind in kinds)) == expected


@pytest.mark.parametrize(
    ("data", "reason", "facts"),
    [
        (b"\x12\x08\x0a\x06\x00\x00\x80\x3f\x00\x00", "packed_size", "4 bytes 6"),
        (b"\x1a\x0d\x0a\x0b" + b"\x80" * 10 + b"\x00", "varint_too_long", "10 bytes"),
        (b"\x1a\x04\x0a\x02\x01\x80", "truncated", "1 bytes"),
        (b"\x1a\x05\x0d\x01\x00\x00\x00", "wrong_wire_type", "Int64List.value FIXED32"),
        (b"\x12\x02\x08\x01", "wrong_wire_type", "FloatList.value VARINT"),
        (b"\x0a\x02\x08\x01", "wrong_wire_type", "BytesList.value VARINT"),
        (b"\x18\x01", "wrong_wire_type", "Feature.int64_list VARINT"),
        (b"\x0b\x0c", "wrong_wire_type", "Feature.bytes_list START_GROUP"),
    ],
)
def test_feature_with_a_fault_is_refused(data: bytes, reason: str, facts: str) -> None:
    with raises_with(WireError, facts) as caught:
        read(data)
    assert caught.value.reason == reason


@pytest.mark.parametrize("kind", ["bytes", "int64"])
def test_fault_in_a_list_that_is_cleared_later_is_refused_all_the_same(kind: Kind) -> None:
    with raises_with(WireError, "6"):
        read(write_delimited(2, write_delimited(1, bytes(6))) + write_feature(Feature(kind, [])))
