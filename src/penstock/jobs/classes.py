"""Classes of the targets that a split has no row of: a model cannot learn them, or is not tested on them.

In: the values of categorical targets, block by block, and the splits of all rows. Out: one note per target
and split.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock.foundation.wording import show
from penstock.shards.grouping import slice_rows
from penstock.shards.ledger import LedgerColumn
from penstock.shards.row_keys import BlockClasses, ClassValue
from penstock.shards.split import Assignment

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
