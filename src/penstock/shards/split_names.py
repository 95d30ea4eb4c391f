"""Splits and strata that the rows themselves name: a number for each, in the order of first appearance.

In: the names of a block's rows. Out: codes for the ledger. Values that mean the usual splits (`val`, `dev`)
are taken as those.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.foundation.wording import show
from penstock.shards.entry import canonical_split
from penstock.shards.grouping import slice_rows
from penstock.shards.ledger import LedgerColumn
from penstock.shards.row_keys import BlockClasses, ClassValue
from penstock.shards.split import Assignment

_MOST_SPLITS: Final = 200
_MOST_STRATA: Final = 65_536
_NAME = re.compile(r"[A-Za-z0-9_]{1,100}")


class Strata:
    """Numbers for the values that rows are stratified by."""

    def __init__(self) -> None:
        self._codes: dict[int, int] = {}

    def code(self, hashes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of some values, given by their hashes.

        Raises:
            OptionError: There are too many.
        """
        distinct, firsts, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        for at in np.argsort(firsts).tolist():
            self._codes.setdefault(int(distinct[at]), len(self._codes))
        if len(self._codes) > _MOST_STRATA:
            raise OptionError(
                "stratify",
                expected=f"a field of at most {_MOST_STRATA} different values",
                got="more",
                advice="A number that varies freely has no strata: leave stratify out.",
            )
        return np.array([self._codes[value] for value in distinct.tolist()], np.int64)[inverse]


class SplitNames:
    """The names met so far."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, names: list[bytes] | str, num_rows: int) -> NDArray[np.int64]:
        """Return the codes of some rows.

        Raises:
            OptionError: A value cannot name a split, or there are too many.
        """
        if isinstance(names, str):
            return np.full(num_rows, self._find(names), np.int64)
        distinct, inverse = np.unique(np.array(names, dtype=object), return_inverse=True)
        # By first appearance, so that codes do not depend on the alphabet.
        firsts = {name: names.index(name) for name in distinct}
        found = {
            name: self._find(name.decode("utf-8", "replace"))
            for name in sorted(distinct, key=firsts.__getitem__)
        }
        return np.array([found[name] for name in distinct], np.int64)[inverse]

    def in_order(self) -> tuple[str, ...]:
        """Return the names, by their codes."""
        return tuple(self._codes)

    def _find(self, value: str) -> int:
        name = canonical_split(value)
        if name not in self._codes:
            if not _NAME.fullmatch(name):
                raise OptionError(
                    "split_by",
                    expected="values of at most 100 letters, digits and '_', which name files",
                    got=show(value),
                    advice="Choose another column, or change its values.",
                )
            if len(self._codes) == _MOST_SPLITS:
                raise OptionError(
                    "split_by",
                    expected=f"at most {_MOST_SPLITS} different values",
                    got="more",
                    advice="Is that the column that names the splits?",
                )
            self._codes[name] = len(self._codes)
        return self._codes[name]


_MOST_CLASSES: Final = 10_000
_MOST_SHOWN: Final = 3


class Classes:
    """Numbers for the values of one categorical target, in the order of first appearance."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._numbers: dict[ClassValue, int] = {}

    def code(self, block: BlockClasses) -> NDArray[np.int64]:
        """Return the number of each row's class; -1 where it has none, or there are too many to count."""
        for value in block.values:
            if len(self._numbers) <= _MOST_CLASSES:
                self._numbers.setdefault(value, len(self._numbers))
        numbers = [self._numbers.get(value, -1) for value in block.values]
        return np.array([*numbers, -1], np.int64)[block.codes]

    def list_absent(self, codes: LedgerColumn, assignment: Assignment, can_stratify: bool) -> Iterator[str]:
        """Yield a note for each split, with rows that have a class, which lacks some classes."""
        num_classes, num_splits = len(self._numbers), len(assignment.names)
        if num_classes > _MOST_CLASSES or num_classes < 2:
            return
        counts = np.zeros((num_splits, num_classes), np.int64)
        for start, stop in slice_rows(len(codes), assignment.codes):
            classes = codes.read(start, stop)
            cells = assignment.codes[start:stop].astype(np.int64) * num_classes + classes
            found = np.bincount(cells[classes >= 0], minlength=counts.size)
            counts += found.reshape(counts.shape)
        values = list(self._numbers)
        for split, row in zip(assignment.names, counts, strict=True):
            absent = np.flatnonzero(row == 0).tolist()
            if not absent or not row.any():
                continue
            shown = ", ".join(show(values[number]) for number in absent[:_MOST_SHOWN])
            more = ", …" if len(absent) > _MOST_SHOWN else ""
            is_frequent = (counts[:, absent].sum(axis=0) >= num_splits).any()
            advice = (
                f"; 'stratify' spreads {self.name!r} over the splits" if can_stratify and is_frequent else ""
            )
            missing = f"{len(absent)} of {num_classes} classes of {self.name!r}"
            yield f"{split!r} has no row of {missing} ({shown}{more}){advice}"
