"""Selected rows of a split as a bitmap: one bit per row, with fast access to the n-th selected row.

In: a mask over all rows, in one or several arrays. Out: the row at any index among the selected ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Mask

# The core needs the number of ones before each 64 bytes: this takes an eighth of the bitmap, and a row is
# found by reading one line of the cache.
_RANK_BYTES = 64
# NumPy counts bits by itself from 2.0 on.
_NUM_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)


class Bitmap:
    """The selected rows out of 0 … n−1, in stored order.

    Example:
        >>> chosen = Bitmap.from_mask(np.array([False, True, True, False, True]))
        >>> len(chosen), chosen.num_rows, chosen.select(np.array([2, 0])).tolist()
        (3, 5, [4, 1])
    """

    def __init__(self, bits: NDArray[np.uint8], num_rows: int) -> None:
        """Make a bitmap of packed bits.

        `bits`: one bit per row, the first in the lowest bit of a byte, padded with zeros to a multiple of 64
        bytes.
        """
        self.num_rows = num_rows
        self._bits = bits
        counts = _NUM_ONES[bits].reshape(-1, _RANK_BYTES).sum(axis=1, dtype=np.int64)
        ends = np.cumsum(counts)
        self._ranks = ends - counts
        self._num_chosen = int(ends[-1]) if len(ends) else 0

    @classmethod
    def from_mask(cls, mask: Mask) -> Bitmap:
        """Make a bitmap of a mask over all rows."""
        return cls.from_masks([mask], len(mask))

    @classmethod
    def from_masks(cls, masks: Iterable[Mask], num_rows: int) -> Bitmap:
        """Make a bitmap of consecutive masks; only one of them is in memory at a time."""
        bits = np.zeros(-(-num_rows // (8 * _RANK_BYTES)) * _RANK_BYTES, np.uint8)
        at = 0  # rows packed; a multiple of eight
        rest: Mask = np.empty(0, np.bool_)  # the following rows, which do not fill a byte
        for mask in masks:
            bools = np.concatenate([rest, mask]) if len(rest) else mask
            whole = len(bools) // 8 * 8
            _place(bits, at, bools[:whole], num_rows)
            at += whole
            rest = bools[whole:]
        _place(bits, at, rest, num_rows)
        if at + len(rest) != num_rows:
            raise ValueError(f"masks of {at + len(rest)} rows do not cover {num_rows} rows")
        return cls(bits, num_rows)

    def __len__(self) -> int:
        """Return the number of selected rows."""
        return self._num_chosen

    def select(self, indexes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows at some indexes among the selected ones."""
        return _native.select_bits(self._bits, self._ranks, indexes)

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of the selected rows, from one value per row."""
        return values[self.to_mask()]

    def to_mask(self, start: int = 0, stop: int | None = None) -> Mask:
        """Return the mask over a range of rows, by default over all rows."""
        end = self.num_rows if stop is None else min(stop, self.num_rows)
        first = start // 8
        bits = np.unpackbits(
            self._bits[first : -(-end // 8)], count=max(0, end - first * 8), bitorder="little"
        )
        return bits[start - first * 8 :].view(np.bool_)

    def invert(self) -> Bitmap:
        """Return the rows that are not selected."""
        return Bitmap.from_mask(~self.to_mask())

    def digest(self) -> str:
        """Return 16 hex digits that identify the selected rows."""
        return f"{_native.hash_bytes(self._bits.data):016x}"

    def __repr__(self) -> str:
        return f"Bitmap({len(self)} of {self.num_rows} rows)"


def _place(bits: NDArray[np.uint8], at: int, bools: Mask, num_rows: int) -> None:
    if at + len(bools) > num_rows:
        raise ValueError(f"masks of more than {num_rows} rows")
    packed = np.packbits(bools, bitorder="little")
    bits[at // 8 : at // 8 + len(packed)] = packed


_SEED = 0x5EED0F7AB7  # part of the definition of a part: it never changes
_ROWS = 1 << 20


def choose_part(num_rows: int, part: tuple[float, float]) -> Bitmap:
    """Return the rows whose random number lies in an interval, with its start and without its end."""
    return Bitmap.from_masks(_list_masks(num_rows, part), num_rows)


def both(bitmap: Bitmap, other: Bitmap) -> Bitmap:
    """Return the rows that are selected in both bitmaps."""
    return Bitmap.from_mask(bitmap.to_mask() & other.to_mask())


def _list_masks(num_rows: int, part: tuple[float, float]) -> Iterator[Mask]:
    for start in range(0, num_rows, _ROWS):
        words = _native.mix_rows(_SEED, start, min(_ROWS, num_rows - start))
        points = (words >> np.uint64(11)) * 2.0**-53
        yield (points >= part[0]) & (points < part[1])
