"""Survey columns of lists, arrays and Python objects.

In: Arrow lists, NumPy arrays, Python objects. Out: profiles; objects that Arrow can hold are returned as a
column.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence as SequenceOf
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.plan.profile import MISSING_MARKERS, ColumnProfile, ItemProfile, RawKind
from penstock.plan.texts import Chunks
from penstock.source.column import is_missing

_NUMBERS: Final = (int, float, np.integer, np.floating)


def survey_arrays(arrays: SequenceOf[NDArray[Any]]) -> ColumnProfile:
    """Survey blocks of arrays of shape (rows, …)."""
    shapes = {array.shape[1:] for array in arrays}
    dtypes = {array.dtype for array in arrays}
    num_rows = sum(map(len, arrays))
    return _state_arrays(shapes, dtypes, num_rows, 0, is_declared=len(shapes) == 1)


def survey_lists(column: Chunks) -> ColumnProfile:
    """Survey lists of any depth, structs, and types that no field can hold."""
    kind: RawKind = "other"
    items = None
    if isinstance(column.type, pa.FixedShapeTensorType):
        kind, shape = "array", tuple(column.type.shape)
        dtype = _name_dtype(column.type.value_type)
        items = ItemProfile(dtype=dtype, shape=shape, step=shape[1:], is_declared=True)
    elif _is_list(column.type):
        items = _describe_arrow(column)
        kind = "array" if items.is_declared else "list"
    elif pa.types.is_struct(column.type) and "bytes" in column.type.names:
        if pa.types.is_binary(column.type.field("bytes").type):
            kind = "image"
    elif pa.types.is_null(column.type):
        kind = "empty"
    return ColumnProfile(
        kind=kind,
        type_text=str(column.type),
        num_rows=len(column),
        num_missing=column.null_count,
        items=items,
    )


def survey_objects(values: SequenceOf[Any]) -> tuple[Chunks | None, ColumnProfile]:
    """Survey Python objects; those that Arrow can hold are returned as a column for a further survey."""
    present = [value for value in values if not is_missing(value)]
    num_missing = len(values) - len(present)
    types = set(map(type, present))
    names = ", ".join(sorted(each.__name__ for each in types)) or "None"
    if types and all(issubclass(each, np.ndarray) for each in types):
        shapes, dtypes = {value.shape for value in present}, {value.dtype for value in present}
        return None, _state_arrays(shapes, dtypes, len(values), num_missing)
    kind: RawKind = "mixed"
    if types and all(each.__module__.startswith("PIL.") for each in types):
        kind = "image"
    else:
        try:
            column = pa.chunked_array([pa.array([None if is_missing(value) else value for value in values])])
            return column, ColumnProfile(kind="empty", type_text=names, num_rows=len(values))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            kind = "other" if len(types) == 1 else "mixed"
    return None, ColumnProfile(kind=kind, type_text=names, num_rows=len(values), num_missing=num_missing)


def count_markers(values: SequenceOf[Any]) -> dict[str, int]:
    """Count the texts that mark a missing value, such as `NA`, if all other objects are numbers."""
    kinds = set(map(type, values))
    if str not in kinds or not any(issubclass(kind, _NUMBERS) for kind in kinds):
        return {}
    counts: Counter[str] = Counter()
    for value in values:
        if isinstance(value, str) and value.strip().lower() in MISSING_MARKERS:
            counts[value.strip()] += 1
        elif isinstance(value, bool) or not (is_missing(value) or isinstance(value, _NUMBERS)):
            return {}
    return dict(sorted(counts.items()))


def drop_texts(values: SequenceOf[Any]) -> list[Any]:
    """Return objects with None in place of texts."""
    return [None if isinstance(value, str) else value for value in values]


def describe_lists(lists: SequenceOf[list[Any]]) -> ItemProfile:
    """Return the profile of lists of Python objects, such as lists in JSON texts."""
    try:
        return _describe_arrow(pa.chunked_array([pa.array(lists)]))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        lengths = [len(each) for each in lists]
        return ItemProfile(dtype=None, step=None, min_len=min(lengths), max_len=max(lengths))


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _describe_arrow(column: Chunks) -> ItemProfile:
    """Return the profile of nested lists; `dims` are the lengths that all lists of a level share."""
    dims: list[int | None] = []
    is_declared = True
    min_len = max_len = 0
    while _is_list(column.type):
        lengths: Any = pc.min_max(pc.list_value_length(column)).as_py()
        low, high = lengths["min"] or 0, lengths["max"] or 0
        if not dims:
            min_len, max_len = low, high
        is_declared = is_declared and pa.types.is_fixed_size_list(column.type)
        dims.append(high if low == high and high > 0 else None)
        flat: Any = pc.list_flatten(column)
        column = flat
    shape = None if None in dims else tuple(dim for dim in dims if dim is not None)
    step = None if None in dims[1:] else tuple(dim for dim in dims[1:] if dim is not None)
    return ItemProfile(
        dtype=_name_dtype(column.type),
        shape=shape,
        step=step,
        min_len=min_len,
        max_len=max_len,
        is_declared=is_declared,
    )


def _name_dtype(kind: pa.DataType) -> str | None:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "string"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "bytes"
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.dtype(kind.to_pandas_dtype()).name
    is_time = pa.types.is_temporal(kind) and not pa.types.is_interval(kind)  # stored as whole numbers
    return "int64" if is_time or pa.types.is_null(kind) else None


def _state_arrays(
    shapes: set[tuple[int, ...]],
    dtypes: set[np.dtype[Any]],
    num_rows: int,
    num_missing: int,
    *,
    is_declared: bool = False,
) -> ColumnProfile:
    dtype = next(iter(dtypes)) if len(dtypes) == 1 else np.result_type(*dtypes)
    lengths = [shape[0] if shape else 1 for shape in shapes]
    steps = {shape[1:] for shape in shapes}
    is_array = len(shapes) == 1
    items = ItemProfile(
        dtype=dtype.name if dtype.kind in "biuf" else None,
        shape=next(iter(shapes)) if is_array else None,
        step=next(iter(steps)) if len(steps) == 1 else None,
        min_len=min(lengths),
        max_len=max(lengths),
        is_declared=is_declared,
        are_pixels=dtype == np.uint8 and all(len(shape) == 3 and shape[2] in (1, 3, 4) for shape in shapes),
    )
    return ColumnProfile(
        kind="array" if is_array else "list",
        type_text=f"array of {dtype.name}",
        num_rows=num_rows,
        num_missing=num_missing,
        items=items,
    )
