"""Descriptions of damaged frames, of records that do not fit into memory, and of files without records.

In: findings of the core's scanner (native/record/frame_scanner.h), or the first bytes of a file. Out:
`Damage`, with kind and position, and the error to raise for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from penstock import _native
from penstock.errors import CorruptRecordError, NotTFRecordError, OutOfMemoryError
from penstock.storage.compression import ForeignContent, describe_content, has_header, name_content
from penstock.storage.paths import is_named_like_tfrecord
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
    """Turn a `MemoryError` while a chunk is fed into one that names the record, which began earlier."""
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


def refuse_foreign(path: AnyPath, first: bytes) -> None:
    """Reject an uncompressed file that begins like a file of another format."""
    if name_content(first) is not None and not has_header(first):
        raise not_tfrecord(path, first)


def holds_no_record(num_sound: int, damages: Mapping[int, Damage]) -> bool:
    """Return whether a file with `num_sound` intact records and this damage is not a TFRecord file."""
    return num_sound == 0 and bool(damages) and not any(each.has_header for each in damages.values())


def not_tfrecord(
    path: AnyPath, first: bytes, damages: Mapping[int, Damage] | None = None
) -> NotTFRecordError:
    """Return the error for a file in which no record was found."""
    foreign = describe_content(path.name, first)
    damage = damages[0] if damages else None
    found = "other bytes"
    if damage is not None:
        is_cut = damage.field == "header"
        found = damage.got if is_cut else f"CRC {damage.expected} instead of {damage.got}"
    return NotTFRecordError(
        "not a TFRecord file",
        path=path,
        record=0,
        offset=0,
        field="length" if damage is None else damage.field,
        expected="a record header with a valid CRC",
        got=foreign.name or found,
        advice=_advise(path, foreign),
    )


def _advise(path: AnyPath, foreign: ForeignContent) -> str:
    out = path.name.split(".")[0] or "out"
    if foreign.use and is_named_like_tfrecord(path.name):
        return "If it is one, name it like one, and convert it first: `ps.convert(source, out)`."
    if foreign.use == "table" or foreign.name is None:
        call = f"`ps.convert({str(path)!r}, {f'{out}-records'!r})`"
        return (
            f"Convert it first: {call}." if foreign.use else f"If it is raw data, convert it first: {call}."
        )
    if foreign.use == "images":
        return (
            "Convert its folder, which has one folder of images per class, or a table that names images: "
            f"`ps.convert({str(path.parent)!r}, {f'{path.parent.name}-records'!r})`."
        )
    if foreign.use == "array":
        return "Load it with numpy.load, and convert the arrays: ps.convert({'values': array}, 'records')."
    if foreign.use == "database":
        url = f"duckdb:///{path}?table=NAME"
        return f"Convert one of its tables first: `ps.convert({url!r}, {f'{out}-records'!r})`."
    return "Pass TFRecord files, or convert raw data first: `ps.convert(source, out)`."
