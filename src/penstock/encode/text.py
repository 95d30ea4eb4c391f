"""Encodes columns with one string per row, in UTF-8: text and named categories.

In: raw columns of strings, UTF-8 bytes, numbers, bools and times. Out: `Bytes`. Numbers are written with the
fewest digits that represent them exactly, whole numbers without a point, so that a code is the same for the
inputs 7, 7.0 and "7"; bools are `true` and `false`, times are in ISO 8601.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.columns import Bytes
from penstock.encode.fault import Report, report_rows
from penstock.encode.plain import group_objects, normalize_column, present_cells, refuse_all, view_buffer
from penstock.foundation.wording import show
from penstock.source.block import RawColumn


def is_bytes(kind: pa.DataType) -> bool:
    """Return whether a normalized type contains byte strings."""
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def is_string(kind: pa.DataType) -> bool:
    """Return whether a normalized type contains text."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def as_bytes(array: pa.Array[Any]) -> Bytes:
    """Return an array of strings or bytes as a column that shares its memory; missing rows have no bytes."""
    present = present_cells(array)
    if not len(array):
        return make_empty_bytes(0, present)
    _, offset_buffer, value_buffer = array.buffers()
    is_large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    dtype = np.int64 if is_large else np.int32
    offsets = view_buffer(offset_buffer, dtype, len(array) + 1, array.offset).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    if first == last or value_buffer is None:
        return make_empty_bytes(len(array), present)
    arena = view_buffer(value_buffer, np.uint8, last - first, first)
    offsets -= first
    starts, stops = offsets[:-1], offsets[1:]
    if present is not None:
        # The buffer may contain bytes for a null.
        stops = np.where(present, stops, starts)
    return Bytes(arena, starts, stops, present)


def trim(text: pa.Array[Any]) -> pa.Array[Any]:
    """Return strings without leading and trailing whitespace."""
    # All bytes of whitespace beyond ASCII are 0x80 or above.
    is_clean = ((as_bytes(text).arena - 33) < 127 - 33).all()
    return text if is_clean else pc.utf8_trim_whitespace(text)


def make_empty_bytes(num_rows: int, present: NDArray[np.bool_] | None) -> Bytes:
    """Return a column of empty values."""
    return Bytes.from_offsets(np.zeros(0, np.uint8), np.zeros(num_rows + 1, np.int64), present)


def join_bytes(values: Iterable[bytes | memoryview | None]) -> Bytes:
    """Return a column of separate values, which are copied into one arena; None is missing."""
    cells = list(values)
    offsets = np.zeros(len(cells) + 1, np.int64)
    np.cumsum(
        np.fromiter((0 if cell is None else len(cell) for cell in cells), np.int64, len(cells)),
        out=offsets[1:],
    )
    arena = np.frombuffer(b"".join(cell for cell in cells if cell is not None), np.uint8)
    present = np.fromiter((cell is not None for cell in cells), np.bool_, len(cells))
    return Bytes.from_offsets(arena, offsets, None if present.all() else present)


def find_invalid(column: Bytes) -> list[int]:
    """Return the rows that are not UTF-8."""
    if not len(column.arena) or (_is_valid(column.arena) and _has_clean_edges(column)):
        return []
    return [row for row, value in enumerate(column) if not _is_text(value)]


def _is_valid(arena: NDArray[np.uint8]) -> bool:
    # All values as a single one: Arrow checks many bytes per step, but makes one call per value.
    offsets = np.array([0, len(arena)], np.int64)
    buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(arena.data)]
    whole: pa.Array[Any] = pa.Array.from_buffers(pa.large_string(), 1, buffers)
    try:
        whole.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _has_clean_edges(column: Bytes) -> bool:
    """Return whether no value begins or ends inside a character, given that all bytes together are UTF-8."""
    for edges in (column.starts, column.stops):
        inside = edges[edges < len(column.arena)]
        if ((column.arena[inside] & 0xC0) == 0x80).any():
            return False
    return True


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


EXPECTED = "text in UTF-8"


def convert_text(raw: RawColumn, report: Report) -> Bytes:
    """Return text, or numbers and times as text."""
    column = normalize_column(raw)
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "O" and column.ndim == 1:
            return _convert_objects(column, report)
        if column.ndim > 1 or column.dtype.kind not in "biufM":
            return make_empty_bytes(len(column), refuse_all(column, EXPECTED, report))
        column = _as_arrow(column)
    if not is_string(column.type) and not is_bytes(column.type):
        text = _write(column)
        if text is None:
            return make_empty_bytes(len(column), refuse_all(column, EXPECTED, report))
        column = text
    return _check(as_bytes(column), report)


def decode_cells(array: pa.Array[Any], report: Report) -> pa.Array[Any]:
    """Return strings, or bytes, as strings; cells that are not UTF-8 are reported, and null."""
    # Strings of a file are not validated: Arrow's kernels raise for all cells if one of them is not UTF-8.
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
    """Return values as strings; None if their type cannot be written as strings. NaN becomes null."""
    if pa.types.is_float16(array.type):
        array = pc.cast(array, pa.float32())
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    try:
        return pc.cast(array, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
