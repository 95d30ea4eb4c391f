"""W: the lists in a record, in every spelling that protobuf reads, bit by bit; and invalid spellings."""

import pytest

from oracle_protobuf import protobuf_example
from record_files import open_split, write_plain
from wire.example import write_feature
from wire.fields import write_delimited as delimited
from wire_rows import (
    CUT,
    FLOAT_SIZE,
    OVERFLOW,
    TOO_LONG,
    check_read,
    check_refused,
    example,
    floats,
    ints,
    named,
    padded,
    strings,
)

HALF, ONE, TWO = 0x3F000000, 0x3F800000, 0x40000000
NUMBERS = {"bytes": 1, "float": 2, "int64": 3}


def le(*bits: int) -> bytes:
    return b"".join(each.to_bytes(4, "little") for each in bits)


def message(kind: str, content: bytes) -> bytes:
    """Return a Feature with a list of these fields."""
    return delimited(NUMBERS[kind], content)


def check_message(folder, feature: bytes, kind: str, values: list) -> None:
    """Read a Feature between two plain ones of the same kind, and as protobuf does."""
    plain = {"int64": ints(5, 6), "float": floats(HALF), "bytes": strings(b"x")}[kind]
    stored = {"int64": [5, 6], "float": [HALF], "bytes": [b"x"]}[kind]
    payload = example(a=feature)
    assert protobuf_example(payload) == {"a": (kind, values)}
    check_read(
        folder,
        [example(a=plain), payload, example(a=plain)],
        [{"a": (kind, stored)}, {"a": (kind, values)}, {"a": (kind, stored)}],
    )


UNPACKED = {
    "ints": (b"\x08\x01\x08\x02\x08" + padded(2**64 - 1, 10), "int64", [1, 2, -1]),
    "one int": (b"\x08\x07", "int64", [7]),
    "floats": (b"\x0d" + le(ONE) + b"\x0d" + le(TWO), "float", [ONE, TWO]),
    "one float": (b"\x0d" + le(HALF), "float", [HALF]),
    "many ints": (b"\x08\x03" * 200, "int64", [3] * 200),
}


@pytest.mark.parametrize(("content", "kind", "values"), named(UNPACKED))
def test_w01_unpacked_lists_are_read(tmp_path, content, kind, values):
    check_message(tmp_path, message(kind, content), kind, values)


MIXED = {
    "packed, then unpacked": (b"\x0a\x01\x01\x08\x02\x08\x03", "int64", [1, 2, 3]),
    "unpacked, then packed": (b"\x08\x01\x0a\x02\x02\x03", "int64", [1, 2, 3]),
    "packed twice": (b"\x0a\x01\x01\x0a\x02\x02\x03", "int64", [1, 2, 3]),
    "packed of nothing between": (b"\x08\x01\x0a\x00\x08\x02", "int64", [1, 2]),
    "floats": (b"\x0a\x04" + le(ONE) + b"\x0d" + le(TWO) + b"\x0a\x04" + le(HALF), "float", [ONE, TWO, HALF]),
}


@pytest.mark.parametrize(("content", "kind", "values"), named(MIXED))
def test_w02_packed_and_unpacked_mixed_give_all_values(tmp_path, content, kind, values):
    check_message(tmp_path, message(kind, content), kind, values)


REPEATED = {
    "ints": (write_feature(ints(1)) + write_feature(ints(2)), "int64", [1, 2]),
    "floats": (write_feature(floats(ONE)) + write_feature(floats(TWO)), "float", [ONE, TWO]),
    "strings": (write_feature(strings(b"a")) + write_feature(strings(b"", b"b")), "bytes", [b"a", b"", b"b"]),
    "an empty one between": (write_feature(ints(1)) + b"\x1a\x00" + write_feature(ints(2)), "int64", [1, 2]),
}


@pytest.mark.parametrize(("feature", "kind", "values"), named(REPEATED))
def test_w03_a_list_set_twice_is_joined(tmp_path, feature, kind, values):
    check_message(tmp_path, feature, kind, values)


LAST_KIND = {
    "float, int": (write_feature(floats(ONE)) + write_feature(ints(2)), "int64", [2]),
    "int, bytes": (write_feature(ints(1)) + write_feature(strings(b"b")), "bytes", [b"b"]),
    "int, float, int": (b"".join(map(write_feature, (ints(1), floats(ONE), ints(3)))), "int64", [3]),
    "int, empty float": (write_feature(ints(1)) + b"\x12\x00", "float", []),
}


@pytest.mark.parametrize(("feature", "kind", "values"), named(LAST_KIND))
def test_w04_of_two_kinds_the_last_counts(tmp_path, feature, kind, values):
    check_message(tmp_path, feature, kind, values)


@pytest.mark.parametrize("packed", named({"cut": b"\x80", "too long": b"\x80" * 10 + b"\x01"}))
def test_w04_list_that_another_kind_replaces_must_be_well_formed(tmp_path, packed):
    feature = message("int64", delimited(1, packed)) + write_feature(floats(ONE))
    check_refused(tmp_path, example(a=feature), CUT if packed == b"\x80" else TOO_LONG, "a")


@pytest.mark.parametrize("kind", NUMBERS)
def test_w09_an_empty_list_is_a_list_of_no_values(tmp_path, kind):
    check_message(tmp_path, message(kind, b""), kind, [])
    if kind != "bytes":
        check_message(tmp_path, message(kind, b"\x0a\x00"), kind, [])


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7, 9, 1001])
def test_w15_packed_floats_of_no_whole_number_are_refused(tmp_path, size):
    check_refused(tmp_path, example(a=message("float", delimited(1, bytes(size)))), FLOAT_SIZE, "a")


@pytest.mark.parametrize("size", range(1, 11))
def test_w16_a_varint_longer_than_it_need_be_is_read(tmp_path, size):
    for value in (0, 1, 127):
        check_message(tmp_path, message("int64", delimited(1, padded(value, size))), "int64", [value])
        check_message(tmp_path, message("int64", b"\x08" + padded(value, size)), "int64", [value])


BROKEN = {
    "11 bytes": (delimited(1, b"\x80" * 10 + b"\x01"), TOO_LONG),
    "11 bytes behind others": (delimited(1, b"\x05" * 70 + b"\x80" * 10 + b"\x01"), TOO_LONG),
    "100 bytes": (delimited(1, b"\x80" * 100 + b"\x01"), TOO_LONG),
    "unpacked, 11 bytes": (b"\x08" + b"\x80" * 10 + b"\x01", TOO_LONG),
    "cut": (delimited(1, b"\x01\x80"), CUT),
    "cut behind a block": (delimited(1, b"\x01" * 64 + b"\xff" * 9), CUT),
    "cut alone": (delimited(1, b"\xff"), CUT),
    "unpacked, cut": (b"\x08\x80", CUT),
}


@pytest.mark.parametrize(("content", "status"), named(BROKEN))
def test_w17_a_varint_that_does_not_end_in_time_is_refused(tmp_path, content, status):
    check_refused(tmp_path, example(a=message("int64", content)), status, "a")


OVERFLOWS = {"2": (b"\x02", 0), "3": (b"\x03", -(2**63)), "7f": (b"\x7f", -(2**63)), "7e": (b"\x7e", 0)}


@pytest.mark.parametrize(("tenth", "value"), named(OVERFLOWS))
@pytest.mark.parametrize("form", ["packed", "unpacked", "among others"])
def test_w18_bits_above_64_fall_away_and_are_refused_if_strict(tmp_path, tenth, value, form):
    varint = b"\x80" * 9 + tenth
    content = {
        "packed": delimited(1, varint),
        "unpacked": b"\x08" + varint,
        "among others": delimited(1, b"\x07" * 60 + varint + b"\x07"),
    }[form]
    values = [7] * 60 + [value, 7] if form == "among others" else [value]
    check_message(tmp_path, message("int64", content), "int64", values)
    # The full check asks what protobuf asks, and no more.
    check_refused(tmp_path, example(a=message("int64", content)), OVERFLOW, "a", in_check=False, strict=True)


def test_w18_all_ones_in_ten_bytes_is_minus_one(tmp_path):
    check_message(tmp_path, message("int64", delimited(1, b"\xff" * 9 + b"\x7f")), "int64", [-1])


EXTREMES = [0, 1, -1, 2**31, -(2**31) - 1, 2**62, -(2**62), 2**63 - 1, -(2**63), 127, 128, 2**56 - 1, 2**56]


@pytest.mark.parametrize("strict", [False, True])
def test_w28_integers_keep_every_bit(tmp_path, strict):
    payloads = [example(a=ints(value), b=ints(*EXTREMES, value)) for value in EXTREMES]
    expected = [{"a": ("int64", [value]), "b": ("int64", [*EXTREMES, value])} for value in EXTREMES]
    check_read(tmp_path, payloads, expected, strict=strict)


# Quiet NaNs with payloads, infinities, zeros of both signs, the smallest and largest numbers, denormals.
FLOATS = [
    0x7FC00000, 0xFFC12345, 0x7FFFFFFF, 0x7F800000, 0xFF800000, 0x00000000, 0x80000000,
    0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0x3F800001,
]  # fmt: skip
SIGNALLING = [0x7F800001, 0xFFBFFFFF, 0x7FA00000]


def test_w29_floats_keep_every_bit(tmp_path):
    payloads = [example(a=floats(value), b=floats(*FLOATS, value)) for value in FLOATS]
    expected = [{"a": ("float", [value]), "b": ("float", [*FLOATS, value])} for value in FLOATS]
    check_read(tmp_path, payloads, expected)


def test_w29_signalling_nans_keep_every_bit_in_columns(tmp_path):
    payloads = [example(a=floats(value), b=floats(*SIGNALLING)) for value in SIGNALLING]
    columns = open_split(write_plain(tmp_path / "nan.tfrecord", payloads)).columns()
    assert columns["a"].values.view("u4").tolist() == SIGNALLING
    assert columns["b"].values.view("u4").tolist() == [SIGNALLING] * 3
