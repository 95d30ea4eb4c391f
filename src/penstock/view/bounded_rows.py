"""Rows in which oversized records are treated as unreadable.

In: shards and a limit. Out: `BoundedRows`, for pages, scans and statistics alike: none of them reads such a
record, so that the memory of the viewer does not depend on what a file holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Payload
from penstock.errors import OptionError
from penstock.read.damage import Damage
from penstock.read.rows import Rows
from penstock.read.shard import Shard
from penstock.schema.array import Sequence as SequenceField
from penstock.schema.schema import Schema
from penstock.storage.store_path import AnyPath

MAX_RECORD_BYTES: Final = 32 << 20
"""Larger records are not decoded: their bytes, columns and values take about four times as much memory."""

MAX_LIST_RECORD_BYTES: Final = 6 << 20
"""The same for records with lists of integers or strings: two bytes become a Python object of fifty."""


SCAN_BYTES: Final = 2 << 20
"""Bytes of records that a thread of a scan decodes together."""

_LARGE_BYTES: Final = 4 << 20
_MOST_THREADS: Final = 4


def find_record_limit(schema: Schema, payload: Payload) -> int:
    """Return the largest size in bytes of records that are decoded."""
    lists = [field for field in schema.values() if isinstance(field, SequenceField)]
    is_dense = payload == "example" and all(field.kind == "float" for field in lists)
    return MAX_RECORD_BYTES if is_dense or not lists else MAX_LIST_RECORD_BYTES


@dataclass(frozen=True)
class TooLarge(Damage):
    """A record that is intact as far as is known, but too large to show."""

    def error(self, path: AnyPath) -> OptionError:  # type: ignore[override]  # it is not corrupt
        """Return the error of the record."""
        return OptionError(
            "size",
            path=path,
            record=self.record,
            offset=self.offset,
            field=self.field,
            expected=self.expected,
            got=self.got,
        )


class _Sizes(NamedTuple):
    """Sizes of the records of a file.

    Attributes:
        largest: Size of the largest record in bytes.
        too_large: Numbers of the records above the limit, ascending.
    """

    largest: int
    too_large: NDArray[np.int64]


def cut_by_bytes(
    rows: Rows, wanted: NDArray[np.int64], most_bytes: int, most_rows: int | None = None
) -> Iterator[NDArray[np.int64]]:
    """Yield row numbers in groups whose records have a limited size, or one record."""
    start, num_bytes = 0, 0
    for at, row in enumerate(wanted.tolist()):
        size = rows.frame_bytes(row, row + 1)
        if at > start and (at - start == most_rows or num_bytes + size > most_bytes):
            yield wanted[start:at]
            start, num_bytes = at, 0
        num_bytes += size
    if start < len(wanted):
        yield wanted[start:]


class BoundedRows(Rows):
    """Rows of several shards, without mappings of files; records of more than `limit` bytes are not read."""

    def __init__(self, shards: Sequence[Shard], limit: int) -> None:
        super().__init__(shards, can_map=False)
        self.limit = limit
        self._sizes: dict[AnyPath, _Sizes] = {}

    @property
    def largest(self) -> int:
        """Size in bytes of the largest record that is read; loads the index of every file."""
        sizes = (self._measure(shard) for shard in self.shards)
        return min(self.limit, max((each.largest for each in sizes), default=0))

    @property
    def num_threads(self) -> int:
        """Number of threads for a scan: one, if single records take much memory."""
        return 1 if self.largest > _LARGE_BYTES else min(_MOST_THREADS, os.cpu_count() or 1)

    def in_order(self) -> BoundedRows:
        """Return the same rows, to be read once from the first to the last."""
        return self._derive([shard.in_order() for shard in self.shards])

    def of_file(self, number: int) -> BoundedRows:
        """Return the rows of one file."""
        return self._derive([self.shards[number]])

    def damages(self, start: int, stop: int) -> Iterator[tuple[int, Shard, Damage]]:
        """Yield the rows of a range that are damaged or too large, in order."""
        found = list(super().damages(start, stop))
        known = {row for row, _, _ in found}
        for shard, first, begin, end in self._parts(start, stop):
            numbers = self._measure(shard).too_large
            for record in numbers[slice(*np.searchsorted(numbers, (begin, end)))].tolist():
                if first + record - begin not in known:
                    found.append((first + record - begin, shard, self._describe(shard, record)))
        yield from sorted(found, key=lambda each: each[0])

    def damaged(self, rows: NDArray[np.int64]) -> list[tuple[int, Shard, Damage]]:
        """Return which of some rows are damaged or too large: (index in `rows`, shard, damage)."""
        found = super().damaged(rows)
        known = {at for at, _, _ in found}
        for at, row in enumerate(rows.tolist()):
            shard, record = self.locate(row)
            numbers = self._measure(shard).too_large
            if at not in known and len(numbers) and record in numbers:
                found.append((at, shard, self._describe(shard, record)))
        return found

    def _derive(self, shards: Sequence[Shard]) -> BoundedRows:
        made = BoundedRows(shards, self.limit)
        made._sizes = self._sizes
        return made

    def _measure(self, shard: Shard) -> _Sizes:
        found = self._sizes.get(shard.path)
        if found is None:
            index = shard.index
            if index.compression == "none" and index.identity.size <= self.limit:
                found = _Sizes(index.identity.size, np.empty(0, np.int64))  # without a look at the offsets
            else:
                sizes = np.diff(index.offsets.astype(np.int64))
                found = _Sizes(int(sizes.max(initial=0)), np.flatnonzero(sizes > self.limit))
            self._sizes[shard.path] = found
        return found

    def _describe(self, shard: Shard, record: int) -> TooLarge:
        offset, end = (int(each) for each in shard.index.offsets[record : record + 2])
        expected = f"at most {self.limit:,} bytes to show its values"
        return TooLarge(record, offset, end - offset, "bytes", "size", expected, f"{end - offset:,}")
