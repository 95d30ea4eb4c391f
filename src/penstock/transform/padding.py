"""Lists of varying length as arrays, truncated and padded, with a mask; or ragged. `Pad` does it for numbers.

In: `Ragged` columns of numbers or codes. Out: arrays (rows, length, …). `Pad`, `Scale`, `Encode` and
`Tokenize` inherit the options of `Padded`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import CodedColumn, Ragged
from penstock.foundation.json_form import JsonValue, Load, choice_of, list_of, optional
from penstock.foundation.option_checks import check_choice, check_count, check_flag, check_real, refuse_option
from penstock.foundation.wording import show
from penstock.schema.array import Sequence
from penstock.schema.field import Field
from penstock.statistics.summary import FieldStatistics
from penstock.transform.base import (
    Arrays,
    FitSource,
    Fitted,
    MeasureLengths,
    Transform,
    check_dtype_name,
    misfit,
    need_fitted,
)
from penstock.transform.draws import Draws
from penstock.transform.output import Output, align, can_cast, cast

Kept: TypeAlias = Literal["head", "tail"]


@dataclass(frozen=True, repr=False, kw_only=True)
class Padded(Transform):
    """Base class of the transforms that pad sequences.

    Attributes:
        length: Length of all rows. Longer rows are truncated, shorter rows are padded at the end. By default
            each batch is as long as its longest row, and at least 1.
        multiple: Round the length of a batch up to a multiple of this number. With `length`, which is then
            the maximum, rows are padded to the longest row of the batch.
        keep: Part of a row to keep when it is truncated: its "head" or its "tail".
        mask: Whether to add an output `<name>_mask`, which is True for items and False for padding.
        ragged: Whether to return a `Ragged` without padding. Rows longer than `length` are still truncated.
        step_length: Like `length`, for the steps of a sequence whose steps vary in length.
    """

    length: int | None = None
    multiple: int | None = None
    keep: Kept = "head"
    mask: bool = False
    ragged: bool = False
    step_length: int | None = None

    def measure(self) -> MeasureLengths | None:
        """Return a function that gives the length of each row after truncation and padding."""
        if self.length is None and self.multiple is None:
            return None
        return lambda column: self._widen(np.diff(Ragged.of(column).offsets))

    def _widen(self, lengths: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return, for each length, the width of a batch whose longest row has that length."""
        cut = lengths if self.length is None else np.minimum(lengths, self.length)
        if self.ragged or (self.length is None and self.multiple is None):
            return cut
        if self.multiple is None:
            return np.full_like(cut, self.length)
        wide = (
            -(-np.maximum(cut, 1) // self.multiple) * self.multiple
        )  # a batch of empty rows also has one column
        return wide if self.length is None else np.minimum(wide, self.length)

    def _check_padding(self) -> None:
        owner = type(self).__name__
        for option in ("length", "multiple", "step_length"):
            value = getattr(self, option)
            if value is not None:
                self._keep(**{option: check_count(owner, option, value)})
        check_choice(owner, "keep", self.keep, get_args(Kept))
        check_flag(owner, "mask", self.mask)
        check_flag(owner, "ragged", self.ragged)
        for option in ("multiple", "mask", "step_length"):
            if self.ragged and getattr(self, option):
                advice = "Ragged outputs are not padded: leave one of the two options out."
                raise refuse_option(owner, option, "not with ragged=True", str(getattr(self, option)), advice)

    def _refuse_padding(self, name: str, field: Field) -> None:
        """Refuse the options of sequences for a field that is not a sequence."""
        for option in ("length", "multiple", "mask", "ragged", "step_length"):
            if getattr(self, option):
                got = f"{getattr(self, option)} for the {field.type_name} field {name!r}"
                raise refuse_option(type(self).__name__, option, "a sequence field", got)

    def _refuse_steps(self, name: str, field: Sequence) -> None:
        if self.step_length and count_levels(field) < 2:
            got = f"{field.describe()} in field {name!r}"
            raise refuse_option(type(self).__name__, "step_length", "steps of varying length", got)

    def _list_outputs(self, name: str, dtype: str, step: tuple[int | None, ...]) -> tuple[Output, ...]:
        """Return the outputs for lists of items of the shape `step`."""
        if self.ragged:
            return (Output(name, dtype, (None, *step), is_ragged=True),)
        length = self.length if self.multiple is None else None
        inner = tuple(self.step_length if dim is None else dim for dim in step)
        output = Output(name, dtype, (length, *inner))
        return (output, Output(f"{name}_mask", "bool", (length,))) if self.mask else (output,)

    def _list_step(self, output: Output, value: float) -> dict[str, Any]:
        """Return the options of a program's step that make lists of the core into an output."""
        form = "ragged" if output.is_ragged else "padded" if output.is_fixed else "longest"
        with np.errstate(over="ignore"):  # as for the core: too large a number is infinite
            padding = np.array(value).astype(output.dtype).tobytes()
        return {
            "form": form,
            "out": output.dtype,
            "length": output.shape[0] if form == "padded" else self.length,
            "multiple": self.multiple,
            "from_end": self.keep == "tail",
            "has_extra": self.mask,
            "padding": None if self.ragged else padding,
            "item_shape": list(output.shape[1:]),
        }

    def _pad_lists(self, name: str, lists: Ragged, value: float) -> Arrays:
        """Pad lists of numbers, or lists of lists of numbers, to arrays."""
        if self.ragged:
            return {name: truncate_lists(lists, self.length, from_end=self.keep == "tail")}
        values: Any = lists.values
        offsets, from_end = lists.offsets, self.keep == "tail"
        if isinstance(values, Ragged):
            inner: Any = values.values
            steps = self.step_length or _find_longest(values.offsets)
            values = _native.pad(inner, values.offsets, steps, value, from_end)
        length = self._find_length(offsets)
        arrays: Arrays = {name: _native.pad(values, offsets, length, value, from_end)}
        if self.mask:
            arrays[f"{name}_mask"] = _native.pad_mask(offsets, length)
        return arrays

    def _find_length(self, offsets: NDArray[np.int64]) -> int:
        if self.length is not None and self.multiple is None:
            return self.length
        longest, multiple = _find_longest(offsets), self.multiple or 1
        length = -(-longest // multiple) * multiple
        return length if self.length is None else min(length, self.length)


def count_levels(field: Sequence) -> int:
    """Return the number of nested levels of a sequence: 2 if its steps vary in length, else 1."""
    is_flat = field.shape == () or (field.shape is not None and field.kind != "bytes")
    return 1 if is_flat else 2


def step_shape(field: Sequence) -> tuple[int | None, ...]:
    """Return the shape of an item of a sequence; None in it is a varying length."""
    return (None,) if count_levels(field) == 2 else field.shape or ()


def _find_longest(offsets: NDArray[np.int64]) -> int:
    # A batch of empty rows gets one column of padding: most layers do not accept zero columns.
    return max(1, int(np.subtract(offsets[1:], offsets[:-1]).max(initial=1)))


def truncate_lists(lists: Ragged, length: int | None, *, from_end: bool) -> Ragged:
    """Truncate lists to `length`, with offsets that start at 0, in aligned memory."""
    values: Any = lists.values
    offsets = lists.offsets
    lengths = np.diff(offsets)
    if offsets[0] or (length is not None and lengths.max(initial=0) > length):
        kept = lengths if length is None else np.minimum(lengths, length)
        starts = offsets[1:] - kept if from_end else offsets[:-1]
        offsets = np.zeros(len(kept) + 1, np.int64)
        np.cumsum(kept, out=offsets[1:])
        wanted = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], kept)
        if isinstance(values, Ragged):
            inner: Any = values.values
            values = Ragged(*_native.take_lists(inner, values.offsets, wanted))
        else:
            values = values[wanted]
    if isinstance(values, Ragged):
        return Ragged(truncate_lists(values, None, from_end=False), align(offsets))
    return Ragged(align(values[: offsets[-1]]), align(offsets))


_DTYPES: Final = ("float32", "float64", "int32", "int64")  # supported by the core
_RANGES: Final = {"int32": 2**31, "int64": 2**63}


@dataclass(frozen=True)
class _PadFit(Fitted):
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
    fitted: _PadFit | None = None

    kind: ClassVar[str] = "pad"
    fitted_type: ClassVar[type[Fitted]] = _PadFit

    def __post_init__(self) -> None:
        self._keep(value=check_real("Pad", "value", self.value))
        if self.dtype is not None:
            self._keep(dtype=check_dtype_name("Pad", self.dtype, _DTYPES))
        self._check_padding()
        if self.fitted is not None:
            dtype = self.dtype or self.fitted.dtype
            limit = _RANGES.get(dtype)
            if limit is not None and (self.value != int(self.value) or not -limit <= self.value < limit):
                expected = f"a whole number in the range of {dtype}"
                raise refuse_option("Pad", "value", expected, show(self.value))

    def fit(self, name: str, field: Field, source: FitSource) -> Pad:  # noqa: ARG002 - nothing is learned
        """Return the transform fitted to a field."""
        return replace(self, fitted=_PadFit(**self.derive(name, field)))

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
