"""Values as they are stored, or in another element type: tensors, labels, weights.

In: numbers, categories of ints, tensors, sequences where ragged ones are wanted. Out: the same values.
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
from penstock.foundation.option_checks import check_dtype_name, check_flag, check_real, refuse_option
from penstock.foundation.wording import show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes as BytesField
from penstock.schema.scalar import Image, Number
from penstock.statistics.summary import FieldStatistics
from penstock.transform.agreement import refuse_gaps
from penstock.transform.base import Arrays, FitSource, Fitted, Transform, misfit, need_fitted
from penstock.transform.cast import align, can_cast, cast
from penstock.transform.draws import Draws
from penstock.transform.output import DTYPES, Output
from penstock.transform.padding import cut_lists, step_shape

_WHOLE_LIMITS: Final = {"float16": 2**11, "float32": 2**24, "float64": 2**53}  # floats hold all ints up to it


@dataclass(frozen=True)
class KeepFit(Fitted):
    """What `Keep` learned.

    Attributes:
        dtype: Of the stored values.
        shape: Of a record, or of an item of a sequence.
        is_sequence: Whether records hold lists.
        can_lack: Whether records may have no value, nor a default.
        spread: Of the numbers of a target: the least, the greatest, their mean and deviation, by which a
            model knows what it is to predict. None where nobody asks.
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
    """Keep values as they are stored.

    Attributes:
        dtype: The element type wanted; as stored, if not given. Floats are rounded; whole numbers that it
            cannot hold are an error.
        missing: What a record without a value gets: a number, or an "error". The field's own default comes
            first.
        ragged: Give sequences as they are, as a `Ragged`; `Pad` makes arrays of them.
        fitted: What was learned.

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
            expected = "the least, the greatest, mean and deviation"
            raise refuse_option("Keep", "fitted.spread", expected, show(spread))

    def fit(self, name: str, field: Field, source: FitSource) -> Keep:
        """Return the transform for a field."""
        fitted = KeepFit(**self.derive(name, field), spread=_find_spread(name, field, source))
        if fitted.can_lack and self.missing == "error" and field.role != "target":
            advice = "Give the field a default, or say what they get: Keep(missing=0)."
            refuse_gaps(self, name, source, advice)
        return replace(self, fitted=fitted)

    def derive(self, name: str, field: Field) -> dict[str, Any]:
        """Return what of the fitted state the field alone decides."""
        is_sequence = isinstance(field, Sequence)
        if field.kind == "bytes" and not isinstance(field, Number | Tensor):
            raise misfit(self, name, field, "numbers", _advise(field))
        if is_sequence and not self.ragged:
            raise misfit(self, name, field, "one shape for all records", "Say Pad(), or Keep(ragged=True).")
        if self.ragged and not is_sequence:
            raise misfit(self, name, field, "a sequence, with ragged=True")
        stored: str = field.dtype  # type: ignore[attr-defined]  # strings, images and bytes have been refused
        if self.dtype is not None and not can_cast(stored, self.dtype):
            expected = f"a dtype that {stored} becomes without loss of its fractions"
            raise refuse_option("Keep", "dtype", expected, f"{self.dtype!r} for field {name!r}")
        return {
            "dtype": stored,
            "shape": step_shape(field) if isinstance(field, Sequence) else getattr(field, "shape", ()),
            "is_sequence": is_sequence,
            "can_lack": field.optional and field.default is None and not is_sequence,
        }

    def caution(self, field: Field, statistics: FieldStatistics) -> str:  # noqa: ARG002
        """Say that whole numbers are rounded, where floats cannot hold them."""
        values, most = statistics.values, _WHOLE_LIMITS.get(self.dtype or "", math.inf)
        ends = [] if values is None else [x for x in (values.min, values.max) if x is not None]
        is_whole = self.fitted is not None and np.dtype(self.fitted.dtype).kind in "iu"
        beyond = [x for x in ends if abs(x) > most]
        if not is_whole or not beyond:
            return ""
        return f"{beyond[-1]:.0f} is rounded to {self.dtype}: say Keep() to have it whole"

    @property
    def takes_missing(self) -> bool:
        """Whether records may lack the field."""
        return self.fitted is None or self.fitted.can_lack or self.fitted.is_sequence

    def is_measured(self, field: Field) -> bool:
        """Whether fitting to such a field asks for its statistics."""
        can_lack = field.optional and field.default is None and self.missing == "error"
        return can_lack or _is_predicted(field)

    def outputs(self, name: str) -> tuple[Output, ...]:
        """Return what `apply` will give."""
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
            return {name: cut_lists(lists, None, from_end=False)}
        values = Dense.of(column).values
        if column.present is not None and self.fitted is not None and self.fitted.can_lack:
            values = self._fill(name, values, column.present)
        if self.dtype is not None and values.dtype != self.dtype:
            return {name: cast(name, values, self.dtype)}
        return {name: align(values)}

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
                advice="Give the field a default, or set what it gets: Keep(missing=0). Records without a "
                f"target are left out by train; with a loader: filter='`{name}` is not None'.",
            )
        filled = values.copy()
        filled[~present] = self.missing
        return filled


def _is_predicted(field: Field) -> bool:
    return field.role == "target" and isinstance(field, Number | Tensor)


def _find_spread(name: str, field: Field, source: FitSource) -> tuple[float, float, float, float] | None:
    values = source.statistics(name).values if _is_predicted(field) else None
    if values is None or values.min is None or values.max is None:
        return None
    return values.min, values.max, values.mean or 0.0, values.deviation or 0.0


def _advise(field: Field) -> str:
    if isinstance(field, Image | BytesField):
        return "Image() decodes images; other bytes go through Pipeline.map, or give None for them."
    return "A model takes no strings: say Tokenize() or Encode()."
