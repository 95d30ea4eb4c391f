"""Cells that do not fit the field of their column.

In: positions, each with the expected and the actual value. Out: one `CellFault` per row, in row order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class CellFault:
    """A cell that does not fit its field.

    Attributes:
        row: Index of the row in its block.
        column: Name of the column in the source.
        expected: Description of the values that fit.
        got: Description of the value in the cell.
        advice: Advice to the user, one sentence, or "".
    """

    row: int
    column: str
    expected: str
    got: str
    advice: str = ""


class Report(Protocol):
    """Records that the value at a position does not fit."""

    def __call__(self, position: int, expected: str, got: str, advice: str = "") -> None:
        """Record one value."""


class Faults:
    """The faults of one column while it is encoded; only the first fault of each row is kept."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._found: dict[int, CellFault] = {}

    def add(self, position: int, expected: str, got: str, advice: str = "") -> None:
        """Add a fault of a row."""
        row = int(position)
        if row not in self._found:
            self._found[row] = CellFault(row, self._column, expected, got, advice)

    def in_order(self) -> list[CellFault]:
        """Return the faults in the order of rows."""
        return [self._found[row] for row in sorted(self._found)]


def report_rows(report: Report, rows: NDArray[np.int64]) -> Report:
    """Return a report for a selection of rows: position i stands for row `rows[i]`."""

    def add(position: int, expected: str, got: str, advice: str = "") -> None:
        report(int(rows[position]), expected, got, advice)

    return add


def report_items(report: Report, offsets: NDArray[np.int64], preposition: str = "at position") -> Report:
    """Return a report for the concatenated items of lists; row i has the items from `offsets[i]` on."""

    def add(position: int, expected: str, got: str, advice: str = "") -> None:
        row = int(np.searchsorted(offsets, position, side="right")) - 1
        report(row, expected, f"{got} {preposition} {position - int(offsets[row])}", advice)

    return add


def report_all(report: Report, positions: Iterable[int], expected: str, got: str, advice: str = "") -> None:
    """Record the same fault for many values."""
    for position in positions:
        report(position, expected, got, advice)
