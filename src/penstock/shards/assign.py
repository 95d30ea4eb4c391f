"""The split of every row, when all rows are known.

In: the ledger of the rows, and the options. Out: `Assignment`. It depends on the rows and the options alone,
and memory does not grow with the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.errors import OptionError
from penstock.shards.chronology import Eras
from penstock.shards.duplicate import Duplicates, settle_duplicates
from penstock.shards.ledger import SLICE_ROWS, Ledger
from penstock.shards.rank import split_by_rank
from penstock.shards.scratch import Scratch
from penstock.shards.split import Assignment, SplitOptions, check_split_names, split_hashes

RANK_BELOW: Final = 10_000
"""Fewer rows meet their shares by rank; above, the hash alone misses them by one in a hundred or less."""

MAX_RANKED_ROWS: Final = 1_000_000
"""A stratum of more rows meets its shares by the hash alone, within one in a thousand."""

_PASS_ROWS = 1 << 22  # ranked at a time
_MOST_EQUAL, _FEW_CONTENTS = 0.8, 50  # more rows of fewer contents are equal by chance
_RESIDENT_ROWS = 1 << 24  # codes of so many rows stay in memory


def assign(ledger: Ledger, options: SplitOptions, names: Sequence[str] | None = None) -> Assignment:
    """Assign all rows of a ledger to splits.

    Args:
        ledger: Facts of the rows; `marks` are there where the options name a column for them.
        options: How to split.
        names: With `split_by`, the splits that the marks are numbers of.

    Raises:
        OptionError: The names cannot be those of splits.
        WriteError: The disk is full, or fails.
    """
    codes = _make_codes(ledger.folder, ledger.num_rows)
    method = _assign(ledger, options, codes)
    found, notes = _settle(ledger, options, codes)
    if options.split_by is not None:
        check_split_names(names or ())
    chosen = options.names if options.split_by is None else tuple(names or ())
    counts = _count(codes, len(chosen))
    empty = [name for name, count in zip(chosen, counts, strict=True) if not count]
    if empty and ledger.num_rows:
        notes.append(f"no row is in {' or '.join(map(repr, empty))}")
    return Assignment(chosen, codes, counts, method, found.num_apart, found.num_equal, tuple(notes))


def _assign(ledger: Ledger, options: SplitOptions, codes: NDArray[np.uint8]) -> str:
    """Fill in the codes by what the options say; return how, in words."""
    shares = list(options.shares.values())
    if options.split_by is not None:
        for start, marks in ledger.marks.slices():
            codes[start : start + len(marks)] = marks
        return f"column {options.split_by!r}"
    if options.time is not None:
        if ledger.num_rows:
            eras = Eras(ledger.marks, shares)
            for start, marks in ledger.marks.slices():
                codes[start : start + len(marks)] = eras.split(marks)
        return f"time {options.time!r}"
    if options.stratify is not None:
        _stratify(ledger, options, codes)
        return f"hash rank in strata of {options.stratify!r}"
    of_what = "" if options.group is None else f" of group {options.group!r}"
    if ledger.num_rows < RANK_BELOW:
        if ledger.num_rows:
            places = _native.mix_hashes(options.seed, ledger.positions.read(0, ledger.num_rows))
            codes[:] = split_by_rank(places, shares)
        return f"hash rank{of_what}"
    for start, hashes in ledger.positions.slices():
        codes[start : start + len(hashes)] = split_hashes(hashes, options)
    return f"hash threshold{of_what}"


def _stratify(ledger: Ledger, options: SplitOptions, codes: NDArray[np.uint8]) -> None:
    sizes = np.zeros(1, np.int64)
    for start, hashes in ledger.positions.slices():
        # Right for the largest strata; the others are ranked below.
        codes[start : start + len(hashes)] = split_hashes(hashes, options)
        marks = ledger.marks.read(start, start + len(hashes))
        counts = np.bincount(marks, minlength=len(sizes))
        counts[: len(sizes)] += sizes
        sizes = counts
    for first, last in _rank_passes(np.where(sizes > MAX_RANKED_ROWS, 0, sizes)):
        all_rows, all_hashes, all_marks = [], [], []
        for start, marks in ledger.marks.slices():
            found = np.flatnonzero((marks >= first) & (marks < last) & (sizes[marks] <= MAX_RANKED_ROWS))
            all_rows.append(found + start)
            all_marks.append(marks[found])
            all_hashes.append(ledger.positions.read(start, start + len(marks))[found])
        rows, marks = np.concatenate(all_rows), np.concatenate(all_marks)
        places = _native.mix_hashes(options.seed, np.concatenate(all_hashes))
        order = np.argsort(marks, kind="stable")
        bounds = np.flatnonzero(np.diff(marks[order])) + 1
        for stratum in np.split(order, bounds):
            codes[rows[stratum]] = split_by_rank(places[stratum], list(options.shares.values()))


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


def _settle(ledger: Ledger, options: SplitOptions, codes: NDArray[np.uint8]) -> tuple[Duplicates, list[str]]:
    """Keep duplicates on one side, unless a promise to the user would break; return how many, and notes."""
    found = settle_duplicates(ledger.contents, codes, move=False)
    if not found.num_apart:
        return found, []
    rows = "1 row" if found.num_apart == 1 else f"{found.num_apart} rows"
    promise = options.split_by if options.group is None else options.group
    if promise is not None:
        return found, [f"{rows} equal to some of another split: left where {promise!r} puts them"]
    num_distinct = ledger.num_rows - found.num_equal
    if num_distinct < _FEW_CONTENTS and found.num_equal > _MOST_EQUAL * ledger.num_rows:
        # A few columns of a few values: to move such rows would empty the splits.
        return found, [f"{rows} equal to some of another split: left there, for nearly all rows are alike"]
    settle_duplicates(ledger.contents, codes, move=True)
    return found, []


def _make_codes(folder: Path, num_rows: int) -> NDArray[np.uint8]:
    if num_rows <= _RESIDENT_ROWS:
        return np.zeros(num_rows, np.uint8)
    with Scratch(folder) as scratch:
        return scratch.map(num_rows)


def _count(codes: NDArray[np.uint8], num_splits: int) -> tuple[int, ...]:
    counts = np.zeros(num_splits, np.int64)
    for start in range(0, len(codes), SLICE_ROWS):
        found = np.bincount(codes[start : start + SLICE_ROWS], minlength=num_splits)
        if len(found) > num_splits:
            raise OptionError("marks", expected=f"numbers of {num_splits} splits", got=str(len(found) - 1))
        counts += found
    return tuple(counts.tolist())
