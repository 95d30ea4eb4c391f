"""Single cells of a plain column: what they hold, and refusing them one by one.

In: plain columns. Out: Python objects and reports; only bad cells come here, so that a loop does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.encode.fault import Report
from penstock.encode.missing import present_cells, present_objects
from penstock.foundation.wording import show
from penstock.source.block import RawColumn
from penstock.types import Mask


def show_cell(column: RawColumn, row: int) -> str:
    """Write the value of a row in at most a line."""
    value: Any = column[row]
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    if isinstance(value, np.generic):
        return show(value.item())
    if isinstance(value, pa.Scalar):
        try:
            value = value.as_py()
        except (ValueError, OverflowError):  # a time that Python has no object for
            return f"a value of type {value.type}"
    return show(value)


def present_rows(column: RawColumn) -> Mask | None:
    """Return which rows of a plain column are there; None if all are."""
    if not isinstance(column, np.ndarray):
        return present_cells(column)
    return present_objects(column) if column.dtype.kind == "O" and column.ndim == 1 else None


def refuse_rows(
    column: RawColumn, rows: Iterable[int], expected: str, report: Report, advice: str = ""
) -> None:
    """Report some rows for what they hold."""
    for row in rows:
        report(row, expected, show_cell(column, row), advice)


def refuse_all(column: RawColumn, expected: str, report: Report, advice: str = "") -> Mask | None:
    """Report every row that is there; return which are."""
    present = present_rows(column)
    rows = range(len(column)) if present is None else np.flatnonzero(present).tolist()
    refuse_rows(column, rows, expected, report, advice)
    return present
