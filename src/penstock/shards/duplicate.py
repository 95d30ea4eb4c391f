"""Identical rows belong into one split: what a model was trained on must not test it.

In: a digest of each row's content, and each row's split. Out: how many rows equal one of another split, and
if asked for, the splits of those that may move. Memory is bounded, see `grouping`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.shards.grouping import group_rows, slice_rows
from penstock.shards.ledger import Ledger, LedgerColumn
from penstock.shards.scratch import make_row_array
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


def find_bound(ledger: Ledger) -> Mask:
    """Return which rows may not follow an identical row, for other rows of their id or group would stay.

    The rows of an id (a group) may move together as long as all of them have the same content.
    """
    keys, contents = ledger.position_digests, ledger.content_digests
    is_bound = make_row_array(ledger.folder, ledger.num_rows, np.bool_)

    # The first word is enough for a key: two keys that share it are both taken as bound, which is safe.
    def read_key(start: int, stop: int) -> NDArray[np.uint64]:
        return _first_word(keys, start, stop)

    for groups in group_rows(read_key, contents.read, ledger.num_rows):
        if not groups.is_mixed.any():
            continue
        for start, stop in slice_rows(ledger.num_rows):
            inside, group_of = groups.find(read_key(start, stop))
            is_bound[start + inside[groups.is_mixed[group_of]]] = True
    return is_bound


def settle_duplicates(
    contents: LedgerColumn, codes: NDArray[np.uint8], is_bound: Mask | None, *, move: bool
) -> Duplicates:
    """Count the rows that equal another one; if asked, move those that may to its split.

    Identical rows follow the first of them that is bound, or else the first of them.

    Args:
        contents: The digest of each row's content.
        codes: The split of each row.
        is_bound: Which rows may not move; None if none may.
        move: Whether to move rows.
    """
    num_rows = len(contents)
    num_equal = num_apart = num_bound = 0

    def read_values(start: int, stop: int) -> NDArray[np.uint64]:
        second = contents.read(start, stop)[:, 1]
        return np.stack([second, codes[start:stop].astype(np.uint64)], axis=1)

    def read_key(start: int, stop: int) -> NDArray[np.uint64]:
        return _first_word(contents, start, stop)

    for groups in group_rows(read_key, read_values, num_rows, is_bound):
        if not len(groups.keys):
            continue
        num_equal -= len(groups.keys)
        for start, stop in slice_rows(num_rows):
            words = contents.read(start, stop)
            inside, group_of = groups.find(words[:, 0])
            # Rows that share the first word only are different; the first of them stands for itself.
            is_equal = words[inside, 1] == groups.firsts[group_of, 0]
            rows, wanted = start + inside[is_equal], groups.firsts[group_of[is_equal], 1].astype(np.uint8)
            is_apart = codes[rows] != wanted
            is_fixed = is_apart if is_bound is None else is_apart & is_bound[rows]
            num_equal += len(rows)
            num_apart += int(np.count_nonzero(is_apart))
            num_bound += int(np.count_nonzero(is_fixed))
            if move:
                moved = is_apart & ~is_fixed
                codes[rows[moved]] = wanted[moved]
    return Duplicates(num_equal, num_apart, num_bound)


def _first_word(column: LedgerColumn, start: int, stop: int) -> NDArray[np.uint64]:
    return np.ascontiguousarray(column.read(start, stop)[:, 0])
