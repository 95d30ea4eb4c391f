"""Groups rows by a 64-bit key: which keys have several rows, and whether these rows differ.

In: readers of keys and values, which return slices of rows. Out: the rows of all groups, partition by
partition. Rows are divided by the leading bits of their keys; a partition that is too large is divided again
by the next bits, until it fits into memory or has only one key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Mask
from penstock.shards.sort.scratch import release_pages
from penstock.shards.splits import ledger
from penstock.shards.splits.partition import Partitions

PARTITION_ROWS = 1 << 20
"""Rows that are grouped in memory at once, which takes up to 150 bytes per row."""

_STEP_BITS = 8  # bits of the key by which rows are divided at once
_FILTER_BITS = 24  # bits of the key that exclude most rows whose key is unique
_LATER = np.uint64(1 << 62)  # added to the index of a row that comes after all rows without it

Reader: TypeAlias = Callable[[int, int], NDArray[Any]]
"""Returns the words of rows `start` to `stop`: one per row, or several as columns."""


def slice_rows(num_rows: int, *arrays: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Yield the first row and the exclusive end of each slice.

    `*arrays`: arrays by `make_row_array`, whose memory is released after each slice.
    """
    for start in range(0, num_rows, ledger.SLICE_ROWS):
        yield start, min(start + ledger.SLICE_ROWS, num_rows)
        for array in arrays:
            release_pages(array)


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Some rows of groups that have several rows; one item per row.

    Attributes:
        rows: Index of the row.
        keys: Key of its group.
        values: Values of the row, as columns.
        firsts: Values of the first row of its group.
        is_first: Whether it is the first row of its group.
        is_lead: Whether it is one of the leading rows of its group; true for all rows if there are none.
        is_mixed: Whether the group has rows whose values differ from the first row.
    """

    rows: NDArray[np.int64]
    keys: NDArray[np.uint64]
    values: NDArray[np.uint64]
    firsts: NDArray[np.uint64]
    is_first: Mask
    is_lead: Mask
    is_mixed: Mask


class Grouping:
    """The groups of all rows that have the same key.

    Attributes:
        num_rows: Number of rows.
        num_keys: Number of different keys.
    """

    def __init__(self, folder: Path, keys: Reader, num_rows: int) -> None:
        """Count the keys, and find those that occur repeatedly.

        Most keys occur once, so the keys alone are sorted first, which is enough if all of them differ.

        `keys`: returns one word per row; rows with the same word are a group.
        """
        self.num_rows = num_rows
        self.num_keys = 0
        self._folder = folder
        self._keys = keys
        self._is_repeated = np.zeros(1 << _FILTER_BITS, np.bool_)
        with Partitions(folder, 1, 1 << self._num_bits) as partitions:
            for start, stop in slice_rows(num_rows):
                words = keys(start, stop)
                partitions.append(words.reshape(-1, 1), _take_bits(words, 0, self._num_bits))
            for part in _divide(folder, partitions, self._num_bits):
                self._count(part)

    @property
    def are_distinct(self) -> bool:
        """Whether no two rows have the same key."""
        return self.num_keys == self.num_rows

    @property
    def _num_bits(self) -> int:
        """Number of bits of the keys by which rows are divided first."""
        return min(_STEP_BITS, (2 * self.num_rows // PARTITION_ROWS).bit_length())

    def _count(self, part: _Part) -> None:
        if part.has_one_key:
            self.num_keys += 1
            repeated = next(part.pieces())[:1, 0]
        else:
            words = np.sort(part.read()[:, 0])
            is_again = words[1:] == words[:-1]
            repeated = words[1:][is_again]
            self.num_keys += len(words) - len(repeated)
        self._is_repeated[_filter_index(repeated)] = True

    def groups(self, values: Reader, leads: Mask | None = None) -> Iterator[GroupedRows]:
        """Yield the rows of all groups of several rows; large groups in several consecutive items.

        `leads`: mask of rows that come before all others of their group; otherwise rows are in source order.
        """
        if self.are_distinct:
            return
        partitions = self._divide_repeated(values, leads)
        try:
            for part in _divide(self._folder, partitions, self._num_bits):
                yield from _group_alike(part) if part.has_one_key else _group(part.read())
        finally:
            partitions.close()

    def _divide_repeated(self, values: Reader, leads: Mask | None) -> Partitions:
        """Divide the rows whose keys may occur repeatedly, with the values that are compared."""
        num_words = 2 + _as_columns(values(0, 1)).shape[1]
        partitions = Partitions(self._folder, num_words, 1 << self._num_bits)
        for start, stop in slice_rows(self.num_rows, *(() if leads is None else (leads,))):
            words = self._keys(start, stop)
            found = np.flatnonzero(self._is_repeated[_filter_index(words)])
            if not len(found):
                continue
            records = np.empty((len(found), num_words), np.uint64)
            records[:, 0] = words[found]
            records[:, 1] = found + start
            if leads is not None:
                records[~leads[start:stop][found], 1] += _LATER
            records[:, 2:] = _as_columns(values(start, stop))[found]
            partitions.append(records, _take_bits(records[:, 0], 0, self._num_bits))
        return partitions


@dataclass(frozen=True, eq=False)
class _Part:
    """The records of one partition, which fit into memory or all have the same key."""

    partitions: Partitions
    number: int
    has_one_key: bool

    def pieces(self) -> Iterator[NDArray[np.uint64]]:
        return self.partitions.pieces(self.number)

    def read(self) -> NDArray[np.uint64]:
        return self.partitions.read(self.number)


def _divide(folder: Path, partitions: Partitions, num_bits: int) -> Iterator[_Part]:
    """Yield parts of all records that can be grouped separately.

    `partitions`: records that start with their key, divided by its first bits.
    """
    for number in np.flatnonzero(partitions.counts).tolist():
        if partitions.counts[number] <= PARTITION_ROWS:
            yield _Part(partitions, number, False)
        elif _has_one_key(partitions.pieces(number)):
            yield _Part(partitions, number, True)
        else:
            first = next(partitions.pieces(number))
            with Partitions(folder, first.shape[1], 1 << _STEP_BITS) as finer:
                for records in partitions.pieces(number):
                    finer.append(records, _take_bits(records[:, 0], num_bits, _STEP_BITS))
                yield from _divide(folder, finer, num_bits + _STEP_BITS)


def _has_one_key(pieces: Iterator[NDArray[np.uint64]]) -> bool:
    first = next(pieces)
    key = first[0, 0]
    return bool((first[:, 0] == key).all()) and all(bool((piece[:, 0] == key).all()) for piece in pieces)


def _group(records: NDArray[np.uint64]) -> Iterator[GroupedRows]:
    """Yield the rows of all groups among some records of (key, row, values)."""
    keys = np.ascontiguousarray(records[:, 0])
    order = np.argsort(keys)
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sizes = np.diff(starts, append=len(ordered))
    if len(starts) == len(ordered):
        return
    is_several = sizes > 1
    records = records[order[np.repeat(is_several, sizes)]]
    sizes = sizes[is_several]
    starts = np.cumsum(sizes) - sizes
    # Faster than a stable sort: the first row of a group is the one with the smallest index.
    numbers = np.ascontiguousarray(records[:, 1])
    is_first = numbers == np.repeat(np.minimum.reduceat(numbers, starts), sizes)
    values = records[:, 2:]
    firsts = np.repeat(values[is_first], sizes, axis=0)
    is_mixed = np.logical_or.reduceat((values != firsts).any(axis=1), starts)
    yield _describe(records, firsts, is_first, np.repeat(is_mixed, sizes))


def _group_alike(part: _Part) -> Iterator[GroupedRows]:
    """Yield the rows of a partition with one key and any number of rows, in several items."""
    first = next(part.pieces())[0]
    for records in part.pieces():
        least = records[np.argmin(records[:, 1])]
        if least[1] < first[1]:
            first = least.copy()
    is_mixed = any(bool((records[:, 2:] != first[2:]).any()) for records in part.pieces())
    for records in part.pieces():
        firsts = np.broadcast_to(first[2:], (len(records), len(first) - 2))
        yield _describe(records, firsts, records[:, 1] == first[1], np.full(len(records), is_mixed))


def _describe(
    records: NDArray[np.uint64], firsts: NDArray[np.uint64], is_first: Mask, is_mixed: Mask
) -> GroupedRows:
    is_lead = records[:, 1] < _LATER
    rows = (records[:, 1] & (_LATER - np.uint64(1))).astype(np.int64)
    return GroupedRows(rows, records[:, 0], records[:, 2:], firsts, is_first, is_lead, is_mixed)


def _take_bits(keys: NDArray[np.uint64], skip: int, count: int) -> NDArray[np.uint64]:
    """Return `count` bits of each key after the `skip` highest bits, or the last bits if fewer are left."""
    shift = np.uint64(min(63, max(0, 64 - skip - count)))
    bits: NDArray[np.uint64] = (keys >> shift) & np.uint64((1 << count) - 1)
    return bits


def _filter_index(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    index: NDArray[np.int64] = (keys & np.uint64((1 << _FILTER_BITS) - 1)).astype(np.int64)
    return index


def _as_columns(values: NDArray[Any]) -> NDArray[Any]:
    return values.reshape(len(values), -1)
