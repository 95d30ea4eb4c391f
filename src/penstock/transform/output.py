"""What a transform promises before it runs: the name, the element type and the shape of an array.

In: declarations. Out: `Output`, checked when made, and the words for it in tables and errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from penstock.columns import Ragged
from penstock.errors import OptionError
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
"""The element types that a batch can have: those that every framework takes without a copy."""

STRINGS: Final = ("string", "bytes")
"""What stored values may be besides, where no transform says otherwise; no transform gives them."""


@dataclass(frozen=True)
class Output:
    """One array of a batch.

    Attributes:
        name: By which the model knows it.
        dtype: Of its elements.
        shape: Of one record; None where a dimension varies from batch to batch.
        is_ragged: Whether it is a `Ragged`, whose rows have lengths of their own: the first dimension of
            `shape` is None then, and those behind it are the shape of an item.

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
            raise OptionError("name of an Output", expected="a text", got=show(self.name))
        owner = f"output {self.name!r}"
        dtype = self.dtype
        if isinstance(dtype, (np.dtype, type)):
            dtype = np.dtype(dtype).name
        if dtype not in (*DTYPES, *STRINGS):
            raise OptionError(f"dtype of {owner}", expected=list_choices(DTYPES), got=show(self.dtype))
        object.__setattr__(self, "dtype", dtype)
        if not isinstance(self.shape, list | tuple) or not all(map(_is_dim, self.shape)):
            expected = "a tuple of positive ints, with None for what varies"
            raise OptionError(f"shape of {owner}", expected=expected, got=show(self.shape))
        object.__setattr__(self, "shape", tuple(self.shape))
        if not isinstance(self.is_ragged, bool):
            raise OptionError(f"is_ragged of {owner}", expected="True or False", got=show(self.is_ragged))
        if self.is_ragged and self.shape[:1] != (None,):
            expected = "None as the first dimension of what is ragged"
            raise OptionError(f"shape of {owner}", expected=expected, got=show(self.shape))

    def describe(self) -> str:
        """Say in a few words what the array is: `float32 (n, 4)`, with ? for what varies."""
        dims = ["n", *("?" if dim is None else str(dim) for dim in self.shape)]
        return f"{self.dtype} {'ragged ' if self.is_ragged else ''}({', '.join(dims)}{',' * (len(dims) < 2)})"

    def accepts(self, value: object, num_rows: int) -> bool:
        """Say whether an array, or a Ragged, of so many rows is what was promised."""
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
    """Say in a few words what an array is, or that it is none."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape}"
    return repr(value) if isinstance(value, Ragged) else show(value)


def _is_dim(dim: object) -> bool:
    return dim is None or (isinstance(dim, int) and not isinstance(dim, bool) and dim > 0)
