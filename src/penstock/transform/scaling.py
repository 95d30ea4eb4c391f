"""Numbers scaled, batch by batch, by the core.

In: arrays of numbers and which rows are there. Out: float32 arrays of the same shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.transform.span import Span
from penstock.types import Mask

# The core scales float32, float64, int64, int32 and uint8; other types go through one that holds them.
_VIA = {
    "float16": "float32",
    "int8": "int32",
    "int16": "int32",
    "uint16": "int32",
    "uint32": "int64",
    "uint64": "float64",
    "bool": "uint8",
}


class Scaler:
    """Scales the numbers of one field."""

    __slots__ = ("_arguments", "_fill", "_nan_is_missing", "_via")

    def __init__(
        self, dtype: str, span: Span, fill: tuple[float, ...], *, is_log: bool, nan_is_missing: bool
    ) -> None:
        self._via = _VIA.get(dtype)
        self._nan_is_missing = nan_is_missing
        # The core fills with one number; where elements have one each, they are put in afterwards.
        self._fill = np.array(fill, np.float32) if len(fill) > 1 else None
        shift, factor = np.array(span.shift, np.float64), np.array(span.factor, np.float64)
        is_filled = nan_is_missing and self._fill is None
        self._arguments = (shift, factor, span.low, span.high, fill[0], is_log, is_filled)

    def scale(self, values: NDArray[Any], present: Mask | None) -> NDArray[np.float32]:
        """Return numbers scaled; those of rows that are not present are filled in."""
        if self._via is not None:
            values = values.astype(self._via)
        scaled: NDArray[np.float32] = _native.scale(values, present, *self._arguments)
        if self._fill is not None:
            fill = self._fill.reshape(scaled.shape[1:])
            if self._nan_is_missing:
                np.copyto(scaled, fill, where=np.isnan(scaled))
            if present is not None and not present.all():
                scaled[~present] = fill
        return scaled

    def indicate(self, values: NDArray[Any], present: Mask | None) -> NDArray[np.float32]:
        """Return 1 for each row that is missing, 0 for others."""
        indicator: NDArray[np.float32] = _native.empty((len(values),), "float32")
        if present is None:
            indicator[:] = 0.0
        else:
            np.logical_not(present, out=indicator)
        if self._nan_is_missing and values.ndim == 1 and values.dtype.kind == "f":
            np.maximum(indicator, np.isnan(values), out=indicator)
        return indicator
