"""Numbers in another element type, without changing what they are.

In: arrays. Out: arrays of the type asked for; a number that it cannot hold is an error, never another number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import FieldError
from penstock.transform.memory import convert


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
        FieldError: A whole number does not fit.
    """
    if values.dtype.kind in "iu" and dtype.lstrip("u").startswith("int") and values.size:
        limits = np.iinfo(dtype)
        low, high = int(values.min()), int(values.max())
        if low < limits.min or high > limits.max:
            at = int(values.argmin() if low < limits.min else values.argmax())
            row = at // max(1, values[:1].size)
            if offsets is not None:
                row = int(np.searchsorted(offsets, row, side="right")) - 1
            raise FieldError(
                f"value of field {name!r}",
                field=name,
                record=row,
                expected=f"a number that {dtype} holds",
                got=str(values.reshape(-1)[at]),
                advice="Ask for a wider dtype.",
            )
    return convert(values, dtype)
