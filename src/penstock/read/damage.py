"""Descriptions of damaged frames, and of records that do not fit into memory.

In: findings of the core's scanner (native/record/frame_scanner.h). Out: `Damage`, with kind and position,
and the error to raise for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from penstock import _native
from penstock.errors import CorruptRecordError, OutOfMemoryError
from penstock.storage.store_path import AnyPath

_LENGTH_CRC, _PAST_END, _TOO_LARGE, _CUT_HEADER, _CUT_PAYLOAD, _PAYLOAD_CRC, _CUT_SHORT = range(1, 8)


@dataclass(frozen=True)
class Damage:
    """A damaged range of a file; it counts as one record.

    Attributes:
        record: Record number in the file.
        offset: Offset of the range, in the decompressed bytes of a compressed file.
        size: Size of the range in bytes.
        field: Damaged part: "length", "length_crc", "header", "payload" or "compression".
        what: Description of the damage.
        expected: Expected value.
        got: Actual value.
        has_header: Whether the range begins with a header with a valid CRC, as only a TFRecord file has.
        is_cut: Whether the file, or the part that could be decompressed, ends inside the range.
    """

    record: int
    offset: int
    size: int
    field: str
    what: str
    expected: str
    got: str
    has_header: bool = True
    is_cut: bool = False

    @classmethod
    def from_core(cls, damage: _native.Damage) -> Damage:
        """Describe a finding of the core."""
        record, offset, size, kind, length_is_right, expected, got = damage
        field, what, wanted, there = _word(kind, length_is_right, size, expected, got)
        has_header = kind not in (_LENGTH_CRC, _CUT_HEADER)
        is_cut = kind in (_CUT_HEADER, _CUT_PAYLOAD)
        return cls(record, offset, size, field, what, wanted, there, has_header, is_cut)

    @classmethod
    def from_stream(
        cls, failure: CorruptRecordError, last: Damage | None, num_records: int, end: int
    ) -> Damage:
        """Describe the error of a compressed stream, as damage after its last record.

        A record that is cut off where the stream ends is part of this damage: the stream is the cause.

        `last`: damage of the last record, if it is damaged. `num_records`: number of records, intact or
        damaged, found before decompression failed.
        """
        record, offset, has_header = num_records, end, False
        if last is not None and last.is_cut:
            record, offset, has_header = last.record, last.offset, last.has_header
        expected, got = str(failure.expected), str(failure.got)
        return cls(record, offset, end - offset, "compression", failure.what, expected, got, has_header)

    def error(self, path: AnyPath) -> CorruptRecordError:
        """Return the error to raise for this damage."""
        return CorruptRecordError(
            self.what,
            path=path,
            record=self.record,
            offset=self.offset,
            field=self.field,
            expected=self.expected,
            got=self.got,
            advice=f"Run 'penstock verify {path}'.",
        )


class FrameScanner(Protocol):
    """A scanner of the core that is fed the bytes of a file in order."""

    @property
    def location(self) -> tuple[int, int]:
        """Number and offset of the record that is being read."""


@contextmanager
def naming_record(path: AnyPath, scanner: FrameScanner) -> Iterator[None]:
    """Turn a `MemoryError` while a chunk is fed into one that names the file and the record.

    A record that does not fit into memory began in an earlier chunk.
    """
    record, offset = scanner.location
    try:
        yield
    except MemoryError:
        raise too_large_for_memory(path, record, offset) from None


def too_large_for_memory(
    path: AnyPath, record: int | None = None, offset: int | None = None
) -> OutOfMemoryError:
    """Return the error for a record that does not fit into memory."""
    return OutOfMemoryError(
        "a record does not fit into memory: payload",
        path=path,
        record=record,
        offset=offset,
        advice="Use a machine with more memory, or a smaller limit for records: `max_record_bytes=SIZE`.",
    )


def _word(kind: int, length_is_right: bool, size: int, expected: int, got: int) -> tuple[str, str, str, str]:
    if kind == _LENGTH_CRC:
        field = "length_crc" if length_is_right else "length"
        what = "CRC of the length" if length_is_right else f"length (its CRC is wrong; {size} bytes skipped)"
        return field, what, f"{expected:#010x}", f"{got:#010x}"
    if kind == _PAST_END:
        what = f"length (beyond the end of the file; {size} bytes skipped)"
        return "length", what, f"at most {expected} bytes", f"{got} bytes"
    if kind == _TOO_LARGE:
        return "length", "length (above max_record_bytes)", f"at most {expected} bytes", f"{got} bytes"
    if kind == _CUT_HEADER:
        return "header", "header (the file ends inside it)", f"{expected} bytes", f"{got} bytes"
    if kind in (_CUT_PAYLOAD, _CUT_SHORT):
        why = "the file ends" if kind == _CUT_PAYLOAD else "the record is cut short: the next one begins"
        return "payload", f"payload ({why} inside it)", f"a frame of {expected} bytes", f"{got} bytes"
    return "payload", "payload CRC", f"{expected:#010x}", f"{got:#010x}"
