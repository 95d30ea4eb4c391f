"""`Keep`: values as stored, or cast to another element type: tensors, labels, weights.

In: numbers, categories of integers, tensors; sequences with `ragged=True`. Out: the same values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from penstock.columns import CodedColumn, Dense, Mask, Ragged
from penstock.errors import FieldError
from penstock.foundation.json_form import JsonValue, Load, choice_of, list_of, optional
from penstock.foundation.option_checks import check_flag, check_real, refuse_option
from penstock.foundation.wording import override, show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes as BytesField
from penstock.schema.scalar import Image, Number
from penstock.statistics.summary import FieldStatistics
from penstock.transform.base import (
    Arrays,
    FitSource,
    Fitted,
    Transform,
    check_dtype_name,
    misfit,
    need_fitted,
    refuse_gaps,
)
from penstock.transform.draws import Draws
from penstock.transform.output import DTYPES, Output, align, can_cast, cast
from penstock.transform.padding import step_shape, truncate_lists

_WHOLE_LIMITS: Final = {
    "float16": 2**11,
    "float32": 2**24,
    "float64": 2**53,
}  # up to here all integers are exact


@dataclass(frozen=True)
class KeepFit(Fitted):
    """Fitted state of `Keep`.

    Attributes:
        dtype: Element type of the stored values.
        shape: Shape of a record, or of an item of a sequence.
        is_sequence: Whether records hold lists.
        can_lack: Whether records may have neither a value nor a default.
        spread: Minimum, maximum, mean and standard deviation of a numeric target, which models use to scale
            their predictions. None for other fields.
    """

    dtype: str
    shape: tuple[int | None, ...]
    is_sequence: bool
    can_lack: bool
    spread: tuple[float, float, float, float] | None = None

    LOADERS: ClassVar[Mapping[str, Load]] = {
        "dtype": choice_of(*DTYPES),
        "shape": list_of(optional(JsonValue.count)),
        "is_sequence": JsonValue.flag,
        "can_lack": JsonValue.flag,
        "spread": optional(list_of(JsonValue.any_number)),
    }


@dataclass(frozen=True, repr=False)
class Keep(Transform):
    """Keep values as they are stored, or cast them to another element type.

    Use it for targets and weights, and for inputs that are already prepared, such as tensors of features.

    Attributes:
        dtype: Element type of the output, such as "float32". By default the stored type. Floats are rounded;
            an integer out of the range of the type is an error.
        missing: Number to use for a record without a value, or "error" to raise an error. A default of the
            field takes precedence.
        ragged: Whether to accept sequences, which are returned as a `Ragged`. To make arrays of sequences,
            use `Pad`.
        fitted: Fitted state, or None. Set by `Pipeline.fit`.

    Example:
        >>> Keep("float32", missing=0)
        Keep(dtype='float32', missing=0)
    """

    dtype: str | None = None
    missing: float | Literal["error"] = "error"
    ragged: bool = False
    fitted: KeepFit | None = None

    kind: ClassVar[str] = "keep"
    fitted_type: ClassVar[type[Fitted]] = KeepFit

    def __post_init__(self) -> None:
        if self.dtype is not None:
            self._keep(dtype=check_dtype_name("Keep", self.dtype, DTYPES))
        if self.missing != "error":
            self._keep(missing=check_real("Keep", "missing", self.missing))
        check_flag("Keep", "ragged", self.ragged)
        spread = None if self.fitted is None else self.fitted.spread
        if spread is not None and len(spread) != 4:
            expected = "minimum, maximum, mean and standard deviation"
            raise refuse_option("Keep", "fitted.spread", expected, show(spread))

    def fit(self, name: str, field: Field, source: FitSource) -> Keep:
        """Return the transform fitted to a field."""
        fitted = KeepFit(**self.derive(name, field), spread=_find_spread(name, field, source))
        if fitted.can_lack and self.missing == "error" and field.role != "target":
            advice = "Give the field a default, or choose a value for such records: "
            advice += f"{override(name, 'Keep(missing=0)')}."
            refuse_gaps(self, name, source, advice)
        return replace(self, fitted=fitted)

    def derive(self, name: str, field: Field) -> dict[str, Any]:
        """Return the part of the fitted state that depends only on the field."""
        is_sequence = isinstance(field, Sequence)
        if field.kind == "bytes" and not isinstance(field, Number | Tensor):
            raise misfit(self, name, field, "numbers", _advise(field))
        if is_sequence and not self.ragged:
            raise misfit(self, name, field, "one shape for all records", "Use Pad(), or Keep(ragged=True).")
        if self.ragged and not is_sequence:
            raise misfit(self, name, field, "a sequence, with ragged=True")
        stored: str = field.dtype  # type: ignore[attr-defined]  # strings, images and bytes have been refused
        if self.dtype is not None and not can_cast(stored, self.dtype):
            expected = f"a dtype to which {stored} can be cast without truncation"
            raise refuse_option("Keep", "dtype", expected, f"{self.dtype!r} for field {name!r}")
        return {
            "dtype": stored,
            "shape": step_shape(field) if isinstance(field, Sequence) else getattr(field, "shape", ()),
            "is_sequence": is_sequence,
            "can_lack": field.optional and field.default is None and not is_sequence,
        }

    def caution(self, field: Field, statistics: FieldStatistics) -> str:  # noqa: ARG002
        """Return a warning if integers are too large to be exact as floats."""
        values, most = statistics.values, _WHOLE_LIMITS.get(self.dtype or "", math.inf)
        ends = [] if values is None else [x for x in (values.min, values.max) if x is not None]
        is_whole = self.fitted is not None and np.dtype(self.fitted.dtype).kind in "iu"
        beyond = [x for x in ends if abs(x) > most]
        if not is_whole or not beyond:
            return ""
        return f"{beyond[-1]:.0f} is rounded to {self.dtype}: use Keep() for exact integers"

    @property
    def takes_missing(self) -> bool:
        """Whether records without a value are accepted."""
        return self.fitted is None or self.fitted.can_lack or self.fitted.is_sequence

    def is_measured(self, field: Field) -> bool:
        """Whether fitting to a field needs its statistics."""
        can_lack = field.optional and field.default is None and self.missing == "error"
        return can_lack or _is_predicted(field)

    def outputs(self, name: str) -> tuple[Output, ...]:
        """Return the outputs of `apply`."""
        fitted = need_fitted(self, name, self.fitted)
        dtype = self.dtype or fitted.dtype
        if fitted.is_sequence:
            return (Output(name, dtype, (None, *fitted.shape), is_ragged=True),)
        return (Output(name, dtype, fitted.shape),)

    def apply(self, name: str, column: CodedColumn, draws: Draws | None) -> Arrays:  # noqa: ARG002
        """Return the values of a batch."""
        if self.ragged:
            lists = Ragged.of(column)
            if self.dtype is not None:
                numbers: Any
                numbers, offsets = lists.flatten()
                lists = lists.with_values(cast(name, numbers, self.dtype, offsets))
            return {name: truncate_lists(lists, None, from_end=False)}
        values = Dense.of(column).values
        if column.present is not None and self.fitted is not None and self.fitted.can_lack:
            values = self._fill(name, values, column.present)
        if self.dtype is not None and values.dtype != self.dtype:
            return {name: cast(name, values, self.dtype)}
        return {name: align(values)}

    def native_step(self, output: Output) -> dict[str, Any] | None:
        """Return the transform as a step of a program of the core; None for rare casts and lists of lists."""
        fitted = self.fitted
        if fitted is None or None in fitted.shape:
            return None
        if "float16" in (fitted.dtype, output.dtype) and fitted.dtype != output.dtype:
            return None
        step: dict[str, Any] = {
            "kind": "keep",
            "form": "ragged" if self.ragged else "rows",
            "is_list": self.ragged,
            "stored": fitted.dtype,
            "out": output.dtype,
            "width": math.prod(fitted.shape),
            "item_shape": list(output.shape[1:]),
        }
        if self.missing == 0 or not fitted.can_lack:
            return step
        if self.missing == "error":
            return {**step, "missing": "refused"}
        filled = np.zeros(1, fitted.dtype)
        try:
            filled[:] = self.missing
        except (OverflowError, ValueError):  # a number that the type does not hold is an error for the row
            return None
        return {**step, "missing": "filled", "fill_value": filled.tobytes()}

    def _fill(self, name: str, values: NDArray[Any], present: Mask) -> NDArray[Any]:
        # Records without a value hold zeros.
        if self.missing == 0 or present.all():
            return values
        if self.missing == "error":
            raise FieldError(
                f"value of field {name!r}",
                field=name,
                record=int(np.argmin(present)),
                expected="a value",
                got="nothing",
                advice=f"Give the field a default, or choose a value: {override(name, 'Keep(missing=0)')}. "
                f"Training skips records without a target; with a loader, use filter='`{name}` is not None'.",
            )
        filled = values.copy()
        filled[~present] = self.missing
        return filled


def _is_predicted(field: Field) -> bool:
    return field.role == "target" and isinstance(field, Number | Date | Tensor)


def _find_spread(name: str, field: Field, source: FitSource) -> tuple[float, float, float, float] | None:
    values = source.statistics(name).values if _is_predicted(field) else None
    if values is None or values.min is None or values.max is None:
        return None
    return values.min, values.max, values.mean or 0.0, values.deviation or 0.0


def _advise(field: Field) -> str:
    if isinstance(field, Image | BytesField):
        return "Use Image() for images. Convert other bytes with Pipeline.map, or set the transform to None."
    return "Models need numbers: use Tokenize() or Encode()."
