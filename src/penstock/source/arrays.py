"""Columns in memory by name: a dict of arrays, a pandas DataFrame.

In: arrays of the same length. Out: blocks, which are views of the arrays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import OptionError, SourceError
from penstock.foundation.wording import show
from penstock.schema.declaration import Representation
from penstock.schema.field import Field
from penstock.source.arrow_schema import check_names, declare_coded, is_coded, plain_table, to_column
from penstock.source.block import Block, RawColumn
from penstock.source.column import as_objects, make_column, times_to_arrow
from penstock.source.cutter import cut_columns
from penstock.source.samples import check_depth


class ArraySource:
    """Whole columns in memory."""

    is_repeatable = True
    num_bytes: int | None = None

    def __init__(
        self,
        columns: Mapping[str, RawColumn],
        *,
        name: str,
        kind: str,
        notes: tuple[str, ...] = (),
        declared: Mapping[str, Field] | None = None,
    ) -> None:
        self.name = name
        self.notes = notes
        self.declared: Mapping[str, Field] = declared or {}
        self.forms: Mapping[str, Representation] = {}
        self._kind = kind
        self._columns = columns
        first = next(iter(columns), None)
        self.num_rows: int | None = 0 if first is None else len(columns[first])
        for column, values in columns.items():
            if len(values) != self.num_rows:
                raise SourceError(
                    f"length of column {show(column)}",
                    field=column,
                    expected=f"{self.num_rows}, the length of column {show(first)}",
                    got=len(values),
                )
        if not self.num_rows:
            raise SourceError(f"no rows: {name}", expected="at least one row", got="none")

    def blocks(self) -> Iterator[Block]:
        """Yield the rows, without copying them."""
        first_row = 0
        for piece in cut_columns(self._columns, self.num_rows or 0):
            yield Block(first_row, piece.num_rows, piece.columns, is_resident=True)
            first_row += piece.num_rows

    def provenance(self) -> list[dict[str, Any]]:
        """Return the name and kind of the source, and the number of rows."""
        return [{"name": self.name, "kind": self._kind, "rows": self.num_rows}]


def open_dict(given: Mapping[Any, Any]) -> ArraySource:
    """Return the source of a dict of arrays or lists."""
    for name in given:
        if not isinstance(name, str):
            raise OptionError("source: name of a column", expected="a str", got=show(name))
    columns = {name: read_array(name, values) for name, values in given.items()}
    declared = declare_coded({name: values for name, values in given.items() if is_coded(values)})
    return ArraySource(columns, name="dict of arrays", kind="arrays", declared=declared)


def open_pandas(frame: Any) -> ArraySource:
    """Return the source of a pandas DataFrame; an index with a name becomes a column."""
    notes: tuple[str, ...] = ()
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    elif type(frame.index).__name__ != "RangeIndex":
        notes = ("The index of the DataFrame has no name and is left out.",)
    names = check_names(map(str, frame.columns), "DataFrame")
    columns = {name: _read_series(frame.iloc[:, i]) for i, name in enumerate(names)}
    notes += tuple(
        f"Column {show(name)} contains periods, which are stored as text."
        for name, dtype in zip(names, frame.dtypes, strict=True)
        if _is_period(dtype)
    )
    coded = {
        name: pa.array(dtype.categories)
        for name, dtype in zip(names, frame.dtypes, strict=True)
        if type(dtype).__name__ == "CategoricalDtype" and not _is_period(dtype)
    }
    declared = declare_coded(coded)
    return ArraySource(columns, name="DataFrame", kind="pandas", notes=notes, declared=declared)


def _is_period(dtype: Any) -> bool:
    """Return whether a dtype is a period dtype, or a categorical dtype of periods."""
    kind = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    return type(kind).__name__ == "PeriodDtype"


def _read_series(series: Any) -> RawColumn:
    """Return a column of a frame; NaN is missing, except in float columns, which keep it."""
    values = series.to_numpy(copy=False) if isinstance(series.dtype, np.dtype) else None
    if values is not None and values.dtype.kind in "biuf":
        return _native_order(values)
    # Arrow would truncate times to dates. Arrays are converted by Arrow, or stay objects.
    if values is not None and values.dtype == object and np.ndarray not in set(map(type, values)):
        check_depth(str(series.name), values)
        return make_column(_without_nan(series))
    if _is_period(series.dtype):  # Arrow would use its ordinal number
        periods = [None if period is None else str(period) for period in _without_nan(series)]
        return pa.array(periods, pa.large_string())
    try:
        column = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return as_objects(list(series))
    return _plain(column)


def _without_nan(series: Any) -> list[Any]:
    return [None if is_nan else value for value, is_nan in zip(series, series.isna(), strict=True)]


def read_array(name: str, values: Any) -> RawColumn:
    """Return an array or a list as a column."""
    if isinstance(values, (list, tuple)):
        check_depth(name, values)
        return make_column(values)
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return _plain(values)
    if hasattr(values, "__arrow_c_stream__") and not isinstance(values, np.ndarray):
        return _plain(pa.chunked_array(values))
    is_array = hasattr(values, "__array__") and not isinstance(values, (str, bytes, np.generic))
    array = values if isinstance(values, np.ndarray) else np.asarray(values) if is_array else None
    if array is None or array.ndim == 0:
        raise OptionError(
            f"source: column {show(name)}",
            field=name,
            expected="an array or a list with one value per row",
            got=show(values),
            advice="Pass a single sample as a list: [{'name': value}].",
        )
    return _read_numpy(array)


def _read_numpy(array: np.ndarray[Any, Any]) -> RawColumn:
    if isinstance(array, np.ma.MaskedArray):
        plain = array.ndim == 1 and array.dtype.kind in "biuf"
        return _mask(array) if plain else make_column(array.tolist())
    if array.dtype.kind in "USO":
        return make_column(array.tolist())
    if array.ndim == 1 and array.dtype.kind in "mM":
        times = times_to_arrow(array)
        return as_objects(list(array)) if times is None else times
    return _native_order(array)


def _mask(array: np.ma.MaskedArray[Any, Any]) -> RawColumn:
    column: RawColumn = pa.array(_native_order(array.data), mask=np.ma.getmaskarray(array))
    return column


def _native_order(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array in native byte order with aligned memory."""
    is_plain = array.dtype.isnative and array.flags.aligned
    return array if is_plain else array.astype(array.dtype.newbyteorder("="))


def _plain(values: Any) -> RawColumn:
    table = plain_table(pa.table({"": values}))
    return to_column(table.column(0))
