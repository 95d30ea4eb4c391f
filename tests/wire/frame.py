"""The TFRecord frame: payloads to the bytes of a file, and back, with CRC32C.

A file is a sequence of records, with no header and no end mark. All numbers are little-endian:
`uint64 length, uint32 masked CRC of those 8 bytes, payload, uint32 masked CRC of the payload`.
"""

import struct
from collections.abc import Iterable, Iterator

from wire.fields import WireError

# The polynomial 0x1EDC6F41 with its bits reversed, since the CRC takes the lowest bit of each byte first.
_POLYNOMIAL = 0x82F63B78
# What TFRecord adds after the rotation, so that a CRC over bytes that hold CRCs does not degenerate.
_MASK_DELTA = 0xA282EAD8
_UINT32 = 0xFFFFFFFF


def _table_entry(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ _POLYNOMIAL if byte & 1 else byte >> 1
    return byte


_TABLE = tuple(_table_entry(byte) for byte in range(256))


def crc32c(data: bytes) -> int:
    """Return the CRC32C of `data`.

    Example:
        >>> hex(crc32c(b"123456789"))
        '0xe3069283'
    """
    crc = _UINT32
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ _UINT32


def masked_crc32c(data: bytes) -> int:
    """Return the CRC32C of `data`, rotated right by 15 bits and shifted by a constant.

    Example:
        >>> hex(masked_crc32c(b"123456789"))
        '0xc78ab0e5'
    """
    crc = crc32c(data)
    rotated = ((crc >> 15) | (crc << 17)) & _UINT32
    return (rotated + _MASK_DELTA) & _UINT32


HEADER_BYTES = 12
FOOTER_BYTES = 4

_LENGTH = struct.Struct("<Q")
_CRC = struct.Struct("<I")


def write_record(payload: bytes) -> bytes:
    """Return the whole frame of one record.

    Example:
        >>> write_record(b"").hex()
        '000000000000000029039807d8ea82a2'
    """
    length = _LENGTH.pack(len(payload))
    return b"".join(
        (length, _CRC.pack(masked_crc32c(length)), payload, _CRC.pack(masked_crc32c(payload))),
    )


def write_records(payloads: Iterable[bytes]) -> bytes:
    """Return the bytes of an uncompressed file with these records."""
    return b"".join(write_record(payload) for payload in payloads)


def read_records(data: bytes) -> Iterator[bytes]:
    """Yield the payloads of an uncompressed file's bytes, each after both its CRCs were checked.

    Raises:
        WireError: At the first fault, after the records before it were yielded: `length_crc`,
            `payload_crc`, `truncated_header` (1 to 11 bytes are left) or `truncated_record`.
    """
    position = 0
    while position < len(data):
        payload = _read_record(data, position)
        yield payload
        position += HEADER_BYTES + len(payload) + FOOTER_BYTES


def _read_record(data: bytes, position: int) -> bytes:
    left = len(data) - position
    if left < HEADER_BYTES:
        raise WireError(
            "truncated_header", position, f"expected a header of {HEADER_BYTES} bytes, got {left}"
        )
    length_bytes = data[position : position + _LENGTH.size]
    _check_crc("length", length_bytes, data, position + _LENGTH.size)
    (length,) = _LENGTH.unpack(length_bytes)
    left -= HEADER_BYTES
    if length + FOOTER_BYTES > left:
        raise WireError(
            "truncated_record",
            position,
            f"expected a payload of {length} bytes and its CRC of {FOOTER_BYTES}, got {left} bytes",
        )
    start = position + HEADER_BYTES
    payload = data[start : start + length]
    _check_crc("payload", payload, data, start + length)
    return payload


def _check_crc(part: str, content: bytes, data: bytes, position: int) -> None:
    """Compare the CRC stored at `position` with the CRC of `content`."""
    (stored,) = _CRC.unpack_from(data, position)
    computed = masked_crc32c(content)
    if stored != computed:
        raise WireError(
            "length_crc" if part == "length" else "payload_crc",
            position,
            f"{part} CRC: expected {computed:#010x}, got {stored:#010x}",
        )
