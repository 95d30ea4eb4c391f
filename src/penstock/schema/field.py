"""What every field of a schema has, whatever its type: a role, a key, and what a record without it gets.

In: declarations by a user or by inference. Out: frozen objects, checked when made (`SchemaError`). The types
themselves are in `scalar.py` (one value a record) and `array.py` (several).
"""

from __future__ import annotations

import dataclasses
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

import numpy as np

from penstock.columns import Kind
from penstock.foundation.wording import list_choices, refuse, show
from penstock.schema.default import check_string, identify

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


Role: TypeAlias = Literal["input", "target", "weight", "id"]
_ROLES = get_args(Role)


@dataclass(frozen=True, repr=False, eq=False)
class Field(ABC):
    """Base of the types of field.

    A record lacks a field when its key is not there, or is there with no kind of list set. A required field
    must not be lacking; an optional one may, and the record then gets the `default` and is marked as not
    present. An empty list is *not* lacking: it is a list of no values, so the default does not apply to it,
    and a field of exactly one value refuses it.

    Attributes:
        role: What the field is to a model.
        default: The value of records that lack the field. Giving one makes the field optional.
        optional: Whether records may lack the field.
        key: The key in the records, where it is not the field's name.
    """

    _: KW_ONLY
    role: Role = "input"
    default: Any = None
    optional: bool = False
    key: str | None = None

    type_name: ClassVar[str]

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_choice(owner, "role", self.role, _ROLES)
        if not isinstance(self.optional, bool):
            raise refuse(owner, "optional", expected="True or False", got=show(self.optional))
        if self.key is not None:
            check_string(owner, "key", self.key)
        self._check(owner)
        if self.default is not None:
            self._keep(default=self._check_default(owner), optional=True)

    @property
    @abstractmethod
    def kind(self) -> Kind:
        """The kind of list that holds the field in a record."""

    @property
    def num_values(self) -> int | None:
        """How many values a record's list holds, or None where that varies."""
        return 1

    @property
    def is_feature_list(self) -> bool:
        """Whether the field is a feature list of a SequenceExample; those have keys of their own."""
        return False

    def wire_key(self, name: str) -> str:
        """Return the key in the records of a field that a schema calls `name`."""
        return name if self.key is None else self.key

    @abstractmethod
    def describe(self) -> str:
        """Say in a few words how many values of what a record holds."""

    @classmethod
    @cache
    def attribute_names(cls) -> tuple[str, ...]:
        """Return the names of the declaration's attributes, those of this type before the common ones."""
        own = [item.name for item in dataclasses.fields(cls) if not item.kw_only]
        return (*own, "role", "default", "optional", "key")

    def _check(self, owner: str) -> None:  # noqa: B027 - a type that adds no attribute has nothing to check
        """Check and normalise what this type of field adds to the common attributes."""

    @abstractmethod
    def _check_default(self, owner: str) -> Any:
        """Return the default as it is kept; called where one is given."""

    def _keep(self, **attributes: object) -> None:
        # Frozen is what the object is to others; __post_init__ alone normalises what was given.
        self.__dict__.update(attributes)

    def _identity(self) -> tuple[object, ...]:
        return (type(self), *(identify(getattr(self, name)) for name in self.attribute_names()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Field) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        usual = {item.name: item.default for item in dataclasses.fields(self)}
        if self.default is not None:
            usual["optional"] = True
        parts = []
        for name in self.attribute_names():
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                parts.append(f"{name}={show(value.tolist())}")
            elif value != usual[name]:
                parts.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(parts)})"


def check_choice(owner: str, place: str, value: object, choices: Collection[str]) -> None:
    """Refuse a value that is none of some strings."""
    if not isinstance(value, str) or value not in choices:
        raise refuse(owner, place, expected=list_choices(choices), got=show(value))
