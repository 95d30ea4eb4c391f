"""Assigns every row to a split, and keeps identical rows in the same split.

In: the ledger of all rows, and the options of the splits. Out: `Assignment`: the split of each row, counts of
identical rows, and notes. Memory is bounded, see `grouping`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Mask
from penstock.errors import OptionError
from penstock.settings.groups import Splits
from penstock.shards.sort.scratch import make_row_array, release_pages
from penstock.shards.splits.grouping import Grouping, slice_rows
from penstock.shards.splits.ledger import Ledger, LedgerColumn
from penstock.shards.splits.partition import RowUpdates
from penstock.shards.splits.rules import Positions, TimeSplits, split_by_rank, stratify
from penstock.shards.splits.split import Assignment, check_split_names, is_by_key, split_positions


class Duplicates(NamedTuple):
    """Counts of identical rows.

    Attributes:
        num_equal: Number of rows that equal an earlier row.
        num_apart: Number of these rows that are in another split.
        num_bound: Number of rows in another split that may not move.
    """

    num_equal: int
    num_apart: int
    num_bound: int


def group_contents(ledger: Ledger) -> Grouping:
    """Return the groups of rows by the first word of the digest of their content."""
    return _group_by_first_word(ledger, ledger.content_digests)


def find_bound(ledger: Ledger) -> Mask | None:
    """Return which rows may not move to the split of an identical row, or None if all rows may move.

    The rows of one id or group may only move together, which is possible if all have the same content.
    """
    # The first word is enough for a key: two keys that share it both count as bound, which is safe.
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
    """Count identical rows, and find the new split of those that may move.

    Identical rows move to the split of the first row that may not move, otherwise of the first row.

    `grouping`: groups of rows by the first word of the digest. `is_bound`: which rows may not move; None if
    all may.
    """
    num_equal = num_apart = num_bound = 0

    def read_values(start: int, stop: int) -> NDArray[np.uint64]:
        second = contents.read(start, stop)[:, 1]
        values = np.stack([second, codes[start:stop].astype(np.uint64)], axis=1)
        release_pages(codes)
        return values

    for found in grouping.groups(read_values, is_bound):
        # Rows that share only the first word are different.
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


RANK_BELOW: Final = 10_000
"""Fewer rows are divided by rank, to meet the shares exactly; hashes deviate by 1 % or less for more rows."""

_THRESHOLD: Final = "hash threshold"
_MAX_EQUAL, _FEW_CONTENTS = 0.8, 50  # above this share, with fewer contents, rows are equal by chance


def assign(
    ledger: Ledger,
    split: Splits,
    seed: int,
    names: Sequence[str] | None = None,
    key: str | None = None,
    others: Sequence[str] = (),
) -> Assignment:
    """Assign all rows of a ledger to splits.

    `ledger`: ledger of the rows, with `marks` if the options name a column for them. `seed`: seed of the hash
    that decides, from 0 to 2**64 - 1. `names`: with `split_by`, the names of the splits, in the order of
    their codes. `key`: name of the id or group that decides the split; for the notes. `others`: names of the
    declared keys that do not decide the split, in the order of `ledger.others`.
    """
    codes = make_row_array(ledger.folder, ledger.num_rows, np.uint8)
    positions = Positions(ledger, seed) if is_by_key(split) else None
    method = _assign(ledger, split, positions, codes)
    notes: list[str] = []
    if positions is not None and not ledger.has_key and not positions.num_collisions:
        # Identical rows have the same hash, which decides the split.
        found = Duplicates(ledger.num_rows - positions.num_hashes, 0, 0)
    else:
        rule = split.split_by or split.time or key or split.group
        found, notes = _unite_duplicates(ledger, positions, codes, rule)
    if split.split_by is not None:
        check_split_names(names or ())
    chosen = tuple((split.shares if split.split_by is None else names) or ())
    counts = _count(codes, len(chosen))
    empty = [name for name, count in zip(chosen, counts, strict=True) if not count]
    if empty and ledger.num_rows:
        notes.append(f"no rows in split {' or '.join(map(repr, empty))}")
    for name, column in zip(others, ledger.others, strict=True):
        num_values, num_spread = _count_spread(ledger, column, codes)
        if num_spread:
            have = "value of {} has" if num_values == 1 else "values of {} have"
            notes.append(f"{num_spread} of {num_values} {have.format(repr(name))} rows in several splits")
    has_collisions = positions is None or positions.num_collisions > 0
    is_by_hash = method.startswith(_THRESHOLD) and not has_collisions and not found.num_apart
    return Assignment(
        chosen, codes, counts, method, found.num_apart, found.num_equal, is_by_hash, tuple(notes)
    )


def _assign(ledger: Ledger, split: Splits, positions: Positions | None, codes: NDArray[np.uint8]) -> str:
    """Fill in the codes by the options; return a description of the method."""
    shares = list(split.shares.values())
    if split.split_by is not None:
        for start, stop in slice_rows(ledger.num_rows, codes):
            codes[start:stop] = ledger.marks.read(start, stop)
        return f"column {split.split_by!r}"
    if split.time is not None or positions is None:
        if ledger.num_rows:
            eras = TimeSplits(ledger.marks, shares)
            for start, stop in slice_rows(ledger.num_rows, codes):
                codes[start:stop] = eras.split(ledger.marks.read(start, stop))
        return f"time {split.time!r}"
    of_what = "" if split.group is None else f" of group {split.group!r}"
    if split.strata is not None:
        stratify(ledger, positions, split, codes)
        return f"hash rank{of_what} in strata of {split.strata!r}"
    if ledger.num_rows < RANK_BELOW:
        if ledger.num_rows:
            codes[:] = split_by_rank(positions.read(0, ledger.num_rows), shares)
        return f"hash rank{of_what}"
    for start, stop in slice_rows(ledger.num_rows, codes):
        codes[start:stop] = split_positions(positions.read(start, stop), split)
    return f"{_THRESHOLD}{of_what}"


def _unite_duplicates(
    ledger: Ledger,
    positions: Positions | None,
    codes: NDArray[np.uint8],
    rule: str | None,
) -> tuple[Duplicates, list[str]]:
    """Move identical rows to one split where the deciding rule allows it; return counts and notes."""
    contents, grouping = ledger.content_digests, group_contents(ledger)
    if positions is None:
        found = compare_duplicates(contents, grouping, codes)
        return found, _describe_apart(found.num_apart, f"not moved, because {rule!r} decides the split")
    with RowUpdates(ledger.folder, ledger.num_rows) as updates:
        found = compare_duplicates(contents, grouping, codes, None, updates)
        num_distinct = ledger.num_rows - found.num_equal
        if num_distinct < _FEW_CONTENTS and found.num_equal > _MAX_EQUAL * ledger.num_rows:
            # A few columns with few values: moving such rows would empty the splits.
            return found, _describe_apart(found.num_apart, "not moved, because nearly all rows are identical")
        # If every row has a different key, every row may move.
        is_bound = None if not found.num_apart or positions.are_distinct else find_bound(ledger)
        if is_bound is None:
            updates.apply(codes)
            return found, []
    with RowUpdates(ledger.folder, ledger.num_rows) as updates:
        found = compare_duplicates(contents, grouping, codes, is_bound, updates)
        updates.apply(codes)
    return found, _describe_apart(found.num_bound, f"not moved, because {rule!r} decides the split")


def _describe_apart(num_rows: int, what: str) -> list[str]:
    """Return a list with one note, or an empty list if there are no such rows."""
    rows = "1 row" if num_rows == 1 else f"{num_rows} rows"
    return [f"{rows} identical to rows of another split: {what}"] if num_rows else []


def _count_spread(ledger: Ledger, column: LedgerColumn, codes: NDArray[np.uint8]) -> tuple[int, int]:
    """Return the number of values of a key, and the number of those with rows in several splits."""

    def read_codes(start: int, stop: int) -> NDArray[np.uint8]:
        found = np.array(codes[start:stop])
        release_pages(codes)
        return found

    has_missing = any(bool((words == 0).any()) for _, words in column.slices())
    grouping = Grouping(ledger.folder, column.read, len(codes))
    num_spread = sum(
        int(np.count_nonzero(found.is_first & found.is_mixed & (found.keys != 0)))
        for found in grouping.groups(read_codes)
    )
    return grouping.num_keys - int(has_missing), num_spread


def _count(codes: NDArray[np.uint8], num_splits: int) -> tuple[int, ...]:
    counts = np.zeros(num_splits, np.int64)
    for start, stop in slice_rows(len(codes), codes):
        found = np.bincount(codes[start:stop], minlength=num_splits)
        if len(found) > num_splits:
            raise OptionError("marks", expected=f"numbers of {num_splits} splits", got=str(len(found) - 1))
        counts += found
    return tuple(counts.tolist())
