"""The arrays of a batch: declaration of name, element type and shape; casts and aligned copies.

In: declarations, and arrays. Out: `Output`, checked when made, with a description for tables and errors;
aligned arrays of the requested type, where a number out of range is an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Ragged
from penstock.errors import FieldError, OptionError
from penstock.foundation.wording import list_choices, show

DTYPES: Final = (
    "float32",
    "float64",
    "float16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
)
"""Element types of batches: those that every framework accepts without a copy."""

STRINGS: Final = ("string", "bytes")
"""Further types of stored values, in batches without a pipeline; no transform returns them."""


@dataclass(frozen=True)
class Output:
    """One array of a batch.

    Attributes:
        name: Name of the array, which matches the name of the model's input.
        dtype: Element type.
        shape: Shape of one record; None for a dimension that varies from batch to batch.
        is_ragged: Whether it is a `Ragged`, whose rows vary in length. The first dimension of `shape` is then
            None, and the others are the shape of an item.

    Example:
        >>> Output("tokens", "int64", (None,)).describe()
        'int64 (n, ?)'
    """

    name: str
    dtype: str
    shape: tuple[int | None, ...] = ()
    is_ragged: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise OptionError("name of an Output", expected="a non-empty string", got=show(self.name))
        owner = f"output {self.name!r}"
        dtype = self.dtype
        if isinstance(dtype, (np.dtype, type)):
            dtype = np.dtype(dtype).name
        if dtype not in (*DTYPES, *STRINGS):
            raise OptionError(f"dtype of {owner}", expected=list_choices(DTYPES), got=show(self.dtype))
        object.__setattr__(self, "dtype", dtype)
        if not isinstance(self.shape, list | tuple) or not all(map(_is_dim, self.shape)):
            expected = "a tuple of positive integers, with None for a varying dimension"
            raise OptionError(f"shape of {owner}", expected=expected, got=show(self.shape))
        object.__setattr__(self, "shape", tuple(self.shape))
        if not isinstance(self.is_ragged, bool):
            raise OptionError(f"is_ragged of {owner}", expected="True or False", got=show(self.is_ragged))
        if self.is_ragged and self.shape[:1] != (None,):
            expected = "None as the first dimension of a ragged output"
            raise OptionError(f"shape of {owner}", expected=expected, got=show(self.shape))

    @property
    def is_fixed(self) -> bool:
        """Whether the array has one shape and type in every batch of as many rows."""
        return not self.is_ragged and None not in self.shape and self.dtype in DTYPES

    def describe(self) -> str:
        """Return a short description such as `float32 (n, 4)`, with ? for a varying dimension."""
        dims = ["n", *("?" if dim is None else str(dim) for dim in self.shape)]
        return f"{self.dtype} {'ragged ' if self.is_ragged else ''}({', '.join(dims)}{',' * (len(dims) < 2)})"

    def accepts(self, value: object, num_rows: int) -> bool:
        """Whether an array or a `Ragged` of `num_rows` rows matches the declaration."""
        if self.is_ragged:
            if not isinstance(value, Ragged) or len(value) != num_rows:
                return False
            if len(self.shape) > 1 and self.shape[1] is None and isinstance(value.values, Ragged):
                return isinstance(value.values.values, np.ndarray) and value.values.values.dtype == self.dtype
            items = value.values
            return isinstance(items, np.ndarray) and self._fits(items.dtype, items.shape[1:], self.shape[1:])
        return (
            isinstance(value, np.ndarray)
            and value.shape[:1] == (num_rows,)
            and self._fits(value.dtype, value.shape[1:], self.shape)
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        form: dict[str, Any] = {"name": self.name, "dtype": self.dtype, "shape": list(self.shape)}
        return {**form, "is_ragged": True} if self.is_ragged else form

    def _fits(self, dtype: np.dtype[Any], shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
        return (
            dtype.name == self.dtype
            and len(shape) == len(wanted)
            and all(dim is None or dim == size for dim, size in zip(wanted, shape, strict=True))
        )


def describe_value(value: object) -> str:
    """Return a short description of an array, or of a value that is not an array."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape}"
    return repr(value) if isinstance(value, Ragged) else show(value)


def _is_dim(dim: object) -> bool:
    return dim is None or (isinstance(dim, int) and not isinstance(dim, bool) and dim > 0)


_ALIGNMENT: Final = 64
"""Alignment in bytes that TensorFlow and XLA need to share memory; a copy of a 39 MB batch takes 33 ms."""


def is_aligned(array: NDArray[Any]) -> bool:
    """Whether an array is contiguous and starts at a multiple of `_ALIGNMENT`."""
    address: int = array.__array_interface__["data"][0]
    return array.flags.c_contiguous and address % _ALIGNMENT == 0


def align(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array itself if it is aligned and in native byte order, else an aligned copy."""
    if is_aligned(array) and array.dtype.isnative:
        return array
    return convert(array, array.dtype.name)


def convert(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Return an aligned copy of an array with another element type."""
    copy = _native.empty(array.shape, dtype)
    np.copyto(copy, array, casting="unsafe")
    return copy


def can_cast(stored: str, wanted: str) -> bool:
    """Whether a cast is allowed: floats do not become integers, nor numbers booleans."""
    kinds = "biuf"
    old, new = np.dtype(stored).kind, np.dtype(wanted).kind
    return kinds.index(old) <= kinds.index(new) or (old == "u" and new == "i") or (old == "i" and new == "u")


def cast(
    name: str, values: NDArray[Any], dtype: str, offsets: NDArray[np.int64] | None = None
) -> NDArray[Any]:
    """Cast numbers to another type, in an aligned array; floats are rounded.

    `values`: numbers, one row per record, or the concatenated items of lists. `offsets`: offsets of the
    records in `values`, for lists.
    """
    is_whole = values.dtype.kind in "iu" and dtype.lstrip("u").startswith("int")
    if is_whole and values.size:
        limits = np.iinfo(dtype)
        if int(values.min()) < limits.min or int(values.max()) > limits.max:
            raise _refuse(name, values, dtype, offsets)
    try:
        with np.errstate(over="raise"):
            return convert(values, dtype)
    except FloatingPointError:
        raise _refuse(name, values, dtype, offsets) from None


def _refuse(name: str, values: NDArray[Any], dtype: str, offsets: NDArray[np.int64] | None) -> FieldError:
    """Return the error for the first number that is out of range."""
    flat = values.reshape(-1)
    if np.dtype(dtype).kind == "f":
        with np.errstate(over="ignore"):
            is_bad = np.isinf(flat.astype(dtype)) & np.isfinite(flat)
    else:
        limits = np.iinfo(dtype)
        # Compared as Python integers: the limits of a wide type exceed the limits of a narrow one.
        is_bad = np.array([not limits.min <= number <= limits.max for number in flat.tolist()])
    at = int(np.argmax(is_bad))
    row = at // max(1, values[:1].size)
    if offsets is not None:
        row = int(np.searchsorted(offsets, row, side="right")) - 1
    return FieldError(
        f"value of field {name!r}",
        field=name,
        record=row,
        expected=f"a number in the range of {dtype}",
        got=str(flat[at]),
        advice="Choose a wider dtype.",
    )
