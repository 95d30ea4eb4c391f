"""Columns that their source keeps as codes of a few values: those are categories, however few rows there are.

In: Arrow dictionaries. Out: fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from penstock.schema.scalar import Category

MAX_CODED: Final = 10_000
"""Codes may also just save space: a column of more values than that is left to the survey."""


def is_coded(values: object) -> bool:
    """Return whether that is an Arrow column with a dictionary."""
    return isinstance(values, (pa.Array, pa.ChunkedArray)) and pa.types.is_dictionary(values.type)


def declare_coded(columns: Mapping[str, Any]) -> dict[str, Category]:
    """Return the categories among columns that are given with their dictionaries, or are dictionaries."""
    declared = {}
    for name, column in columns.items():
        dtype = _name_dtype(column.type.value_type if pa.types.is_dictionary(column.type) else column.type)
        if dtype is not None and _count_values(column) <= MAX_CODED:
            declared[name] = Category(dtype)
    return declared


def declare_schema(schema: pa.Schema) -> dict[str, Category]:
    """Return the categories among the columns of a file: those that its writer kept as codes."""
    coded = {field.name: field.type for field in schema if pa.types.is_dictionary(field.type)}
    dtypes = {name: _name_dtype(kind.value_type) for name, kind in coded.items()}
    return {name: Category(dtype) for name, dtype in dtypes.items() if dtype is not None}


def _name_dtype(kind: pa.DataType) -> Any:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "string"
    return "int64" if pa.types.is_integer(kind) and kind != pa.uint64() else None


def _count_values(column: Any) -> int:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return max((len(getattr(chunk, "dictionary", chunk)) for chunk in chunks), default=0)
