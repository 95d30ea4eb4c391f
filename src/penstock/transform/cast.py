"""Numbers in another element type, without changing what they are.

In: arrays. Out: arrays of the type asked for; a number that it cannot hold is an error, never another number.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.errors import FieldError

ALIGNMENT: Final = 64
"""Bytes: what TensorFlow asks for to alias memory, and XLA; a 39 MB batch costs 33 ms more without."""


def is_aligned(array: NDArray[Any]) -> bool:
    """Say whether an array is contiguous and begins at a multiple of `ALIGNMENT`."""
    address: int = array.__array_interface__["data"][0]
    return array.flags.c_contiguous and address % ALIGNMENT == 0


def align(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as it is if it lies well, and else a copy that does."""
    if is_aligned(array) and array.dtype.isnative:
        return array
    return convert(array, array.dtype.name)


def convert(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Return a copy of an array in another element type, aligned."""
    copy = _native.empty(array.shape, dtype)
    np.copyto(copy, array, casting="unsafe")
    return copy


def can_cast(stored: str, wanted: str) -> bool:
    """Whether numbers of a type may be asked for in another: floats do not become ints, nor bools."""
    kinds = "biuf"
    old, new = np.dtype(stored).kind, np.dtype(wanted).kind
    return kinds.index(old) <= kinds.index(new) or (old == "u" and new == "i") or (old == "i" and new == "u")


def cast(
    name: str, values: NDArray[Any], dtype: str, offsets: NDArray[np.int64] | None = None
) -> NDArray[Any]:
    """Return numbers in another type, aligned; floats are rounded.

    Args:
        name: Of the field.
        values: Its numbers, a row a record, or those of lists.
        dtype: The type wanted.
        offsets: Where the numbers of each record begin, if they are those of lists.

    Raises:
        FieldError: A number does not fit.
    """
    is_whole = values.dtype.kind in "iu" and dtype.lstrip("u").startswith("int")
    if is_whole and values.size and not _fits(values, dtype):
        raise _refuse(name, values, dtype, offsets)
    try:
        with np.errstate(over="raise"):
            return convert(values, dtype)
    except FloatingPointError:
        raise _refuse(name, values, dtype, offsets) from None


def _fits(values: NDArray[Any], dtype: str) -> bool:
    limits = np.iinfo(dtype)
    return int(values.min()) >= limits.min and int(values.max()) <= limits.max


def _refuse(name: str, values: NDArray[Any], dtype: str, offsets: NDArray[np.int64] | None) -> FieldError:
    """Return the error for the first number that does not fit."""
    flat = values.reshape(-1)
    if np.dtype(dtype).kind == "f":
        with np.errstate(over="ignore"):
            is_bad = np.isinf(flat.astype(dtype)) & np.isfinite(flat)
    else:
        limits = np.iinfo(dtype)
        # Compared as Python ints: the bounds of a wide type are beyond those of a narrow one.
        is_bad = np.array([not limits.min <= number <= limits.max for number in flat.tolist()])
    at = int(np.argmax(is_bad))
    row = at // max(1, values[:1].size)
    if offsets is not None:
        row = int(np.searchsorted(offsets, row, side="right")) - 1
    return FieldError(
        f"value of field {name!r}",
        field=name,
        record=row,
        expected=f"a number that {dtype} holds",
        got=str(flat[at]),
        advice="Ask for a wider dtype.",
    )
