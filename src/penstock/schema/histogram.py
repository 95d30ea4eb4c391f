"""Counts of integers that lie close together: ids, codes, labels.

In: integers. Out: a count for each from the least to the greatest, which merge by adding.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

MAX_RANGE: Final = 1 << 18
"""Two megabytes of counts; integers that lie wider apart are counted one by one."""


class Histogram:
    """How often each integer from `low` on occurs."""

    __slots__ = ("counts", "low")

    def __init__(self, low: int, counts: NDArray[np.int64]) -> None:
        self.low = low
        self.counts = counts

    @classmethod
    def of(cls, values: NDArray[np.int64]) -> Histogram | None:
        """Count integers, of which there is one at least; None if they lie too wide apart."""
        low, high = int(values.min()), int(values.max())
        if high - low >= MAX_RANGE:
            return None
        if low >= 0 and high < MAX_RANGE:
            return cls(0, np.bincount(values))  # as most are, and no copy of them is made
        return cls(low, np.bincount(values - low))

    def merge(self, other: Histogram) -> Histogram | None:
        """Return the counts of both; None if they lie too wide apart."""
        low = min(self.low, other.low)
        high = max(self.low + len(self.counts), other.low + len(other.counts))
        if high - low > MAX_RANGE:
            return None
        counts = np.zeros(high - low, np.int64)
        for each in (self, other):
            counts[each.low - low : each.low - low + len(each.counts)] += each.counts
        return Histogram(low, counts)

    def entries(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the integers that occur, ascending, and how often each does."""
        found = np.flatnonzero(self.counts)
        return found + self.low, self.counts[found]
