"""Records by row number: values, files, offsets, bytes and checksums, and the errors of bad records.

In: a split and row numbers, in any order. Out: `Record`s; a `Frame`, and its payload as a hex dump. Only
these records are read, at most 8 MiB of them at a time, or one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock._native import masked_crc32c
from penstock.columns import CodedColumns, Ragged, take_rows
from penstock.decode.plan import DecodePlan
from penstock.decode.reader import read_scattered
from penstock.decode.sample import iterate_samples
from penstock.errors import CorruptRecordError, FieldError, OptionError, PenstockError
from penstock.read.damage import Damage
from penstock.read.rows import Rows
from penstock.read.scatter import Scatter
from penstock.read.shard import Shard
from penstock.schema.array import Sequence
from penstock.schema.schema import Schema
from penstock.storage.store_path import AnyPath
from penstock.view.opened_data import OpenedData, cut_by_bytes
from penstock.view.selection import BadRows

_MAX_CHECKED_BYTES: Final = 64 << 20
"""Payloads up to this size are read as a whole, to compare their CRC."""

DUMP_BYTES: Final = 1024
"""Bytes of a payload that one hex dump shows."""

_HEADER_BYTES: Final = 12
_FOOTER_BYTES: Final = 4
_LINE_BYTES: Final = 16
_PART_BYTES: Final = 1 << 20
MAX_LIST_VALUES: Final = 200_000
"""Longest list of strings, or of steps, that is shown."""

_MOST_BYTES: Final = 8 << 20  # decoded together


@dataclass(frozen=True)
class Checksum:
    """A stored checksum, None if the file ends before it; and the computed one, None if it is not known."""

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
    """A line of a hex dump: offset of its first byte in the payload, and its bytes as digits and as ASCII."""

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
        if size <= _MAX_CHECKED_BYTES:
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


@dataclass(frozen=True)
class Record:
    """One record of a split.

    Attributes:
        row: Number of the record in the split.
        shard: Number of its file in the split.
        file: Name of its file.
        record: Number of the record in its file.
        offset: Offset in its file, in the decompressed bytes of a compressed one.
        size: Number of bytes in the file.
        values: Values by field; without fields that the record lacks, and empty if it cannot be read.
        error: Why the record cannot be read; None if it can.
        field_errors: Why single fields cannot be read, by field; only of a record that was requested alone.
    """

    row: int
    shard: int
    file: str
    record: int
    offset: int
    size: int
    values: dict[str, Any]
    error: PenstockError | None = None
    field_errors: dict[str, PenstockError] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """Return "intact", "damaged", "too large", or "unreadable" if it does not fit the schema."""
        if self.error is None:
            return "intact"
        if isinstance(self.error, OptionError):
            return "too large"
        return "damaged" if isinstance(self.error, CorruptRecordError) else "unreadable"


class RecordReader:
    """Reads records of the opened data; used by one thread, so that memory is bounded."""

    def __init__(self, data: OpenedData) -> None:
        self._data = data
        self._scatters: dict[str, Scatter] = {}
        self._plans: dict[tuple[str, ...], tuple[Schema, DecodePlan]] = {}

    def read(self, split: str, rows: NDArray[np.int64]) -> Iterator[Record]:
        """Yield the records of some rows, in their order; values of earlier ones are not kept."""
        scatter = self._scatter(split)
        for group in cut_by_bytes(scatter.rows, rows, _MOST_BYTES):
            yield from self._read_group(scatter, group, tuple(self._data.schema))

    def read_one(self, split: str, row: int) -> Record:
        """Return one record; if a field does not fit the schema, with the values of the other fields."""
        scatter = self._scatter(split)
        self.check_row(split, row)
        wanted = np.array([row], np.int64)
        (record,) = self._read_group(scatter, wanted, tuple(self._data.schema))
        if not isinstance(record.error, FieldError):
            return record
        values, errors = {}, {}
        for name in self._data.schema:
            (single,) = self._read_group(scatter, wanted, (name,))
            values.update(single.values)
            if single.error is not None:
                errors[name] = single.error
        return Record(**{**vars(record), "values": values, "field_errors": errors})

    def read_frame(self, split: str, row: int) -> tuple[Shard, Frame]:
        """Return the file of a record, and its header and checksums."""
        self.check_row(split, row)
        shard, record = self._data.rows(split).locate(row)
        return shard, read_frame(shard, record)

    def check_row(self, split: str, row: int) -> None:
        """Refuse a row that does not exist."""
        num_rows = len(self._data.rows(split))
        if not 0 <= row < num_rows:
            expected = f"a number from 0 to {num_rows - 1}" if num_rows else "none: the split is empty"
            raise OptionError(f"record number in split {split!r}", field="row", expected=expected, got=row)

    def _scatter(self, split: str) -> Scatter:
        if split not in self._scatters:
            self._scatters[split] = Scatter(self._data.rows(split))
        return self._scatters[split]

    def _read_group(
        self, scatter: Scatter, wanted: NDArray[np.int64], names: tuple[str, ...]
    ) -> Iterator[Record]:
        located = [_locate(scatter.rows, row) for row in wanted.tolist()]
        if not self._data.is_example:
            yield from (_check_frame(scatter.rows, record) for record in located)
            return
        bad = BadRows()
        try:
            schema, plan = self._plan(names)
            columns, kept = read_scattered(scatter, plan, bad, wanted)
        except PenstockError as error:
            yield from (Record(**{**vars(record), "error": error}) for record in located)
            return
        good = wanted if kept is None else wanted[kept]
        long = _find_long(columns, schema, good, scatter.rows)
        if long:
            bad.errors_by_row.update(long)
            intact = np.flatnonzero([row not in long for row in good.tolist()])
            columns, good = take_rows(columns, intact), good[intact]
        num_rows = len(good)
        samples = iterate_samples(columns, schema, num_rows)  # type: ignore[arg-type]  # without dictionaries
        for record in located:
            fault = bad.errors_by_row.get(record.row)
            yield Record(**{**vars(record), "values": {} if fault else next(samples), "error": fault})

    def _plan(self, names: tuple[str, ...]) -> tuple[Schema, DecodePlan]:
        if names not in self._plans:
            schema = self._data.schema.select(names)
            self._plans[names] = (schema, DecodePlan(schema, strict=self._data.strict))
        return self._plans[names]


def _find_long(
    columns: CodedColumns, schema: Schema, wanted: NDArray[np.int64], rows: Rows
) -> dict[int, PenstockError]:
    """Return the errors of records with lists of so many Python objects that making them takes seconds."""
    errors: dict[int, PenstockError] = {}
    for name, each in schema.items():
        if not isinstance(each, Sequence) or (each.stored == "feature" and each.kind != "bytes"):
            continue  # numbers in one list are one array
        lists = Ragged.of(columns[name])
        lengths = np.maximum(lists.lengths, np.diff(lists.flatten()[1]))
        for at in np.flatnonzero(lengths > MAX_LIST_VALUES).tolist():
            shard, record = rows.locate(int(wanted[at]))
            errors[int(wanted[at])] = FieldError(
                "number of values",
                path=shard.path,
                record=record,
                field=name,
                expected=f"at most {MAX_LIST_VALUES:,} to show them",
                got=f"{int(lengths[at]):,}",
            )
    return errors


def _locate(rows: Rows, row: int) -> Record:
    shard, record = rows.locate(row)
    offset, end = (int(each) for each in shard.index.offsets[record : record + 2])
    number = bisect_right(rows.starts, row) - 1
    return Record(row, number, shard.path.name, record, offset, end - offset, {})


def _check_frame(rows: Rows, record: Record) -> Record:
    """Find out whether a record that is not an Example is intact, by its checksums."""
    for _, shard, damage in rows.damaged(np.array([record.row])):
        return Record(**{**vars(record), "error": damage.error(shard.path)})
    try:
        frame = read_frame(rows.shards[record.shard], record.record)
    except PenstockError as error:
        return Record(**{**vars(record), "error": error})
    fault = _payload_error(frame) if frame.payload_crc.is_correct is False else None
    return Record(**{**vars(record), "error": fault})


def _payload_error(frame: Frame) -> CorruptRecordError:
    crc = frame.payload_crc
    return CorruptRecordError(
        "payload CRC",
        path=frame.path,
        record=frame.record,
        offset=frame.offset,
        field="payload",
        expected=f"{crc.stored:#010x}",
        got=f"{crc.computed:#010x}",
    )
