"""Cells that do not fit the field that their column is to become.

In: positions, with what was expected and what was there. Out: one `CellFault` a row, in the order of rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class CellFault:
    """One cell that does not fit.

    Attributes:
        row: Number in its block, from 0.
        column: Name in the source.
        expected: What would have been taken, in words.
        got: What was there, in words.
        advice: What to do about it, one sentence, or "".
    """

    row: int
    column: str
    expected: str
    got: str
    advice: str = ""


class Report(Protocol):
    """Takes down that the value at a position does not fit."""

    def __call__(self, position: int, expected: str, got: str, advice: str = "") -> None:
        """Take down one value."""


class Faults:
    """The faults of one column while it is encoded; the first of each row is the one that counts."""

    def __init__(self, column: str) -> None:
        self._column = column
        self._found: dict[int, CellFault] = {}

    def add(self, position: int, expected: str, got: str, advice: str = "") -> None:
        """Take down a fault of a row."""
        row = int(position)
        if row not in self._found:
            self._found[row] = CellFault(row, self._column, expected, got, advice)

    def in_order(self) -> list[CellFault]:
        """Return the faults in the order of rows."""
        return [self._found[row] for row in sorted(self._found)]


def report_rows(report: Report, rows: NDArray[np.int64]) -> Report:
    """Return a report for values that are some of the rows."""

    def add(position: int, expected: str, got: str, advice: str = "") -> None:
        report(int(rows[position]), expected, got, advice)

    return add


def report_items(report: Report, offsets: NDArray[np.int64], place: str = "at position") -> Report:
    """Return a report for the items of lists, one behind the other; `offsets` says whose they are."""

    def add(position: int, expected: str, got: str, advice: str = "") -> None:
        row = int(np.searchsorted(offsets, position, side="right")) - 1
        report(row, expected, f"{got} {place} {position - int(offsets[row])}", advice)

    return add


def report_all(report: Report, positions: Iterable[int], expected: str, got: str, advice: str = "") -> None:
    """Take down the same fault of many values."""
    for position in positions:
        report(position, expected, got, advice)
