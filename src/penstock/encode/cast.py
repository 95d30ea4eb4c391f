"""Numbers from one type to another, and which of them do not survive that.

In: arrays of bools, ints or floats of any shape. Out: the same in the type asked for, and a mask.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.types import Mask


def cast_values(values: NDArray[Any], dtype: str) -> tuple[NDArray[Any], Mask | None]:
    """Return numbers in another type, with zeros for those that it cannot hold.

    Whole numbers stay what they are or are lost; floats are rounded where that is what a narrower type does,
    and lost where they are finite and would become infinite. Bools are 0 and 1.

    Returns:
        The numbers, and which were lost: None if none was.
    """
    target = np.dtype(dtype)
    source = values.dtype
    if source.kind == target.kind and source.itemsize == target.itemsize:
        return values.astype(target, copy=False), None
    if source.kind == "b":
        return values.astype(target), None
    if target.kind == "f":
        return _cast_to_float(values, target)
    return _cast_to_whole(values, target)


def _cast_to_float(values: NDArray[Any], target: np.dtype[Any]) -> tuple[NDArray[Any], Mask | None]:
    with np.errstate(over="ignore"):
        cast = values.astype(target)
    lost = np.isinf(cast)
    if not lost.any():
        return cast, None
    lost &= ~np.isinf(values)
    if not lost.any():
        return cast, None
    cast[lost] = 0
    return cast, lost


def _cast_to_whole(values: NDArray[Any], target: np.dtype[Any]) -> tuple[NDArray[Any], Mask | None]:
    low, high = (0, 1) if target.kind == "b" else (np.iinfo(target).min, np.iinfo(target).max)
    if not values.size:
        return values.astype(target), None
    if values.dtype.kind == "f":
        # Both limits are exact in float64: the upper one is a power of two, which is itself too large.
        wide = values.astype(np.float64, copy=False)
        lost = ~((wide >= float(low)) & (wide < float(high + 1)) & (np.floor(wide) == wide))
        values = wide
    elif int(values.min()) >= low and int(values.max()) <= high:
        return values.astype(target), None
    else:
        lost = np.zeros(values.shape, np.bool_)
        if int(values.min()) < low:
            lost |= values < low
        if int(values.max()) > high:
            lost |= values > high
    if not lost.any():
        return values.astype(target), None
    return np.where(lost, values.dtype.type(0), values).astype(target), lost
