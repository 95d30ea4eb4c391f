"""W: tags, lengths, wire types and groups, at every level of a record: accepted and refused bytes."""

import pytest

from core_reading import Refused, check_payloads, read_outcomes
from oracle_protobuf import RefusedError, protobuf_example
from record_files import open_split, write_plain
from wire.example import write_feature
from wire.fields import write_delimited as delimited
from wire.fields import write_varint
from wire_rows import (
    BAD_TYPE,
    CUT,
    DEEP,
    FIELD_ZERO,
    OPEN_GROUP,
    OVERRUN,
    TOO_LONG,
    WRONG_TYPE,
    check_read,
    check_refused,
    entry,
    example,
    features,
    floats,
    ints,
    named,
    padded,
    wrapped,
)

ONE = write_feature(ints(1))
PACKED = delimited(1, b"\x01")  # the one value of ONE's list
KEY = delimited(1, b"a")

# A place at each level where further fields may stand; they come after the value of key "a".
LEVELS = {
    "record": lambda extra: features(entry("a", ONE)) + extra,
    "map": lambda extra: delimited(1, delimited(1, entry("a", ONE)) + extra),
    "entry": lambda extra: features(KEY + delimited(2, ONE) + extra),
    "feature": lambda extra: example(a=ONE + extra),
    "list": lambda extra: example(a=delimited(3, PACKED + extra)),
}
DEEPEST_GROUPS = {"record": 100, "map": 99, "entry": 98, "feature": 97, "list": 96}
# Faults in the messages around a value are the payload's; those inside it are the field's.
FIELD = {"record": "payload", "map": "payload", "entry": "payload", "feature": "a", "list": "a"}
levels = pytest.mark.parametrize("level", LEVELS)

WRONG_TYPES = {
    "ints as fixed32": (example(a=delimited(3, b"\x0d\x01\0\0\0")), "a"),
    "ints as fixed64": (example(a=delimited(3, b"\x09" + bytes(8))), "a"),
    "ints as a group": (example(a=delimited(3, b"\x0b\x0c")), "a"),
    "floats as varint": (example(a=delimited(2, b"\x08\x01")), "a"),
    "floats as fixed64": (example(a=delimited(2, b"\x09" + bytes(8))), "a"),
    "bytes as varint": (example(a=delimited(1, b"\x08\x01")), "a"),
    "bytes as fixed32": (example(a=delimited(1, b"\x0d\0\0\0\0")), "a"),
    "int64_list as varint": (example(a=b"\x18\x01"), "a"),
    "float_list as fixed32": (example(a=b"\x15\0\0\0\0"), "a"),
    "bytes_list as a group": (example(a=b"\x0b\x0c"), "a"),
    "key as varint": (features(b"\x08\x01" + delimited(2, ONE)), "payload"),
    "key as fixed32": (features(b"\x0d\0\0\0\0" + delimited(2, ONE)), "payload"),
    "value as varint": (features(KEY + b"\x10\x01"), "payload"),
    "value as a group": (features(KEY + b"\x13\x14"), "payload"),
    "entry as varint": (delimited(1, b"\x08\x01"), "payload"),
    "entry as fixed64": (delimited(1, b"\x09" + bytes(8)), "payload"),
    "features as varint": (b"\x08\x01", "payload"),
    "features as a group": (b"\x0b\x0c", "payload"),
}


@pytest.mark.parametrize(("payload", "field"), named(WRONG_TYPES))
def test_w14_a_known_field_in_another_wire_type_is_refused_where_protobuf_drops_it(tmp_path, payload, field):
    assert protobuf_example(payload).get("a", (None, []))[1] == []
    check_refused(tmp_path, payload, WRONG_TYPE, field)


LONG_TAGS = {
    "features": padded(0x0A, 2) + features(entry("a", ONE))[1:],
    "entry": delimited(1, padded(0x0A, 3) + delimited(1, entry("a", ONE))[1:]),
    "key": features(padded(0x0A, 2) + KEY[1:] + delimited(2, ONE)),
    "value": features(KEY + padded(0x12, 5) + delimited(2, ONE)[1:]),
    "list": example(a=padded(0x1A, 4) + ONE[1:]),
    "packed values": example(a=delimited(3, padded(0x0A, 2) + PACKED[1:])),
    "an unpacked value": example(a=delimited(3, padded(0x08, 5) + b"\x01")),
}
LONG_LENGTHS = {
    "features": b"\x0a" + padded(12, 5) + delimited(1, entry("a", ONE)),
    "entry": delimited(1, b"\x0a" + padded(10, 2) + entry("a", ONE)),
    "key": features(b"\x0a" + padded(1, 3) + b"a" + delimited(2, ONE)),
    "value": features(KEY + b"\x12" + padded(5, 2) + ONE),
    "list": example(a=b"\x1a" + padded(3, 5) + PACKED),
    "packed values": example(a=delimited(3, b"\x0a" + padded(1, 4) + b"\x01")),
}


@pytest.mark.parametrize("payload", named({f"tag of {k}": v for k, v in LONG_TAGS.items()}))
def test_w19_a_tag_longer_than_it_need_be_is_read(tmp_path, payload):
    assert protobuf_example(payload) == {"a": ("int64", [1])}
    check_read(tmp_path, [payload, example(a=ints(1))], [{"a": ("int64", [1])}] * 2)


@pytest.mark.parametrize("payload", named({f"length of {k}": v for k, v in LONG_LENGTHS.items()}))
def test_w19_a_length_longer_than_it_need_be_is_read(tmp_path, payload):
    assert protobuf_example(payload) == {"a": ("int64", [1])}
    check_read(tmp_path, [payload, example(a=ints(1))], [{"a": ("int64", [1])}] * 2)


@levels
def test_w19_a_tag_or_length_of_six_bytes_is_refused(tmp_path, level):
    for extra in (padded(9 << 3, 6) + b"\x01", b"\x4a" + padded(0, 6)):
        with pytest.raises(RefusedError):
            protobuf_example(LEVELS[level](extra))
        check_refused(tmp_path, LEVELS[level](extra), TOO_LONG, FIELD[level])


def with_length(content: bytes, length: int | bytes) -> bytes:
    """Return field 1 with another length than the length of its content."""
    return b"\x0a" + (length if isinstance(length, bytes) else write_varint(length)) + content


@pytest.mark.parametrize("length", [2, 3, 100, 127, 128, 16383, 2**21])
def test_w20_inner_lengths_that_overrun_are_refused(tmp_path, length):
    check_refused(tmp_path, example(a=delimited(3, with_length(b"\x01", length))), OVERRUN, "a")
    check_refused(tmp_path, features(with_length(b"", length)), OVERRUN)
    check_refused(tmp_path, features(KEY + b"\x12" + write_varint(length) + b"\x20"), OVERRUN)
    if length > 3:
        check_refused(tmp_path, example(a=b"\x1a" + write_varint(length) + PACKED), OVERRUN, "a")


@pytest.mark.parametrize("beyond", [1, 2, 80, 10_000])
def test_w21_outer_lengths_that_overrun_are_refused(tmp_path, beyond):
    whole = delimited(1, entry("a", ONE))
    check_refused(tmp_path, with_length(whole, len(whole) + beyond), OVERRUN)
    inner = entry("a", ONE)
    check_refused(tmp_path, wrapped(with_length(inner, len(inner) + beyond), 1), OVERRUN)
    # Behind a record lie its CRC and the next frame: a length must not reach into them.
    check_refused(tmp_path, example(a=ONE) + with_length(b"", beyond), OVERRUN)


def test_w22_a_record_cut_at_every_byte_is_refused_but_for_the_empty_one(tmp_path):
    payload = features(entry("a", ONE), entry("bb", write_feature(floats(0, 1))), entry("c" * 30, ONE))
    for stop in range(1, len(payload)):
        with pytest.raises(RefusedError):
            protobuf_example(payload[:stop])
        read = read_outcomes([payload[:stop]], ["a", "bb", "c" * 30])
        assert isinstance(read[0], Refused), stop
        for wanted in ([], ["a"], ["c" * 30]):
            assert isinstance(read_outcomes([payload[:stop]], wanted)[0], Refused), (stop, wanted)
    # Each cut between whole records, so that the file is one of Examples.
    payloads = [part for stop in range(len(payload)) for part in (payload[:stop], payload)]
    cuts = list(range(2, len(payloads), 2))
    split = open_split(write_plain(tmp_path / "cut.tfrecord", payloads), on_error="collect")
    whole = ["a", "bb", "c" * 30]
    assert [sorted(sample) for sample in split] == [[], *[whole] * len(payload)]
    assert [error.record for error in split.rejected] == cuts
    assert sorted(check_payloads(payloads).refused) == cuts


HUGE = {
    "2^31 - 1": (write_varint(2**31 - 1), OVERRUN),
    "2^31": (write_varint(2**31), OVERRUN),
    "2^32 + 1": (write_varint(2**32 + 1), OVERRUN),
    "2^35 - 1": (write_varint(2**35 - 1), OVERRUN),
    "2^35": (write_varint(2**35), TOO_LONG),
    "2^63": (write_varint(2**63), TOO_LONG),
    "2^64 - 1": (write_varint(2**64 - 1), TOO_LONG),
}


@pytest.mark.parametrize(("length", "status"), named(HUGE))
def test_w23_a_huge_length_is_refused_at_every_level(tmp_path, length, status):
    for level, put in LEVELS.items():
        check_refused(tmp_path, put(b"\x4a" + length + b"abc"), status, FIELD[level])
    check_refused(tmp_path, with_length(delimited(1, entry("a", ONE)), length), status)
    check_refused(tmp_path, wrapped(with_length(entry("a", ONE), length), 1), status)
    check_refused(tmp_path, features(with_length(b"a", length)), status)
    check_refused(tmp_path, example(a=delimited(3, with_length(b"\x01", length))), status, "a")


UNKNOWN = {
    "varint": b"\x48\x01",
    "longest varint": b"\x48" + b"\xff" * 9 + b"\x7f",
    "fixed64": b"\x49" + bytes(8),
    "bytes": b"\x4a\x03abc",
    "fixed32": b"\x4d" + bytes(4),
    "an empty group": b"\x4b\x4c",
    "a group with fields": b"\x4b\x08\x01\x12\x01x\x1d\0\0\0\0\x21" + bytes(8) + b"\x4c",
    "groups in groups": b"\x4b\x53\x5b\x5c\x54\x53\x54\x4c",
    "field 0 in a group": b"\x4b\x00\x01\x4c",
    "the largest number": write_varint((2**29 - 1) << 3) + b"\x01",
}


@levels
@pytest.mark.parametrize("extra", named(UNKNOWN))
def test_w24_unknown_fields_and_groups_are_passed_over(tmp_path, level, extra):
    payload = LEVELS[level](extra * 2)
    # protobuf's Python parser drops a whole entry that has an unknown field; its value is not lost here.
    assert protobuf_example(payload) == ({} if level == "entry" else {"a": ("int64", [1])})
    check_read(tmp_path, [payload, example(a=ints(1))], [{"a": ("int64", [1])}] * 2)


@levels
def test_w24_groups_nest_as_deep_as_protobuf_lets_them(tmp_path, level):
    deepest = DEEPEST_GROUPS[level]
    payload = LEVELS[level](b"\x4b" * deepest + b"\x4c" * deepest)
    protobuf_example(payload)
    check_read(tmp_path, [payload], [{"a": ("int64", [1])}])
    for num_groups in (deepest + 1, deepest + 2, 100_000):
        deeper = LEVELS[level](b"\x4b" * num_groups + b"\x4c" * num_groups)
        with pytest.raises(RefusedError):
            protobuf_example(deeper)
        check_refused(tmp_path, deeper, DEEP, FIELD[level])


MALFORMED = {
    "field 0, varint": (b"\x00\x01", FIELD_ZERO),
    "field 0, bytes": (b"\x02\x00", FIELD_ZERO),
    "wire type 6": (b"\x4e", BAD_TYPE),
    "wire type 7": (b"\x4f", BAD_TYPE),
    "wire type 6 of a known field": (b"\x26", BAD_TYPE),
    "end of no group": (b"\x4c", BAD_TYPE),
    "a group that does not end": (b"\x4b", OPEN_GROUP),
    "a group with fields that does not end": (b"\x4b\x08\x01", OPEN_GROUP),
    "a group that ends as another": (b"\x4b\x54", OPEN_GROUP),
    "a group in which another ends": (b"\x4b\x53\x4c\x54", OPEN_GROUP),
    "wire type 7 in a group": (b"\x4b\x0f\x4c", BAD_TYPE),
    "a varint cut": (b"\x48\x80", CUT),
    "a tag cut": (b"\xc8", CUT),
    "a tag of more than 32 bits": (b"\xc8\xff\xff\xff\x7f\x01", TOO_LONG),
    "fixed32 cut": (b"\x4d\0\0\0", OVERRUN),
    "fixed64 cut": (b"\x49" + bytes(7), OVERRUN),
}


@levels
@pytest.mark.parametrize(("extra", "status"), named(MALFORMED))
def test_w25_bytes_that_are_not_a_field_are_refused_at_every_level(tmp_path, level, extra, status):
    payload = LEVELS[level](extra)
    with pytest.raises(RefusedError):
        protobuf_example(payload)
    check_refused(tmp_path, payload, status, FIELD[level])
