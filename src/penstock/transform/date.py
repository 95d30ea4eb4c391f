"""`ExpandDate`: dates as numbers for models: scaled time; month, weekday and hour as points on a circle.

In: dates. Out: float32 arrays with one number per record. A circle has two: its sine and its cosine, so that
December is next to January, and Sunday next to Monday.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import CodedColumn, Dense
from penstock.foundation.json_form import INT64_MAX, JsonValue, Load, choice_of, dump_value, list_of, optional
from penstock.foundation.option_checks import check_count, check_flag, refuse_option
from penstock.foundation.wording import list_choices, override, show
from penstock.schema.date import DAY, EXAMPLES, Date, DateUnit, count_date
from penstock.schema.field import Field
from penstock.schema.scalar import Number
from penstock.transform.base import Arrays, FitSource, Fitted, NativeStep, Transform, misfit, need_fitted
from penstock.transform.draws import Draws
from penstock.transform.measurement import FilledSource
from penstock.transform.number import Scale, ScaleFit
from penstock.transform.output import Output
from penstock.transform.scale_range import MAX_BINS

DatePart: TypeAlias = Literal["time", "month", "weekday", "hour"]

SIZES: Final[Mapping[str, int]] = {"month": 12, "weekday": 7, "hour": 24}
"""Number of positions on the circle of each part."""

HOUR: Final = 3_600_000_000
"""Microseconds of an hour."""

CYCLE_DAYS: Final = 146_097
"""Days of a cycle of the calendar, 400 years from 1 March: a leap day is the last day of its year."""

FIRST_DAY: Final = 719_468 % CYCLE_DAYS
"""Day of the cycle of 1970-01-01, where the cycle begins on 1 March of the year 0."""

THURSDAY: Final = 3
"""Weekday of 1970-01-01, from Monday as 0."""


def find_positions(numbers: NDArray[np.int64], unit: DateUnit, part: str) -> NDArray[np.int64]:
    """Return where stored dates are on the circle of a part: January, Monday and midnight are 0.

    Example:
        >>> days = np.array([0, 19753])  # 1970-01-01, a Thursday, and 2024-01-31, a Wednesday
        >>> find_positions(days, "days", "month").tolist(), find_positions(days, "days", "weekday").tolist()
        ([0, 0], [3, 2])
    """
    if part == "hour":
        found: NDArray[np.int64] = numbers % DAY // HOUR
        return found
    days = numbers if unit == "days" else numbers // DAY
    if part == "weekday":
        return (days % SIZES[part] + THURSDAY) % SIZES[part]
    day = (days % CYCLE_DAYS + FIRST_DAY) % CYCLE_DAYS
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day_of_year = day - (year * 365 + year // 4 - year // 100)
    month: NDArray[np.int64] = ((day_of_year * 5 + 2) // 153 + 2) % SIZES[part]  # March is 2
    return month


def make_circle(size: int) -> NDArray[np.float32]:
    """Return sine and cosine of each position on a circle, (size, 2)."""
    angles = 2 * np.pi * np.arange(size) / size
    points = np.stack([np.sin(angles), np.cos(angles)], axis=1).round(7) + 0.0  # no -0.0
    return points.astype(np.float32)


_CIRCLES: Final = {part: make_circle(size) for part, size in SIZES.items()}


def name_circle(name: str, part: str) -> tuple[str, str]:
    """Return the names of the two outputs of a part."""
    return f"{name}_{part}_sin", f"{name}_{part}_cos"


@dataclass(frozen=True)
class ExpandDateFit(Fitted):
    """Fitted state of `ExpandDate`.

    Attributes:
        unit: Unit of the stored dates.
        has_default: Whether the field has a default, so that no record counts as missing.
        parts: Parts that vary in the train split.
        fill: Date that replaces missing ones, as the stored number; None for the center of each circle.
        time: Scale of the stored numbers.
    """

    unit: DateUnit
    has_default: bool
    parts: tuple[str, ...]
    fill: int | None
    time: ScaleFit

    LOADERS: ClassVar[Mapping[str, Load]] = {
        "unit": choice_of(*get_args(DateUnit)),
        "has_default": JsonValue.flag,
        "parts": list_of(choice_of(*get_args(DatePart))),
        "fill": optional(lambda value: value.integer(-INT64_MAX, INT64_MAX)),
        "time": ScaleFit.load,
    }

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        form = {name: dump_value(getattr(self, name)) for name in self.LOADERS if name != "time"}
        return {**form, "time": self.time.to_json()}

    def check(self) -> None:
        """Refuse an inconsistent state, which only an edited JSON form can have.

        Raises OptionError: the state is inconsistent; `field` names the attribute.
        """
        if self.time.dtype != "int64" or self.time.shape or self.time.is_sequence:
            got = f"{self.time.dtype} {self.time.shape}"
            raise refuse_option("ExpandDate", "fitted.time", "the scale of one int64 per record", got)
        if not self.parts or ("hour" in self.parts and self.unit == "days"):
            expected = f"parts of dates in {self.unit}"
            raise refuse_option("ExpandDate", "fitted.parts", expected, show(self.parts))

    @property
    def circles(self) -> tuple[str, ...]:
        """Parts that are points on a circle."""
        return tuple(part for part in self.parts if part in SIZES)


@dataclass(frozen=True, repr=False)
class ExpandDate(Transform):
    """Turn dates into numbers that models learn well from: scaled time and calendar parts.

    The outputs are one number per record each: `<name>`, the time scaled to mean 0 and standard deviation 1
    in the train split, and two for each calendar part, such as `<name>_month_sin` and `<name>_month_cos`,
    sine and cosine of the part on a circle. Parts that have one value in all records of the train split are
    left out; the time stays if there is no other part. Parts are those of UTC.

    Attributes:
        parts: Parts to make, if they vary: "time", "month", "weekday", and "hour" of points in time.
        missing: What to use for a record without a value: "mean", which is the mean of the time, and the
            center of each circle; or a date such as "2024-01-31". A default of the field takes precedence.
        indicator: Whether to add an output `<name>_missing`, which is 1.0 for records without a value, else
            0.0.
        bins: Number of bins that built models divide the time into, as for `Scale`; 0 for none.
        fitted: Fitted state, or None. Set by `Pipeline.fit`.

    Example:
        >>> ExpandDate(parts=("time", "weekday"), indicator=True)
        ExpandDate(parts=('time', 'weekday'), indicator=True)
    """

    parts: tuple[DatePart, ...] = ("time", "month", "weekday", "hour")
    missing: str = "mean"
    indicator: bool = False
    bins: int = 32
    fitted: ExpandDateFit | None = None
    _time: Scale | None = dataclasses.field(init=False, default=None, compare=False, repr=False)

    kind: ClassVar[str] = "expand_date"
    fitted_type: ClassVar[type[Fitted]] = ExpandDateFit

    def __post_init__(self) -> None:
        known, given = get_args(DatePart), self.parts
        is_list = isinstance(given, list | tuple) and bool(given)
        if not is_list or not set(given) <= set(known) or len(set(given)) < len(given):
            expected = f"some of {list_choices(known)}"
            raise refuse_option("ExpandDate", "parts", expected, show(given))
        self._keep(parts=tuple(part for part in known if part in given))
        if not isinstance(self.missing, str):
            raise refuse_option("ExpandDate", "missing", "'mean' or a date as text", show(self.missing))
        check_flag("ExpandDate", "indicator", self.indicator)
        self._keep(bins=check_count("ExpandDate", "bins", self.bins, 0, MAX_BINS))
        if self.fitted is not None:
            self.fitted.check()
            fill: Any = "mean" if self.fitted.fill is None else self.fitted.fill
            options = {"missing": fill, "indicator": self.indicator, "bins": self.bins}
            self._keep(_time=Scale(**options, fitted=self.fitted.time))

    def is_measured(self, field: Field) -> bool:  # noqa: ARG002
        """Whether fitting to a field needs its statistics."""
        return True

    def is_sampled(self, field: Field) -> bool:
        """Whether fitting to a field needs a sample of its values: for the bins of an input."""
        return bool(self.bins) and field.role == "input"

    def fit(self, name: str, field: Field, source: FitSource) -> ExpandDate:
        """Return the transform fitted to a field."""
        derived = self.derive(name, field)
        unit: DateUnit = derived["unit"]
        fill = None if self.missing == "mean" else _read_fill(self.missing, unit)
        number = Number("int64", role=field.role, default=field.default, optional=field.optional)
        missing: Any = "mean" if fill is None else fill
        time = Scale(missing=missing, bins=self.bins).fit(name, number, source).fitted
        if time is None:
            raise TypeError("expected a fitted scale")
        if field.default is not None:
            source = FilledSource(source, number, needs_quantiles=False)
        circles = _find_varying((part for part in self.parts if part in SIZES), name, unit, source)
        values = source.statistics(name).values
        has_time = "time" in self.parts and (not circles or values is None or values.min != values.max)
        parts = (*(("time",) if has_time else ()), *circles)
        if not parts:
            advice = f"Leave the field out: {override(name, 'None')}."
            expected = "parts that vary in the train split"
            raise refuse_option("ExpandDate", "parts", expected, f"{show(self.parts)} of {name!r}", advice)
        return replace(self, fitted=ExpandDateFit(**derived, parts=parts, fill=fill, time=time))

    def derive(self, name: str, field: Field) -> dict[str, Any]:
        """Return the part of the fitted state that depends only on the field."""
        if not isinstance(field, Date):
            raise misfit(self, name, field, "dates", f"Leave the field out: {override(name, 'None')}.")
        return {"unit": field.unit, "has_default": field.default is not None}

    def outputs(self, name: str) -> tuple[Output, ...]:
        """Return the outputs of `apply`."""
        fitted = need_fitted(self, name, self.fitted)
        names = [name] if "time" in fitted.parts else []
        names += [each for part in fitted.circles for each in name_circle(name, part)]
        names += [f"{name}_missing"] if self.indicator else []
        return tuple(Output(each, "float32") for each in names)

    @property
    def scaled_edges(self) -> NDArray[np.float32]:
        """Edges of the bins of the time as `apply` scales them, ascending and distinct; empty for none."""
        return np.empty(0, np.float32) if self._time is None else self._time.scaled_edges

    @property
    def time(self) -> Scale:
        """The fitted transform of the time, which makes the outputs of `apply` without calendar parts."""
        if self._time is None:
            raise TypeError("the transform is not fitted")
        return self._time

    def apply(self, name: str, column: CodedColumn, draws: Draws | None) -> Arrays:
        """Return the numbers of a batch."""
        fitted = need_fitted(self, name, self.fitted)
        made: Arrays = self.time.apply(name, column, draws)
        if "time" not in fitted.parts:
            del made[name]
        dates = Dense.of(column)
        present = None if fitted.has_default else dates.present
        numbers: NDArray[Any] = dates.values
        if present is not None and fitted.fill is not None:
            numbers = np.where(present, numbers, fitted.fill)
        for part in fitted.circles:
            points: NDArray[np.float32] = _CIRCLES[part][find_positions(numbers, fitted.unit, part)]
            if present is not None and fitted.fill is None:
                points[~present] = 0.0
            for output, values in zip(name_circle(name, part), points.T, strict=True):
                array: NDArray[np.float32] = _native.empty((len(numbers),), "float32")
                array[:] = values
                made[output] = array
        return {output.name: made[output.name] for output in self.outputs(name)}

    def native_steps(self, outputs: tuple[Output, ...]) -> list[NativeStep] | None:
        """Return the transform as steps of a program of the core: the time, and one per output of circles."""
        fitted = self.fitted
        if fitted is None or (self.indicator and "time" not in fitted.parts):
            return None
        steps = []
        others = list(outputs)
        if "time" in fitted.parts:
            made = (others.pop(0), *((others.pop(),) if self.indicator else ()))
            step = self.time.native_step(made[0])
            if step is None:
                return None
            steps.append(NativeStep(step, made))
        for part in fitted.circles:
            for column in range(2):
                options = {
                    "kind": "circle",
                    "form": "rows",
                    "stored": "int64",
                    "out": "float32",
                    "part": part,
                    "unit": fitted.unit,
                    "points": _CIRCLES[part][:, column].tolist(),
                    "missing_date": fitted.fill,
                    "uses_mask": not fitted.has_default,
                }
                steps.append(NativeStep(options, (others.pop(0),)))
        return steps

    @classmethod
    def load_option(cls, name: str, value: JsonValue) -> Any:
        """Read one option from JSON or YAML."""
        given = super().load_option(name, value)
        return given if name != "missing" or isinstance(given, str) else str(given)  # a date of YAML


def _read_fill(text: str, unit: DateUnit) -> int:
    try:
        return count_date(text, unit)
    except ValueError:
        raise refuse_option("ExpandDate", "missing", f"'mean' or {EXAMPLES[unit]}", show(text)) from None


def _find_varying(parts: Iterable[str], name: str, unit: DateUnit, source: FitSource) -> tuple[str, ...]:
    """Return the parts that have several values; records are read until all parts have."""
    wanted = [part for part in parts if part != "hour" or unit == "microseconds"]
    seen: dict[str, int] = {}
    varying: set[str] = set()
    for column in source.columns(name):
        values: Any
        values, keep = column.items()
        numbers = values if keep is None else values[keep]
        for part in wanted:
            if part not in varying and len(numbers):
                positions = find_positions(numbers, unit, part)
                first = seen.setdefault(part, int(positions[0]))
                if bool((positions != first).any()):
                    varying.add(part)
        if len(varying) == len(wanted):
            break
    return tuple(part for part in wanted if part in varying)
