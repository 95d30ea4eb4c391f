"""Dates and times of Python, NumPy and pandas as one column.

In: the values of a column. Out: an Arrow array that holds each of them exactly, or None where none can.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_DAYS: Final = ("Y", "M", "W", "D")
_UNITS: Final = ("s", "ms", "us", "ns")
"""Those of Arrow."""


def read_times(values: Sequence[Any], present: Sequence[Any]) -> pa.Array[Any] | None:
    """Return dates as dates, and times as times; a date among times is its midnight.

    Times without a zone count as UTC where others have one. None for what are no dates and times, or are such
    that no one type holds them.
    """
    kinds = set(map(type, present))
    if all(issubclass(kind, np.timedelta64) for kind in kinds):
        return arrange(_gather(values, "m8"))
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


def arrange(times: NDArray[Any] | None) -> pa.Array[Any] | None:
    """Return NumPy's times as Arrow has them; None where Arrow has no such unit, or they are too far."""
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
        array = arrange(_gather(values, "M8"))
        is_time = array is not None and pa.types.is_timestamp(array.type)
        return array.cast(pa.timestamp(array.type.unit, "UTC")) if array is not None and is_time else array
    return arrange(_gather(values, "M8"))


def _gather(values: Sequence[Any], kind: str) -> NDArray[Any] | None:
    """Return scalars in the finest of their units; None where that does not reach as far as they do."""
    scalars = [_as_scalar(value, kind) for value in values]
    dtypes = {scalar.dtype for scalar in scalars if not np.isnat(scalar)}
    try:
        dtype = np.result_type(*dtypes) if dtypes else np.dtype(f"{kind}[D]")
    except TypeError:  # months beside days
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
