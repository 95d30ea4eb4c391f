"""`Scale`: numbers as float32, scaled by the statistics of the train split, with missing values filled in.

In: numbers, dates, tensors, sequences of numbers. Out: float32 arrays of the same shapes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import CodedColumn, Dense, Mask, Ragged
from penstock.foundation.json_form import JsonValue, Load, choice_of, list_of, optional
from penstock.foundation.option_checks import (
    check_choice,
    check_count,
    check_flag,
    check_real,
    refuse_option,
)
from penstock.foundation.wording import declare, override, show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date
from penstock.schema.field import Field
from penstock.schema.scalar import Number
from penstock.statistics.quantiles import QUANTILES
from penstock.statistics.summary import FieldStatistics
from penstock.transform.base import Arrays, FitSource, Fitted, misfit, need_fitted
from penstock.transform.draws import Draws
from penstock.transform.measurement import FilledSource
from penstock.transform.output import DTYPES, Output
from penstock.transform.padding import Padded, step_shape
from penstock.transform.scale_range import MAX_BINS, Span, find_edges, find_span

# The core scales float32, float64, int64, int32 and uint8; other types are first cast to a wider one.
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
    """Fitted state of `Scale`.

    Attributes:
        dtype: Element type of the stored values.
        shape: Shape of a record, or of an item of a sequence.
        is_sequence: Whether records hold lists.
        has_default: Whether the field has a default, so that no record counts as missing.
        shift: Subtracted first; one number, or one per element.
        factor: Multiplied with the difference.
        fill: Scaled value that replaces missing values.
        low: Lower bound; smaller numbers are clipped to it.
        high: Upper bound; larger numbers are clipped to it.
        edges: Edges of the bins, ascending, in the units of the stored values; empty for none.
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
    edges: tuple[float, ...] = ()

    LOADERS: ClassVar[Mapping[str, Load]] = {
        "dtype": choice_of(*DTYPES),
        "shape": list_of(optional(JsonValue.count)),
        "is_sequence": JsonValue.flag,
        "has_default": JsonValue.flag,
        "shift": list_of(JsonValue.any_number),
        "factor": list_of(JsonValue.any_number),
        "fill": list_of(JsonValue.any_number),
        "low": JsonValue.any_number,
        "high": JsonValue.any_number,
        "edges": list_of(JsonValue.any_number),
    }

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form; without edges it equals the form of versions without bins."""
        form = super().to_json()
        return form if self.edges else {name: each for name, each in form.items() if name != "edges"}

    @classmethod
    def load(cls, value: JsonValue) -> Self:
        """Read the JSON form; edges may be absent."""
        given = value.object(*cls.LOADERS)
        names = [name for name in cls.LOADERS if name != "edges" or name in given]
        return cls(**{name: cls.LOADERS[name](value.child(name)) for name in names})

    def check(self) -> None:
        """Refuse inconsistent numbers, which only an edited JSON form can have.

        Raises OptionError: the numbers are inconsistent; `field` names the attribute.
        """
        size = 1 if None in self.shape else math.prod(filter(None, self.shape))
        for part in ("shift", "factor", "fill"):
            count = len(getattr(self, part))
            if count != 1 and (count != size or not count):
                expected = "one number" if size == 1 else f"one number, or {size}"
                raise refuse_option("Scale", f"fitted.{part}", expected, show(count))
        if len(self.shift) != len(self.factor):
            expected = f"{len(self.shift)} numbers, as many as shift has"
            raise refuse_option("Scale", "fitted.factor", expected, show(len(self.factor)))
        if not self.low <= self.high:
            raise refuse_option("Scale", "fitted.low", f"at most high, {self.high}", show(self.low))
        if not all(map(math.isfinite, self.edges)) or any(a >= b for a, b in pairwise(self.edges)):
            raise refuse_option(
                "Scale", "fitted.edges", "finite numbers in ascending order", show(self.edges)
            )


class Scaler:
    """Scales the numbers of one field."""

    __slots__ = ("_arguments", "_fill", "_nan_is_missing", "_via")

    def __init__(
        self, dtype: str, span: Span, fill: tuple[float, ...], *, is_log: bool, nan_is_missing: bool
    ) -> None:
        self._via = _VIA.get(dtype)
        self._nan_is_missing = nan_is_missing
        # The core fills with one number; a fill value per element is put in afterwards.
        self._fill = np.array(fill, np.float32) if len(fill) > 1 else None
        shift, factor = np.array(span.shift, np.float64), np.array(span.factor, np.float64)
        is_filled = nan_is_missing and self._fill is None
        self._arguments = (shift, factor, span.low, span.high, fill[0], is_log, is_filled)

    def scale(self, values: NDArray[Any], present: Mask | None) -> NDArray[np.float32]:
        """Scale numbers; rows that are not present get the fill value."""
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
        """Return 1 for each row that is missing or has a missing element, else 0."""
        indicator: NDArray[np.float32] = _native.empty((len(values),), "float32")
        if present is None:
            indicator[:] = 0.0
        else:
            np.logical_not(present, out=indicator)
        if self._nan_is_missing and values.dtype.kind == "f":
            np.maximum(indicator, np.isnan(values).any(axis=tuple(range(1, values.ndim))), out=indicator)
        return indicator


Method: TypeAlias = Literal["standard", "minmax", "log1p", "clip", "none"]
Per: TypeAlias = Literal["element", "whole"]
NanRule: TypeAlias = Literal["keep", "missing"]

_MAX_FLOAT32: Final = float(np.finfo(np.float32).max)


@dataclass(frozen=True, repr=False)
class Scale(Padded):
    """Scale numbers to a range that models learn well from, as float32.

    The transform is fitted to the statistics of the train split. It applies to numbers, tensors and sequences
    of numbers. A field that has the same value in all records of the train split becomes 0 there, except
    with the methods "log1p" and "none".

    For sequences, the options `length`, `multiple`, `keep`, `mask`, `ragged` and `step_length` of `Pad` set
    the length of the rows.

    Attributes:
        method: How to scale a number x.

            - "standard": (x - mean) / standard deviation.
            - "minmax": (x - min) / (max - min). Values are between 0 and 1 in the train split, and may be
              outside of that range in other splits.
            - "log1p": sign(x) · log(1 + `|x|`).
            - "clip": x is clipped to two quantiles, which are scaled to 0 and 1.
            - "none": x itself.
        missing: Number to use for a record without a value, before scaling: "mean" for the mean of the train
            split (0 if it has no values), or a number. A default of the field takes precedence.
        indicator: Whether to add an output `<name>_missing`, which is 1.0 for records without a value, else
            0.0. With `nan="missing"` it is also 1.0 for records with a NaN. Not for sequences.
        nan: Whether to "keep" NaN, or to treat it as a "missing" value.
        per: Whether each "element" of a tensor or step has its own scale, or the "whole" of it has one.
        quantiles: Lower and upper quantile for the method "clip".
        bins: Number of bins that built models divide the values of an input of single numbers into, to learn
            a piecewise linear function of it; a few more if some values are frequent. 0 for none. Bins do not
            change the outputs.
        fitted: Fitted state, or None. Set by `Pipeline.fit`.

    Example:
        >>> Scale("minmax", missing=0.0, indicator=True)
        Scale(method='minmax', missing=0.0, indicator=True)
    """

    method: Method = "standard"
    missing: float | Literal["mean"] = "mean"
    indicator: bool = False
    nan: NanRule = "keep"
    per: Per = "element"
    quantiles: tuple[float, float] = (0.01, 0.99)
    bins: int = 32
    fitted: ScaleFit | None = None
    _has_default: bool = dataclasses.field(init=False, compare=False, repr=False)
    _scaler: Scaler = dataclasses.field(init=False, compare=False, repr=False)

    kind: ClassVar[str] = "scale"
    fitted_type: ClassVar[type[Fitted]] = ScaleFit

    def __post_init__(self) -> None:
        check_choice("Scale", "method", self.method, get_args(Method))
        if self.missing != "mean":
            self._keep(missing=check_real("Scale", "missing", self.missing))
        check_flag("Scale", "indicator", self.indicator)
        check_choice("Scale", "nan", self.nan, get_args(NanRule))
        check_choice("Scale", "per", self.per, get_args(Per))
        levels = self.quantiles
        is_pair = isinstance(levels, list | tuple) and len(levels) == 2
        if not is_pair or not all(x in QUANTILES for x in levels) or not levels[0] < levels[1]:
            expected = f"two of {', '.join(map(str, QUANTILES))}, the lower one first"
            raise refuse_option("Scale", "quantiles", expected, show(levels))
        self._keep(quantiles=tuple(levels), bins=check_count("Scale", "bins", self.bins, 0, MAX_BINS))
        self._check_padding()
        if self.fitted is not None:
            self.fitted.check()
            self._keep(_scaler=self._make_scaler(self.fitted), _has_default=self.fitted.has_default)

    def is_measured(self, field: Field) -> bool:
        """Whether fitting to a field needs its statistics."""
        return self.method in ("standard", "minmax", "clip") or self._needs_mean(field)

    def is_sampled(self, field: Field) -> bool:
        """Whether fitting to a field needs a sample of its values: for the bins of a number as input."""
        return bool(self.bins) and isinstance(field, Number | Date) and field.role == "input"

    def fit(self, name: str, field: Field, source: FitSource) -> Scale:
        """Return the transform fitted to a field."""
        derived = self.derive(name, field)
        shape: tuple[int | None, ...] = derived["shape"]
        size = 0 if self.per == "whole" or None in shape or not shape else math.prod(filter(None, shape))
        found = Span()
        if self.is_measured(field):
            if field.default is not None:
                source = FilledSource(source, field, needs_quantiles=self.method == "clip")
            found = find_span(name, source, self.method, size, self.quantiles)
        fitted = ScaleFit(
            **derived,
            shift=found.shift,
            factor=found.factor,
            fill=self._find_fill(field, found),
            low=found.low,
            high=found.high,
            edges=self._find_edges(name, field, source, found) if self.is_sampled(field) else (),
        )
        return replace(self, fitted=fitted)

    def derive(self, name: str, field: Field) -> dict[str, Any]:
        """Return the part of the fitted state that depends only on the field."""
        if not isinstance(field, Number | Date | Tensor) and not (
            isinstance(field, Sequence) and field.dtype in ("int64", "float32")
        ):
            raise misfit(self, name, field, "numbers", _advise(name, field))
        shape: tuple[int | None, ...] = field.shape if isinstance(field, Tensor) else ()
        if isinstance(field, Sequence):
            shape = step_shape(field)
            self._refuse_steps(name, field)
            if self.indicator:
                raise refuse_option("Scale", "indicator", "False for a sequence", f"True for {name!r}")
        else:
            self._refuse_padding(name, field)
        return {
            "dtype": field.dtype,
            "shape": shape,
            "is_sequence": isinstance(field, Sequence),
            "has_default": field.default is not None,
        }

    @property
    def scaled_edges(self) -> NDArray[np.float32]:
        """Edges of the bins as `apply` scales them, ascending and distinct; empty for none."""
        if self.fitted is None or not self.fitted.edges:
            return np.empty(0, np.float32)
        # The same code as for the values, so that a value on an edge is exactly on it after scaling.
        scaled = self._scaler.scale(np.array(self.fitted.edges, np.float64), None)
        return np.unique(scaled[np.isfinite(scaled)])

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form; a fitted transform without bins has the form of versions without bins."""
        form = super().to_json()
        if self.fitted is not None and not self.bins:
            del form["bins"]
        return form

    @classmethod
    def load(cls, value: JsonValue) -> Self:
        """Read the JSON form; a fitted transform without an option `bins` has none."""
        loaded = super().load(value)
        return loaded if loaded.fitted is None or "bins" in value.value else replace(loaded, bins=0)

    def caution(self, field: Field, statistics: FieldStatistics) -> str:  # noqa: ARG002
        """Return a warning about NaN or infinite values, from which a model cannot learn."""
        values = statistics.values
        if values is None:
            return ""
        parts = []
        if values.num_nan and self.nan == "keep":
            parts.append(f"{values.num_nan} of {values.num_values} are NaN: use Scale(nan='missing')")
        if values.num_inf and self.method != "clip":
            parts.append(f"{values.num_inf} of {values.num_values} are infinite")
        return "; ".join(parts)

    def outputs(self, name: str) -> tuple[Output, ...]:
        """Return the outputs of `apply`."""
        fitted = need_fitted(self, name, self.fitted)
        if fitted.is_sequence:
            return self._list_outputs(name, "float32", fitted.shape)
        output = Output(name, "float32", fitted.shape)
        return (output, Output(f"{name}_missing", "float32")) if self.indicator else (output,)

    def apply(self, name: str, column: CodedColumn, draws: Draws | None) -> Arrays:  # noqa: ARG002
        """Return the scaled numbers of a batch."""
        scaler = self._scaler
        if need_fitted(self, name, self.fitted).is_sequence:
            lists = Ragged.of(column)
            numbers: Any = lists.flatten()[0]
            return self._pad_lists(name, lists.with_values(scaler.scale(numbers, None)), 0.0)
        values = Dense.of(column).values
        scaled = scaler.scale(values, None if self._has_default else column.present)
        if not self.indicator:
            return {name: scaled}
        return {name: scaled, f"{name}_missing": scaler.indicate(values, column.present)}

    def native_step(self, output: Output) -> dict[str, Any] | None:
        """Return the transform as a step of a program of the core; None for lists of lists, and float16."""
        fitted = self.fitted
        if fitted is None or None in fitted.shape or fitted.dtype == "float16":
            return None
        step = {
            "kind": "scale",
            "form": "rows",
            "out": "float32",
            "is_list": fitted.is_sequence,
            "stored": fitted.dtype,
            "width": math.prod(fitted.shape),  # type: ignore[arg-type]
            "shift": fitted.shift,
            "factor": fitted.factor,
            "fill": fitted.fill,
            "low": fitted.low,
            "high": fitted.high,
            "log": self.method == "log1p",
            "nan_is_missing": self.nan == "missing",
            "uses_mask": not fitted.has_default,
            "has_extra": self.indicator,
        }
        return {**step, **self._list_step(output, 0.0)} if fitted.is_sequence else step

    def _make_scaler(self, fitted: ScaleFit) -> Scaler:
        span = Span(fitted.shift, fitted.factor, fitted.low, fitted.high)
        is_log, nan_is_missing = self.method == "log1p", self.nan == "missing"
        return Scaler(fitted.dtype, span, fitted.fill, is_log=is_log, nan_is_missing=nan_is_missing)

    def _find_edges(self, name: str, field: Field, source: FitSource, span: Span) -> tuple[float, ...]:
        fill = span.mean[0] if self.missing == "mean" else self.missing
        can_lack = field.optional or self.nan == "missing"
        return find_edges(source.sample(name), self.bins, fill if can_lack else None)

    def _needs_mean(self, field: Field) -> bool:
        can_lack = field.optional and field.default is None and not isinstance(field, Sequence)
        return self.missing == "mean" and (can_lack or self.nan == "missing")

    def _find_fill(self, field: Field, span: Span) -> tuple[float, ...]:
        """Return the scaled fill value for missing numbers."""
        if self.missing == "mean" and not self._needs_mean(field):
            return (0.0,)
        numbers = span.mean if self.missing == "mean" else (self.missing,) * len(span.shift)
        kept = [min(max(float(x), span.low), span.high) for x in numbers]
        if self.method == "log1p":
            kept = [math.copysign(math.log1p(abs(x)), x) for x in kept]
        each = len(kept) // len(span.shift)  # one scale for all, or one per element
        shifts, factors = span.shift * each, span.factor * each
        fill = tuple((x - shift) * factor for x, shift, factor in zip(kept, shifts, factors, strict=True))
        if any(abs(x) > _MAX_FLOAT32 for x in fill):
            can_lack = self.nan == "missing" or (field.optional and field.default is None)
            if can_lack:
                expected = f"a number that is at most {_MAX_FLOAT32:.4g} after scaling"
                got = f"{show(self.missing)}, which becomes {max(fill, key=abs):.4g}"
                raise refuse_option("Scale", "missing", expected, got, "Use missing='mean'.")
            fill = (0.0,)  # never used
        return fill[:1] if len(set(fill)) == 1 else fill


def _advise(name: str, field: Field) -> str:
    if field.type_name in ("category", "text", "sequence"):
        return (
            f"Encode the values: {override(name, 'Encode()')}; or, if they are numbers: "
            f"{declare(name, 'Number()')}."
        )
    return f"Leave the field out: {override(name, 'None')}."
