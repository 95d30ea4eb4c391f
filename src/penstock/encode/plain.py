"""Normalizes raw columns to few types, which the encoders of fields know, and reports cells that do not fit.

In: raw columns of any type. Out: Arrow arrays without dictionaries, extensions or views, NumPy arrays of
numbers and times, and arrays of objects for mixed types; one `CellFault` per row that does not fit.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import DTypeLike, NDArray

from penstock.columns import Dense, Mask
from penstock.foundation.wording import show
from penstock.source.block import RawColumn
from penstock.source.column import is_missing, may_be_missing, write_names


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
    """Return a report for a selection of rows: position i is row `rows[i]`."""

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


def primitive_values(array: pa.Array[Any]) -> NDArray[Any]:
    """Return bools as uint8, numbers unchanged, times as datetime64 or timedelta64; null becomes zero."""
    if pa.types.is_boolean(array.type):
        array = pc.cast(array, pa.uint8())
    dtype = _dtype(array.type)
    if not len(array):
        return np.zeros(0, dtype)
    # Read from the buffer: to_numpy() converts ints with nulls to floats, and null slots are undefined.
    values = view_buffer(array.buffers()[1], dtype, len(array), array.offset)
    present = present_cells(array)
    if present is not None:
        values = values.copy()
        values[~present] = np.zeros(1, dtype)[0]
    return values


def view_buffer(buffer: Any, dtype: DTypeLike, num_values: int, first: int = 0) -> NDArray[Any]:
    """Return values of an Arrow buffer as an array, without a copy."""
    start = first * np.dtype(dtype).itemsize
    values: NDArray[Any] = np.frombuffer(buffer, dtype, num_values, start)
    return values


def is_temporal(kind: pa.DataType) -> bool:
    """Return whether a type contains dates, timestamps, times of day or durations."""
    return pa.types.is_temporal(kind) and not pa.types.is_interval(kind)


def _dtype(kind: pa.DataType) -> np.dtype[Any]:
    if pa.types.is_date32(kind):
        return np.dtype("i4")  # days in NumPy have 64 bits
    if pa.types.is_date64(kind):
        return np.dtype("M8[ms]")
    if isinstance(kind, pa.TimestampType):
        return np.dtype(f"M8[{kind.unit}]")
    if isinstance(kind, pa.DurationType | pa.Time64Type):
        return np.dtype(f"m8[{kind.unit}]")
    if isinstance(kind, pa.Time32Type):
        return np.dtype("i4")
    return np.dtype(kind.to_pandas_dtype())


def present_objects(objects: NDArray[Any]) -> Mask | None:
    """Return which objects of a one-dimensional array are present; None if all are."""
    kinds = {kind for kind in set(map(type, objects)) if may_be_missing(kind)}
    if not kinds:
        return None
    present = np.fromiter(
        (type(value) not in kinds or not is_missing(value) for value in objects), np.bool_, len(objects)
    )
    return drop_full_mask(present)


def present_cells(array: pa.Array[Any]) -> Mask | None:
    """Return which values of an Arrow array are present; None if all are."""
    if not array.null_count:
        return None
    present: Mask = array.is_valid().to_numpy(zero_copy_only=False)
    return present


def drop_full_mask(present: Mask | None) -> Mask | None:
    """Return a mask, or None if all of it is true."""
    return None if present is None or present.all() else present


def merge_masks(one: Mask | None, other: Mask | None) -> Mask | None:
    """Return the values that are present in both masks; None means all."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


# Arrow would accept these as lists, in an order that changes from run to run.
_UNORDERED = (set, frozenset)


def normalize_column(raw: RawColumn) -> RawColumn:
    """Return the same values in one of few types.

    Dictionary, run-end encoded, extension and view arrays are decoded. Strings, and objects of one type that
    Arrow supports, become Arrow arrays. Arrays of objects are returned for mixed and unsupported types.
    """
    if isinstance(raw, np.ndarray):
        return _settle_numpy(raw)
    if isinstance(raw, pa.ExtensionArray):
        return _write_uuids(raw) if isinstance(raw.type, pa.UuidType) else normalize_column(raw.storage)
    if isinstance(raw, pa.DictionaryArray):
        return normalize_column(raw.dictionary_decode())
    if isinstance(raw, pa.RunEndEncodedArray):
        return normalize_column(pc.call_function("run_end_decode", [raw]))
    kind = raw.type
    if pa.types.is_string_view(kind):
        return pc.cast(raw, pa.large_string())
    is_cast = pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind)
    return pc.cast(raw, pa.large_binary()) if is_cast else raw


def group_objects(objects: NDArray[Any]) -> Iterator[tuple[NDArray[np.int64], RawColumn | None]]:
    """Yield mixed objects by type: their rows, and the values as a normalized column.

    The column is None for an object of a type that no column supports. Missing values are left out.
    """
    present = present_objects(objects)
    rows_of: dict[type, list[int]] = {}
    for row in range(len(objects)) if present is None else np.flatnonzero(present).tolist():
        rows_of.setdefault(type(objects[row]), []).append(row)
    for found in rows_of.values():
        rows = np.array(found, np.int64)
        column = unify(objects[rows])
        if column is not None or len(rows) == 1:
            yield rows, column
            continue
        for i in range(len(rows)):  # one object that does not fit must not affect the others
            yield rows[i : i + 1], unify(objects[rows[i : i + 1]])


def unify(objects: NDArray[Any]) -> RawColumn | None:
    """Return objects of one type as a typed column with nulls, or None if they have several types."""
    present = present_objects(objects)
    there = objects if present is None else objects[present]
    kinds = set(map(type, there))
    if not kinds:
        return pa.nulls(len(objects))
    if len(kinds) > 1:
        return None
    (kind,) = kinds
    if issubclass(kind, _UNORDERED):
        return None
    if issubclass(kind, (np.datetime64, np.timedelta64)) or hasattr(kind, "to_datetime64"):
        return _unify_times(there, present)
    if issubclass(kind, (os.PathLike, uuid.UUID)):
        objects = as_objects(write_names(objects))
    try:
        array = pa.array(objects, mask=None if present is None else ~present)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
    return array if isinstance(array, pa.Array) else None


def as_objects(values: Sequence[object]) -> NDArray[Any]:
    """Return values as a one-dimensional array of objects, also if they are lists of one length."""
    objects = np.empty(len(values), object)
    for row, value in enumerate(values):
        objects[row] = value
    return objects


def _write_uuids(array: Any) -> RawColumn:
    # A UUID is written as its usual 36 characters: sixteen bytes may happen to be valid text.
    return pa.array([None if value is None else str(value) for value in array.to_pylist()], pa.string())


def _unify_times(there: NDArray[Any], present: NDArray[np.bool_] | None) -> RawColumn | None:
    # Arrow truncates a pandas.Timestamp to microseconds silently, and does not accept NumPy scalars.
    scalars = [value.to_datetime64() if hasattr(value, "to_datetime64") else value for value in there]
    if len({scalar.dtype for scalar in scalars}) > 1:
        return None
    if present is None:
        return np.array(scalars)
    times = np.full(len(present), "NaT", scalars[0].dtype)
    times[present] = scalars
    return times


def _settle_numpy(raw: NDArray[Any]) -> RawColumn:
    if isinstance(raw, np.ma.MaskedArray):
        return _settle_numpy(as_objects(raw.tolist()))  # masked elements become None, at any depth
    if raw.ndim != 1:
        return raw
    if raw.dtype.kind in "UST":
        text: pa.Array[Any] = pa.array(raw if raw.dtype.isnative else raw.astype(raw.dtype.newbyteorder()))
        return text
    if raw.dtype.kind == "O":
        column = unify(raw)
        return raw if column is None else normalize_column(column)
    return raw


def convert_objects(
    objects: NDArray[Any],
    dtype: str,
    convert: Callable[[RawColumn, Report], Dense],
    expect: Callable[[object], str],
    report: Report,
) -> Dense:
    """Convert objects type by type; unsupported objects are reported with `expect(value)` as expected."""
    values = np.zeros(len(objects), dtype)
    present = np.zeros(len(objects), np.bool_)
    for rows, column in group_objects(objects):
        present[rows] = True
        if column is None:
            value = objects[rows[0]]
            report(int(rows[0]), expect(value), show(value))
            continue
        part = convert(column, report_rows(report, rows))
        values[rows] = part.values
        if part.present is not None:
            present[rows] = part.present
    return Dense(values, drop_full_mask(present))


def show_cell(column: RawColumn, row: int) -> str:
    """Return the value of a row as text of at most one line."""
    value: Any = column[row]
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    if isinstance(value, np.generic):
        return show(value.item())
    if isinstance(value, pa.Scalar):
        try:
            value = value.as_py()
        except (ValueError, OverflowError):  # a time outside the range of Python's datetime
            return f"a value of type {value.type}"
    return show(value)


def present_rows(column: RawColumn) -> Mask | None:
    """Return which rows of a normalized column are present; None if all are."""
    if not isinstance(column, np.ndarray):
        return present_cells(column)
    return present_objects(column) if column.dtype.kind == "O" and column.ndim == 1 else None


def refuse_rows(
    column: RawColumn, rows: Iterable[int], expected: str, report: Report, advice: str = ""
) -> None:
    """Report the values of some rows."""
    for row in rows:
        report(row, expected, show_cell(column, row), advice)


def refuse_all(column: RawColumn, expected: str, report: Report, advice: str = "") -> Mask | None:
    """Report every row that is present; return which rows are."""
    present = present_rows(column)
    rows = range(len(column)) if present is None else np.flatnonzero(present).tolist()
    refuse_rows(column, rows, expected, report, advice)
    return present
