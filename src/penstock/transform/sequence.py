"""`Pad`: sequences of numbers as arrays, truncated and padded, with an optional mask; or ragged.

In: lists of integers or floats, or of steps of them. Out: arrays (rows, length, …) of the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from penstock.columns import CodedColumn, Ragged
from penstock.foundation.json_form import JsonValue, Load, choice_of, list_of, optional
from penstock.foundation.option_checks import check_real, refuse_option
from penstock.foundation.wording import show
from penstock.schema.array import Sequence
from penstock.schema.field import Field
from penstock.statistics.summary import FieldStatistics
from penstock.transform.base import Arrays, FitSource, Fitted, check_dtype_name, misfit, need_fitted
from penstock.transform.cast import can_cast, cast
from penstock.transform.draws import Draws
from penstock.transform.output import Output
from penstock.transform.padding import Padded, step_shape

_DTYPES: Final = ("float32", "float64", "int32", "int64")  # supported by the core
_RANGES: Final = {"int32": 2**31, "int64": 2**63}


@dataclass(frozen=True)
class PadFit(Fitted):
    """Fitted state of `Pad`: the stored element type and the shape of an item."""

    dtype: str
    shape: tuple[int | None, ...]

    LOADERS: ClassVar[Mapping[str, Load]] = {
        "dtype": choice_of("int64", "float32"),
        "shape": list_of(optional(JsonValue.count)),
    }


@dataclass(frozen=True, repr=False)
class Pad(Padded):
    """Pad sequences of numbers to arrays of one length.

    The output has the shape (rows, length, …). A record without a value counts as an empty sequence.

    Attributes:
        length: Length of all rows. Longer rows are truncated, shorter rows are padded at the end. By default
            each batch is as long as its longest row, and at least 1.
        multiple: Round the length of a batch up to a multiple of this number. With `length`, which is then
            the maximum, rows are padded to the longest row of the batch.
        value: Padding value.
        dtype: Element type of the output: "float32", "float64", "int32" or "int64". By default the stored
            type. An integer out of the range of the type is an error.
        keep: Part of a row to keep when it is truncated: its "head" or its "tail".
        mask: Whether to add an output `<name>_mask`, which is True for items and False for padding.
        ragged: Whether to return a `Ragged` without padding. Rows longer than `length` are still truncated.
        step_length: Like `length`, for the steps of a sequence whose steps vary in length.
        fitted: Fitted state, or None. Set by `Pipeline.fit`.

    Example:
        >>> Pad(length=64, keep="tail", mask=True)
        Pad(length=64, keep='tail', mask=True)
    """

    value: float = 0
    dtype: str | None = None
    fitted: PadFit | None = None

    kind: ClassVar[str] = "pad"
    fitted_type: ClassVar[type[Fitted]] = PadFit

    def __post_init__(self) -> None:
        self._keep(value=check_real("Pad", "value", self.value))
        if self.dtype is not None:
            self._keep(dtype=check_dtype_name("Pad", self.dtype, _DTYPES))
        self._check_padding()
        if self.fitted is not None:
            self._check_value(self.dtype or self.fitted.dtype)

    def fit(self, name: str, field: Field, source: FitSource) -> Pad:  # noqa: ARG002 - nothing is learned
        """Return the transform fitted to a field."""
        return replace(self, fitted=PadFit(**self.derive(name, field)))

    def derive(self, name: str, field: Field) -> dict[str, Any]:
        """Return the part of the fitted state that depends only on the field: all of it."""
        if not isinstance(field, Sequence) or field.dtype not in ("int64", "float32"):
            advice = "Use Encode(length=…) for strings." if isinstance(field, Sequence) else ""
            raise misfit(self, name, field, "a sequence of numbers", advice)
        self._refuse_steps(name, field)
        if self.dtype is not None and not can_cast(field.dtype, self.dtype):
            expected = f"'float32' or 'float64' for field {name!r}"
            raise refuse_option(
                "Pad", "dtype", expected, repr(self.dtype), "Floats are not converted to integers."
            )
        return {"dtype": field.dtype, "shape": step_shape(field)}

    def is_measured(self, field: Field) -> bool:
        """Whether fitting to a field needs its statistics: integers may equal the padding value."""
        return self._may_collide(field)

    def caution(self, field: Field, statistics: FieldStatistics) -> str:
        """Return a warning if values of the data equal the padding, without a mask to distinguish them."""
        values = statistics.values
        if values is None or not values.num_zero or not self._may_collide(field):
            return ""
        return (
            f"{values.num_zero} of {values.num_values} values are 0, the padding value: Pad(mask=True), in a "
            "config file {mask: true}, adds a mask that marks padding, which built models use; "
            "Pad(value=-1) pads with another number. Without either, zeros at the end of a sequence count as "
            "padding"
        )

    def _may_collide(self, field: Field) -> bool:
        is_whole = (
            isinstance(field, Sequence) and field.dtype == "int64" and self.dtype in (None, "int32", "int64")
        )
        return is_whole and field.role == "input" and self.value == 0 and not self.mask and not self.ragged

    def outputs(self, name: str) -> tuple[Output, ...]:
        """Return the outputs of `apply`."""
        fitted = need_fitted(self, name, self.fitted)
        return self._list_outputs(name, self.dtype or fitted.dtype, fitted.shape)

    @property
    def padding(self) -> float:
        """Padding value."""
        return self.value

    def apply(self, name: str, column: CodedColumn, draws: Draws | None) -> Arrays:  # noqa: ARG002
        """Return the sequences of a batch."""
        lists = Ragged.of(column)
        if self.dtype is not None:
            values: Any
            values, offsets = lists.flatten()
            lists = lists.with_values(cast(name, values, self.dtype, offsets))
        return self._pad_lists(name, lists, self.value)

    def native_step(self, output: Output) -> dict[str, Any] | None:
        """Return the transform as a step of a program of the core; None for lists of lists."""
        fitted = self.fitted
        if fitted is None or None in fitted.shape:
            return None
        stored = {"kind": "keep", "is_list": True, "stored": fitted.dtype, "width": math.prod(fitted.shape)}  # type: ignore[arg-type]
        return {**stored, **self._list_step(output, self.value)}

    def _check_value(self, dtype: str) -> None:
        limit = _RANGES.get(dtype)
        if limit is not None and (self.value != int(self.value) or not -limit <= self.value < limit):
            raise refuse_option("Pad", "value", f"a whole number in the range of {dtype}", show(self.value))
