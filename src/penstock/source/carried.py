"""The schema that an Arrow table carries in its metadata, where it was made from a data set.

In: an Arrow schema. Out: fields by column, of the columns that can still be what they were.
"""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.errors import SchemaError
from penstock.schema.array import Sequence, Tensor
from penstock.schema.field import Field
from penstock.schema.json_form import load_fields
from penstock.schema.scalar import Category, Number, Text

_KEY: Final = b"penstock.schema"


def read_carried(schema: pa.Schema) -> dict[str, Field]:
    """Return what the metadata declare; nothing where there are none, or none that can be read."""
    carried = (schema.metadata or {}).get(_KEY)
    if carried is None:
        return {}
    try:
        fields = load_fields(json.loads(carried))
    except (ValueError, RecursionError, SchemaError):
        return {}  # of another version, or of somebody else: the data say enough
    kinds = dict(zip(schema.names, schema.types, strict=True))
    return {name: field for name, field in fields.items() if name in kinds and _fits(field, kinds[name])}


def _fits(field: Field, kind: Any) -> bool:
    """Whether a column is of the type that a data set gives a field of that kind."""
    if isinstance(field, Tensor):
        if not field.shape:
            return _fits_number(field.dtype, kind)
        is_tensor = isinstance(kind, pa.FixedShapeTensorType) and tuple(kind.shape) == field.shape
        return is_tensor and _fits_number(field.dtype, kind.value_type)
    if isinstance(field, Sequence):
        depth = 1 if field.shape == () else 2
        while depth and _is_list(kind):
            kind, depth = kind.value_type, depth - 1
        return not depth and _fits_item(field.dtype, kind)
    return _fits_item(_item_of(field), kind)


def _item_of(field: Field) -> str:
    if isinstance(field, Category | Number):
        return field.dtype
    return "string" if isinstance(field, Text) else "bytes"


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
