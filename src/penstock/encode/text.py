"""Text and categories by name, one a row, in UTF-8.

In: raw columns of strings, of bytes that are UTF-8, of numbers, bools and times. Out: `Bytes`.

Numbers are written in the fewest digits that give them back, whole ones without a point, so that a code reads
the same whether it came as 7, 7.0 or "7"; bools are `true` and `false`, times are in ISO 8601.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.encode.fault import Report, report_rows
from penstock.encode.plain import group_objects, refuse_all, settle
from penstock.encode.strings import as_bytes, is_bytes, is_string, join_bytes, no_bytes
from penstock.encode.utf8 import find_invalid
from penstock.foundation.wording import show
from penstock.source.block import RawColumn
from penstock.types import Bytes

EXPECTED = "text in UTF-8"


def convert_text(raw: RawColumn, report: Report) -> Bytes:
    """Return text, or numbers and times as text."""
    column = settle(raw)
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "O" and column.ndim == 1:
            return _convert_objects(column, report)
        if column.ndim > 1 or column.dtype.kind not in "biufM":
            return no_bytes(len(column), refuse_all(column, EXPECTED, report))
        column = _as_arrow(column)
    if not is_string(column.type) and not is_bytes(column.type):
        text = _write(column)
        if text is None:
            return no_bytes(len(column), refuse_all(column, EXPECTED, report))
        column = text
    return _check(as_bytes(column), report)


def decode_cells(array: pa.Array[Any], report: Report) -> pa.Array[Any]:
    """Return strings, or bytes, as strings; cells that are not UTF-8 are reported, and null."""
    # Nobody has looked into the strings of a file: Arrow's kernels raise for all cells if one is no text.
    column = as_bytes(array)
    invalid = find_invalid(column)
    if invalid:
        keep = np.ones(len(array), np.bool_)
        keep[invalid] = False
        _report_invalid(column, invalid, report)
        array = pc.if_else(pa.array(keep), array, pa.scalar(None, array.type))
    if is_string(array.type):
        return array
    return pc.cast(array, pa.large_string() if pa.types.is_large_binary(array.type) else pa.string())


def _report_invalid(column: Bytes, rows: list[int], report: Report) -> None:
    for row in rows:
        report(row, EXPECTED, show(column[row]), "Declare the field as Bytes, or convert the text to UTF-8.")


def _check(column: Bytes, report: Report) -> Bytes:
    invalid = find_invalid(column)
    if not invalid:
        return column
    _report_invalid(column, invalid, report)
    stops = column.stops.copy()
    stops[invalid] = column.starts[invalid]
    return Bytes(column.arena, column.starts, stops, column.present)


def _convert_objects(objects: NDArray[Any], report: Report) -> Bytes:
    cells: list[bytes | None] = [None] * len(objects)
    for rows, column in group_objects(objects):
        if column is None:
            report(int(rows[0]), EXPECTED, show(objects[rows[0]]))
            cells[rows[0]] = b""
            continue
        part = convert_text(column, report_rows(report, rows))
        is_there = np.ones(len(part), np.bool_) if part.present is None else part.present
        for row, value, there in zip(rows.tolist(), part, is_there, strict=True):
            cells[row] = value if there else None
    return join_bytes(cells)


def _as_arrow(values: NDArray[Any]) -> pa.Array[Any]:
    if values.dtype.kind == "M":
        unit, step = np.datetime_data(values.dtype)
        if unit in ("Y", "M", "W", "h", "m") or step != 1:  # Arrow has no such units
            values = values.astype("M8[D]" if unit in ("Y", "M", "W") else "M8[s]")
    array: pa.Array[Any] = pa.array(values.astype(values.dtype.newbyteorder("="), copy=False))
    return array


def _write(array: pa.Array[Any]) -> pa.Array[Any] | None:
    """Return values in words; None where their type has no such. NaN is nothing that can be written."""
    if pa.types.is_float16(array.type):
        array = pc.cast(array, pa.float32())
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    try:
        return pc.cast(array, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
