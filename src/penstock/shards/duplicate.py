"""Identical rows belong into one split: what a model was trained on must not test it.

In: a digest of each row's content, and each row's split. Out: how many rows equal one of another split, and
the split of each of those that may move. Memory is bounded, see `grouping`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.shards.grouping import Grouping
from penstock.shards.ledger import Ledger, LedgerColumn
from penstock.shards.partition import RowUpdates
from penstock.shards.scratch import make_row_array, release_pages
from penstock.types import Mask


class Duplicates(NamedTuple):
    """Counts of identical rows.

    Attributes:
        num_equal: Rows that equal an earlier one.
        num_apart: Those of them that are in another split.
        num_bound: Those of the latter that may not move.
    """

    num_equal: int
    num_apart: int
    num_bound: int


def group_contents(ledger: Ledger) -> Grouping:
    """Return the groups of rows by the first word of the digest of their content."""
    return _group_by_first_word(ledger, ledger.content_digests)


def find_bound(ledger: Ledger) -> Mask | None:
    """Return which rows may not follow an identical row, for other rows of their id or group would stay.

    The rows of an id (a group) may move together as long as all of them have the same content. None if that
    holds for all rows.
    """
    # The first word is enough for a key: two keys that share it are both taken as bound, which is safe.
    grouping = _group_by_first_word(ledger, ledger.position_digests)
    with RowUpdates(ledger.folder, ledger.num_rows) as updates:
        for found in grouping.groups(ledger.content_digests.read):
            updates.add(found.rows[found.is_mixed], np.ones(1))
        if not updates.count:
            return None
        is_bound = make_row_array(ledger.folder, ledger.num_rows, np.bool_)
        updates.apply(is_bound)
        return is_bound


def compare_duplicates(
    contents: LedgerColumn,
    grouping: Grouping,
    codes: NDArray[np.uint8],
    is_bound: Mask | None = None,
    updates: RowUpdates | None = None,
) -> Duplicates:
    """Count the rows that equal another one, and find the split to which those belong that may move.

    Identical rows follow the first of them that is bound, or else the first of them.

    Args:
        contents: The digest of each row's content.
        grouping: The groups of rows by the first word of it.
        codes: The split of each row.
        is_bound: Which rows may not move; None if all may.
        updates: Takes the new split of each row that moves.
    """
    num_equal = num_apart = num_bound = 0

    def read_values(start: int, stop: int) -> NDArray[np.uint64]:
        second = contents.read(start, stop)[:, 1]
        values = np.stack([second, codes[start:stop].astype(np.uint64)], axis=1)
        release_pages(codes)
        return values

    for found in grouping.groups(read_values, is_bound):
        # Rows that share the first word only are different; the first of them stands for itself.
        is_equal = found.values[:, 0] == found.firsts[:, 0]
        is_apart = is_equal & (found.values[:, 1] != found.firsts[:, 1])
        num_equal += int(np.count_nonzero(is_equal)) - int(np.count_nonzero(found.is_first))
        num_apart += int(np.count_nonzero(is_apart))
        if is_bound is not None:
            is_fixed = is_apart & found.is_lead
            num_bound += int(np.count_nonzero(is_fixed))
            is_apart &= ~is_fixed
        if updates is not None:
            updates.add(found.rows[is_apart], found.firsts[is_apart, 1])
    return Duplicates(num_equal, num_apart, num_bound)


def _group_by_first_word(ledger: Ledger, column: LedgerColumn) -> Grouping:
    def read_key(start: int, stop: int) -> NDArray[np.uint64]:
        return np.ascontiguousarray(column.read(start, stop)[:, 0])

    return Grouping(ledger.folder, read_key, ledger.num_rows)
