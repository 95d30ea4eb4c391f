"""Partitions of small records on disk, each small enough for memory.

In: blocks of records, each with the index of its partition. Out: the records of one partition at a time, in
order of arrival. Everything is written once and read once; memory does not grow with the number of records.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.shards.sort.scratch import Scratch, release_pages
from penstock.shards.splits import ledger

_MAX_RANGES = 1 << 16  # numbers of partitions of 16 bits are sorted by counting, which is fast


class Partitions:
    """Records in partitions. A block is written sorted, so that its part of each partition is contiguous."""

    def __init__(self, folder: Path, num_words: int, num_partitions: int) -> None:
        """Create empty partitions.

        `num_words`: number of words of 64 bits per record. `num_partitions`: number of partitions, at most
        2**16.
        """
        self.counts = np.zeros(num_partitions, np.int64)
        self._scratch = Scratch(folder)
        self._num_words = num_words
        # For each block: the offset of the part of each partition, and as last item the end of the block.
        self._bounds: list[NDArray[np.int64]] = []

    def append(self, records: NDArray[np.uint64], numbers: NDArray[Any]) -> None:
        """Add a block of records."""
        if not len(records):
            return
        num_partitions = len(self.counts)
        if num_partitions > 1:
            narrow = np.uint8 if num_partitions <= 1 << 8 else np.uint16
            numbers = numbers.astype(narrow, copy=False)
            records = records[np.argsort(numbers, kind="stable")]
            counts = np.bincount(numbers, minlength=num_partitions)
        else:
            counts = np.array([len(records)])
        begin = self._scratch.append(np.ascontiguousarray(records))
        ends = np.cumsum(counts) * (8 * self._num_words)
        self._bounds.append(np.concatenate([[begin], ends + begin]))
        self.counts += counts

    def pieces(self, number: int) -> Iterator[NDArray[np.uint64]]:
        """Yield the records of a partition, as many at a time as a block had."""
        for bounds in self._bounds:
            num_bytes = int(bounds[number + 1] - bounds[number])
            if num_bytes:
                records = np.empty((num_bytes // (8 * self._num_words), self._num_words), np.uint64)
                self._scratch.read(int(bounds[number]), records)
                yield records

    def read(self, number: int) -> NDArray[np.uint64]:
        """Return all records of a partition."""
        records = np.empty((int(self.counts[number]), self._num_words), np.uint64)
        start = 0
        for piece in self.pieces(number):
            records[start : start + len(piece)] = piece
            start += len(piece)
        return records

    def close(self) -> None:
        """Remove the file."""
        self._scratch.close()

    def __enter__(self) -> Partitions:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class RowUpdates:
    """New values for some rows, found in any order and applied in the order of the rows.

    Applied one by one, they would load the whole array, with one item per row, into memory repeatedly.
    """

    def __init__(self, folder: Path, num_rows: int) -> None:
        """Create an empty list of updates; each row can get one."""
        self._range_rows = max(ledger.SLICE_ROWS, -(-num_rows // _MAX_RANGES))
        self._partitions = Partitions(folder, 2, max(1, -(-num_rows // self._range_rows)))

    def add(self, rows: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Add a value for each of some rows."""
        records = np.empty((len(rows), 2), np.uint64)
        records[:, 0], records[:, 1] = rows, values
        self._partitions.append(records, rows // self._range_rows)

    @property
    def count(self) -> int:
        """Number of rows that get a value."""
        return int(self._partitions.counts.sum())

    def apply(self, array: NDArray[Any]) -> None:
        """Set the values in an array that has one item per row, see `make_row_array`."""
        for number in np.flatnonzero(self._partitions.counts).tolist():
            for records in self._partitions.pieces(number):
                array[records[:, 0].astype(np.int64)] = records[:, 1].astype(array.dtype)
            release_pages(array)

    def close(self) -> None:
        """Remove the updates."""
        self._partitions.close()

    def __enter__(self) -> RowUpdates:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
