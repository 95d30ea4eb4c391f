"""Protobuf syntax: the bytes of one message to (number, wire type, value), and back.

Everything that breaks protobuf's syntax is refused here; the meaning of a field number is up to the caller.
A varint holds seven bits per byte, lowest first; the top bit says that more follow. More bytes than needed
are allowed everywhere, up to the limits of protobuf's own parser (upb).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

Reason = Literal[
    # The frame.
    "length_crc",
    "payload_crc",
    "truncated_header",
    "truncated_record",
    # Varints, tags and lengths.
    "truncated",
    "varint_too_long",
    "tag_too_large",
    "length_too_large",
    "length_overrun",
    # Fields and groups.
    "field_zero",
    "reserved_wire_type",
    "stray_end_group",
    "unterminated_group",
    "too_deep",
    # The messages.
    "wrong_wire_type",
    "packed_size",
    "invalid_utf8",
    # With strict=True only.
    "varint_overflow",
    "duplicate_key",
    "repeated_message",
]


class WireError(ValueError):
    """Refuse bytes that break the format.

    Attributes:
        reason: The fault, as a word to compare with.
        position: The byte at which it was found, counted from the start of the data that was read.
        detail: The fault, as a sentence: expected and got.
    """

    def __init__(self, reason: Reason, position: int, detail: str) -> None:
        super().__init__(reason, position, detail)
        self.reason: Reason = reason
        self.position = position
        self.detail = detail

    def __str__(self) -> str:
        return f"byte {self.position}: {self.detail}"


# The limits of protobuf 7.34 and later. Before, a length could take ten bytes too.
MAX_VARINT_BYTES = 10
MAX_TAG_BYTES = 5
MAX_LENGTH_BYTES = 5
MAX_TAG = 2**32 - 1
MAX_LENGTH = 2**31 - 1

_UINT64 = 2**64 - 1


def write_varint(value: int) -> bytes:
    """Return `value` (0 to 2^64 - 1) in as few bytes as it takes.

    Example:
        >>> write_varint(300).hex()
        'ac02'
    """
    if not 0 <= value <= _UINT64:
        raise ValueError(f"varint: expected 0 to {_UINT64}, got {value}")
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, position: int, stop: int) -> tuple[int, int]:
    """Read a varint of at most ten bytes that ends before `stop`.

    The value is what the bytes say, up to 70 bits: ten bytes can hold more than 64, and it is for the
    caller to cut them off or to object.

    Returns:
        The value, and the position after it.
    """
    return _read(data, position, stop, MAX_VARINT_BYTES)


def read_tag(data: bytes, position: int, stop: int) -> tuple[int, int, int]:
    """Read a tag: at most five bytes and 32 bits.

    Returns:
        The field number (0 is not refused here), the wire type, and the position after the tag.
    """
    tag, end = _read_limited(data, position, stop, MAX_TAG_BYTES, MAX_TAG, "tag_too_large")
    return tag >> 3, tag & 7, end


def read_length(data: bytes, position: int, stop: int) -> tuple[int, int]:
    """Read a length: at most five bytes and 31 bits, and no more than the bytes after it.

    Returns:
        The length, and the position after it, where the content starts.
    """
    length, start = _read_limited(data, position, stop, MAX_LENGTH_BYTES, MAX_LENGTH, "length_too_large")
    if length > stop - start:
        raise WireError("length_overrun", position, f"expected {length} bytes, got {stop - start}")
    return length, start


def _read_limited(
    data: bytes, position: int, stop: int, max_bytes: int, max_value: int, reason: Reason
) -> tuple[int, int]:
    value, end = _read(data, position, stop, max_bytes)
    if value > max_value:
        raise WireError(reason, position, f"expected at most {max_value}, got {value}")
    return value, end


def _read(data: bytes, position: int, stop: int, max_bytes: int) -> tuple[int, int]:
    value = 0
    for index in range(max_bytes):
        if position + index >= stop:
            raise WireError("truncated", position, f"expected a varint, got its first {index} bytes")
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position + index + 1
    raise WireError("varint_too_long", position, f"expected a varint of at most {max_bytes} bytes, got more")


# Messages inside messages and groups inside groups count alike, the outermost message not.
MAX_DEPTH = 100


class WireType(IntEnum):
    """How the bytes after a tag are laid out. 6 and 7 mean nothing and are refused."""

    VARINT = 0
    FIXED64 = 1
    LENGTH_DELIMITED = 2
    START_GROUP = 3
    END_GROUP = 4
    FIXED32 = 5


_FIXED_BYTES = {WireType.FIXED64: 8, WireType.FIXED32: 4}


@dataclass(frozen=True)
class Span:
    """Some bytes of a payload, kept with their position in it so that an error can name the byte.

    Attributes:
        data: The whole payload.
        start: Where these bytes start.
        stop: Where they end.
        depth: How many messages lie around them.
    """

    data: bytes
    start: int
    stop: int
    depth: int = 0

    @classmethod
    def whole(cls, payload: bytes) -> "Span":
        """Span all bytes of a payload: the outermost message."""
        return cls(payload, 0, len(payload))

    def tobytes(self) -> bytes:
        """Return a copy of the bytes."""
        return self.data[self.start : self.stop]


@dataclass(frozen=True)
class Field:
    """One field of a message.

    Attributes:
        number: The field number, at least 1.
        wire_type: How the value was written.
        value: The content of a length-delimited field, the four or eight bytes of a fixed one, the bytes
            of a varint, the bytes of a group up to its end tag.
        position: Where the tag is.
        stop: Where the field ends, a group's end tag included.
    """

    number: int
    wire_type: WireType
    value: Span
    position: int
    stop: int


def read_fields(message: Span) -> Iterator[Field]:
    """Yield the fields of a message in the order of the bytes.

    Raises:
        WireError: At the first byte that is no field. Field number 0 is refused, but not inside a group:
            protobuf (from 7.34 on) skips a group without checking the numbers of the fields in it.
    """
    position = message.start
    while position < message.stop:
        number, code, start = read_tag(message.data, position, message.stop)
        if number == 0:
            raise WireError("field_zero", position, "expected a field number of at least 1, got 0")
        wire_type = _wire_type(code, position)
        if wire_type is WireType.END_GROUP:
            raise WireError(
                "stray_end_group", position, f"got the end of group {number}, which was not begun"
            )
        if wire_type is WireType.START_GROUP:
            value, stop = _skip_group(message, position)
        else:
            value = _read_value(message, wire_type, start)
            stop = value.stop
        yield Field(number, wire_type, value, position, stop)
        position = stop


def expect_wire_type(field: Field, name: str, *allowed: WireType) -> Span:
    """Return the value of a field whose number is known, and refuse it in another wire type than declared.

    protobuf takes such a field for an unknown one and drops its value silently; here nothing is lost
    silently.
    """
    if field.wire_type not in allowed:
        expected = " or ".join(wire_type.name for wire_type in allowed)
        raise WireError(
            "wrong_wire_type",
            field.position,
            f"{name}: expected wire type {expected}, got {field.wire_type.name}",
        )
    return field.value


def write_delimited(number: int, content: bytes) -> bytes:
    """Return a length-delimited field: a message, a string or a packed list."""
    tag = write_varint(number << 3 | WireType.LENGTH_DELIMITED)
    return b"".join((tag, write_varint(len(content)), content))


def _wire_type(code: int, position: int) -> WireType:
    if code > WireType.FIXED32:
        raise WireError("reserved_wire_type", position, f"expected a wire type of 0 to 5, got {code}")
    return WireType(code)


def _read_value(message: Span, wire_type: WireType, start: int) -> Span:
    """Span the value that starts at `start`, of any wire type but the two of groups."""
    if wire_type is WireType.VARINT:
        stop = read_varint(message.data, start, message.stop)[1]
    elif wire_type is WireType.LENGTH_DELIMITED:
        length, start = read_length(message.data, start, message.stop)
        stop = start + length
    else:
        stop = start + _FIXED_BYTES[wire_type]
        if stop > message.stop:
            raise WireError("truncated", start, f"expected {stop - start} bytes, got {message.stop - start}")
    return Span(message.data, start, stop, message.depth + 1)


def _skip_group(message: Span, begin: int) -> tuple[Span, int]:
    """Pass over the group whose start tag is at `begin`, with the groups in it, by a list and not by calls.

    Returns:
        What lies between its two tags, and the position after the end tag.
    """
    number, _, start = read_tag(message.data, begin, message.stop)
    open_groups = [number]
    position = start
    while open_groups:
        if message.depth + len(open_groups) > MAX_DEPTH:
            raise WireError(
                "too_deep", begin, f"expected at most {MAX_DEPTH} levels of groups and messages, got more"
            )
        if position == message.stop:
            raise WireError(
                "unterminated_group", begin, f"expected the end of group {open_groups[-1]}, got no more bytes"
            )
        tag_position = position
        number, code, position = read_tag(message.data, position, message.stop)
        wire_type = _wire_type(code, tag_position)
        if wire_type is WireType.START_GROUP:
            open_groups.append(number)
        elif wire_type is not WireType.END_GROUP:
            position = _read_value(message, wire_type, position).stop
        elif open_groups.pop() != number:
            raise WireError(
                "stray_end_group", tag_position, f"got the end of group {number}, which is not the one open"
            )
    return Span(message.data, start, tag_position, message.depth + 1), position
