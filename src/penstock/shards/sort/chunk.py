"""Encoded rows in chunks, from which shards are written.

In: blocks of encoded rows. Out: `Chunk`s of similar size, in the order of the split.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock import _native

ByteColumn: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""One byte string per row: an arena, and the offsets of the rows (rows + 1 offsets)."""

CHUNK_BYTES = 8 << 20


class ChunkColumn(NamedTuple):
    """One byte string per row: row i is `arenas[arena_of[i]][begins[i] : begins[i] + sizes[i]]`."""

    arenas: list[NDArray[np.uint8]]
    arena_of: NDArray[np.uint32]
    begins: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def values(self) -> list[bytes]:
        """Return the string of each row."""
        views = [arena.data for arena in self.arenas]
        ends = self.begins + self.sizes
        places = zip(self.arena_of.tolist(), self.begins.tolist(), ends.tolist(), strict=True)
        return [bytes(views[number][begin:end]) for number, begin, end in places]

    def take(self, rows: NDArray[np.int64] | slice) -> ChunkColumn:
        """Return a selection of rows, in any order; the arenas are not copied."""
        return ChunkColumn(self.arenas, self.arena_of[rows], self.begins[rows], self.sizes[rows])


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows of a split: their indices in the source, and their byte columns."""

    rows: NDArray[np.uint64]
    columns: list[ChunkColumn]

    @property
    def num_bytes(self) -> int:
        """Number of bytes of all rows, in all columns together."""
        return sum(int(column.sizes.sum()) for column in self.columns)

    def take(self, rows: NDArray[np.int64] | slice) -> Chunk:
        """Return a selection of rows, in any order."""
        return Chunk(self.rows[rows], [column.take(rows) for column in self.columns])

    def cut(self, chunk_bytes: int) -> Iterator[Chunk]:
        """Yield the rows in chunks of at most `chunk_bytes`; a larger row is a chunk by itself."""
        ends = np.cumsum(sum((column.sizes for column in self.columns), np.zeros(len(self.rows), np.int64)))
        start = 0
        while start < len(self.rows):
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + chunk_bytes, side="right")))
            yield self.take(slice(start, stop))
            start = stop

    def gather(self) -> NDArray[np.uint8]:
        """Return all bytes, row by row; the bytes of a row are in the order of the columns."""
        arenas = [arena for column in self.columns for arena in column.arenas]
        firsts = np.cumsum([0, *(len(column.arenas) for column in self.columns[:-1])])
        numbers = [column.arena_of + first for column, first in zip(self.columns, firsts, strict=True)]
        return _native.gather(
            arenas,
            _interleave(numbers, np.uint32),
            _interleave([column.begins for column in self.columns], np.int64),
            _interleave([column.sizes for column in self.columns], np.int64),
        )


def _interleave(columns: list[NDArray[Any]], dtype: type[Any]) -> NDArray[Any]:
    """Return the first value of each column, then the second of each, and so on."""
    return np.ascontiguousarray(np.stack(columns, axis=1), dtype).reshape(-1)


def join_blocks(rows: list[NDArray[np.uint64]], blocks: list[list[ByteColumn]]) -> Chunk:
    """Return one chunk of blocks of rows; their arenas are not copied."""
    arena_of = np.repeat(np.arange(len(rows), dtype=np.uint32), [len(each) for each in rows])
    columns = []
    for parts in zip(*blocks, strict=True):
        begins = np.concatenate([offsets[:-1] for _, offsets in parts])
        sizes = np.concatenate([np.diff(offsets) for _, offsets in parts])
        columns.append(ChunkColumn([arena for arena, _ in parts], arena_of, begins, sizes))
    return Chunk(np.concatenate([np.empty(0, np.uint64), *rows]), columns)


_STEP_ROWS = 1 << 18  # rows per selection: a few megabytes of offsets


class ResidentRows:
    """The rows of all splits, in memory."""

    def __init__(
        self, rows: Chunk, keys: NDArray[np.uint64], codes: NDArray[np.uint8], num_splits: int
    ) -> None:
        self._rows = rows
        self._orders = []
        for split in range(num_splits):
            found = np.flatnonzero(codes == split)
            self._orders.append(found[np.argsort(keys[found])])

    @property
    def counts(self) -> list[int]:
        """Number of rows of each split."""
        return [len(order) for order in self._orders]

    def chunks(self, split: int, start: int, stop: int, chunk_bytes: int) -> Iterator[Chunk]:
        """Yield the rows of a split from position `start` to `stop`."""
        order = self._orders[split]
        for first in range(start, stop, _STEP_ROWS):
            yield from self._rows.take(order[first : min(first + _STEP_ROWS, stop)]).cut(chunk_bytes)
