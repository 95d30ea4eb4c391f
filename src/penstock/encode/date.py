"""Encodes dates and times as whole numbers.

In: columns of Arrow, NumPy or Python dates and times, or of ISO 8601 strings. Out: `Dense` of int64. Dates
become days since 1970-01-01, timestamps microseconds since 1970-01-01T00:00 UTC (without a time zone, UTC is
assumed), times of day and durations microseconds.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.columns import Dense, Mask
from penstock.encode.number_text import advise_missing
from penstock.encode.plain import (
    Report,
    convert_objects,
    drop_full_mask,
    is_temporal,
    merge_masks,
    normalize_column,
    present_cells,
    present_objects,
    primitive_values,
    refuse_all,
    report_rows,
)
from penstock.encode.strings import as_bytes, decode_cells, is_bytes, is_string, rewrite_texts, trim
from penstock.foundation.wording import show
from penstock.plan.styled_texts import find_date_misfits, rewrite_dates
from penstock.schema.notation import DATE_EXAMPLES, DateOrder
from penstock.source.block import RawColumn

EXPECTED: Final = "a date or time in ISO 8601"
_INT64_MAX: Final = (1 << 63) - 1
_DAY_CHARS: Final = len("2024-02-29")
_ZONE: Final = "(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_DAY: Final = 86_400_000_000
_MICROSECONDS: Final = {
    "W": 7 * _DAY,
    "D": _DAY,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1000,
    "us": 1,
}
_PER_MICROSECOND: Final = {"ns": 1000, "ps": 10**6, "fs": 10**9, "as": 10**12}


def convert_dates(raw: RawColumn, report: Report) -> Dense:
    """Return dates as days; times of day other than midnight are reported."""
    times = convert_times(raw, report)
    days, rest = np.divmod(times.values, _DAY)
    for row in np.flatnonzero(rest).tolist():
        report(row, "a date without a time", str(np.datetime64(int(times.values[row]), "us")))
    return Dense(days, times.present)


def convert_times(raw: RawColumn, report: Report) -> Dense:
    """Return timestamps as microseconds; a date without a time of day means midnight."""
    column = normalize_column(raw)
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "O" and column.ndim == 1:
            present = present_objects(column)
            numbers = convert_objects(column, "int64", convert_times, lambda _: EXPECTED, report)
            return Dense(numbers.values, present)
        if column.dtype.kind in "mM" and column.ndim == 1:
            return _count_times(column, report)
    elif is_temporal(column.type):
        return _count_cells(column, report)
    elif is_string(column.type) or is_bytes(column.type):
        return _parse(decode_cells(column, report), report)
    return Dense(np.zeros(len(column), np.int64), refuse_all(column, EXPECTED, report))


def convert_temporal(column: RawColumn, report: Report) -> Dense:
    """Return a column of dates as days, or a column of times as microseconds, by the type of the column."""
    if isinstance(column, np.ndarray):
        by_day = column.dtype.kind == "M" and np.datetime_data(column.dtype)[0] in ("Y", "M", "W", "D")
    else:
        by_day = pa.types.is_date(column.type)
    return convert_dates(column, report) if by_day else convert_times(column, report)


def read_ordered(raw: RawColumn, order: DateOrder, report: Report) -> RawColumn:
    """Return a column with dates of an order in ISO 8601; other texts are reported."""

    def rewrite(text: Any, report: Report) -> Any:
        misfits = find_date_misfits(text, order).fill_null(False)
        for row in np.flatnonzero(misfits.to_numpy(zero_copy_only=False)).tolist():
            word = text[row].as_py()
            expected = f"a date such as {DATE_EXAMPLES[order]} or in ISO 8601"
            report(row, expected, show(word), advise_missing(word.strip()))
        return rewrite_dates(trim(pc.if_else(misfits, pa.scalar(None, text.type), text)), order)

    return rewrite_texts(raw, rewrite, report)


def _count_cells(array: pa.Array[Any], report: Report) -> Dense:
    values, present = primitive_values(array), present_cells(array)
    if pa.types.is_date32(array.type):
        values = values.astype("M8[D]")
    if isinstance(array.type, pa.Time32Type):
        values = values.astype(np.int64).view(f"m8[{array.type.unit}]")
    numbers = _count_times(values, report)
    return Dense(numbers.values, merge_masks(present, numbers.present))


def _count_times(times: NDArray[Any], report: Report) -> Dense:
    unit, step = np.datetime_data(times.dtype)
    is_there = ~np.isnat(times)
    present = drop_full_mask(is_there)
    if times.dtype.kind == "M" and unit in ("Y", "M"):
        times, unit, step = times.astype("M8[D]"), "D", 1
    counts = np.where(is_there, times.astype(np.int64), 0)
    if unit in _PER_MICROSECOND and step == 1:
        micros, rest = np.divmod(counts, _PER_MICROSECOND[unit])
        bad, expected = rest != 0, "a time of whole microseconds"
    elif unit in _MICROSECONDS:
        factor = step * _MICROSECONDS[unit]
        limit = _INT64_MAX // factor
        bad, expected = (counts > limit) | (counts < -limit), "a time that fits 64 bits of microseconds"
        micros = np.where(bad, 0, counts) * factor
    else:
        bad, expected = is_there, EXPECTED
        micros = np.zeros(len(times), np.int64)
    for row in np.flatnonzero(bad).tolist():
        report(row, expected, str(times[row]))
    return Dense(micros, present)


def _parse(text: pa.Array[Any], report: Report) -> Dense:
    present = present_cells(text)
    is_there = np.ones(len(text), np.bool_) if present is None else present
    if not is_there.any():
        return Dense(np.zeros(len(text), np.int64), present)
    trimmed: Any = trim(text)
    has_zone = pc.match_substring_regex(trimmed, _ZONE).fill_null(False).to_numpy(zero_copy_only=False)
    # A date ends like a time zone: 2024-01-30.
    strings = as_bytes(trimmed)
    has_zone &= strings.stops - strings.starts > _DAY_CHARS
    parts: dict[pa.DataType, Mask] = {
        pa.timestamp("us"): is_there & ~has_zone,
        pa.timestamp("us", "UTC"): is_there & has_zone,
    }
    values = np.zeros(len(text), np.int64)
    for kind, mask in parts.items():
        rows = np.flatnonzero(mask)
        moments = _cast_valid(trimmed.take(rows), kind, report_rows(report, rows))
        values[rows] = primitive_values(moments).astype(np.int64)
    return Dense(values, present)


def _cast_valid(text: pa.Array[Any], kind: pa.DataType, report: Report, first: int = 0) -> Any:
    """Cast strings to a type; report the cells that are not valid, found by bisection, as null."""
    try:
        return pc.cast(text, kind)
    except pa.ArrowInvalid:
        if len(text) == 1:
            word: Any = text[0].as_py()
            report(first, EXPECTED, show(word), advise_missing(word))
            return pa.array([None], kind)
    middle = len(text) // 2
    halves = (
        _cast_valid(text[:middle], kind, report, first),
        _cast_valid(text[middle:], kind, report, first + middle),
    )
    return pa.concat_arrays(halves)
