"""Whether a column gives the target away: the twin that a model would read the answer from.

In: codes or numbers of a column and of the target, row by row. Out: yes or no.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MIN_ROWS: Final = 30
MIN_RARE: Final = 5
"""So many rows, and so many of them outside the most frequent class, must be there: in fewer, a column may
fit by chance. A number separates 5 of 30 rows so once in 70 000 columns."""

_NUM_PROBED: Final = 2_000
"""What fails in these rows fails in all; nearly every column does."""


@dataclass(frozen=True)
class Labels:
    """The values of a column as something that can be compared.

    Attributes:
        values: A number a row that has a value: itself, or the code of a text.
        present: Which rows have a value; None if all do.
        num_distinct: How many different ones there are.
        is_ordered: Whether less and more mean something.
    """

    values: NDArray[Any]
    present: NDArray[np.bool_] | None
    num_distinct: int
    is_ordered: bool


class Target:
    """A target to hold columns against; made once for all of them."""

    def __init__(self, labels: Labels) -> None:
        self._present = labels.present
        self._values = labels.values
        self._is_ordered = labels.is_ordered
        _, counts = np.unique(labels.values, return_counts=True)
        num_rows = len(labels.values)
        # A target that hardly ever comes twice has no classes: every column of different values would fit it.
        self._num_classes = len(counts) if 2 * len(counts) <= num_rows else 0
        num_rare = num_rows - int(counts.max(initial=0))
        self.can_be_checked = num_rows >= MIN_ROWS and num_rare >= MIN_RARE

    def is_determined_by(self, column: Labels) -> bool:
        """Whether equal values of the column always come with equal targets, more often than by chance.

        That is so where values come twice on average, where a number splits the rows into one interval for
        each class (or rises or falls with a target that is a number), or where it is missing for some
        classes and there for the others.
        """
        values, targets = self._align(column)
        if len(values) >= MIN_ROWS:
            comes_again = 2 * column.num_distinct <= len(values)
            if all(
                self._fits(values[:stop], targets[:stop], column.is_ordered, comes_again)
                for stop in (_NUM_PROBED, len(values))
            ) and np.any(targets != targets[0]):
                return True
        return column.present is not None and self._is_told_by_absence(column.present)

    def _align(self, column: Labels) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the values of rows that have both."""
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

    def _is_told_by_absence(self, column: NDArray[np.bool_]) -> bool:
        present = column if self._present is None else column[self._present]
        num_present = int(np.count_nonzero(present))
        if not MIN_RARE <= num_present <= len(present) - MIN_RARE:
            return False
        return all(
            not np.intersect1d(self._values[:stop][present[:stop]], self._values[:stop][~present[:stop]]).size
            for stop in (_NUM_PROBED, len(present))
        )
