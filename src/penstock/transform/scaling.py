"""Numbers scaled, batch by batch, by the core.

In: arrays of numbers and which rows are there. Out: float32 arrays of the same shape.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.foundation.option_checks import refuse_option
from penstock.foundation.wording import show
from penstock.transform.base import Fitted
from penstock.transform.form import (
    Load,
    load_choice,
    load_count,
    load_flag,
    load_list,
    load_number,
    load_optional,
)
from penstock.transform.output import DTYPES
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


@dataclass(frozen=True)
class ScaleFit(Fitted):
    """What `Scale` learned.

    Attributes:
        dtype: Of the stored values.
        shape: Of a record, or of an item of a sequence.
        is_sequence: Whether records hold lists.
        has_default: Whether records that lack the field hold its default, and so count as having it.
        shift: Taken off, one number or one an element.
        factor: Multiplied with what is left.
        fill: What missing values become, scaled already.
        low: The least number, to which smaller ones are raised.
        high: The greatest one.
    """

    dtype: str
    shape: tuple[int | None, ...]
    is_sequence: bool
    has_default: bool
    shift: tuple[float, ...]
    factor: tuple[float, ...]
    fill: tuple[float, ...]
    low: float
    high: float

    LOADERS: ClassVar[Mapping[str, Load]] = {
        "dtype": load_choice(*DTYPES),
        "shape": load_list(load_optional(load_count)),
        "is_sequence": load_flag,
        "has_default": load_flag,
        "shift": load_list(load_number),
        "factor": load_list(load_number),
        "fill": load_list(load_number),
        "low": load_number,
        "high": load_number,
    }

    def check(self) -> None:
        """Refuse numbers that do not belong together; only a form that was edited has such.

        Raises:
            OptionError: Its `field` is the attribute.
        """
        size = 1 if None in self.shape else math.prod(filter(None, self.shape))
        for part in ("shift", "factor", "fill"):
            count = len(getattr(self, part))
            if count != 1 and (count != size or not count):
                expected = "one number" if size == 1 else f"one number, or {size}"
                raise refuse_option("Scale", f"fitted.{part}", expected, show(count))
        if len(self.shift) != len(self.factor):
            expected = f"{len(self.shift)} numbers, as of shift"
            raise refuse_option("Scale", "fitted.factor", expected, show(len(self.factor)))
        if not self.low <= self.high:
            raise refuse_option("Scale", "fitted.low", f"at most high, {self.high}", show(self.low))


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
        """Return 1 for each row that is missing, or has a missing element, 0 for others."""
        indicator: NDArray[np.float32] = _native.empty((len(values),), "float32")
        if present is None:
            indicator[:] = 0.0
        else:
            np.logical_not(present, out=indicator)
        if self._nan_is_missing and values.dtype.kind == "f":
            np.maximum(indicator, np.isnan(values).any(axis=tuple(range(1, values.ndim))), out=indicator)
        return indicator
