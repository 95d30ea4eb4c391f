"""Columns as Arrow arrays, for tables and Parquet files.

In: a schema, and columns that were decoded with it. Out: an Arrow schema, and record batches that share the
columns' memory. What a record lacks is null, unless the field has a default.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.columns import Bytes, Column, Columns, Dense, Mask, Ragged
from penstock.errors import FieldError
from penstock.foundation.wording import declare, show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date, DateUnit
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes as BytesField
from penstock.schema.scalar import Category, Image, Number, Text
from penstock.schema.schema import Schema

Table: TypeAlias = pa.Table
RecordBatch: TypeAlias = pa.RecordBatch
_Array: TypeAlias = "pa.Array[Any]"

SCHEMA_KEY = b"penstock.schema"
"""Metadata key of an Arrow schema for the Penstock schema that it was made from, as JSON."""

SPLIT_COLUMN = "split"
"""Name of the column with the split of each row, in a table of several splits."""


def arrow_schema(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of a data set, with the Penstock schema in its metadata."""
    fields = [
        pa.field(name, ARROW_TYPES[type(field)](field), nullable=_can_be_null(field))
        for name, field in schema.items()
    ]
    return pa.schema(fields, {SCHEMA_KEY: json.dumps(schema.to_json(), allow_nan=False).encode()})


def make_batch(columns: Columns, schema: Schema, target: pa.Schema) -> pa.RecordBatch:
    """Return the rows of columns as a record batch of a schema by `arrow_schema`."""
    arrays = [_make_array(name, schema[name], columns[name], target.field(name).type) for name in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=target)


def add_split(schema: pa.Schema, splits: SequenceOf[str]) -> pa.Schema:
    """Add the split column, unless the only split is "all" or the name is in use."""
    if tuple(splits) == ("all",) or SPLIT_COLUMN in schema.names:
        return schema
    return schema.append(pa.field(SPLIT_COLUMN, pa.string()))


def name_split(batch: pa.RecordBatch, split: str, target: pa.Schema) -> pa.RecordBatch:
    """Return a record batch with its split column, if the schema made by `add_split` has one."""
    columns: list[_Array] = list(batch.columns)
    if len(target) > len(columns):
        columns.append(pa.array([split] * batch.num_rows, pa.string()))
    return pa.RecordBatch.from_arrays(columns, schema=target)


def make_table(target: pa.Schema, batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Return record batches of a schema as one table."""
    return pa.Table.from_batches(batches, target)


def make_frame(table: pa.Table) -> Any:
    """Return a table as a pandas DataFrame.

    Integers and booleans with nulls have pandas' own types for them, as NumPy's have no missing value. A
    tensor is an array of its shape in a column of objects; None where it is missing.
    """
    import pandas as pd  # noqa: PLC0415 - only this function needs it

    def convert(column: Any) -> Any:
        kind = column.type
        if isinstance(kind, pa.FixedShapeTensorType):
            return pd.Series(_list_tensors(column), dtype=object)
        if column.null_count and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            name = {"bool": "boolean"}.get(str(kind), str(kind).replace("u", "U").replace("i", "I"))
            return column.to_pandas(types_mapper={kind: pd.api.types.pandas_dtype(name)}.get)
        return column.to_pandas()

    columns = {name: convert(table.column(name)) for name in table.column_names}
    return pd.DataFrame(columns, index=pd.RangeIndex(table.num_rows), columns=list(columns))


def _list_tensors(column: Any) -> list[NDArray[Any] | None]:
    found: list[NDArray[Any] | None] = []
    for chunk in column.chunks:
        nulls = chunk.is_null().to_pylist()
        shape = (-1, *chunk.type.shape)
        arrays = chunk.storage.fill_null([0] * chunk.type.storage_type.list_size) if any(nulls) else None
        values = (chunk.storage.flatten() if arrays is None else arrays.flatten()).to_numpy(
            zero_copy_only=False
        )
        found += [
            None if is_null else each for each, is_null in zip(values.reshape(shape), nulls, strict=True)
        ]
    return found


def _can_be_null(field: Field) -> bool:
    return field.optional and field.default is None


def _tensor_type(field: Tensor) -> pa.DataType:
    item = pa.from_numpy_dtype(np.dtype(field.dtype))
    return pa.fixed_shape_tensor(item, field.shape) if field.shape else item


DATE_TYPES: Final[Mapping[DateUnit, pa.DataType]] = {"days": pa.date32(), "microseconds": pa.timestamp("us")}
"""Arrow types of dates: points in time have no time zone, and are in UTC."""

# The Arrow type of each type of field.
ARROW_TYPES: dict[type[Field], Callable[[Any], pa.DataType]] = {
    Number: lambda field: pa.from_numpy_dtype(np.dtype(field.dtype)),
    Category: lambda field: pa.int64() if field.kind == "int64" else pa.large_string(),
    Date: lambda field: DATE_TYPES[field.unit],
    Text: lambda _: pa.large_string(),
    Image: lambda _: pa.large_binary(),
    BytesField: lambda _: pa.large_binary(),
    Sequence: lambda field: pa.large_list(_step_type(field)),
    Tensor: _tensor_type,
}


def _step_type(field: Sequence) -> pa.DataType:
    items: dict[str, pa.DataType] = {
        "int64": pa.int64(),
        "float32": pa.float32(),
        "string": pa.large_string(),
        "bytes": pa.large_binary(),
    }
    item = items[field.dtype]
    if field.shape == ():
        return item
    per_step = field.num_step_values
    if per_step is None or field.kind == "bytes":
        return pa.large_list(item)
    return pa.list_(item, per_step)


def _make_array(name: str, field: Field, column: Column, target: pa.DataType) -> _Array:
    present = column.present if _can_be_null(field) else None
    if isinstance(field, Date):
        return _make_dates(name, field, Dense.of(column).values, target, present)
    array = _convert(column, target, present)
    try:
        array.validate(full=pa.types.is_large_string(_innermost(target)))
    except pa.ArrowInvalid as error:
        advice = f"Declare it as bytes: {declare(name, 'Bytes()')}."
        raise FieldError(f"field {show(name)}: {error}", field=name, advice=advice) from None
    return array


def _make_dates(
    name: str, field: Date, values: NDArray[Any], target: pa.DataType, present: Mask | None
) -> _Array:
    is_there = np.ones(len(values), np.bool_) if present is None else present
    # Arrow has 32 bits for days.
    stored = np.where(is_there, values, 0).astype(np.int32 if field.unit == "days" else np.int64)
    if not np.array_equal(stored[is_there], values[is_there]):
        raise FieldError(
            f"field {show(name)}",
            field=name,
            expected="days that fit 32 bits",
            got=str(values[is_there][stored[is_there] != values[is_there]][0]),
            advice=f"Declare it as a number: {declare(name, 'Number()')}.",
        )
    made: _Array = pa.array(stored, mask=None if present is None else ~present).view(target)
    return made


def _innermost(target: Any) -> Any:
    while pa.types.is_large_list(target) or pa.types.is_fixed_size_list(target):
        target = target.value_type
    return target


def _convert(column: Any, target: Any, present: Mask | None) -> _Array:
    """Return the array for a column, or for the values inside one."""
    return _CONVERTERS[type(column)](column, target, present)


def _convert_strings(column: Bytes, target: Any, present: Mask | None) -> _Array:
    packed = column.pack()
    buffers = [_validity(present), _buffer(packed.offsets), _buffer(packed.arena)]
    return pa.Array.from_buffers(target, len(packed), buffers)


def _convert_lists(column: Ragged, target: Any, present: Mask | None) -> _Array:
    values = _convert(column.values, target.value_type, None)
    buffers = [_validity(present), _buffer(column.offsets)]
    return pa.Array.from_buffers(target, len(column), buffers, children=[values])


def _convert_array(values: NDArray[Any], target: Any, present: Mask | None) -> _Array:
    if values.ndim == 1:
        made: _Array = pa.array(values, target, mask=None if present is None else ~present)
        return made
    is_tensor = isinstance(target, pa.BaseExtensionType)
    storage: Any = target.storage_type if is_tensor else target
    flat = pa.array(np.ascontiguousarray(values).reshape(-1), storage.value_type)
    lists: _Array = pa.Array.from_buffers(storage, len(values), [_validity(present)], children=[flat])
    return pa.ExtensionArray.from_storage(target, lists) if is_tensor else lists


_CONVERTERS: dict[type, Callable[[Any, Any, Mask | None], _Array]] = {
    Dense: lambda column, target, present: _convert_array(column.values, target, present),
    Bytes: _convert_strings,
    Ragged: _convert_lists,
    np.ndarray: _convert_array,
}


def _validity(present: Mask | None) -> pa.Buffer | None:
    return None if present is None else _buffer(np.packbits(present, bitorder="little"))


def _buffer(array: NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(np.ascontiguousarray(array).data)
