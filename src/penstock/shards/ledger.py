"""What the splits are made from: a few words of every row, kept on disk.

In: hashes and marks of the rows, block by block. Out: columns that are read in slices. Memory does not grow
with the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.shards.scratch import Scratch

SLICE_ROWS = 1 << 20


class LedgerColumn:
    """One or more words of 64 bits per row."""

    def __init__(self, folder: Path, dtype: type[np.uint64] | type[np.int64], width: int = 1) -> None:
        self._dtype = np.dtype(dtype)
        self._width = width
        self._scratch = Scratch(folder)

    def append(self, words: NDArray[Any]) -> None:
        """Add the words of more rows.

        Raises:
            WriteError: The disk is full, or fails.
        """
        self._scratch.append(np.ascontiguousarray(words, self._dtype))

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the words of rows `start` to `stop`; in columns, where there are several per row."""
        shape = (stop - start,) if self._width == 1 else (stop - start, self._width)
        words = np.empty(shape, self._dtype)
        self._scratch.read(start * 8 * self._width, words)
        return words

    def slices(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield all words in slices, each with the number of its first row."""
        for start in range(0, len(self), SLICE_ROWS):
            yield start, self.read(start, min(start + SLICE_ROWS, len(self)))

    def close(self) -> None:
        """Drop the words."""
        self._scratch.close()

    def __len__(self) -> int:
        return self._scratch.num_bytes // (8 * self._width)


class RowKeys(NamedTuple):
    """What identifies some rows, or some values of theirs.

    Attributes:
        hashes: The 64-bit hash of each, part of the format.
        digests: The 128-bit digest of each, as two columns; equal only for what is equal.
    """

    hashes: NDArray[np.uint64]
    digests: NDArray[np.uint64]


class Ledger:
    """Facts of all rows, in source order.

    Attributes:
        folder: Where they are kept.
        positions: A hash of what decides the split: the id, or the group. Of the content, where a row has
            neither.
        position_digests: The digest of the same.
        content_digests: A digest of all of the row but its id and its weight: equal for identical rows. The
            same column as `position_digests`, where the content decides.
        marks: The time (see `order_times`), or the number of the stratum or of the split, counted from 0.
        others: For each declared key that does not decide the split one word of the digest of its value; 0
            where a row has none.
        classes: For each categorical target the number of its value, counted from 0; -1 where a row has none.
    """

    def __init__(
        self, folder: Path, *, has_key: bool = False, num_others: int = 0, num_targets: int = 0
    ) -> None:
        """Begin a ledger.

        Args:
            folder: Where to keep it.
            has_key: Whether an id or a group decides; otherwise the content of a row does.
            num_others: How many declared keys do not decide.
            num_targets: How many targets are categorical.
        """
        self.folder = folder
        self.positions = LedgerColumn(folder, np.uint64)
        self.position_digests = LedgerColumn(folder, np.uint64, 2)
        self.content_digests = LedgerColumn(folder, np.uint64, 2) if has_key else self.position_digests
        self.marks = LedgerColumn(folder, np.int64)
        self.others = [LedgerColumn(folder, np.uint64) for _ in range(num_others)]
        self.classes = [LedgerColumn(folder, np.int64) for _ in range(num_targets)]

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return len(self.positions)

    @property
    def has_key(self) -> bool:
        """Whether an id or a group decides, rather than the content of a row."""
        return self.content_digests is not self.position_digests

    def append(
        self,
        contents: RowKeys,
        keys: RowKeys | None = None,
        marks: NDArray[np.int64] | None = None,
        others: Sequence[NDArray[np.uint64]] = (),
        classes: Sequence[NDArray[np.int64]] = (),
    ) -> None:
        """Add the facts of more rows.

        Args:
            contents: What identifies the content of each row.
            keys: What identifies the value that decides; None where the content does.
            marks: See `Ledger.marks`.
            others: See `Ledger.others`.
            classes: See `Ledger.classes`.

        Raises:
            WriteError: The disk is full, or fails.
        """
        deciding = contents if keys is None else keys
        self.positions.append(deciding.hashes)
        self.position_digests.append(deciding.digests)
        if self.has_key:
            self.content_digests.append(contents.digests)
        if marks is not None:
            self.marks.append(marks)
        for column, words in zip((*self.others, *self.classes), (*others, *classes), strict=True):
            column.append(words)

    def close(self) -> None:
        """Drop all facts."""
        columns = (self.positions, self.position_digests, self.content_digests, self.marks)
        for column in (*columns, *self.others, *self.classes):
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
