"""The ledger of a conversion: hashes and codes of every row, on disk, by which splits are made.

In: hashes and codes of the rows, block by block. Out: columns that are read in slices. Memory does not grow
with the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.shards.sort.scratch import Scratch

SLICE_ROWS = 1 << 20


class LedgerColumn:
    """One or more words of 64 bits per row."""

    def __init__(self, folder: Path, dtype: type[np.uint64] | type[np.int64], width: int = 1) -> None:
        self._dtype = np.dtype(dtype)
        self._width = width
        self._scratch = Scratch(folder)

    def append(self, words: NDArray[Any]) -> None:
        """Add the words of more rows."""
        self._scratch.append(np.ascontiguousarray(words, self._dtype))

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the words of rows `start` to `stop`, as a matrix if there are several per row."""
        shape = (stop - start,) if self._width == 1 else (stop - start, self._width)
        words = np.empty(shape, self._dtype)
        self._scratch.read(start * 8 * self._width, words)
        return words

    def slices(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield all words in slices, each with the index of its first row."""
        for start in range(0, len(self), SLICE_ROWS):
            yield start, self.read(start, min(start + SLICE_ROWS, len(self)))

    def close(self) -> None:
        """Remove the words."""
        self._scratch.close()

    def __len__(self) -> int:
        return self._scratch.num_bytes // (8 * self._width)


class RowKeys(NamedTuple):
    """Hashes and digests that identify rows, or values of rows.

    Attributes:
        hashes: 64-bit hash of each row; part of the format.
        digests: 128-bit digest of each row, as two columns; equal only for equal values.
    """

    hashes: NDArray[np.uint64]
    digests: NDArray[np.uint64]


class Ledger:
    """Hashes and codes of all rows, in source order.

    Attributes:
        folder: Folder of the temporary files.
        positions: Hash of the value that decides the split: the id or the group, or the content of a row that
            has neither.
        position_digests: Digest of the same value.
        content_digests: Digest of the row without its id and weight: equal for identical rows. The same
            column as `position_digests` if the content decides the split.
        marks: Time (see `order_times`), or code of the stratum or of the split.
        others: For each declared key that does not decide the split, one word of the digest of its value; 0
            if it is missing.
        classes: For each categorical target, the code of its value; -1 if it is missing.
    """

    def __init__(
        self, folder: Path, *, has_key: bool = False, num_others: int = 0, num_targets: int = 0
    ) -> None:
        """Create an empty ledger.

        `has_key`: whether an id or a group decides the split; otherwise the content of a row does.
        `num_others`: number of declared keys that do not decide the split.
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
        """Number of rows."""
        return len(self.positions)

    @property
    def has_key(self) -> bool:
        """Whether an id or a group decides the split, and not the content of a row."""
        return self.content_digests is not self.position_digests

    def append(
        self,
        contents: RowKeys,
        keys: RowKeys | None = None,
        marks: NDArray[np.int64] | None = None,
        others: Sequence[NDArray[np.uint64]] = (),
        classes: Sequence[NDArray[np.int64]] = (),
    ) -> None:
        """Add rows.

        `keys`: hash and digest of the value that decides the split; None if the content does.
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
        """Remove all columns."""
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
    """Return integers in the order of times, which are integers or floats without NaN."""
    if times.dtype.kind != "f":
        return times.astype(np.int64)
    # Positive doubles have the order of their bits; for negative ones, all bits except the sign are inverted.
    bits = (times.astype(np.float64) + 0.0).view(np.int64)  # -0.0 becomes 0.0
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
