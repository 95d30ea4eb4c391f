"""Rows that equal each other belong into one split: what a model was trained on must not test it.

In: a hash of each row's contents, and each row's split. Out: how many rows equal one of another split, and if
asked for, their splits set right. Memory is bounded by passes over ranges of the hash.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.shards.ledger import LedgerColumn

PASS_ROWS = 1 << 21


class Duplicates(NamedTuple):
    """Rows that equal an earlier one, and those among them whose split is another than that one's."""

    num_equal: int
    num_apart: int


def settle_duplicates(contents: LedgerColumn, codes: NDArray[np.uint8], *, move: bool) -> Duplicates:
    """Count the rows that equal an earlier one; if asked, move those that are apart to its split."""
    num_passes = -(-len(contents) // PASS_ROWS)
    num_equal = num_apart = 0
    for number in range(num_passes):
        low, high = ((2**64 * n) // num_passes for n in (number, number + 1))
        search = _Pass(codes, move=move)
        for start, hashes in contents.slices():
            if num_passes == 1:
                search.add(hashes, np.arange(start, start + len(hashes)))
            else:
                found = np.flatnonzero((hashes >= np.uint64(low)) & (hashes <= np.uint64(high - 1)))
                search.add(hashes[found], found + start)
        search.settle()
        num_equal += search.num_equal
        num_apart += search.num_apart
    return Duplicates(num_equal, num_apart)


class _Pass:
    """The rows of one range of hashes, in source order."""

    def __init__(self, codes: NDArray[np.uint8], *, move: bool) -> None:
        self.num_equal = 0
        self.num_apart = 0
        self._codes = codes
        self._move = move
        self._hashes = [np.empty(0, np.uint64)]
        self._rows = [np.empty(0, np.int64)]
        self._num_rows = 0

    def add(self, hashes: NDArray[np.uint64], rows: NDArray[np.int64]) -> None:
        self._hashes.append(hashes)
        self._rows.append(rows)
        self._num_rows += len(rows)
        # Many rows of few hashes are not spread over the passes: of each hash only the first is kept.
        if self._num_rows > 2 * PASS_ROWS:
            hashes, rows = self.settle()
            kept, first = np.unique(hashes, return_index=True)
            self._hashes, self._rows, self._num_rows = [kept], [rows[first]], 0

    def settle(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Give rows of one hash the split of the first of them; return the rows that were looked at."""
        hashes, rows = np.concatenate(self._hashes), np.concatenate(self._rows)
        ordered = np.sort(hashes)
        again = ordered[1:][ordered[1:] == ordered[:-1]]
        self.num_equal += len(again)
        if len(again):
            # Only hashes that occur more than once, few as a rule, are put together with their rows.
            found = np.flatnonzero(np.isin(hashes, again))
            codes = self._codes[rows[found]]
            _, first, unit_of = np.unique(hashes[found], return_index=True, return_inverse=True)
            wanted = codes[first][unit_of]
            is_wrong = codes != wanted
            self.num_apart += int(np.count_nonzero(is_wrong))
            if self._move:
                self._codes[rows[found[is_wrong]]] = wanted[is_wrong]
        return hashes, rows
