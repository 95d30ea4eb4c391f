"""Rows grouped by a key of 64 bits: what the first row of each group holds, and whether others differ.

In: readers of keys and values, which return slices of rows. Out: the groups, in passes over ranges of the
key, so that memory does not grow with the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.shards import ledger
from penstock.types import Mask

PASS_ROWS = 1 << 21

Reader: TypeAlias = Callable[[int, int], NDArray[Any]]
"""Returns the words of rows `start` to `stop`: one per row, or several as columns."""


def slice_rows(num_rows: int) -> Iterator[tuple[int, int]]:
    """Yield the first row and the exclusive end of each slice."""
    for start in range(0, num_rows, ledger.SLICE_ROWS):
        yield start, min(start + ledger.SLICE_ROWS, num_rows)


@dataclass(frozen=True)
class Groups:
    """The groups of one pass.

    Attributes:
        keys: The key of each group, in ascending order.
        firsts: The values of the first row of each group.
        is_mixed: Whether a later row of the group has other values.
        low: Least key of the pass.
        high: Greatest key of the pass.
    """

    keys: NDArray[np.uint64]
    firsts: NDArray[Any]
    is_mixed: Mask
    low: int
    high: int

    def find(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which of some rows belong to this pass, and the number of the group of each."""
        inside = _find_inside(keys, self.low, self.high)
        return inside, np.searchsorted(self.keys, keys[inside])


def group_rows(
    keys: Reader, values: Reader, num_rows: int, leads: NDArray[np.bool_] | None = None
) -> Iterator[Groups]:
    """Yield the groups of all rows.

    Args:
        keys: Returns one word per row; rows of one word are a group.
        values: Returns what is compared within a group.
        num_rows: How many rows there are.
        leads: Rows that come before all others of their group; among themselves, and without it, rows are in
            source order.
    """
    num_passes = max(1, -(-num_rows // PASS_ROWS))
    for number in range(num_passes):
        low, high = 2**64 * number // num_passes, 2**64 * (number + 1) // num_passes - 1
        table = _Table()
        for is_lead in (None,) if leads is None else (True, False):
            for start, stop in slice_rows(num_rows):
                words = keys(start, stop)
                inside = _find_inside(words, low, high)
                if leads is not None:
                    inside = inside[leads[start:stop][inside] == is_lead]
                if len(inside):
                    table.add(words[inside], _as_columns(values(start, stop))[inside])
        if (found := table.finish(low, high)) is not None:
            yield found


class _Table:
    """The groups so far; rows are added in their order, and merged when there are many."""

    def __init__(self) -> None:
        self._keys: list[NDArray[np.uint64]] = []
        self._values: list[NDArray[Any]] = []
        self._is_mixed = np.zeros(0, np.bool_)
        self._num_new = 0

    def add(self, keys: NDArray[np.uint64], values: NDArray[Any]) -> None:
        self._keys.append(keys)
        self._values.append(values)
        self._num_new += len(keys)
        if self._num_new >= PASS_ROWS:
            self._merge()

    def _merge(self) -> None:
        keys, values = np.concatenate(self._keys), np.concatenate(self._values)
        distinct, firsts, group_of = np.unique(keys, return_index=True, return_inverse=True)
        first_values = values[firsts]
        is_mixed = np.zeros(len(distinct), np.bool_)
        is_mixed[group_of[(values != first_values[group_of]).any(axis=1)]] = True
        # The groups so far come first, one entry each.
        is_mixed[group_of[: len(self._is_mixed)]] |= self._is_mixed
        self._keys, self._values, self._is_mixed, self._num_new = [distinct], [first_values], is_mixed, 0

    def finish(self, low: int, high: int) -> Groups | None:
        if self._num_new:
            self._merge()
        return Groups(self._keys[0], self._values[0], self._is_mixed, low, high) if self._keys else None


def _find_inside(keys: NDArray[np.uint64], low: int, high: int) -> NDArray[np.int64]:
    if low == 0 and high == 2**64 - 1:
        return np.arange(len(keys))
    return np.flatnonzero((keys >= np.uint64(low)) & (keys <= np.uint64(high)))


def _as_columns(values: NDArray[Any]) -> NDArray[Any]:
    return values.reshape(len(values), -1)
