"""The field types with several values per record: sequences of any length, tensors of a fixed shape.

In: declarations. Out: frozen objects, checked when made (`SchemaError`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Kind
from penstock.foundation.wording import refuse, show
from penstock.schema.field import (
    Field,
    SequenceDtype,
    TensorDtype,
    check_array,
    check_choice,
    check_dtype,
    check_list,
    check_shape,
    list_kind,
)

Encoding: TypeAlias = Literal["auto", "list", "raw"]
Stored: TypeAlias = Literal["feature", "feature_list"]


@dataclass(frozen=True, repr=False, eq=False)
class Sequence(Field):
    """One list of any length per record.

    Attributes:
        dtype: Element type. Strings are UTF-8; bytes are arbitrary.
        shape: Shape of one step of a feature list: `()` is one value, `(k,)` is k values, None is any number.
        stored: Storage in the record: `feature` of an Example, or of the context of a SequenceExample, or
            `feature_list` of a SequenceExample.

    Example:
        >>> Sequence("float32", (3,), "feature_list").describe()
        'variable steps of 3 float32'
    """

    dtype: SequenceDtype = "int64"
    shape: tuple[int, ...] | None = ()
    stored: Stored = "feature"
    type_name: ClassVar[str] = "sequence"

    @property
    def kind(self) -> Kind:
        """Kind of list that stores the field in a record, or in a step."""
        return "float" if self.dtype == "float32" else "int64" if self.dtype == "int64" else "bytes"

    @property
    def num_values(self) -> int | None:
        """None: the number of values per record varies."""
        return None

    @property
    def num_step_values(self) -> int | None:
        """Number of values per step of a feature list, or None if it varies."""
        return None if self.shape is None else prod(self.shape)

    @property
    def is_feature_list(self) -> bool:
        """Whether the field is a feature list of a SequenceExample; these have a separate set of keys."""
        return self.stored == "feature_list"

    def describe(self) -> str:
        """Return a short description of the values per record."""
        if self.stored == "feature":
            return f"variable {self.dtype}"
        count = "variable " if self.shape is None else "".join(f"{dim} " for dim in self.shape)
        return f"variable steps of {count}{self.dtype}"

    def _check(self, owner: str) -> None:
        self._keep(dtype=check_dtype(owner, self.dtype, get_args(SequenceDtype)))
        check_choice(owner, "stored", self.stored, get_args(Stored))
        if self.stored == "feature":
            # A shape from JSON is a list.
            if self.shape is None or self.shape not in ((), []):
                advice = "Only steps have a shape: pass stored='feature_list', or declare a Tensor."
                raise refuse(owner, "shape", expected="()", got=show(self.shape), advice=advice)
        elif self.shape is None:
            return
        itemsize = 8 if self.dtype == "int64" else 4
        shape = check_shape(owner, self.shape, itemsize)
        if len(shape) > 1:
            expected = "(), (k,) or None"
            raise refuse(owner, "shape", expected=expected, got=show(shape), advice="A step is a flat list.")
        self._keep(shape=shape)

    def _check_default(self, owner: str) -> tuple[Any, ...]:
        return check_list(owner, "default", self.default, self.dtype, self.shape)


@dataclass(frozen=True, repr=False, eq=False)
class Tensor(Field):
    """One array of a fixed shape per record.

    Attributes:
        shape: Shape of the array; `()` is a single element.
        dtype: Element type of the array.
        encoding: Storage in the record. `raw` is one bytes value with the elements in little-endian C order;
            `list` is an int64 list (ints and bools) or a float list (float16, float32) of the elements in C
            order. `auto` detects it from the records, and means `list` before they are read; for float64,
            which no list can store, it means `raw`.

    Example:
        >>> Tensor((64, 64), "uint8", "raw").describe()
        '64 x 64 uint8 (raw)'
    """

    shape: tuple[int, ...]
    dtype: TensorDtype = "float32"
    encoding: Encoding = "auto"
    type_name: ClassVar[str] = "tensor"

    @property
    def kind(self) -> Kind:
        """Kind of list that stores the field in a record."""
        kind = list_kind(self.dtype)
        return "bytes" if self.encoding == "raw" or kind is None else kind

    @property
    def num_values(self) -> int | None:
        """Number of values in the list of a record."""
        return 1 if self.encoding == "raw" else self.size

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def num_bytes(self) -> int:
        """Size of the raw encoding in bytes."""
        return self.size * np.dtype(self.dtype).itemsize

    def describe(self) -> str:
        """Return a short description of the values per record."""
        dims = " x ".join(str(dim) for dim in self.shape) or "scalar"
        encoding = "" if self.encoding == "auto" else f" ({self.encoding})"
        return f"{dims} {self.dtype}{encoding}"

    def _check(self, owner: str) -> None:
        dtype = check_dtype(owner, self.dtype, get_args(TensorDtype))
        shape = check_shape(owner, self.shape, np.dtype(dtype).itemsize)
        check_choice(owner, "encoding", self.encoding, get_args(Encoding))
        self._keep(dtype=dtype, shape=shape)
        if list_kind(dtype) is None:
            if self.encoding == "list":
                advice = "Float lists of a TFRecord are float32."
                raise refuse(owner, "encoding", expected=f"'raw' for {dtype}", got="'list'", advice=advice)
            self._keep(encoding="raw")

    def _check_default(self, owner: str) -> NDArray[Any]:
        return check_array(owner, "default", self.default, self.shape, self.dtype)
