"""Detect target leakage: columns whose values determine the target.

In: one number or code per row of a column and of the target. Out: whether the column determines the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MIN_ROWS: Final = 30
MIN_RARE: Final = 5
"""Minimum number of rows, and of rows outside the most frequent class, for a check: with fewer rows, a column
may match by chance. A random number separates 5 of 30 rows in one of 70,000 columns."""

_NUM_PROBED: Final = 2_000
"""Number of rows that are checked first. Nearly every column fails there, and so fails for all rows."""


@dataclass(frozen=True)
class ComparableColumn:
    """Values of a column as numbers that can be compared.

    Attributes:
        values: One number per row that has a value: the value itself, or the code of a text.
        present: Mask of the rows that have a value; None if all have one.
        num_distinct: Number of distinct values.
        is_ordered: Whether the order of the values has a meaning.
    """

    values: NDArray[Any]
    present: NDArray[np.bool_] | None
    num_distinct: int
    is_ordered: bool


class LeakageTarget:
    """A target against which columns are checked for leakage."""

    def __init__(self, labels: ComparableColumn) -> None:
        self._present = labels.present
        self._values = labels.values
        self._is_ordered = labels.is_ordered
        _, counts = np.unique(labels.values, return_counts=True)
        num_rows = len(labels.values)
        # A target whose values hardly repeat has no classes: every column of distinct values would match it.
        self._num_classes = len(counts) if 2 * len(counts) <= num_rows else 0
        num_rare = num_rows - int(counts.max(initial=0))
        self.can_be_checked = num_rows >= MIN_ROWS and num_rare >= MIN_RARE

    def is_determined_by(self, column: ComparableColumn) -> bool:
        """Return whether equal values of the column always have equal targets, and not by chance.

        Chance is excluded if values repeat twice on average, if a number splits the rows into one interval
        per class (or increases or decreases with a numeric target), or if the column is missing exactly for
        some classes of a target that has classes.
        """
        values, targets = self._align(column)
        if len(values) >= MIN_ROWS:
            comes_again = 2 * column.num_distinct <= len(values)
            if all(
                self._fits(values[:stop], targets[:stop], column.is_ordered, comes_again)
                for stop in (_NUM_PROBED, len(values))
            ) and np.any(targets != targets[0]):
                return True
        return column.present is not None and self._is_determined_by_absence(column.present)

    def _align(self, column: ComparableColumn) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the values of the column and of the target in rows that have both."""
        values, targets = column.values, self._values
        if self._present is not None:
            targets = targets if column.present is None else targets[column.present[self._present]]
            values = values[self._present if column.present is None else self._present[column.present]]
        elif column.present is not None:
            targets = targets[column.present]
        return values, targets

    def _fits(self, values: NDArray[Any], targets: NDArray[Any], is_ordered: bool, comes_again: bool) -> bool:
        order = np.argsort(values, kind="stable")
        values, targets = values[order], targets[order]
        changes = targets[1:] != targets[:-1]
        if np.any(changes & (values[1:] == values[:-1])):
            return False
        if comes_again or not is_ordered:
            return comes_again
        if np.count_nonzero(changes) < self._num_classes:
            return True
        steps = np.diff(targets)
        return self._is_ordered and bool(np.all(steps >= 0) or np.all(steps <= 0))

    def _is_determined_by_absence(self, column: NDArray[np.bool_]) -> bool:
        present = column if self._present is None else column[self._present]
        num_present = int(np.count_nonzero(present))
        if not self._num_classes:
            return False  # values that hardly repeat are never both with and without the column
        if not MIN_RARE <= num_present <= len(present) - MIN_RARE:
            return False
        return all(
            not np.intersect1d(self._values[:stop][present[:stop]], self._values[:stop][~present[:stop]]).size
            for stop in (_NUM_PROBED, len(present))
        )
