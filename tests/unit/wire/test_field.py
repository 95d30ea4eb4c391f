"""Fields of any message: values, groups, and bytes that are not a field."""

import pytest

from oracle_protobuf import Example, RefusedError, protobuf_example
from raising import mentions, raises_with
from wire.fields import Span, WireError, WireType, expect_wire_type, read_fields, write_delimited

START_9, END_9 = b"\x4b", b"\x4c"


def fields_of(data: bytes, depth: int = 0) -> list[tuple[int, str, bytes]]:
    message = Span(data, 0, len(data), depth)
    return [(part.number, part.wire_type.name, part.value.tobytes()) for part in read_fields(message)]


def test_read_fields_of_each_wire_type_gives_their_bytes() -> None:
    data = b"\x08\x96\x01" + b"\x11ABCDEFGH" + b"\x1a\x02hi" + b"\x23\x08\x05\x24" + b"\x2dABCD"
    assert fields_of(data) == [
        (1, "VARINT", b"\x96\x01"),
        (2, "FIXED64", b"ABCDEFGH"),
        (3, "LENGTH_DELIMITED", b"hi"),
        (4, "START_GROUP", b"\x08\x05"),
        (5, "FIXED32", b"ABCD"),
    ]


def test_read_fields_in_the_middle_of_a_payload_gives_positions_in_the_payload() -> None:
    (part,) = read_fields(Span(b"??\x0a\x01x??", 2, 5))
    assert (part.position, part.value.start, part.value.stop, part.stop) == (2, 4, 5, 5)


@pytest.mark.parametrize(
    ("data", "reason", "facts"),
    [
        (b"\x00\x00", "field_zero", "0 1 0"),
        (b"\x08\x01\x80\x00\x00", "field_zero", "2 1 0"),
        (b"\x0e", "reserved_wire_type", "0 0 5 6"),
        (b"\x0f", "reserved_wire_type", "0 0 5 7"),
        (b"\x4c", "stray_end_group", "0 9"),
        (b"\x0d123", "truncated", "1 4 3"),
        (b"\x091234567", "truncated", "1 8 7"),
        (b"\x08", "truncated", "1 0 bytes"),
        (b"\x0a\x02a", "length_overrun", "1 2 1"),
        (b"\x4b", "unterminated_group", "0 9 bytes"),
        (b"\x4b\x4b\x4c", "unterminated_group", "0 9 bytes"),
        (b"\x4b\x44", "stray_end_group", "1 8"),
        (b"\x4b\x04\x4c", "stray_end_group", "1 0"),
        (b"\x4b\x16\x4c", "reserved_wire_type", "1 0 5 6"),
        (b"\x4b\x12\x09a\x4c", "length_overrun", "2 9 2"),
    ],
)
def test_read_fields_of_bytes_that_are_not_a_field_is_refused_as_protobuf_does(
    data: bytes, reason: str, facts: str
) -> None:
    with pytest.raises(WireError) as caught:
        fields_of(data)
    assert caught.value.reason == reason
    assert mentions(caught.value, facts)
    with pytest.raises(RefusedError):
        protobuf_example(data)


@pytest.mark.parametrize(
    "content", [b"\x00\x01", b"\x02\x01x", b"\x03\x04", b"\x53\x00\x01\x54"], ids=lambda data: data.hex()
)
def test_field_number_zero_inside_a_group_is_passed_over_as_protobuf_does(content: bytes) -> None:
    data = START_9 + content + END_9
    assert fields_of(data) == [(9, "START_GROUP", content)]
    assert protobuf_example(data) == {}


@pytest.mark.parametrize("depth", range(6))
def test_groups_up_to_the_depth_limit_are_passed_over_and_no_deeper(depth: int) -> None:
    deepest = 100 - depth
    assert len(fields_of(START_9 * deepest + END_9 * deepest, depth)) == 1
    with raises_with(WireError, "100") as caught:
        fields_of(START_9 * (deepest + 1) + END_9 * (deepest + 1), depth)
    assert caught.value.reason == "too_deep"


def test_groups_in_great_number_end_without_recursion() -> None:
    with pytest.raises(WireError) as caught:
        fields_of(START_9 * 1_000_000)
    assert caught.value.reason == "too_deep"


def test_expect_wire_type_with_another_one_names_the_field() -> None:
    (part,) = read_fields(Span.whole(b"\x08\x01"))
    with pytest.raises(WireError) as caught:
        expect_wire_type(part, "FloatList.value", WireType.LENGTH_DELIMITED, WireType.FIXED32)
    assert caught.value.reason == "wrong_wire_type"
    assert mentions(caught.value, "0 FloatList.value LENGTH_DELIMITED FIXED32 VARINT")


def test_write_delimited_of_a_long_content_has_a_long_length() -> None:
    data = write_delimited(16, b"x" * 200)
    assert data[:4] == b"\x82\x01\xc8\x01"
    assert Example.FromString(data).SerializeToString() == data
