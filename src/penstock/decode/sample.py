"""Samples from columns: one dict of Python and NumPy objects per row.

In: columns and their schema. Out: one dict per row, without the fields that the record lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from penstock.columns import Column, Columns
from penstock.schema.array import Sequence as SequenceField
from penstock.schema.array import Tensor
from penstock.schema.date import Date, as_times
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes as BytesField
from penstock.schema.scalar import Category, Image, Number, Text
from penstock.schema.schema import Schema

Sample = dict[str, Any]


def iterate_samples(columns: Columns, schema: Schema, num_rows: int | None = None) -> Iterator[Sample]:
    """Yield the rows of columns as samples; pass `num_rows` if there may be no column."""
    if num_rows is None:
        num_rows = max((len(column) for column in columns.values()), default=0)
    getters = [(name, column, _getter(schema[name], column)) for name, column in columns.items()]
    for row in range(num_rows):
        yield {
            name: get(row)
            for name, column, get in getters
            if column.present is None or column.present[row] or schema[name].default is not None
        }


def _getter(field: Field, column: Column) -> Callable[[int], Any]:
    decode = _decoder(field)
    values = column.unwrap()
    if isinstance(field, Date) and isinstance(values, np.ndarray):
        times = as_times(values, field.unit)
        return lambda row: times[row]
    if isinstance(values, np.ndarray) and values.ndim == 1 and field.type_name != "tensor":
        return lambda row: values[row].item()
    return lambda row: _own(column[row], decode)


def _own(value: Any, decode: Callable[[bytes], Any]) -> Any:
    """Return a value that shares no memory with its column; byte strings are decoded."""
    if isinstance(value, bytes):
        return decode(value)
    if isinstance(value, list):
        return [_own(item, decode) for item in value]
    return value.copy()


def _decoder(field: Field) -> Callable[[bytes], Any]:
    """Return the function that turns a stored byte string into a Python value."""
    return _text if IS_TEXT[type(field)](field) else bytes


# Whether the byte strings of each type of field are texts.
IS_TEXT: dict[type[Field], Callable[[Any], bool]] = {
    Number: lambda _: False,
    Category: lambda _: True,
    Date: lambda _: False,
    Text: lambda _: True,
    Image: lambda _: False,
    BytesField: lambda _: False,
    SequenceField: lambda field: field.dtype == "string",
    Tensor: lambda _: False,
}


def _text(value: bytes) -> str | bytes:
    # A value in a text field that is not UTF-8 is returned as bytes, unchanged.
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
