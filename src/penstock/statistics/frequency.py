"""Frequencies: exact counts of integers in a small range, bounded counts of any values, and counts in bins.

In: the values of blocks. Out: `Frequency`, which merges with counts of other blocks; or the edges of bins of
equal width, for charts, and how many numbers are in each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Mask

MAX_RANGE: Final = 1 << 18
"""Two megabytes of counts; integers with a larger range are counted one by one."""

MAX_VALUE_BYTES = 1024  # a longer string is no name of a category: it is not counted
NUM_BINS: Final = 30
"""Number of bins: a bar of a chart on a phone is then about ten pixels wide."""

_SPAN: Final = (0.005, 0.995)  # quantiles: a single outlier would leave one bar and an empty chart


class Histogram:
    """Number of occurrences of each integer from `low` on."""

    __slots__ = ("counts", "low")

    def __init__(self, low: int, counts: NDArray[np.int64]) -> None:
        self.low = low
        self.counts = counts

    @classmethod
    def of(cls, values: NDArray[np.int64]) -> Histogram | None:
        """Count one or more integers; None if their range is too large."""
        low, high = int(values.min()), int(values.max())
        if high - low >= MAX_RANGE:
            return None
        if low >= 0 and high < MAX_RANGE:
            return cls(0, np.bincount(values))  # most are; no copy of them is made
        return cls(low, np.bincount(values - low))

    @classmethod
    def of_lists(
        cls, values: NDArray[np.int64], offsets: NDArray[np.int64], keep: Mask | None
    ) -> Histogram | None:
        """Count the integers of lists where `keep` is True; None without any, or if their range is large."""
        _, low, counts = _native.count_list_ints(
            np.ascontiguousarray(values), np.ascontiguousarray(offsets), keep, MAX_RANGE
        )
        return cls(low, counts) if len(counts) else None

    def merge(self, other: Histogram) -> Histogram | None:
        """Return the counts of both; None if their range is too large."""
        low = min(self.low, other.low)
        high = max(self.low + len(self.counts), other.low + len(other.counts))
        if high - low > MAX_RANGE:
            return None
        counts = np.zeros(high - low, np.int64)
        for each in (self, other):
            counts[each.low - low : each.low - low + len(each.counts)] += each.counts
        return Histogram(low, counts)

    def entries(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the integers that occur, ascending, and the number of occurrences of each."""
        found = np.flatnonzero(self.counts)
        return found + self.low, self.counts[found]


class Frequency:
    """Counts of distinct values, strings as bytes or ints.

    Attributes:
        max_values: Maximum number of values that are kept.
        is_complete: Whether all were kept, and the counts are exact.
        histogram: Counts of ints in a small range; None for other values.
    """

    __slots__ = ("_counts", "_has_room", "_num_seen", "_tally", "histogram", "is_complete", "max_values")

    def __init__(self, max_values: int) -> None:
        self.max_values = max_values
        self.is_complete = True
        self._num_seen = 0  # least number of distinct values so far
        # At most one of these three holds counts.
        self._counts: dict[Any, int] = {}
        self._tally: _native.ValueCounter | None = None
        self._has_room = False  # the counter has room for the values of further blocks
        self.histogram: Histogram | None = None

    @classmethod
    def of_ints(cls, values: NDArray[np.int64], max_values: int) -> Frequency:
        """Count ints."""
        frequency = cls(max_values)
        if len(values):
            frequency.histogram = Histogram.of(values)
            if frequency.histogram is None:
                tally = _native.ValueCounter(max_values)
                tally.add_ints(np.ascontiguousarray(values), None)
                frequency._take(tally)
        return frequency

    @classmethod
    def of_histogram(cls, histogram: Histogram, max_values: int) -> Frequency:
        """Take ints that were counted."""
        frequency = cls(max_values)
        frequency.histogram = histogram
        return frequency

    @classmethod
    def of_strings(
        cls,
        arena: NDArray[np.uint8],
        starts: NDArray[np.int64],
        stops: NDArray[np.int64],
        keep: Mask | None,
        max_values: int,
    ) -> Frequency:
        """Count byte strings where `keep` is True, or all of them."""
        frequency = cls(max_values)
        is_long = stops - starts > MAX_VALUE_BYTES
        if is_long.any():
            frequency.is_complete = not (is_long if keep is None else is_long & keep).any()
            keep = ~is_long if keep is None else keep & ~is_long
        tally = _native.ValueCounter(max_values)
        tally.add_strings(arena, np.ascontiguousarray(starts), np.ascontiguousarray(stops), keep)
        frequency._take(tally)
        return frequency

    @classmethod
    def of_counts(cls, counts: Mapping[bytes, int], max_values: int) -> Frequency:
        """Take values that were counted elsewhere, at most `max_values`."""
        frequency = cls(max_values)
        frequency._counts = dict(counts)
        return frequency

    def __getstate__(self) -> tuple[Any, ...]:
        """Return the counts without the object of the core, which cannot be pickled."""
        counts = self._counts if self._tally is None else self._entries()
        return self.max_values, self.is_complete, self._num_seen, counts, self.histogram

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.max_values, self.is_complete, self._num_seen, self._counts, self.histogram = state
        self._tally, self._has_room = None, False

    @property
    def num_distinct(self) -> int:
        """Number of distinct values; a lower bound if not all were kept."""
        num_known = len(self.histogram.entries()[0]) if self.histogram is not None else self._num_counted
        return max(self._num_seen, num_known)

    @property
    def _num_counted(self) -> int:
        """Number of values that are counted one by one."""
        return len(self._counts) if self._tally is None else len(self._tally)

    def blank(self) -> Frequency:
        """Return counts of nothing, with the same limit."""
        return Frequency(self.max_values)

    def merge(self, other: Frequency) -> None:
        """Add values that were counted apart; `other` stays as it is."""
        self.is_complete &= other.is_complete
        self._num_seen = max(self._num_seen, other._num_seen)
        if self._merge_histogram(other):
            return
        if not self._merge_tally(other):
            self._merge_counts(other)
        # Some room above the limit, so that not every block pays for making room.
        if self._num_counted > self.max_values + self.max_values // 4:
            self._make_room()

    def most_common(self, limit: int | None = None) -> list[tuple[Any, int]]:
        """Return up to `limit` values with counts, frequent ones first, equally frequent ones in order."""
        if self.histogram is not None:
            values, counts = self.histogram.entries()
            order = np.lexsort((values, -counts))[: self.max_values]
            if len(order) < len(values):
                self.is_complete = False
            order = order[:limit]
            return list(zip(values[order].tolist(), counts[order].tolist(), strict=True))
        if self._num_counted > self.max_values:
            self._make_room()
        entries = sorted(self._entries().items())
        entries.sort(key=itemgetter(1), reverse=True)  # stable: equally frequent ones stay in order
        return entries[:limit]

    def _merge_histogram(self, other: Frequency) -> bool:
        """Add the other's counts as a histogram; return whether that was possible."""
        if other.histogram is None or self._num_counted:
            return False
        merged = other.histogram if self.histogram is None else self.histogram.merge(other.histogram)
        if merged is None:
            return False
        self.histogram = merged
        return True

    def _merge_tally(self, other: Frequency) -> bool:
        """Add the other's counts in the core; return whether that was possible."""
        if other._tally is None or self.histogram is not None or self._counts:
            return False
        if self._tally is None or not self._has_room:
            block = self._tally
            # `merge` makes room above 5 / 4 of the limit, and a block has no more values than the limit.
            self._tally = _native.ValueCounter(3 * self.max_values)
            self._has_room = True
            if block is not None:
                self._tally.merge(block)
        self._tally.merge(other._tally)
        return True

    def _merge_counts(self, other: Frequency) -> None:
        self._list_counts()
        counts, get = self._counts, self._counts.get
        for value, count in other._entries().items():
            counts[value] = get(value, 0) + count

    def _list_counts(self) -> None:
        """Keep all counts in a dict from now on."""
        self._counts = self._entries()
        self._tally = self.histogram = None

    def _entries(self) -> dict[Any, int]:
        if self.histogram is not None:
            values, counts = self.histogram.entries()
            return dict(zip(values.tolist(), counts.tolist(), strict=True))
        if self._tally is None:
            return self._counts
        known, numbers, _ = self._tally.take()
        names: Iterable[Any] = known if isinstance(known, list) else known.tolist()
        return dict(zip(names, numbers.tolist(), strict=True))

    def _take(self, tally: _native.ValueCounter) -> None:
        self._tally = tally
        num_overflowed = tally.num_overflowed
        self._num_seen = len(tally) + (num_overflowed > 0)
        self.is_complete &= not num_overflowed

    def _make_room(self) -> None:
        """Subtract the largest count beyond the limit from all counts, and drop values without a rest."""
        self._list_counts()
        self._num_seen = max(self._num_seen, len(self._counts))
        counts = np.fromiter(self._counts.values(), np.int64, len(self._counts))
        excess = int(np.partition(counts, -self.max_values - 1)[-self.max_values - 1])
        self._counts = {value: count - excess for value, count in self._counts.items() if count > excess}
        self.is_complete = False


def choose_edges(values: NDArray[Any], num_bins: int = NUM_BINS) -> NDArray[np.float64]:
    """Return the edges of bins between the 0.5 % and 99.5 % quantiles of some numbers.

    Whole numbers in a small range have one bin each. Equal numbers have one bin of width 0, and no numbers
    have no edges.

    Example:
        >>> choose_edges(np.array([1, 2, 2, 4])).tolist()
        [0.5, 1.5, 2.5, 3.5, 4.5]
    """
    numbers = np.asarray(values, np.float64)
    if not len(numbers):
        return np.zeros(0)
    low, high = (float(each) for each in np.quantile(numbers, _SPAN, method="nearest"))
    if not low < high:
        low, high = float(numbers.min()), float(numbers.max())
    with np.errstate(over="ignore"):
        width = np.float64(high) - np.float64(low)
    if not width > 0 or not np.isfinite(width):
        return np.array([low, high])
    if width < num_bins and bool((numbers == np.rint(numbers)).all()):
        edges = np.arange(low, high + 2) - 0.5
        return edges if len(edges) == width + 2 else np.array([low, high])  # beyond 2**53, 0.5 is lost
    edges = np.linspace(low, high, num_bins + 1)
    return edges if bool((np.diff(edges) > 0).all()) else np.array([low, high])


def count_values(values: NDArray[Any], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the number of values in each bin; values beyond the edges are in the first or the last bin.

    Example:
        >>> count_values(np.array([-7.0, 0.2, 1.5, 9.0]), np.array([0.0, 1.0, 2.0])).tolist()
        [2, 2]
    """
    num_bins = max(0, len(edges) - 1)
    if not num_bins:
        return np.zeros(0, np.int64)
    places = np.searchsorted(edges, np.asarray(values, np.float64), side="right") - 1
    return np.bincount(np.clip(places, 0, num_bins - 1), minlength=num_bins).astype(np.int64)
