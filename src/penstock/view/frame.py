"""The bytes of a record in its file: where they are, and whether their checksums are correct.

In: a shard and a record number. Out: `Frame`, and parts of the payload as a hex dump.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from penstock._native import masked_crc32c
from penstock.read.damage import Damage
from penstock.read.shard import Shard
from penstock.storage.store_path import AnyPath

MAX_CHECKED_BYTES: Final = 64 << 20
"""Payloads up to this size are read as a whole, to compare their CRC."""

DUMP_BYTES: Final = 1024
"""Bytes of a payload that one hex dump shows."""

_HEADER_BYTES: Final = 12
_FOOTER_BYTES: Final = 4
_LINE_BYTES: Final = 16
_PART_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Checksum:
    """A checksum in a file.

    Attributes:
        stored: Checksum that the file has; None if the file ends before it.
        computed: Checksum of the bytes; None if they were not read.
    """

    stored: int | None
    computed: int | None

    @property
    def is_correct(self) -> bool | None:
        """Whether both agree; None if this is unknown."""
        return None if self.stored is None or self.computed is None else self.stored == self.computed


@dataclass(frozen=True)
class Frame:
    """A record as it is in its file.

    Attributes:
        path: Path of the file.
        record: Number of the record in the file.
        offset: Offset of its header, in the decompressed bytes of a compressed file.
        size: Number of bytes with header and checksums, or of the damaged range.
        length: Length of the payload by the header; None if the file ends before it.
        length_crc: Checksum of the length.
        payload_crc: Checksum of the payload.
        compression: Compression of the file.
        damage: Damage that is known from the index; None if there is none.
    """

    path: AnyPath
    record: int
    offset: int
    size: int
    length: int | None
    length_crc: Checksum
    payload_crc: Checksum
    compression: str
    damage: Damage | None = None

    @property
    def payload_bytes(self) -> int:
        """Number of bytes between header and checksum; of a damaged range, all bytes after its header."""
        footer = 0 if self.damage is not None else _FOOTER_BYTES
        return max(0, self.size - _HEADER_BYTES - footer)


@dataclass(frozen=True)
class DumpLine:
    """A line of a hex dump.

    Attributes:
        offset: Offset of its first byte in the payload.
        hex: The bytes as hexadecimal digits.
        text: The bytes as ASCII characters, other bytes as dots.
    """

    offset: int
    hex: str
    text: str


def read_frame(shard: Shard, record: int) -> Frame:
    """Read a record's header and checksums."""
    offsets = shard.index.offsets
    offset, end = int(offsets[record]), int(offsets[record + 1])
    size = end - offset
    header = read_bytes(shard, record, offset, min(size, _HEADER_BYTES))
    length = int.from_bytes(header[:8], "little") if len(header) >= 8 else None
    stored = int.from_bytes(header[8:12], "little") if len(header) == _HEADER_BYTES else None
    damage = shard.index.damages.get(record)
    payload_crc = Checksum(None, None)
    if damage is None and size >= _HEADER_BYTES + _FOOTER_BYTES:
        footer = int.from_bytes(read_bytes(shard, record, end - _FOOTER_BYTES, _FOOTER_BYTES), "little")
        computed = None
        if size <= MAX_CHECKED_BYTES:
            payload = read_bytes(shard, record, offset + _HEADER_BYTES, size - _HEADER_BYTES - _FOOTER_BYTES)
            computed = masked_crc32c(payload)
        payload_crc = Checksum(footer, computed)
    return Frame(
        shard.path,
        record,
        offset,
        size,
        length,
        Checksum(stored, masked_crc32c(header[:8]) if length is not None else None),
        payload_crc,
        shard.index.compression,
        damage,
    )


def dump_payload(shard: Shard, frame: Frame, start: int) -> list[DumpLine]:
    """Return a part of the payload as a hex dump, from a multiple of 16 bytes on."""
    first = min(start, frame.payload_bytes) // _LINE_BYTES * _LINE_BYTES
    size = min(DUMP_BYTES, frame.payload_bytes - first)
    data = read_bytes(shard, frame.record, frame.offset + _HEADER_BYTES + first, size)
    return [
        DumpLine(first + at, data[at : at + _LINE_BYTES].hex(" "), _as_ascii(data[at : at + _LINE_BYTES]))
        for at in range(0, len(data), _LINE_BYTES)
    ]


def iterate_payload(shard: Shard, frame: Frame) -> Iterator[bytes]:
    """Yield the payload of a record, or the bytes of a damaged range after its header, in parts."""
    start, size = frame.offset + _HEADER_BYTES, frame.payload_bytes
    # Without a decompressed copy, each part would be decompressed from the start of the file.
    step = _PART_BYTES if shard.file() is not None else max(1, size)
    for at in range(0, size, step):
        yield read_bytes(shard, frame.record, start + at, min(step, size - at))


def read_bytes(shard: Shard, record: int, offset: int, size: int) -> bytes:
    """Return bytes of the file of a record, which must lie inside the record; fewer if the file ends."""
    if size <= 0:
        return b""
    file = shard.file()
    if file is not None:
        return file.read(offset, size)
    # A compressed file without room for a decompressed copy: it is decompressed up to the record.
    _, data, start, *_ = shard.segment(slice(record, record + 1))
    return b"" if data is None else bytes(memoryview(data)[offset - start : offset - start + size])  # type: ignore[arg-type]


def _as_ascii(data: bytes) -> str:
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in data)
