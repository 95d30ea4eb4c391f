"""Arrow arrays of values of one width as NumPy arrays, without a copy where no value is missing.

In: Arrow arrays of bools, numbers and times. Out: NumPy arrays with zeros where a value is missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import DTypeLike, NDArray

from penstock.encode.missing import present_cells


def primitive_values(array: pa.Array[Any]) -> NDArray[Any]:
    """Return bools as uint8, numbers as they are, times as datetime64 or timedelta64."""
    if pa.types.is_boolean(array.type):
        array = pc.cast(array, pa.uint8())
    dtype = _dtype(array.type)
    if not len(array):
        return np.zeros(0, dtype)
    # Read from the buffer: to_numpy() makes floats of ints with nulls, and null slots may hold anything.
    values = view_buffer(array.buffers()[1], dtype, len(array), array.offset)
    present = present_cells(array)
    if present is not None:
        values = values.copy()
        values[~present] = np.zeros(1, dtype)[0]
    return values


def view_buffer(buffer: Any, dtype: DTypeLike, num_values: int, first: int = 0) -> NDArray[Any]:
    """Return some of the values of a buffer, which is an Arrow one, without a copy."""
    start = first * np.dtype(dtype).itemsize
    values: NDArray[Any] = np.frombuffer(buffer, dtype, num_values, start)
    return values


def is_temporal(kind: pa.DataType) -> bool:
    """Return whether a type is one of dates, points in time, times of day or durations."""
    return pa.types.is_temporal(kind) and not pa.types.is_interval(kind)


def _dtype(kind: pa.DataType) -> np.dtype[Any]:
    if pa.types.is_date32(kind):
        return np.dtype("i4")  # NumPy's days have 64 bits
    if pa.types.is_date64(kind):
        return np.dtype("M8[ms]")
    if isinstance(kind, pa.TimestampType):
        return np.dtype(f"M8[{kind.unit}]")
    if isinstance(kind, pa.DurationType | pa.Time64Type):
        return np.dtype(f"m8[{kind.unit}]")
    if isinstance(kind, pa.Time32Type):
        return np.dtype("i4")
    return np.dtype(kind.to_pandas_dtype())
