"""Splits in strata: every stratum gets the shares by itself.

In: a ledger whose marks are the numbers of strata. Out: the split of every row. All rows of one deciding
value belong to one stratum, that of the first of them, so that the value is in one split.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock.shards.grouping import Grouping, Reader, slice_rows
from penstock.shards.ledger import Ledger
from penstock.shards.partition import Partitions, RowUpdates
from penstock.shards.position import Positions
from penstock.shards.rank import split_by_rank
from penstock.shards.scratch import make_row_array, release_pages
from penstock.shards.split import SplitOptions, split_positions

MAX_RANKED_ROWS: Final = 1_000_000
"""A stratum of more rows meets its shares by the hash alone, within one in a thousand."""

_PARTITION_ROWS = 1 << 21  # ranked at a time


def stratify(ledger: Ledger, positions: Positions, options: SplitOptions, codes: NDArray[np.uint8]) -> None:
    """Fill in the split of every row."""
    read_strata = _unite_strata(ledger, positions)
    sizes = np.zeros(1, np.int64)
    for start, stop in slice_rows(ledger.num_rows, codes):
        # Right for the largest strata; the others are ranked below.
        codes[start:stop] = split_positions(positions.read(start, stop), options)
        counts = np.bincount(read_strata(start, stop), minlength=len(sizes))
        counts[: len(sizes)] += sizes
        sizes = counts
    partition_of = _partition_strata(np.where(sizes > MAX_RANKED_ROWS, 0, sizes))
    shares = list(options.shares.values())
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
    """Return the rows of some whole strata, given as (stratum, row, position), and the split of each."""
    records = records[np.argsort(records[:, 0], kind="stable")]
    codes = np.empty(len(records), np.uint8)
    starts = np.flatnonzero(np.diff(records[:, 0])) + 1
    for start, stop in itertools.pairwise([0, *starts.tolist(), len(records)]):
        codes[start:stop] = split_by_rank(records[start:stop, 2], shares)
    return records[:, 1].astype(np.int64), codes


def _unite_strata(ledger: Ledger, positions: Positions) -> Reader:
    """Return a reader of the stratum of each row, which is the same for all rows of one position."""
    with RowUpdates(ledger.folder, ledger.num_rows) as updates:
        # Rows of one position in different strata have one hash, or one digest if the hashes collide.
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
    """Return for each stratum the number of a partition, whose rows can be ranked at once."""
    numbers = np.zeros(len(sizes), np.int64)
    last, num_rows = 0, 0
    for stratum, size in enumerate(sizes.tolist()):
        if num_rows and num_rows + size > _PARTITION_ROWS:
            last, num_rows = last + 1, 0
        num_rows += size
        numbers[stratum] = last
    return numbers
