"""Stores the encoded rows of a conversion until their splits are known, and returns them in split order.

In: blocks of rows. Out: the rows of each split, shuffled by their keys or in source order. Rows are in memory
as long as they fit; otherwise all rows are on disk, in sorted runs that a pool of threads writes, and memory
is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.foundation.process import usable_memory
from penstock.shards.row_work import lack_memory
from penstock.shards.sort.chunk import CHUNK_BYTES, ByteColumn, Chunk, ResidentRows, join_blocks
from penstock.shards.sort.scratch import Scratch
from penstock.shards.sort.spill import (
    CELL_BYTES,
    Section,
    Spill,
    SpilledRows,
    find_run_bytes,
    write_sections,
)

MAX_MEMORY_BYTES: Final = 256 << 20
_MEMORY_SHARE: Final = 8

_ROW_BYTES = 40  # memory per row in addition to its own bytes
_RUN_BYTES = 96 << 20  # size of a sorted run: in larger runs, a range of keys has fewer pieces
_RANGE_BYTES = CELL_BYTES // 8  # cells consist of smaller ranges of keys, so that their sizes are similar
_MAX_RANGES = 1 << 22  # for all splits together: 64 MB of counters


def limit_memory(num_bytes: int) -> int:
    """Return how much memory rows may take if a user allows so many bytes."""
    return min(num_bytes, max(MAX_MEMORY_BYTES, usable_memory() // _MEMORY_SHARE))


def divide_keys(num_bytes: int, num_splits: int) -> NDArray[np.uint64]:
    """Return the first key of each range that hashes are divided into, for rows of `num_bytes` in all."""
    num_wanted = min(num_bytes // _RANGE_BYTES, _MAX_RANGES // num_splits)
    num_bits = max(1, num_wanted.bit_length())
    return np.arange(1 << num_bits, dtype=np.uint64) << np.uint64(64 - num_bits)


@dataclass(frozen=True, eq=False)
class _Block:
    """Rows of a block: their indices in the source, their bytes, their likely splits, and their size."""

    rows: NDArray[np.uint64]
    columns: list[ByteColumn]
    tentative: NDArray[np.uint8]
    num_bytes: int


def _count_bytes(columns: Sequence[ByteColumn]) -> int:
    return sum(int(offsets[-1] - offsets[0]) for _, offsets in columns)


class RowStore:
    """All rows of a conversion, which can be read in the order of each split.

    One thread appends rows and calls `finish`; afterwards any number of threads can read chunks. Errors of
    threads that write runs are raised by a later call.

    Attributes:
        num_rows: Number of rows that were appended.
    """

    def __init__(
        self,
        folder: Path,
        *,
        seed: int | None,
        num_splits: int,
        max_memory_bytes: int = MAX_MEMORY_BYTES,
        pool: Executor | None = None,
    ) -> None:
        """Create an empty store.

        `folder`: folder of the unnamed temporary file for rows that do not fit into memory. `seed`: seed of
        the shuffle; None keeps the order of the source. `max_memory_bytes`: size of the rows in memory, also
        of those that are being written. `pool`: threads that sort and write runs; None does that in
        `append`. The rows are the same.
        """
        self.num_rows = 0
        self._folder = folder
        self._seed = seed
        self._num_splits = num_splits
        self._max_memory_bytes = max_memory_bytes
        self._pool = pool
        # Rows that are not shuffled are read run by run, so a run is not larger than a cell.
        self._run_bytes = min(max_memory_bytes, CELL_BYTES if seed is None else _RUN_BYTES)
        self._held: list[_Block] = []
        self._num_held_bytes = 0
        self._num_bytes = 0
        self._num_columns = 0
        self._scratch: Scratch | None = None
        self._writing: deque[tuple[int, Future[list[Section]]]] = deque()  # in order, with their sizes
        self._num_writing_bytes = 0
        self._sections: list[Section] = []  # of runs that are written
        self._run_starts = [0]  # index of the first row of each run, and of the next run
        self._finished: ResidentRows | SpilledRows | None = None

    @property
    def is_on_disk(self) -> bool:
        """Whether the rows did not fit into memory."""
        return self._scratch is not None

    def append(
        self, rows: NDArray[np.uint64], columns: Sequence[ByteColumn], tentative: NDArray[np.uint8]
    ) -> None:
        """Add rows.

        `rows`: indices of the rows in the source, in ascending order over all calls. `columns`: bytes of the
        rows; the arrays must not change afterwards. `tentative`: likely split of each row. A wrong one only
        costs time.
        """
        if not len(rows):
            return
        block = _Block(rows, list(columns), tentative, _count_bytes(columns) + _ROW_BYTES * len(rows))
        self._held.append(block)
        self._num_held_bytes += block.num_bytes
        self._num_bytes += block.num_bytes
        self.num_rows += len(rows)
        if self._num_held_bytes > (self._run_bytes if self.is_on_disk else self._max_memory_bytes):
            self._write_held(self._run_bytes)
        self._take_written(self._max_memory_bytes - self._num_held_bytes)

    def finish(self, codes: NDArray[np.uint8]) -> None:
        """Sort the rows; `codes` has the split of each row, in the order of arrival."""
        if len(codes) != self.num_rows:
            raise ValueError(f"expected codes of {self.num_rows} rows, got {len(codes)}")
        if self._scratch is not None:
            self._write_held(0)
            self._take_written(0)
            spill = Spill(self._scratch, self._num_columns)
            spill.sections += self._sections
            self._finished = SpilledRows(spill, self._bounds(), codes, self._num_splits)
        else:
            blocks, self._held = self._held, []
            chunk, keys = self._join(blocks, 0)
            self._finished = ResidentRows(chunk, keys, codes, self._num_splits)

    def count(self, split: int) -> int:
        """Return the number of rows of a split."""
        return self._reader().counts[split]

    def chunks(self, split: int, start: int, stop: int, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Chunk]:
        """Yield the rows of a split, in split order, from position `start` to `stop`.

        A chunk has at most `chunk_bytes`, unless a single row has more.
        """
        if not 0 <= start <= stop <= self.count(split):
            raise IndexError(f"positions {start} to {stop} of a split of {self.count(split)} rows")
        return self._reader().chunks(split, start, stop, chunk_bytes)

    def close(self) -> None:
        """Remove all rows."""
        self._held, self._finished = [], None
        wait([future for _, future in self._writing if not future.cancel()])
        self._writing.clear()
        if self._scratch is not None:
            self._scratch.close()

    def _reader(self) -> ResidentRows | SpilledRows:
        if self._finished is None:
            raise ValueError("the store is not finished, or is closed")
        return self._finished

    def _write_held(self, most_bytes: int) -> None:
        """Write rows as sorted runs, until at most so many bytes are held."""
        blocks, self._held = self._held[::-1], []
        while blocks and self._num_held_bytes > most_bytes:
            run = [blocks.pop()]
            run_bytes = run[0].num_bytes
            while blocks and run_bytes + blocks[-1].num_bytes <= self._run_bytes:
                run.append(blocks.pop())
                run_bytes += run[-1].num_bytes
            self._num_held_bytes -= run_bytes
            self._begin_run(run, run_bytes)
            run = []  # its thread alone holds the rows
            self._take_written(self._max_memory_bytes - self._num_held_bytes)
        self._held = blocks[::-1]

    def _begin_run(self, run: list[_Block], run_bytes: int) -> None:
        """Reserve space for a run in the file, and let a thread write it there."""
        if self._scratch is None:
            self._scratch, self._num_columns = Scratch(self._folder), len(run[0].columns)
        num_rows = sum(len(block.rows) for block in run)
        num_bytes = sum(_count_bytes(block.columns) for block in run)
        begin = self._scratch.reserve(find_run_bytes(num_rows, self._num_columns, num_bytes))
        first = self._run_starts[-1]
        self._run_starts.append(first + num_rows)
        if self._pool is None:
            self._sections += self._write_run(self._scratch, begin, run, first)
            return
        future = self._pool.submit(self._write_named_run, self._scratch, begin, run, first)
        self._writing.append((run_bytes, future))
        self._num_writing_bytes += run_bytes

    def _take_written(self, most_bytes: int) -> None:
        """Take the runs that are written, and wait until the others have at most so many bytes."""
        while self._writing and (self._num_writing_bytes > most_bytes or self._writing[0][1].done()):
            run_bytes, future = self._writing[0]
            self._sections += future.result()
            self._writing.popleft()  # not before: `close` waits for a run if this wait was interrupted
            self._num_writing_bytes -= run_bytes

    def _write_named_run(self, file: Scratch, begin: int, run: list[_Block], first: int) -> list[Section]:
        """Write a run in any thread; an error for lack of memory names its rows."""
        try:
            return self._write_run(file, begin, run, first)
        except MemoryError:
            first_row, last_row = int(run[0].rows[0]), int(run[-1].rows[-1])
            raise lack_memory(first_row, last_row + 1 - first_row) from None

    def _write_run(self, file: Scratch, begin: int, run: list[_Block], first: int) -> list[Section]:
        chunk, keys = self._join(run, first)
        likely = np.concatenate([block.tentative for block in run])
        return write_sections(file, begin, chunk, keys, likely, first)

    def _join(self, blocks: list[_Block], first: int) -> tuple[Chunk, NDArray[np.uint64]]:
        """Return the rows of blocks as one chunk, and the keys to sort them by.

        `first`: number of rows that arrived before.
        """
        chunk = join_blocks([block.rows for block in blocks], [block.columns for block in blocks])
        if self._seed is not None:
            # The same keys as in mix_rows, which requires consecutive rows.
            return chunk, _native.mix_hashes(self._seed, chunk.rows)
        return chunk, np.arange(first, first + len(chunk.rows), dtype=np.uint64)

    def _bounds(self) -> NDArray[np.uint64]:
        """Return the first key of each range of keys that cells consist of."""
        if self._seed is None:
            return np.array(self._run_starts[:-1], np.uint64)
        return divide_keys(self._num_bytes, self._num_splits)

    def __enter__(self) -> RowStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
