"""Splits in strata: every stratum gets the shares by itself.

In: a ledger whose marks are the numbers of strata. Out: the split of every row. All rows of one deciding
value belong to one stratum, that of the first of them, so that the value is in one split.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.shards.grouping import Reader, group_rows, slice_rows
from penstock.shards.ledger import Ledger
from penstock.shards.position import Positions
from penstock.shards.rank import split_by_rank
from penstock.shards.scratch import make_row_array
from penstock.shards.split import SplitOptions, split_positions

MAX_RANKED_ROWS: Final = 1_000_000
"""A stratum of more rows meets its shares by the hash alone, within one in a thousand."""

_PASS_ROWS = 1 << 22  # ranked at a time


def stratify(ledger: Ledger, positions: Positions, options: SplitOptions, codes: NDArray[np.uint8]) -> None:
    """Fill in the split of every row."""
    read_strata = _unite_strata(ledger, positions)
    sizes = np.zeros(1, np.int64)
    for start, stop in slice_rows(ledger.num_rows):
        # Right for the largest strata; the others are ranked below.
        codes[start:stop] = split_positions(positions.read(start, stop), options)
        counts = np.bincount(read_strata(start, stop), minlength=len(sizes))
        counts[: len(sizes)] += sizes
        sizes = counts
    for first, last in _rank_passes(np.where(sizes > MAX_RANKED_ROWS, 0, sizes)):
        all_rows, all_positions, all_strata = [], [], []
        for start, stop in slice_rows(ledger.num_rows):
            strata = read_strata(start, stop)
            found = np.flatnonzero((strata >= first) & (strata < last) & (sizes[strata] <= MAX_RANKED_ROWS))
            all_rows.append(found + start)
            all_strata.append(strata[found])
            all_positions.append(positions.read(start, stop)[found])
        rows, strata = np.concatenate(all_rows), np.concatenate(all_strata)
        ranked = np.concatenate(all_positions)
        order = np.argsort(strata, kind="stable")
        bounds = np.flatnonzero(np.diff(strata[order])) + 1
        for stratum in np.split(order, bounds):
            codes[rows[stratum]] = split_by_rank(ranked[stratum], list(options.shares.values()))


def _unite_strata(ledger: Ledger, positions: Positions) -> Reader:
    """Return a reader of the stratum of each row, which is the same for all rows of one position."""
    united: NDArray[Any] | None = None
    for groups in group_rows(positions.read, ledger.marks.read, ledger.num_rows):
        if not groups.is_mixed.any():
            continue
        if united is None:
            united = make_row_array(ledger.folder, ledger.num_rows, np.int32)
            for start, marks in ledger.marks.slices():
                united[start : start + len(marks)] = marks
        for start, stop in slice_rows(ledger.num_rows):
            inside, group_of = groups.find(positions.read(start, stop))
            united[start + inside] = groups.firsts[group_of, 0]
    if united is None:
        return ledger.marks.read
    found = united
    return lambda start, stop: found[start:stop]


def _rank_passes(sizes: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield ranges of strata, each of which holds rows that can be ranked at once."""
    first, num_rows = 0, 0
    for number, size in enumerate(sizes.tolist()):
        if num_rows and num_rows + size > _PASS_ROWS:
            yield first, number
            first, num_rows = number, 0
        num_rows += size
    if num_rows:
        yield first, len(sizes)
