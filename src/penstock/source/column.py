"""Make one column from a list of Python values.

In: values of one column, None if missing. Out: an Arrow array if all values are of one kind, a NumPy array if
they are arrays of one shape, otherwise an array of objects.
"""

from __future__ import annotations

import datetime
import os
import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.source.block import LARGE_BYTES, RawColumn

_DAYS: Final = ("Y", "M", "W", "D")
_UNITS: Final = ("s", "ms", "us", "ns")
"""Time units of Arrow."""


def read_times(values: Sequence[Any], present: Sequence[Any]) -> pa.Array[Any] | None:
    """Return dates and times as an Arrow array; a date among times becomes its midnight.

    Times without a zone count as UTC if others have a zone. None if the values are not dates and times, or
    have no common type.
    """
    kinds = set(map(type, present))
    if all(issubclass(kind, np.timedelta64) for kind in kinds):
        return times_to_arrow(_gather(values, "m8"))
    if any(issubclass(kind, np.datetime64) or hasattr(kind, "to_datetime64") for kind in kinds):
        if all(issubclass(kind, (np.datetime64, datetime.date)) for kind in kinds):
            return _read_moments(values, present)
        return None
    if not all(issubclass(kind, datetime.date) for kind in kinds):
        return None
    if not any(issubclass(kind, datetime.datetime) for kind in kinds):
        return pa.array(values, pa.date32())
    zones = {getattr(value, "tzinfo", None) is not None for value in present}
    times = [None if value is None else _as_datetime(value, has_zone=True in zones) for value in values]
    return pa.array(times, pa.timestamp("us", "UTC" if True in zones else None))


def times_to_arrow(times: NDArray[Any] | None) -> pa.Array[Any] | None:
    """Return NumPy times as an Arrow array; None if Arrow lacks the unit or the range."""
    if times is None:
        return None
    unit, step = np.datetime_data(times.dtype)
    if unit == "generic":
        return None
    wanted = unit if unit in _UNITS else "D" if times.dtype.kind == "M" and unit in _DAYS else "s"
    if unit in ("ps", "fs", "as") or (times.dtype.kind == "m" and unit in ("Y", "M")):
        return None
    if (unit, step) != (wanted, 1) or not times.dtype.isnative:
        moved = times.astype(f"{times.dtype.kind}8[{wanted}]")
        if not _are_same(moved.astype(times.dtype), times):
            return None
        times = moved
    array: pa.Array[Any] = pa.array(times)
    return array


def _read_moments(values: Sequence[Any], present: Sequence[Any]) -> pa.Array[Any] | None:
    if any(getattr(value, "tzinfo", None) is not None for value in present):
        values = [_without_zone(value) for value in values]
        array = times_to_arrow(_gather(values, "M8"))
        is_time = array is not None and pa.types.is_timestamp(array.type)
        return array.cast(pa.timestamp(array.type.unit, "UTC")) if array is not None and is_time else array
    return times_to_arrow(_gather(values, "M8"))


def _gather(values: Sequence[Any], kind: str) -> NDArray[Any] | None:
    """Return scalars in the finest of their units; None if a value is outside the range of that unit."""
    scalars = [_as_scalar(value, kind) for value in values]
    dtypes = {scalar.dtype for scalar in scalars if not np.isnat(scalar)}
    try:
        dtype = np.result_type(*dtypes) if dtypes else np.dtype(f"{kind}[D]")
    except TypeError:  # a mix of months and days
        return None
    times = np.array([scalar.astype(dtype) for scalar in scalars], dtype)
    is_exact = all(
        np.isnat(scalar) or time.astype(scalar.dtype) == scalar
        for time, scalar in zip(times, scalars, strict=True)
        if scalar.dtype != dtype
    )
    return times if is_exact else None


def _as_scalar(value: Any, kind: str) -> Any:
    if value is None:
        return np.timedelta64("NaT") if kind == "m8" else np.datetime64("NaT")
    if hasattr(value, "to_datetime64"):
        return value.to_datetime64()
    return value if isinstance(value, np.generic) else np.datetime64(value)


def _without_zone(value: Any) -> Any:
    if getattr(value, "tzinfo", None) is None:
        return value
    if hasattr(value, "tz_convert"):
        return value.tz_convert("UTC").tz_localize(None)
    return value.astimezone(datetime.UTC).replace(tzinfo=None)


def _as_datetime(value: datetime.date, *, has_zone: bool) -> datetime.datetime:
    time = (
        value if isinstance(value, datetime.datetime) else datetime.datetime.combine(value, datetime.time())
    )
    return time if not has_zone or time.tzinfo is not None else time.replace(tzinfo=datetime.UTC)


def _are_same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return bool(
        np.array_equal(one.view(np.int64), other.astype(other.dtype.newbyteorder("=")).view(np.int64))
    )


_TIMES = (datetime.date, np.datetime64, np.timedelta64)
_CLOCKS = (datetime.time, datetime.timedelta)
# Recognized by name, so that pandas is not imported.
_MARKERS = ("NoneType", "NAType", "NaTType")
_TEXT_TYPES: Final[dict[pa.DataType, pa.DataType]] = {
    pa.string(): pa.string(),
    pa.binary(): pa.string(),
    pa.large_string(): pa.large_string(),
    pa.large_binary(): pa.large_string(),
}
_REFUSALS = (pa.ArrowException, TypeError, ValueError, OverflowError)
_INT64 = range(-(2**63), 2**63)


def make_column(values: Sequence[Any]) -> RawColumn:
    """Return a column of values without rounding, parsing or converting any to another kind.

    Values without a common kind (ints and texts, arrays of different shapes) stay objects: the encoder, which
    knows the field, reports the ones that do not match. Ints among floats become floats. NaN among values
    that are not floats is missing; a column of floats keeps NaN, because the plan decides its meaning.
    """
    values = _without_markers(values)
    present = [value for value in values if value is not None]
    if not present:
        return pa.nulls(len(values))
    if all(isinstance(value, np.ndarray) for value in present):
        return _from_arrays(values, present)
    if all(hasattr(value, "__array__") and not isinstance(value, np.generic) for value in present):
        # Tensors of other libraries
        return make_column([None if value is None else np.asarray(value) for value in values])
    try:
        column = _from_values(values, present)
    except _REFUSALS:
        column = None
    return as_objects(values) if column is None else column


def is_missing(value: object) -> bool:
    """Return whether a Python object is a missing value: None, NaN, NaT, or NA of pandas."""
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return type(value).__name__ in _MARKERS


def may_be_missing(kind: type) -> bool:
    """Return whether objects of a type can be missing values."""
    return kind.__name__ in _MARKERS or issubclass(kind, (float, np.floating, np.datetime64, np.timedelta64))


def drop_missing_texts(column: RawColumn, words: Sequence[str]) -> RawColumn:
    """Return a plain column with nulls for texts that mark a missing value; surrounding space is ignored."""
    if isinstance(column, np.ndarray):
        if column.dtype != object or column.ndim != 1:
            return column
        known: set[str | bytes] = {*words, *(word.encode() for word in words)}
        return as_objects([None if isinstance(v, str | bytes) and v.strip() in known else v for v in column])
    kind = _TEXT_TYPES.get(column.type)
    if kind is None:
        return column
    # Trimming Unicode white space would raise an error for bytes that are not UTF-8.
    texts: Any = column.view(kind)
    is_word: Any = pc.is_in(pc.ascii_trim_whitespace(texts), pa.array(words, kind))
    kept: RawColumn = pc.if_else(is_word, pa.scalar(None, column.type), column)
    return kept


def _without_markers(values: Sequence[Any]) -> Sequence[Any]:
    """Return values with None for missing ones; NaN stays if there are other floats."""
    doubtful = {kind for kind in set(map(type, values)) if may_be_missing(kind) and kind is not type(None)}
    if not doubtful:
        return values
    gone = [type(value) in doubtful and is_missing(value) for value in values]
    are_floats = any(
        isinstance(value, (float, np.floating)) and not none for value, none in zip(values, gone, strict=True)
    )
    if not are_floats and not all(gone):
        return [None if none else value for value, none in zip(values, gone, strict=True)]
    return [None if type(value).__name__ in _MARKERS else value for value in values]


def write_names(values: Iterable[Any]) -> list[Any]:
    """Return values with paths and UUIDs as text."""
    return [
        os.fspath(value)
        if isinstance(value, os.PathLike)
        else str(value)
        if isinstance(value, uuid.UUID)
        else value
        for value in values
    ]


def _from_values(values: Sequence[Any], present: Sequence[Any]) -> RawColumn | None:
    """Return values of one kind as an Arrow array; None if the kinds differ."""
    kinds = set(map(type, present))
    if all(issubclass(kind, _TIMES) for kind in kinds):
        return read_times(values, present)
    if any(issubclass(kind, (os.PathLike, uuid.UUID)) for kind in kinds):
        values, present = write_names(values), write_names(present)
    kind = _find_type(present)
    if kind is None:
        return None
    return pa.array(values, kind) if isinstance(kind, pa.DataType) else pa.array(values)


def as_objects(values: Sequence[Any]) -> RawColumn:
    """Return a NumPy array of the objects, one per row."""
    column = np.empty(len(values), object)
    for row, value in enumerate(values):  # assigning a slice would unpack arrays
        column[row] = value
    return column


def _find_type(present: Sequence[Any]) -> pa.DataType | bool | None:
    """Return the Arrow type of values of one kind, True if Arrow infers it, None if the kinds differ."""
    kinds = set(map(type, present))

    def are(*wanted: type) -> bool:
        return all(issubclass(kind, wanted) for kind in kinds)

    found: pa.DataType | bool | None = None
    if are(bool, np.bool_):
        found = pa.bool_()
    elif any(issubclass(kind, (bool, np.bool_)) for kind in kinds):
        found = None  # Arrow would convert True to 1
    elif are(int, np.integer):
        found = pa.int64() if all(int(value) in _INT64 for value in present) else pa.uint64()
    elif are(int, np.integer, float, np.floating):
        found = pa.float32() if kinds == {np.float32} else pa.float64()
    elif are(str):
        found = pa.large_string()
    elif are(bytes, bytearray, memoryview):
        is_large = sum(map(len, present)) >= LARGE_BYTES * len(present)
        found = None if is_large else pa.large_binary()
    elif are(list, tuple) or are(*_CLOCKS):
        found = True
    return found


def _from_arrays(values: Sequence[Any], present: Sequence[np.ndarray[Any, Any]]) -> RawColumn:
    shapes = {array.shape for array in present}
    dtypes = {array.dtype for array in present}
    if {dtype.kind for dtype in dtypes} in ({"U"}, {"S"}):  # the length is part of the dtype
        return make_column([None if value is None else value.tolist() for value in values])
    if len(dtypes) > 1 or present[0].dtype == object:
        return as_objects(values)
    if len(shapes) == 1 and len(present) == len(values):
        return np.stack(present)
    if present[0].dtype.kind in "biuf" and all(len(shape) == 1 for shape in shapes):
        return pa.array(values, pa.large_list(pa.from_numpy_dtype(present[0].dtype)))
    return as_objects(values)
