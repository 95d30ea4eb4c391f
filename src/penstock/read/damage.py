"""Damage of a file's frames in words.

In: what the core's scanner found (native/record/frame_scanner.h). Out: `Damage`, with kind and position,
and the error to raise for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock import _native
from penstock.errors import CorruptRecordError

_LENGTH_CRC, _PAST_END, _TOO_LARGE, _CUT_HEADER, _CUT_PAYLOAD, _PAYLOAD_CRC = range(1, 7)


@dataclass(frozen=True)
class Damage:
    """A stretch of a file that is no sound record; it counts as one record.

    Attributes:
        record: Its number in the file.
        offset: Where it begins, in the inflated bytes of a compressed file.
        size: How many bytes it covers.
        field: The part that is wrong: "length", "length_crc", "header", "payload" or "compression".
        what: The fault in words.
        expected: What should have been there.
        got: What was.
        has_header: Whether it begins with a header whose CRC fits, as only a TFRecord does.
        is_cut: Whether the file, or what could be inflated of it, ends inside it.
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
        """Word what the core found."""
        record, offset, size, kind, length_is_right, expected, got = damage
        field, what, wanted, there = _word(kind, length_is_right, size, expected, got)
        has_header = kind not in (_LENGTH_CRC, _CUT_HEADER)
        is_cut = kind in (_CUT_HEADER, _CUT_PAYLOAD)
        return cls(record, offset, size, field, what, wanted, there, has_header, is_cut)

    @classmethod
    def from_stream(
        cls, failure: CorruptRecordError, last: Damage | None, num_records: int, end: int
    ) -> Damage:
        """Word what is wrong with a compressed stream: damage behind its last record.

        A record that the stream's end cut off is a part of it, not a fault of its own: the stream is the
        cause.

        Args:
            failure: What inflating raised.
            last: The damage that the last of the records is, if it is one.
            num_records: How many records, sound or damaged, were found before inflating failed.
            end: How many bytes could be inflated.
        """
        record, offset, has_header = num_records, end, False
        if last is not None and last.is_cut:
            record, offset, has_header = last.record, last.offset, last.has_header
        expected, got = str(failure.expected), str(failure.got)
        return cls(record, offset, end - offset, "compression", failure.what, expected, got, has_header)

    def error(self, path: Path) -> CorruptRecordError:
        """Return the error for it."""
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
        what = (
            "CRC of the length"
            if length_is_right
            else f"length (its CRC does not fit; {size} bytes passed over)"
        )
        return field, what, f"{expected:#010x}", f"{got:#010x}"
    if kind == _PAST_END:
        what = f"length (it runs past the end of the file; {size} bytes passed over)"
        return "length", what, f"at most {expected} bytes", f"{got} bytes"
    if kind == _TOO_LARGE:
        return "length", "length (above max_record_bytes)", f"at most {expected} bytes", f"{got} bytes"
    if kind == _CUT_HEADER:
        return "header", "header (the file ends inside it)", f"{expected} bytes", f"{got} bytes"
    if kind == _CUT_PAYLOAD:
        return "payload", "payload (the file ends inside it)", f"a frame of {expected} bytes", f"{got} bytes"
    return "payload", "payload CRC", f"{expected:#010x}", f"{got:#010x}"
