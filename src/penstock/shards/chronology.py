"""Splits by time: the oldest rows first, the newest last, and no moment in two splits.

In: times as ordered integers, on disk. Out: from which time on each split holds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.shards.ledger import LedgerColumn
from penstock.shards.rank import share_out, split_units

MAX_SORTED_ROWS = 1 << 22
_SIGN = np.uint64(1 << 63)


class Eras:
    """Which split a time belongs to."""

    def __init__(self, times: LedgerColumn, shares: Sequence[float]) -> None:
        starts, sizes = _sort_units(times) if len(times) <= MAX_SORTED_ROWS else _refine_units(times, shares)
        codes = split_units(sizes, shares)
        is_first = np.concatenate([[True], codes[1:] != codes[:-1]])
        self._starts, self._codes = starts[is_first], codes[is_first]

    def split(self, times: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the number of the split of each time."""
        eras = np.searchsorted(self._starts, _unsigned(times), side="right") - 1
        codes: NDArray[np.uint8] = self._codes[eras]
        return codes


def _unsigned(times: NDArray[np.int64]) -> NDArray[np.uint64]:
    places: NDArray[np.uint64] = times.view(np.uint64) ^ _SIGN
    return places


def _sort_units(times: LedgerColumn) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return all times and how many rows have each."""
    return np.unique(_unsigned(times.read(0, len(times))), return_counts=True)


def _refine_units(
    times: LedgerColumn, shares: Sequence[float]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return spans of time and how many rows each has, fine where the cuts are wanted and coarse elsewhere.

    Four passes at most, of 16 bits each; a span in which no cut is wanted stays whole.
    """
    cuts = np.cumsum(share_out(len(times), shares))[:-1]
    starts, sizes = np.zeros(1, np.uint64), np.array([len(times)])
    for shift in (48, 32, 16, 0):
        ends = np.cumsum(sizes)
        holders = np.searchsorted(ends, cuts, side="right")
        # Spans that a cut goes through; all of them are of the last level, for through others none went.
        chosen = np.unique(holders[(ends - sizes)[holders] < cuts])
        if not len(chosen):
            break
        all_starts, all_sizes = [np.delete(starts, chosen)], [np.delete(sizes, chosen)]
        counts = _count_digits(times, starts[chosen], shift)
        for start, digits in zip(starts[chosen], counts, strict=True):
            found = np.flatnonzero(digits)
            all_starts.append(start + (found.astype(np.uint64) << np.uint64(shift)))
            all_sizes.append(digits[found])
        starts, sizes = np.concatenate(all_starts), np.concatenate(all_sizes)
        order = np.argsort(starts)
        starts, sizes = starts[order], sizes[order]
    return starts, sizes


def _count_digits(times: LedgerColumn, starts: NDArray[np.uint64], shift: int) -> list[NDArray[np.int64]]:
    """Count, in each span of 2**(shift + 16) times, the next 16 bits."""
    counts = [np.zeros(1 << 16, np.int64) for _ in starts]
    for _, words in times.slices():
        places = _unsigned(words)
        for i, start in enumerate(starts):
            # Differences wrap: what lies before the span becomes large, too.
            distances = (places - start) >> np.uint64(shift)
            inside = distances[distances < (1 << 16)]
            counts[i] += np.bincount(inside.astype(np.int64), minlength=1 << 16)
    return counts
