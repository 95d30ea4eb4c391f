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
    """The groups of one pass that have several rows.

    Attributes:
        num_keys: How many different keys the pass has, those of one row included.
        keys: The key of each group, in ascending order.
        firsts: The values of the first row of each group.
        is_mixed: Whether a later row of the group has other values.
        low: Least key of the pass.
        high: Greatest key of the pass.
    """

    num_keys: int
    keys: NDArray[np.uint64]
    firsts: NDArray[Any]
    is_mixed: Mask
    low: int
    high: int

    def find(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which of some rows belong to these groups, and the number of the group of each."""
        inside = _find_inside(keys, self.low, self.high)
        is_found, group_of = _search(self.keys, keys[inside])
        return inside[is_found], group_of[is_found]


def group_rows(
    keys: Reader, values: Reader, num_rows: int, leads: NDArray[np.bool_] | None = None
) -> Iterator[Groups]:
    """Yield the groups of all rows, pass by pass.

    Most keys occur once as a rule. So keys alone are sorted first, and values are read only of the others.

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
        num_keys, repeated = _find_repeated(keys, num_rows, low, high)
        if not len(repeated):
            yield Groups(num_keys, repeated, np.zeros((0, 1), np.uint64), np.zeros(0, np.bool_), low, high)
            continue
        table = _Table()
        for is_lead in (None,) if leads is None else (True, False):
            for start, stop in slice_rows(num_rows):
                words = keys(start, stop)
                inside = _find_inside(words, low, high)
                inside = inside[_search(repeated, words[inside])[0]]
                if leads is not None:
                    inside = inside[leads[start:stop][inside] == is_lead]
                if len(inside):
                    table.add(words[inside], _as_columns(values(start, stop))[inside])
        yield Groups(num_keys, *table.finish(), low, high)


def _find_repeated(keys: Reader, num_rows: int, low: int, high: int) -> tuple[int, NDArray[np.uint64]]:
    """Return how many different keys lie in a range, and in ascending order those that occur repeatedly."""
    distinct, repeated = np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    new: list[NDArray[np.uint64]] = []
    for start, stop in slice_rows(num_rows):
        words = keys(start, stop)
        new.append(words[_find_inside(words, low, high)])
        if stop == num_rows or sum(map(len, new)) >= PASS_ROWS:
            ordered = np.sort(np.concatenate([distinct, *new]))
            is_again = np.zeros(len(ordered), np.bool_)
            np.equal(ordered[1:], ordered[:-1], out=is_again[1:])
            if is_again.any():
                repeated = np.unique(np.concatenate([repeated, ordered[is_again]]))
            distinct, new = ordered[~is_again], []
    return len(distinct), repeated


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

    def finish(self) -> tuple[NDArray[np.uint64], NDArray[Any], Mask]:
        if self._num_new:
            self._merge()
        return self._keys[0], self._values[0], self._is_mixed


def _find_inside(keys: NDArray[np.uint64], low: int, high: int) -> NDArray[np.int64]:
    if low == 0 and high == 2**64 - 1:
        return np.arange(len(keys))
    return np.flatnonzero((keys >= np.uint64(low)) & (keys <= np.uint64(high)))


def _search(ordered: NDArray[np.uint64], keys: NDArray[np.uint64]) -> tuple[Mask, NDArray[np.int64]]:
    """Return which keys are among some ordered ones, and where."""
    if not len(ordered):
        return np.zeros(len(keys), np.bool_), np.zeros(len(keys), np.int64)
    places = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return ordered[places] == keys, places


def _as_columns(values: NDArray[Any]) -> NDArray[Any]:
    return values.reshape(len(values), -1)
