"""Descriptions of damaged frames.

In: findings of the core's scanner (native/record/frame_scanner.h). Out: `Damage`, with kind and position,
and the error to raise for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock import _native
from penstock.errors import CorruptRecordError
from penstock.storage.store_path import AnyPath

_LENGTH_CRC, _PAST_END, _TOO_LARGE, _CUT_HEADER, _CUT_PAYLOAD, _PAYLOAD_CRC = range(1, 7)


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

        Args:
            failure: Error raised by decompression.
            last: Damage of the last record, if it is damaged.
            num_records: Number of records, intact or damaged, found before decompression failed.
            end: Number of bytes that could be decompressed.
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
    if kind == _CUT_PAYLOAD:
        return "payload", "payload (the file ends inside it)", f"a frame of {expected} bytes", f"{got} bytes"
    return "payload", "payload CRC", f"{expected:#010x}", f"{got:#010x}"
