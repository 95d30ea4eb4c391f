"""The base class of all field types: role, key, and default for records without the field.

In: declarations by a user or by inference. Out: frozen objects, checked when made (`SchemaError`). The types
themselves are in `scalar.py` (one value per record) and `array.py` (several).
"""

from __future__ import annotations

import dataclasses
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Kind
from penstock.foundation.wording import list_choices, refuse, show

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_FLOAT32_MAX = float(np.finfo(np.float32).max)

Check: TypeAlias = Callable[[str, str, object], Any]
"""Checks one value: (owner, path, value) → the normalized value. The path is for the error message."""

MAX_DIMS: Final = 32
"""Maximum number of dimensions in NumPy 1.26, the oldest supported version."""

MAX_TENSOR_BYTES: Final = 2**31 - 1
"""Maximum size of a value: a protobuf message, and so a record, is limited to 2 GiB."""


def check_int64(owner: str, path: str, value: object) -> int:
    """Return an int that fits an int64 list."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, int) or isinstance(value, bool):
        raise refuse(owner, path, expected="an int", got=show(value))
    if not _INT64_MIN <= value <= _INT64_MAX:
        raise refuse(owner, path, expected="a signed 64-bit int", got=show(value))
    return int(value)


def _check_float32(owner: str, path: str, value: object) -> float:
    number = _check_number(owner, path, value)
    # Ints are compared without conversion: float() of a huge int raises.
    if _FLOAT32_MAX < abs(number) < math.inf:
        raise refuse(owner, path, expected="a number in the range of float32", got=show(number))
    return float(number)


def _check_float64(owner: str, path: str, value: object) -> float:
    number = _check_number(owner, path, value)
    try:
        return float(number)
    except OverflowError:
        raise refuse(owner, path, expected="a number in the range of float64", got=show(number)) from None


def _check_number(owner: str, path: str, value: object) -> int | float:
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise refuse(owner, path, expected="a number", got=show(value))
    return value


def check_string(owner: str, path: str, value: object) -> str:
    """Return a str that can be encoded as UTF-8."""
    if not isinstance(value, str):
        advice = "Decode it, or use a Bytes field." if isinstance(value, bytes) else ""
        raise refuse(owner, path, expected="a str", got=show(value), advice=advice)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise refuse(owner, path, expected="a str that can be encoded as UTF-8", got=show(value)) from None
    return str(value)


def check_bytes(owner: str, path: str, value: object) -> bytes:
    """Return bytes."""
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise refuse(owner, path, expected="bytes", got=show(value))
    return bytes(value)


VALUE_CHECKS: dict[str, Check] = {
    "int64": check_int64,
    "float32": _check_float32,
    "float64": _check_float64,
    "string": check_string,
    "bytes": check_bytes,
}
"""Checks by element type."""


def check_list(
    owner: str, path: str, value: object, dtype: str, shape: tuple[int, ...] | None = ()
) -> tuple[Any, ...]:
    """Return a tuple of values, or of steps: tuples of `shape[0]` values (any number if `shape` is None)."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        raise refuse(owner, path, expected="a list", got=show(value))
    if shape == ():
        check = VALUE_CHECKS[dtype]
        return tuple(check(owner, f"{path}[{i}]", item) for i, item in enumerate(value))
    steps = tuple(check_list(owner, f"{path}[{i}]", step, dtype) for i, step in enumerate(value))
    for i, step in enumerate(steps):
        if shape is not None and len(step) != shape[0]:
            expected, got = f"a step of {shape[0]} values", f"{len(step)} values"
            raise refuse(owner, f"{path}[{i}]", expected=expected, got=got)
    return steps


def check_array(owner: str, path: str, value: object, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Return a read-only array of a shape and type; values that do not fit the type are an error."""
    try:
        given = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        raise refuse(owner, path, expected="an array", got=show(value)) from None
    if given.shape != shape:
        raise refuse(owner, path, expected=f"an array of shape {shape}", got=f"shape {given.shape}")
    # Bools for a bool array and numbers for a numeric one: True instead of 1 is usually a mistake.
    if given.dtype.kind not in ("b" if dtype == "bool" else "iuf"):
        raise refuse(owner, path, expected=f"values of {dtype}", got=f"values of {given.dtype.name}")
    with np.errstate(all="ignore"):
        kept = given.astype(dtype)
    if not _holds(kept, given):
        raise refuse(owner, path, expected=f"values that {dtype} can hold", got=show(given.tolist()))
    kept.flags.writeable = False
    return kept


def _holds(kept: NDArray[Any], given: NDArray[Any]) -> bool:
    """Whether a conversion kept the values: ints exactly; floats may be rounded, but not to infinity."""
    if kept.dtype.kind == "f":
        return bool(np.array_equal(np.isfinite(kept), np.isfinite(given)))
    # Compared as Python ints: NumPy would compare uint64 with int64 as float64.
    return bool(kept.tolist() == given.tolist())


def identify(value: Any) -> object:
    """Return a hashable key, equal for defaults with the same bits: NaN equals NaN, -0.0 is not 0.0."""
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.shape, value.tobytes()
    if isinstance(value, tuple):
        return tuple(identify(item) for item in value)
    if isinstance(value, float):
        return value.hex()
    return value


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
            advice = "Use the native byte order: records store little-endian values, columns native ones."
            raise refuse(owner, "dtype", expected=list_choices(choices), got=got, advice=advice)
        name = found.name
    if not isinstance(name, str) or name not in choices:
        advice = ""
        if name == "float64" and "float32" in choices:
            advice = "Float lists of a TFRecord are float32; Tensor(shape, 'float64', 'raw') stores float64."
        raise refuse(owner, "dtype", expected=list_choices(choices), got=show(name), advice=advice)
    return name


def list_kind(dtype: str) -> Kind | None:
    """Return the kind of list that stores values of a type without loss, or None if there is none."""
    if dtype in ("string", "bytes"):
        return "bytes"
    if dtype == "float64":
        return None
    return "float" if dtype in ("float16", "float32") else "int64"


def check_shape(owner: str, shape: object, itemsize: int) -> tuple[int, ...]:
    """Return a shape as a tuple of positive ints; its array, at `itemsize` bytes each, must fit a record."""
    if isinstance(shape, (str, bytes)) or not hasattr(shape, "__iter__"):
        advice = "The shape of a vector is (n,), with a comma." if isinstance(shape, int) else ""
        raise refuse(owner, "shape", expected="a tuple of positive ints", got=show(shape), advice=advice)
    dims = tuple(shape)
    if len(dims) > MAX_DIMS:
        raise refuse(owner, "shape", expected=f"at most {MAX_DIMS} dimensions", got=str(len(dims)))
    checked = tuple(_check_dim(owner, axis, dim) for axis, dim in enumerate(dims))
    num_bytes = math.prod(checked) * itemsize
    if num_bytes > MAX_TENSOR_BYTES:
        advice = "A record is at most 2 GiB."
        expected = f"at most {MAX_TENSOR_BYTES} bytes"
        raise refuse(owner, "shape", expected=expected, got=show(num_bytes), advice=advice)
    return checked


def _check_dim(owner: str, axis: int, dim: object) -> int:
    size = 0
    if hasattr(dim, "__index__") and not isinstance(dim, (bool, np.bool_)):
        size = operator.index(dim)
    if size < 1:
        advice = "Use a Sequence for a field of varying length." if dim is None or dim == -1 else ""
        raise refuse(owner, f"shape[{axis}]", expected="a positive int", got=show(dim), advice=advice)
    return size


Role: TypeAlias = Literal["input", "target", "weight", "id", "unused"]
"""Role of a field in a model; "unused" is a field that is stored and not fed to models."""
_ROLES = get_args(Role)


@dataclass(frozen=True, repr=False, eq=False)
class Field(ABC):
    """Base class of the field types.

    A field is missing in a record if the record lacks its key, or the key has no list. A required field must
    not be missing. If an optional field is missing, it has the value `default` and is marked as not present.
    An empty list is *not* missing: the default does not apply to it, and it is an error for a field with
    exactly one value.

    Attributes:
        role: Role of the field in a model: "input", "target", "weight", "id", or "unused" for a field that is
            stored and not fed to models.
        default: Value for records that lack the field. A default makes the field optional.
        optional: Whether records may lack the field.
        key: Key in the records, if it differs from the name of the field.

    Example:
        >>> import penstock as ps
        >>> isinstance(ps.fields.Number(default=0.0), ps.fields.Field), ps.fields.Number(default=0.0).optional
        (True, True)
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
        """Kind of list that stores the field in a record."""

    @property
    def num_values(self) -> int | None:
        """Number of values per record, or None if it varies."""
        return 1

    @property
    def is_feature_list(self) -> bool:
        """Whether the field is a feature list of a SequenceExample; these have a separate set of keys."""
        return False

    def wire_key(self, name: str) -> str:
        """Return the key in the records, for a field named `name` in the schema."""
        return name if self.key is None else self.key

    @abstractmethod
    def describe(self) -> str:
        """Return a short description of the values per record."""

    @classmethod
    @cache
    def attribute_names(cls) -> tuple[str, ...]:
        """Return the names of the attributes, specific ones before the common ones."""
        own = [item.name for item in dataclasses.fields(cls) if not item.kw_only]
        return (*own, "role", "default", "optional", "key")

    def _check(self, owner: str) -> None:  # noqa: B027 - a type that adds no attribute has nothing to check
        """Check and normalize the attributes that this type adds to the common ones."""

    @abstractmethod
    def _check_default(self, owner: str) -> Any:
        """Return the normalized default; called if one is given."""

    def _keep(self, **attributes: object) -> None:
        # The object is frozen for its users; only __post_init__ normalizes the arguments.
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


def check_choice(owner: str, attribute: str, value: object, choices: Collection[str]) -> None:
    """Reject a value that is not one of some strings."""
    if not isinstance(value, str) or value not in choices:
        raise refuse(owner, attribute, expected=list_choices(choices), got=show(value))
