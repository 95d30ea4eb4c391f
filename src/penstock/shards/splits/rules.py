"""The rules by which rows are split: by rank, by time, by hash, and stratified.

In: hashes, times or strata of the rows, from the ledger. Out: the split of each row. Rows with the same
deciding value are a unit, which stays in one split.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Mask
from penstock.settings.groups import Splits
from penstock.shards.sort.scratch import make_row_array, release_pages
from penstock.shards.splits.grouping import Grouping, Reader, slice_rows
from penstock.shards.splits.ledger import Ledger, LedgerColumn
from penstock.shards.splits.partition import Partitions, RowUpdates
from penstock.shards.splits.split import split_positions


def divide_rows(num_rows: int, shares: Sequence[float]) -> list[int]:
    """Return the number of rows per split: close to the shares, and above 0 if possible.

    Example:
        >>> divide_rows(5, (0.8, 0.1, 0.1))
        [3, 1, 1]
    """
    total = sum(shares)
    quotas = [num_rows * share / total for share in shares]
    counts = [int(quota) for quota in quotas]
    by_remainder = sorted(range(len(shares)), key=lambda i: counts[i] - quotas[i])
    for i in by_remainder[: num_rows - sum(counts)]:
        counts[i] += 1
    if num_rows < len(shares):
        return [int(i in _largest(shares, num_rows)) for i in range(len(shares))]
    while 0 in counts:
        counts[counts.index(max(counts))] -= 1
        counts[counts.index(0)] += 1
    return counts


def split_units(sizes: NDArray[np.int64], shares: Sequence[float]) -> NDArray[np.uint8]:
    """Return the index of the split of each unit; splits take units in order.

    Cuts are between units, as close to the shares as possible without an empty split. If there are fewer
    units than splits, the splits with the largest shares get one unit each.
    """
    num_units, num_splits = len(sizes), len(shares)
    if num_units < num_splits:
        return np.array(sorted(_largest(shares, num_units)), np.uint8)
    ends = np.cumsum(sizes)
    cuts = np.zeros(num_splits - 1, np.int64)  # number of units before each cut
    wanted = 0
    for i, count in enumerate(divide_rows(int(ends[-1]), shares)[:-1]):
        wanted += count
        after = int(np.searchsorted(ends, wanted))
        before_rows = int(ends[after - 1]) if after else 0
        nearest = after + (int(ends[after]) - wanted <= wanted - before_rows)
        least = int(cuts[i - 1]) + 1 if i else 1
        cuts[i] = min(max(nearest, least), num_units - (num_splits - 1 - i))
    return np.searchsorted(cuts, np.arange(num_units), side="right").astype(np.uint8)


def split_by_rank(positions: NDArray[np.uint64], shares: Sequence[float]) -> NDArray[np.uint8]:
    """Return the split of each row by the rank of its position; rows of one position are a unit."""
    _, unit_of, sizes = np.unique(positions, return_inverse=True, return_counts=True)
    return split_units(sizes, shares)[unit_of]


def _largest(shares: Sequence[float], count: int) -> list[int]:
    return sorted(range(len(shares)), key=lambda i: -shares[i])[:count]


MAX_SORTED_ROWS = 1 << 22
_SIGN = np.uint64(1 << 63)


class TimeSplits:
    """Finds the split that a time belongs to."""

    def __init__(self, times: LedgerColumn, shares: Sequence[float]) -> None:
        starts, sizes = _sort_units(times) if len(times) <= MAX_SORTED_ROWS else _refine_units(times, shares)
        codes = split_units(sizes, shares)
        is_first = np.concatenate([[True], codes[1:] != codes[:-1]])
        self._starts, self._codes = starts[is_first], codes[is_first]

    def split(self, times: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the index of the split of each time."""
        eras = np.searchsorted(self._starts, _unsigned(times), side="right") - 1
        codes: NDArray[np.uint8] = self._codes[eras]
        return codes


def _unsigned(times: NDArray[np.int64]) -> NDArray[np.uint64]:
    shifted: NDArray[np.uint64] = times.view(np.uint64) ^ _SIGN
    return shifted


def _sort_units(times: LedgerColumn) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return all different times, and the number of rows of each."""
    return np.unique(_unsigned(times.read(0, len(times))), return_counts=True)


def _refine_units(
    times: LedgerColumn, shares: Sequence[float]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return spans of time with their numbers of rows, fine near the cuts of splits and coarse elsewhere.

    At most four passes, of 16 bits each; a span without a cut is not divided.
    """
    cuts = np.cumsum(divide_rows(len(times), shares))[:-1]
    starts, sizes = np.zeros(1, np.uint64), np.array([len(times)])
    for shift in (48, 32, 16, 0):
        ends = np.cumsum(sizes)
        holders = np.searchsorted(ends, cuts, side="right")
        # Spans with a cut inside; all of them are from the last pass.
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
        values = _unsigned(words)
        for i, start in enumerate(starts):
            # Differences wrap around: values before the span become large, too.
            distances = (values - start) >> np.uint64(shift)
            inside = distances[distances < (1 << 16)]
            counts[i] += np.bincount(inside.astype(np.int64), minlength=1 << 16)
    return counts


class Positions:
    """The position of every row of a ledger.

    Attributes:
        num_collisions: Number of rows whose hash is shared by rows with a different deciding value.
        num_hashes: Number of different hashes.
    """

    def __init__(self, ledger: Ledger, seed: int) -> None:
        self.num_collisions = 0
        self._ledger = ledger
        self._seed = seed
        grouping = Grouping(ledger.folder, ledger.positions.read, ledger.num_rows)
        self.num_hashes = grouping.num_keys
        self._is_collision = self._find_collisions(grouping)

    @property
    def are_distinct(self) -> bool:
        """Whether no two rows have the same hash, so that no two deciding values are the same."""
        return self.num_hashes == self._ledger.num_rows

    def _find_collisions(self, grouping: Grouping) -> Mask | None:
        ledger = self._ledger
        with RowUpdates(ledger.folder, ledger.num_rows) as updates:
            for found in grouping.groups(ledger.position_digests.read):
                updates.add(found.rows[found.is_mixed], np.ones(1))
            self.num_collisions = updates.count
            if not self.num_collisions:
                return None
            is_collision = make_row_array(ledger.folder, ledger.num_rows, np.bool_)
            updates.apply(is_collision)
            return is_collision

    def read(self, start: int, stop: int) -> NDArray[np.uint64]:
        """Return the positions of rows `start` to `stop`."""
        hashes = self._ledger.positions.read(start, stop)
        if self._is_collision is not None:
            is_collision = np.array(self._is_collision[start:stop])
            release_pages(self._is_collision)
            if is_collision.any():
                digests = self._ledger.position_digests.read(start, stop)
                hashes = np.where(is_collision, digests[:, 0], hashes)
        return _native.mix_hashes(self._seed, hashes)


MAX_RANKED_ROWS: Final = 1_000_000
"""Larger strata are split by the hash alone, which meets the shares within 0.1 %."""

_PARTITION_ROWS = 1 << 21  # rows that are ranked at a time


def stratify(ledger: Ledger, positions: Positions, split: Splits, codes: NDArray[np.uint8]) -> None:
    """Fill in the split of every row."""
    read_strata = _unite_strata(ledger, positions)
    sizes = np.zeros(1, np.int64)
    for start, stop in slice_rows(ledger.num_rows, codes):
        # Final for the largest strata; the others are ranked below.
        codes[start:stop] = split_positions(positions.read(start, stop), split)
        counts = np.bincount(read_strata(start, stop), minlength=len(sizes))
        counts[: len(sizes)] += sizes
        sizes = counts
    partition_of = _partition_strata(np.where(sizes > MAX_RANKED_ROWS, 0, sizes))
    shares = list(split.shares.values())
    with (
        Partitions(ledger.folder, 3, int(partition_of[-1]) + 1) as partitions,
        RowUpdates(ledger.folder, ledger.num_rows) as updates,
    ):
        for start, stop in slice_rows(ledger.num_rows):
            strata = read_strata(start, stop)
            found = np.flatnonzero(sizes[strata] <= MAX_RANKED_ROWS)
            records = np.empty((len(found), 3), np.uint64)
            records[:, 0], records[:, 1] = strata[found], found + start
            records[:, 2] = positions.read(start, stop)[found]
            partitions.append(records, partition_of[strata[found]])
        for number in np.flatnonzero(partitions.counts).tolist():
            updates.add(*_rank(partitions.read(number), shares))
        updates.apply(codes)


def _rank(
    records: NDArray[np.uint64], shares: Sequence[float]
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Return the rows of complete strata, given as (stratum, row, position), and the split of each row."""
    records = records[np.argsort(records[:, 0], kind="stable")]
    codes = np.empty(len(records), np.uint8)
    starts = np.flatnonzero(np.diff(records[:, 0])) + 1
    for start, stop in itertools.pairwise([0, *starts.tolist(), len(records)]):
        codes[start:stop] = split_by_rank(records[start:stop, 2], shares)
    return records[:, 1].astype(np.int64), codes


def _unite_strata(ledger: Ledger, positions: Positions) -> Reader:
    """Return a reader of strata that gives all rows of one position the same stratum."""
    with RowUpdates(ledger.folder, ledger.num_rows) as updates:
        # Rows of one position in different strata have the same hash, or digest if hashes collide.
        if not positions.are_distinct:
            grouping = Grouping(ledger.folder, positions.read, ledger.num_rows)
            for found in grouping.groups(ledger.marks.read):
                updates.add(found.rows[found.is_mixed], found.firsts[found.is_mixed, 0])
        if not updates.count:
            return ledger.marks.read
        united = make_row_array(ledger.folder, ledger.num_rows, np.int32)
        for start, stop in slice_rows(ledger.num_rows, united):
            united[start:stop] = ledger.marks.read(start, stop)
        updates.apply(united)

    def read(start: int, stop: int) -> NDArray[np.int32]:
        strata = np.array(united[start:stop])
        release_pages(united)
        return strata

    return read


def _partition_strata(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the index of a partition for each stratum, so that each partition can be ranked at once."""
    numbers = np.zeros(len(sizes), np.int64)
    last, num_rows = 0, 0
    for stratum, size in enumerate(sizes.tolist()):
        if num_rows and num_rows + size > _PARTITION_ROWS:
            last, num_rows = last + 1, 0
        num_rows += size
        numbers[stratum] = last
    return numbers
