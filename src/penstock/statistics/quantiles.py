"""A uniform sample of rows, for quantiles.

In: a key per row, from a hash, and values. Out: the values of the rows with the smallest keys. The chosen
rows depend on the keys alone: not on blocks, workers or the order in which rows come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Mask

SAMPLE_ROWS: Final = 10_000
"""The rank of the median of so many values is wrong by less than 1 % of them, 95 times in 100."""

LIST_VALUES: Final = 16
"""Maximum number of sampled values per list, at even distances, so that long lists do not outweigh others."""

QUANTILES: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)

_SAMPLES: Final[dict[np.dtype[Any], Callable[..., NDArray[np.float64]]]] = {
    np.dtype(np.int64): _native.sample_lists_of_ints,
    np.dtype(np.float32): _native.sample_lists_of_floats,
    np.dtype(np.float64): _native.sample_lists_of_doubles,
}


class RowSample:
    """The values of the `SAMPLE_ROWS` rows with the smallest keys of all that were merged.

    The values of one row are an entry of an array, or a row of a matrix in which NaN stands for none.
    """

    __slots__ = ("_bound", "_num_rows", "_parts")

    def __init__(self, keys: NDArray[np.uint64] | None = None, values: NDArray[Any] | None = None) -> None:
        """Begin a sample, empty or with rows whose keys ascend."""
        self._parts: list[tuple[NDArray[np.uint64], NDArray[Any]]] = []
        self._num_rows = 0
        self._bound: int | None = None  # rows with keys above it are not among the smallest
        if keys is not None and values is not None:
            self._add(keys, values)

    def merge(self, other: RowSample) -> None:
        """Add rows that were sampled apart; `other` stays as it is."""
        for keys, values in other._parts:
            self._add(keys, values)

    def values(self) -> NDArray[np.float64]:
        """Return the finite values of the sample, sorted."""
        if not self._parts:
            return np.empty(0)
        self._shrink()
        flat = self._parts[0][1].reshape(-1).astype(np.float64)
        finite: NDArray[np.float64] = flat[np.isfinite(flat)]
        finite.sort()
        return finite

    def _add(self, keys: NDArray[np.uint64], values: NDArray[Any]) -> None:
        num_rows = len(keys) if self._bound is None else int(np.searchsorted(keys, self._bound, side="right"))
        num_rows = min(num_rows, SAMPLE_ROWS)
        if not num_rows:
            return
        part = (keys[:num_rows], values[:num_rows])
        if num_rows < len(keys):
            part = (part[0].copy(), part[1].copy())  # a slice would keep all of the block
        self._parts.append(part)
        self._num_rows += num_rows
        if num_rows == SAMPLE_ROWS:
            self._bound = int(keys[SAMPLE_ROWS - 1])
        if self._num_rows > 2 * SAMPLE_ROWS:
            self._shrink()

    def _shrink(self) -> None:
        if len(self._parts) > 1:
            keys = np.concatenate([part[0] for part in self._parts])
            values = np.concatenate([part[1] for part in self._parts])
            if len(keys) > SAMPLE_ROWS:
                # Finding the bound is several times cheaper than sorting by it.
                self._bound = int(np.partition(keys, SAMPLE_ROWS - 1)[SAMPLE_ROWS - 1])
                keep = keys <= self._bound
                keys, values = keys[keep], values[keep]
            self._parts = [(keys, values)]
            self._num_rows = len(keys)


def take_evenly(
    values: NDArray[Any], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return up to `LIST_VALUES` values of each list, one row of a matrix per list, padded with NaN."""
    if not len(values):
        return np.full((len(starts), LIST_VALUES), np.nan)
    sample = _SAMPLES.get(values.dtype)
    if sample is not None and values.flags.c_contiguous:
        taken = sample(values, np.ascontiguousarray(starts), np.ascontiguousarray(lengths))
        return taken.reshape(-1, LIST_VALUES)
    numbers = np.arange(LIST_VALUES)
    # The i-th of a list of n is at i * n / 16; of a shorter list, at i.
    places = numbers * np.maximum(lengths, LIST_VALUES)[:, None] // LIST_VALUES + starts[:, None]
    taken = values.take(places, mode="clip").astype(np.float64)
    if (lengths < LIST_VALUES).any():
        taken[numbers >= lengths[:, None]] = np.nan
    return taken


def find_quantiles(ordered: NDArray[np.float64]) -> tuple[float, ...]:
    """Return the `QUANTILES` of at least one sorted value, interpolated linearly between neighbours."""
    if len(ordered) == 1:  # tables of two rows may have a hundred thousand columns
        return (float(ordered[0]),) * len(QUANTILES)
    places = np.asarray(QUANTILES) * (len(ordered) - 1)
    below = places.astype(np.int64)
    low, high = ordered[below], ordered[np.minimum(below + 1, len(ordered) - 1)]
    # Weighted, not low + (high - low) * t: the distance of two doubles may not be a double.
    found = np.where(low == high, low, low * (1 - (places - below)) + high * (places - below))
    return tuple(found.tolist())


class Selection:
    """Some rows of a block, in two orders: as they are, and by their keys.

    Attributes:
        keep: Mask of the selected rows of the block; None if all are selected.
        num_rows: Number of selected rows.
        keys: The smallest of their keys, ascending, at most `SAMPLE_ROWS`.
        sampled: The rows that have those keys.
    """

    __slots__ = ("_by_key", "_keys", "_rows", "keep", "keys", "num_rows", "sampled")

    def __init__(
        self, keep: Mask | None, keys: NDArray[np.uint64], by_key: NDArray[np.int64], num_rows: int
    ) -> None:
        """Select rows of a block; `by_key` are all of them in the order of their keys."""
        self.keep = keep
        self.num_rows = num_rows
        self.sampled = by_key[:SAMPLE_ROWS]
        self.keys = keys[self.sampled]
        self._by_key, self._keys = by_key, keys
        self._rows = None if keep is None else np.flatnonzero(keep)

    @classmethod
    def of_block(cls, keep: Mask | None, keys: NDArray[np.uint64]) -> Selection:
        """Select the rows of a block that are wanted; None wants all."""
        # Sorted once for all columns: merging a sample then reads only the first rows.
        by_key = np.argsort(keys)
        return cls(None, keys, by_key, len(keys)).where(keep)

    def where(self, present: Mask | None) -> Selection:
        """Select the rows for which `present` is True; None is for all."""
        if present is None:
            return self
        keep = present if self.keep is None else self.keep & present
        num_rows = int(np.count_nonzero(keep))
        if num_rows == self.num_rows:
            return self
        return Selection(keep, self._keys, self._by_key[keep[self._by_key]], num_rows)

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the rows of an array with a row for each of the block."""
        return values if self._rows is None else values.take(self._rows, axis=0)
