"""What the splits are made from: a few words of every row, kept on disk.

In: hashes and marks of the rows, block by block. Out: columns that are read in slices. Memory does not grow
with the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.shards.scratch import Scratch

SLICE_ROWS = 1 << 20


class LedgerColumn:
    """One word of 64 bits a row."""

    def __init__(self, folder: Path, dtype: type[np.uint64] | type[np.int64]) -> None:
        self._dtype = np.dtype(dtype)
        self._scratch = Scratch(folder)

    def append(self, words: NDArray[Any]) -> None:
        """Add the words of more rows.

        Raises:
            WriteError: The disk is full, or fails.
        """
        self._scratch.append(np.ascontiguousarray(words, self._dtype))

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the words of rows `start` to `stop`."""
        words = np.empty(stop - start, self._dtype)
        self._scratch.read(start * 8, words)
        return words

    def slices(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield all words in slices, each with the number of its first row."""
        for start in range(0, len(self), SLICE_ROWS):
            yield start, self.read(start, min(start + SLICE_ROWS, len(self)))

    def close(self) -> None:
        """Drop the words."""
        self._scratch.close()

    def __len__(self) -> int:
        return self._scratch.num_bytes // 8


class Ledger:
    """Facts of all rows, in source order.

    Attributes:
        folder: Where they are kept.
        contents: A hash of all of the row but its id and its weight: equal for duplicates.
        positions: A hash of what decides the split: the id, or the group. The contents themselves, where the
            data has neither.
        marks: The time (see `order_times`), or the number of the stratum or of the split, counted from 0.
    """

    def __init__(self, folder: Path, *, has_positions: bool = False) -> None:
        """Begin a ledger.

        Args:
            folder: Where to keep it.
            has_positions: Whether rows have an id or a group; otherwise `contents` decide.
        """
        self.folder = folder
        self.contents = LedgerColumn(folder, np.uint64)
        self.positions = LedgerColumn(folder, np.uint64) if has_positions else self.contents
        self.marks = LedgerColumn(folder, np.int64)

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(self.contents)

    def append(
        self,
        contents: NDArray[np.uint64],
        positions: NDArray[np.uint64] | None = None,
        marks: NDArray[np.int64] | None = None,
    ) -> None:
        """Add the facts of more rows.

        Raises:
            WriteError: The disk is full, or fails.
        """
        self.contents.append(contents)
        if positions is not None and self.positions is not self.contents:
            self.positions.append(positions)
        if marks is not None:
            self.marks.append(marks)

    def close(self) -> None:
        """Drop all facts."""
        for column in (self.contents, self.positions, self.marks):
            column.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def order_times(times: NDArray[Any]) -> NDArray[np.int64]:
    """Return integers in the order of times, which are integers or floats that are no NaN."""
    if times.dtype.kind != "f":
        return times.astype(np.int64)
    # Positive doubles are in the order of their bits; of negative ones, all bits but the sign are inverted.
    bits = (times.astype(np.float64) + 0.0).view(np.int64)  # -0.0 becomes 0.0
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
