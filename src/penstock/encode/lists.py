"""Columns of lists: which values there are, one behind the other, and where each row begins.

In: raw columns with a list, a tuple or an array a row. Out: the items as a raw column, with offsets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.encode.fault import Report
from penstock.encode.plain import as_objects, present_cells, present_objects, refuse_all, settle
from penstock.foundation.wording import show
from penstock.source.block import RawColumn
from penstock.types import Mask

EXPECTED = "a list"


class Lists(NamedTuple):
    """A list a row: row i has the items from offsets[i] to offsets[i + 1]."""

    items: RawColumn
    offsets: NDArray[np.int64]
    present: Mask | None

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many items each row has."""
        return np.diff(self.offsets)


def flatten_lists(raw: RawColumn, report: Report) -> Lists:
    """Return the items of lists; a row that is no list is reported and has none."""
    column = settle(raw)
    if isinstance(column, np.ndarray):
        if column.ndim > 1:
            num_rows, num_items = column.shape[:2]
            items = column.reshape(num_rows * num_items, *column.shape[2:])
            return Lists(items, np.arange(num_rows + 1, dtype=np.int64) * num_items, None)
        if column.dtype.kind == "O":
            return _flatten_objects(column, report)
    elif is_list(column.type):
        return _flatten_cells(column)
    present = refuse_all(column, EXPECTED, report)
    return Lists(pa.nulls(0), np.zeros(len(column) + 1, np.int64), present)


def is_list(kind: pa.DataType) -> bool:
    """Return whether a plain type is one of lists."""
    return (
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    )


def _flatten_cells(array: Any) -> Lists:
    lengths = pc.cast(pc.list_value_length(array).fill_null(0), pa.int64()).to_numpy()
    # flatten() leaves out what lies below a null, and before and behind a slice.
    return Lists(array.flatten(), _offsets(lengths), present_cells(array))


def _flatten_objects(objects: NDArray[Any], report: Report) -> Lists:
    present = present_objects(objects)
    lengths = np.zeros(len(objects), np.int64)
    parts: list[Any] = []
    for row in range(len(objects)) if present is None else np.flatnonzero(present).tolist():
        cell = objects[row]
        if not isinstance(cell, (list, tuple, np.ndarray)) or (
            isinstance(cell, np.ndarray) and not cell.ndim
        ):
            report(row, EXPECTED, show(cell))
            continue
        lengths[row] = len(cell)
        parts.append(cell)
    return Lists(_chain(parts), _offsets(lengths), present)


def _chain(parts: list[Any]) -> RawColumn:
    """Return the items of lists one behind the other."""
    forms = {(part.dtype, part.shape[1:]) if isinstance(part, np.ndarray) else None for part in parts}
    if len(forms) == 1 and None not in forms:
        return np.concatenate(parts)
    # Of several types: NumPy would make floats of ints, and strings of both.
    return as_objects([item for part in parts for item in part])


def _offsets(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets
