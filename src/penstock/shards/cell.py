"""Rows on disk, in the order of each split: cells of neighbouring keys, loaded one at a time.

In: sorted runs, the split of each row. Out: chunks of a split. A cell fits into memory, whatever the size of
all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.shards.chunk import Chunk
from penstock.shards.scratch import release_pages
from penstock.shards.spill import Section, Spill

CELL_BYTES = 24 << 20
"""Loaded at once by each thread that writes a shard."""

_ROW_BYTES = 120  # what keys, facts and positions of a row take while its cell is loaded


@dataclass(frozen=True, eq=False)
class _Split:
    """Where the rows of one split are.

    Attributes:
        lows: The least key of each cell.
        positions: How many rows of the split lie before each cell; and in the end, how many there are.
        sections: Those that hold rows of it.
        splits_at: Where the splits of the rows of each section begin.
        first_keys: The least key of each section.
        last_keys: The greatest.
    """

    lows: list[int]
    positions: NDArray[np.int64]
    sections: list[Section]
    splits_at: list[int]
    first_keys: NDArray[np.uint64]
    last_keys: NDArray[np.uint64]


class Cells:
    """The rows of all splits, on disk; any number of threads may ask for chunks."""

    def __init__(
        self, spill: Spill, bounds: NDArray[np.uint64], codes: NDArray[np.uint8], num_splits: int
    ) -> None:
        """Count the rows of each split in each range of keys, in one pass, and put ranges together to cells.

        Args:
            spill: The rows.
            bounds: The least key of each range; the first is 0.
            codes: The split of each row, by the number of its arrival.
            num_splits: How many splits there are.
        """
        self._spill = spill
        num_rows = np.zeros(num_splits * len(bounds), np.int64)
        num_bytes = np.zeros(num_splits * len(bounds))
        holders: list[list[tuple[Section, int]]] = [[] for _ in range(num_splits)]
        for section in spill.sections:
            is_holder = np.zeros(num_splits, np.bool_)
            begins = []
            for rows in spill.scan(section):
                # Kept in the order of the section: picked from all codes for each cell, they would bring one
                # byte per row into memory. Rows of a section are near each other in the source.
                splits = np.array(codes[rows.numbers])
                begins.append(spill.append_splits(splits))
                is_holder[splits] = True
                ranges = np.searchsorted(bounds, rows.keys, side="right") - 1
                counters = splits.astype(np.int64) * len(bounds) + ranges
                num_rows += np.bincount(counters, minlength=len(num_rows))
                num_bytes += np.bincount(counters, rows.sizes + _ROW_BYTES, minlength=len(num_rows))
            for split in np.flatnonzero(is_holder).tolist():
                holders[split].append((section, begins[0]))
            release_pages(codes)
        shape = (num_splits, len(bounds))
        tables = zip(num_rows.reshape(shape), num_bytes.reshape(shape), holders, strict=True)
        self._splits = [_make_split(bounds, *table) for table in tables]

    @property
    def counts(self) -> list[int]:
        """How many rows each split has."""
        return [int(split.positions[-1]) for split in self._splits]

    def chunks(self, split: int, start: int, stop: int, chunk_bytes: int) -> Iterator[Chunk]:
        """Yield the rows of a split from one position to another.

        Raises:
            WriteError: The disk fails.
        """
        positions = self._splits[split].positions
        while start < stop:
            cell = int(np.searchsorted(positions, start, side="right")) - 1
            before, end = int(positions[cell]), min(stop, int(positions[cell + 1]))
            yield from self._load(split, cell).take(slice(start - before, end - before)).cut(chunk_bytes)
            start = end

    def _load(self, split: int, cell: int) -> Chunk:
        """Return all rows of a cell, in order."""
        there = self._splits[split]
        low, high = there.lows[cell], there.lows[cell + 1]
        is_near = (there.first_keys <= np.uint64(high - 1)) & (there.last_keys >= np.uint64(low))
        found = []
        for number in np.flatnonzero(is_near).tolist():
            rows = self._spill.find(there.sections[number], low, high)
            found.append(rows.take(self._spill.read_splits(there.splits_at[number], rows) == split))
        keys, chunk = self._spill.load(found)
        return chunk.take(np.argsort(keys))


def _make_split(
    bounds: NDArray[np.uint64],
    num_rows: NDArray[np.int64],
    num_bytes: NDArray[np.float64],
    holders: list[tuple[Section, int]],
) -> _Split:
    sections = [section for section, _ in holders]
    cell_of = (np.cumsum(num_bytes) - num_bytes) // CELL_BYTES
    firsts = np.concatenate([[0], np.flatnonzero(np.diff(cell_of)) + 1])
    positions = np.append((np.cumsum(num_rows) - num_rows)[firsts], num_rows.sum())
    return _Split(
        lows=[*bounds[firsts].tolist(), 2**64],
        positions=positions,
        sections=sections,
        splits_at=[begin for _, begin in holders],
        first_keys=np.array([section.landmarks[0] for section in sections], np.uint64),
        last_keys=np.array([section.last_key for section in sections], np.uint64),
    )
