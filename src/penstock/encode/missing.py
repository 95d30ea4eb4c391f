"""Which values of a raw column are missing: null, None, NaN among objects, NaT, pandas' NA.

In: raw columns. Out: presence masks, None where nothing is missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.source.column import is_missing, may_be_missing
from penstock.types import Mask


def present_objects(objects: NDArray[Any]) -> Mask | None:
    """Return which objects of a one-dimensional array are there; None if all are."""
    kinds = {kind for kind in set(map(type, objects)) if may_be_missing(kind)}
    if not kinds:
        return None
    present = np.fromiter(
        (type(value) not in kinds or not is_missing(value) for value in objects), np.bool_, len(objects)
    )
    return tidy(present)


def present_cells(array: pa.Array[Any]) -> Mask | None:
    """Return which values of an Arrow array are there; None if all are."""
    if not array.null_count:
        return None
    present: Mask = array.is_valid().to_numpy(zero_copy_only=False)
    return present


def tidy(present: Mask | None) -> Mask | None:
    """Return a mask, or None where it leaves nothing out."""
    return None if present is None or present.all() else present


def merge(one: Mask | None, other: Mask | None) -> Mask | None:
    """Return what is there by both masks."""
    if one is None or other is None:
        return other if one is None else one
    return one & other
