"""Varints, and the two numbers that are written as varints with tighter limits: tags and lengths.

A varint holds seven bits a byte, lowest first; the top bit says that more follow. More bytes than needed
are allowed everywhere, up to the limit. The limits are those of protobuf's own parser (upb).
"""

from penstock.wire.error import Reason, WireError

# Those of protobuf 7.34 and later. Before, a length could take ten bytes too.
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
        The value, and the position behind it.
    """
    return _read(data, position, stop, MAX_VARINT_BYTES)


def read_tag(data: bytes, position: int, stop: int) -> tuple[int, int, int]:
    """Read a tag: at most five bytes and 32 bits.

    Returns:
        The field number (0 is not refused here), the wire type, and the position behind the tag.
    """
    tag, behind = _read_limited(data, position, stop, MAX_TAG_BYTES, MAX_TAG, "tag_too_large")
    return tag >> 3, tag & 7, behind


def read_length(data: bytes, position: int, stop: int) -> tuple[int, int]:
    """Read a length: at most five bytes and 31 bits, and no more than the bytes behind it.

    Returns:
        The length, and the position behind it, where the content starts.
    """
    length, start = _read_limited(data, position, stop, MAX_LENGTH_BYTES, MAX_LENGTH, "length_too_large")
    if length > stop - start:
        raise WireError("length_overrun", position, f"expected {length} bytes, got {stop - start}")
    return length, start


def _read_limited(
    data: bytes, position: int, stop: int, max_bytes: int, max_value: int, reason: Reason
) -> tuple[int, int]:
    value, behind = _read(data, position, stop, max_bytes)
    if value > max_value:
        raise WireError(reason, position, f"expected at most {max_value}, got {value}")
    return value, behind


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
