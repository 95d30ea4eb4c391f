"""Names of element types, and shapes, as a field declares them.

In: what a user wrote (`"float32"`, `np.float32`, `[64, 64]`). Out: the canonical name or tuple.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection
from typing import Final, Literal, TypeAlias

import numpy as np

from penstock.foundation.wording import list_choices, refuse, show
from penstock.types import Kind

NumberDtype: TypeAlias = Literal["float32", "int64", "float64"]
CategoryDtype: TypeAlias = Literal["string", "int64"]
SequenceDtype: TypeAlias = Literal["int64", "float32", "string", "bytes"]
TensorDtype: TypeAlias = Literal[
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
]

MAX_DIMS: Final = 32
"""NumPy 1.26, the oldest supported one, has no arrays of more dimensions."""

MAX_TENSOR_BYTES: Final = 2**31 - 1
"""A protobuf message, and so a record, ends at 2 GiB; no value of a record can be larger."""


def check_dtype(owner: str, dtype: object, choices: Collection[str]) -> str:
    """Return the canonical name of an element type, given by that name, a NumPy dtype or a scalar type."""
    name: object = dtype
    if isinstance(dtype, (np.dtype, type)):
        try:
            found = np.dtype(dtype)
        except (TypeError, ValueError):
            raise refuse(owner, "dtype", expected=list_choices(choices), got=show(dtype)) from None
        if not found.isnative and found.itemsize > 1:
            got = f"{found.str!r}, byte-swapped"
            advice = "Records hold little-endian values; the column is always in the machine's own order."
            raise refuse(owner, "dtype", expected=list_choices(choices), got=got, advice=advice)
        name = found.name
    if not isinstance(name, str) or name not in choices:
        advice = ""
        if name == "float64" and "float32" in choices:
            advice = "A TFRecord's float lists hold float32; Tensor(shape, 'float64', 'raw') holds doubles."
        raise refuse(owner, "dtype", expected=list_choices(choices), got=show(name), advice=advice)
    return name


def list_kind(dtype: str) -> Kind | None:
    """Return the kind of list that holds values of a type one by one, or None where none does so exactly."""
    if dtype in ("string", "bytes"):
        return "bytes"
    if dtype == "float64":
        return None
    return "float" if dtype in ("float16", "float32") else "int64"


def check_shape(owner: str, shape: object, itemsize: int) -> tuple[int, ...]:
    """Return a shape as a tuple of positive ints, whose array a record can hold at `itemsize` bytes each."""
    if isinstance(shape, (str, bytes)) or not hasattr(shape, "__iter__"):
        advice = "A vector's shape is (n,), with the comma." if isinstance(shape, int) else ""
        raise refuse(owner, "shape", expected="a tuple of positive ints", got=show(shape), advice=advice)
    dims = tuple(shape)
    if len(dims) > MAX_DIMS:
        raise refuse(owner, "shape", expected=f"at most {MAX_DIMS} dimensions", got=str(len(dims)))
    checked = tuple(_check_dim(owner, axis, dim) for axis, dim in enumerate(dims))
    num_bytes = math.prod(checked) * itemsize
    if num_bytes > MAX_TENSOR_BYTES:
        advice = "A record is at most 2 GiB."
        raise refuse(
            owner, "shape", expected=f"at most {MAX_TENSOR_BYTES} bytes", got=show(num_bytes), advice=advice
        )
    return checked


def _check_dim(owner: str, axis: int, dim: object) -> int:
    size = 0
    if hasattr(dim, "__index__") and not isinstance(dim, (bool, np.bool_)):
        size = operator.index(dim)
    if size < 1:
        advice = "A field of varying length is a Sequence." if dim is None or dim == -1 else ""
        raise refuse(owner, f"shape[{axis}]", expected="a positive int", got=show(dim), advice=advice)
    return size
