"""Simplify Arrow types for later stages, and read the fields that Arrow schemas declare.

In: Arrow arrays and schemas of any type. Out: arrays without dictionaries, views, run-end encoding and
extension types; fields from metadata and from dictionary-encoded columns.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.errors import SchemaError, SourceError
from penstock.foundation.wording import show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date
from penstock.schema.field import Field
from penstock.schema.json_form import load_fields
from penstock.schema.scalar import Bytes, Category, Image, Number, Text
from penstock.source.block import RawColumn

# Nearly all columns have one of these types. Comparing ids is ten times faster than any other check, and a
# CSV file may have 100,000 columns.
_PLAIN_IDS = frozenset(
    kind.id
    for kind in (
        *(pa.null(), pa.bool_(), pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
        *(pa.float16(), pa.float32(), pa.float64(), pa.date32(), pa.date64(), pa.timestamp("us")),
    )
)


def plain_type(given: pa.DataType) -> pa.DataType:
    """Return the type that holds the same values without an encoding; most types are plain themselves."""
    if isinstance(given, pa.UuidType):
        return pa.large_string()
    if isinstance(given, pa.BaseExtensionType):
        return plain_type(given.storage_type)
    if isinstance(given, (pa.DictionaryType, pa.RunEndEncodedType)):
        return plain_type(given.value_type)
    if isinstance(given, pa.StructType):
        return pa.struct([_plain_field(given.field(i)) for i in range(given.num_fields)])
    # 64-bit offsets for views, whose total size is not limited.
    if pa.types.is_string_view(given) or pa.types.is_binary_view(given):
        return pa.large_string() if pa.types.is_string_view(given) else pa.large_binary()
    return _plain_list(given)


def _plain_list(given: pa.DataType) -> pa.DataType:
    if isinstance(given, pa.FixedSizeListType):
        return pa.list_(_plain_field(given.value_field), given.list_size)
    if isinstance(given, (pa.LargeListType, pa.LargeListViewType)):
        return pa.large_list(_plain_field(given.value_field))
    if isinstance(given, (pa.ListType, pa.ListViewType)):
        return pa.list_(_plain_field(given.value_field))
    return given


def _plain_field(given: pa.Field[Any]) -> pa.Field[Any]:
    return given.with_type(plain_type(given.type))


def plain_table(table: pa.Table) -> pa.Table:
    """Return a table with plain columns, unchanged if they are plain; `to_column` converts tensors."""
    schema = plain_schema(table.schema)
    if schema is table.schema or schema.equals(table.schema):
        return table
    for i, field in enumerate(schema):
        if field.type != table.schema.field(i).type:
            chunks: list[Any] = [_to_plain(chunk, field.type) for chunk in table.column(i).chunks]
            column: Any = pa.chunked_array(chunks) if chunks else pa.array([], field.type)
            table = table.set_column(i, field, column)
    return table


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema with plain types, unchanged if they are plain. Tensor types stay for their shape."""
    for i, kind in enumerate(schema.types):
        if kind.id not in _PLAIN_IDS and not isinstance(kind, pa.FixedShapeTensorType):
            schema = schema.set(i, schema.field(i).with_type(plain_type(kind)))
    return schema


def _to_plain(array: Any, wanted: pa.DataType) -> Any:
    while True:
        if isinstance(array.type, pa.UuidType):
            return _write_uuids(array)
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif isinstance(array, pa.DictionaryArray):
            array = _to_plain(array.dictionary, wanted).take(array.indices)
        elif isinstance(array, pa.RunEndEncodedArray):
            array = array.values.take(_run_of_each_row(array))
        else:
            return array if array.type == wanted else array.cast(wanted)


def _write_uuids(array: Any) -> Any:
    # Sixteen bytes may happen to be valid text; users expect the 36 characters of a UUID.
    texts = [None if value is None else str(value) for value in array.to_pylist()]
    return pa.array(texts, pa.large_string())


def _run_of_each_row(array: Any) -> NDArray[np.int64]:
    rows = np.arange(array.offset, array.offset + len(array))
    return np.searchsorted(array.run_ends.to_numpy(), rows, side="right")


def to_column(chunked: Any) -> RawColumn:
    """Return a plain column as one array, copied only if it has several chunks."""
    if chunked.num_chunks == 1:
        array: Any = chunked.chunk(0)
    elif isinstance(chunked.type, pa.BaseExtensionType):
        storage: Any = pa.concat_arrays([chunk.storage for chunk in chunked.chunks])
        array = pa.ExtensionArray.from_storage(chunked.type, storage)
    else:
        array = pa.concat_arrays(chunked.chunks) if chunked.num_chunks else pa.array([], chunked.type)
    column: RawColumn = _to_tensors(array) if isinstance(array, pa.FixedShapeTensorArray) else array
    return column


def _to_tensors(array: Any) -> RawColumn:
    """Return an array of shape (rows, *shape), or one object per row if some are missing."""
    if not array.null_count:
        tensors: RawColumn = array.to_numpy_ndarray()
        return tensors
    present = array.is_valid()
    kept: Any = pa.ExtensionArray.from_storage(array.type, array.storage.filter(present))
    rows = np.flatnonzero(present.to_numpy(zero_copy_only=False)).tolist()
    objects = np.empty(len(array), object)
    for row, tensor in zip(rows, kept.to_numpy_ndarray(), strict=True):
        objects[row] = tensor
    return objects


def check_names(names: Iterable[str], source: str) -> tuple[str, ...]:
    """Return the names of columns after checking that they are unique."""
    seen: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        first = seen.setdefault(name, number)
        if first != number:
            raise SourceError(
                f"column {number}",
                path=source,
                field=name,
                expected="a unique name",
                got=f"{show(name)}, which is also the name of column {first}",
                advice="Rename one of the two.",
            )
    return tuple(seen)


def open_arrow(path: Path) -> pa.NativeFile:
    """Open a file for pyarrow, whose functions accept paths that are not UTF-8 only as bytes."""
    return pa.OSFile(os.fsencode(path), "rb")  # type: ignore[arg-type]


_KEY: Final = b"penstock.schema"


def read_carried(schema: pa.Schema) -> dict[str, Field]:
    """Return the fields that the metadata of a schema declare; empty without valid metadata."""
    carried = (schema.metadata or {}).get(_KEY)
    if carried is None:
        return {}
    try:
        fields = load_fields(json.loads(carried))
    except (ValueError, RecursionError, SchemaError):
        return {}  # of another version or program: types are inferred from the data instead
    kinds = dict(zip(schema.names, schema.types, strict=True))
    return {name: field for name, field in fields.items() if name in kinds and _fits(field, kinds[name])}


def _fits(field: Field, kind: Any) -> bool:
    """Return whether a column has the type that `Dataset.to_arrow` gives such a field."""
    return FITS[type(field)](field, kind)


def _fits_tensor(field: Tensor, kind: Any) -> bool:
    if not field.shape:
        return _fits_number(field.dtype, kind)
    is_tensor = isinstance(kind, pa.FixedShapeTensorType) and tuple(kind.shape) == field.shape
    return is_tensor and _fits_number(field.dtype, kind.value_type)


def _fits_sequence(field: Sequence, kind: Any) -> bool:
    depth = 1 if field.shape == () else 2
    while depth and _is_list(kind):
        kind, depth = kind.value_type, depth - 1
    return not depth and _fits_item(field.dtype, kind)


def _fits_date(field: Date, kind: Any) -> bool:
    return pa.types.is_date(kind) if field.unit == "days" else pa.types.is_timestamp(kind)


# Whether an Arrow type is the one that a data set gives to each type of field.
FITS: Final[dict[type[Field], Callable[[Any, Any], bool]]] = {
    Number: lambda field, kind: _fits_item(field.dtype, kind),
    Category: lambda field, kind: _fits_item(field.dtype, kind),
    Date: _fits_date,
    Text: lambda _, kind: _fits_item("string", kind),
    Image: lambda _, kind: _fits_item("bytes", kind),
    Bytes: lambda _, kind: _fits_item("bytes", kind),
    Sequence: _fits_sequence,
    Tensor: _fits_tensor,
}


def _fits_item(dtype: str, kind: Any) -> bool:
    if dtype == "string":
        return pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if dtype == "bytes":
        return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return _fits_number(dtype, kind)


def _fits_number(dtype: str, kind: Any) -> bool:
    return bool(kind == pa.from_numpy_dtype(np.dtype(dtype)))


def _is_list(kind: Any) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


MAX_CODED: Final = 10_000
"""Maximum number of values of a dictionary-encoded column that is read as a category: the encoding may only
save space, so columns with more values are surveyed like others."""


def is_coded(values: object) -> bool:
    """Return whether an object is a dictionary-encoded Arrow column."""
    return isinstance(values, (pa.Array, pa.ChunkedArray)) and pa.types.is_dictionary(values.type)


def declare_coded(columns: Mapping[str, Any]) -> dict[str, Category]:
    """Return a category for each dictionary-encoded column; columns may also be given as dictionaries."""
    declared = {}
    for name, column in columns.items():
        dtype = _name_dtype(column.type.value_type if pa.types.is_dictionary(column.type) else column.type)
        if dtype is not None and _count_values(column) <= MAX_CODED:
            declared[name] = Category(dtype)
    return declared


def declare_schema(schema: pa.Schema) -> dict[str, Category]:
    """Return a category for each dictionary-encoded column of a file."""
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
