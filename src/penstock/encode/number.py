"""Encodes columns with one number per row.

In: raw columns of numbers, of strings that contain numbers, of times and bools. Out: `Dense`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.columns import Dense, Mask
from penstock.encode.date import convert_temporal
from penstock.encode.number_text import parse_few, parse_floats, parse_whole
from penstock.encode.plain import (
    Report,
    convert_objects,
    is_temporal,
    merge_masks,
    normalize_column,
    present_cells,
    primitive_values,
    refuse_all,
    report_all,
)
from penstock.encode.strings import decode_cells, is_bytes, is_string
from penstock.foundation.wording import count, show
from penstock.source.block import RawColumn


def cast_values(values: NDArray[Any], dtype: str) -> tuple[NDArray[Any], Mask | None]:
    """Return numbers in another type, and a mask of those that it cannot represent, which are zero; or None.

    Whole numbers keep their value or are lost. Floats are rounded to a narrower type, and are lost if they
    are finite and would become infinite. Bools are 0 and 1.
    """
    target = np.dtype(dtype)
    source = values.dtype
    if source.kind == target.kind and source.itemsize == target.itemsize:
        return values.astype(target, copy=False), None
    if source.kind == "b":
        return values.astype(target), None
    if target.kind == "f":
        return _cast_to_float(values, target)
    return _cast_to_whole(values, target)


def _cast_to_float(values: NDArray[Any], target: np.dtype[Any]) -> tuple[NDArray[Any], Mask | None]:
    with np.errstate(over="ignore"):
        cast = values.astype(target)
    lost = np.isinf(cast)
    if not lost.any():
        return cast, None
    lost &= ~np.isinf(values)
    if not lost.any():
        return cast, None
    cast[lost] = 0
    return cast, lost


def _cast_to_whole(values: NDArray[Any], target: np.dtype[Any]) -> tuple[NDArray[Any], Mask | None]:
    low, high = (0, 1) if target.kind == "b" else (np.iinfo(target).min, np.iinfo(target).max)
    if not values.size:
        return values.astype(target), None
    if values.dtype.kind == "f":
        # Both limits are exact in float64; the upper one is exclusive, a power of two.
        wide = values.astype(np.float64, copy=False)
        lost = ~((wide >= float(low)) & (wide < float(high + 1)) & (np.floor(wide) == wide))
        values = wide
    elif int(values.min()) >= low and int(values.max()) <= high:
        return values.astype(target), None
    else:
        lost = np.zeros(values.shape, np.bool_)
        if int(values.min()) < low:
            lost |= values < low
        if int(values.max()) > high:
            lost |= values > high
    if not lost.any():
        return values.astype(target), None
    return np.where(lost, values.dtype.type(0), values).astype(target), lost


def convert_numbers(raw: RawColumn, dtype: str, report: Report, *, nan_is_missing: bool = False) -> Dense:
    """Return numbers of one type.

    `dtype`: NumPy name of a type of bools, ints or floats. `report`: called for each value that is not a
    number of that type. `nan_is_missing`: whether NaN marks a missing value, also as a string.
    """

    def convert(column: RawColumn, report: Report) -> Dense:
        numbers = _read_numbers(column, dtype, report, nan_is_missing)
        return fit_numbers(numbers, dtype, report, nan_is_missing=nan_is_missing)

    def expect(value: object) -> str:
        # Arrow accepts every int of 64 bits.
        return expect_number(dtype) + (" of 64 bits" if isinstance(value, int) else "")

    column = normalize_column(raw)
    if isinstance(column, np.ndarray) and column.dtype.kind == "O" and column.ndim == 1:
        return convert_objects(column, dtype, convert, expect, report)
    return convert(column, report)


def fit_numbers(numbers: Dense, dtype: str, report: Report, *, nan_is_missing: bool = False) -> Dense:
    """Return numbers in another type, and report those that the type cannot represent."""
    if nan_is_missing:
        numbers = _drop_nan(numbers)
    values, present = numbers.values, numbers.present
    cast, lost = cast_values(values, dtype)
    if lost is not None:
        _report_lost(values, lost, dtype, report)
    return Dense(cast, present)


def _drop_nan(numbers: Dense) -> Dense:
    """Return numbers with NaN marked as missing, and 0 in its place."""
    values = numbers.values
    is_nan = np.isnan(values) if values.dtype.kind == "f" else None
    if is_nan is None or not is_nan.any():
        return numbers
    return Dense(np.where(is_nan, values.dtype.type(0), values), merge_masks(numbers.present, ~is_nan))


def expect_number(dtype: str) -> str:
    """Return the description of a number type for messages."""
    return {"f": "a number", "b": "true or false"}.get(np.dtype(dtype).kind, "a whole number")


def _read_numbers(column: RawColumn, dtype: str, report: Report, nan_is_missing: bool) -> Dense:
    """Return the numbers of a normalized column, in the type that the column has."""
    if isinstance(column, np.ndarray):
        return _read_array(column, dtype, report)
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return Dense(primitive_values(column), present_cells(column))
    if is_temporal(kind):
        return convert_temporal(column, report)
    if pa.types.is_decimal(kind):
        return _read_decimals(column, dtype, report)
    if is_string(kind) or is_bytes(kind):
        return _read_strings(column, dtype, report, nan_is_missing)
    return _refuse_column(column, dtype, report)


def _read_strings(column: pa.Array[Any], dtype: str, report: Report, nan_is_missing: bool) -> Dense:
    is_float = np.dtype(dtype).kind == "f"
    few = parse_few(column, is_float=is_float)
    if few is not None:
        return few
    text = decode_cells(column, report)
    return parse_floats(text, report) if is_float else parse_whole(text, report, nan_is_missing)


def _read_array(column: NDArray[Any], dtype: str, report: Report) -> Dense:
    if column.dtype.kind not in "biufmM":
        return _refuse_column(column, dtype, report)
    if column.ndim > 1:
        column = _squeeze(column, dtype, report)
    return convert_temporal(column, report) if column.dtype.kind in "mM" else Dense(column)


def _read_decimals(column: pa.Array[Any], dtype: str, report: Report) -> Dense:
    if np.dtype(dtype).kind != "f":
        try:
            whole = pc.cast(column, pa.int64())
        except pa.ArrowInvalid:
            return parse_whole(pc.cast(column, pa.string()), report)
        return Dense(primitive_values(whole), present_cells(column))
    return Dense(primitive_values(pc.cast(column, pa.float64())), present_cells(column))


def _refuse_column(column: RawColumn, dtype: str, report: Report) -> Dense:
    return Dense(np.zeros(len(column), dtype), refuse_all(column, expect_number(dtype), report))


def _squeeze(column: NDArray[Any], dtype: str, report: Report) -> NDArray[Any]:
    """Return an array of one number per row; arrays of several numbers are reported."""
    num_rows, num_values = len(column), int(np.prod(column.shape[1:]))
    if num_values == 1:
        return column.reshape(num_rows)
    advice = "Declare the field as a Tensor."
    report_all(report, range(num_rows), expect_number(dtype), count(num_values, "value"), advice)
    return np.zeros(num_rows, column.dtype)


def _report_lost(values: NDArray[Any], lost: Mask, dtype: str, report: Report) -> None:
    target = np.dtype(dtype)
    for position in np.flatnonzero(lost).tolist():
        value = values.flat[position].item()
        expected, advice = expect_number(dtype), ""
        if target.kind == "f":
            expected = f"a number within the range of {dtype}"
            advice = "Declare the field with dtype='float64'." if dtype == "float32" else ""
        elif isinstance(value, float) and np.isnan(value):
            advice = "Whole numbers cannot be NaN: use `nan='missing'`, or declare the field as float32."
        elif target.kind in "iu" and (isinstance(value, int) or value.is_integer()):
            expected = f"{expected} of {8 * target.itemsize} bits"
            if target.kind == "u":
                expected += ", unsigned"
        report(position, expected, show(value), advice)
