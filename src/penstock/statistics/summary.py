"""What is told of the fields of a data set: numbers in a few words.

In: statistics that were gathered, or loaded. Out: `FieldStatistics`, plain frozen objects.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from penstock.errors import SchemaError
from penstock.foundation.wording import is_finite, join_place, list_choices, show
from penstock.statistics.quantiles import QUANTILES


@dataclass(frozen=True)
class Distribution:
    """What is told of many numbers; all but the counts is of the finite ones, and None where there is none.

    Attributes:
        num_values: How many there are, finite or not.
        num_nan: How many are not a number.
        num_inf: How many are infinite.
        num_zero: How many are zero.
        min: The least.
        max: The greatest.
        mean: Their mean.
        deviation: Their standard deviation, as a whole.
        quantiles: At the `QUANTILES`, from a sample.
        num_sampled: How many numbers the sample holds; the quantiles are exact if these are all finite ones.
    """

    num_values: int
    num_nan: int
    num_inf: int
    num_zero: int
    min: float | None
    max: float | None
    mean: float | None
    deviation: float | None
    quantiles: tuple[float, ...] | None
    num_sampled: int


@dataclass(frozen=True)
class Frequencies:
    """How often values occur.

    Attributes:
        values: Strings (bytes where they are no UTF-8) or ints, frequent ones first.
        counts: How often each occurs; at least so often, where `is_complete` is False.
        num_distinct: How many values there are; at least so many, where `is_complete` is False.
        is_complete: Whether `values` are all there are.
    """

    values: tuple[str | bytes | int, ...]
    counts: tuple[int, ...]
    num_distinct: int
    is_complete: bool


@dataclass(frozen=True, eq=False)
class Elements:
    """Mean and deviation of each element of arrays of one shape, in C order."""

    means: NDArray[np.float64]
    deviations: NDArray[np.float64]


@dataclass(frozen=True)
class FieldStatistics:
    """What is told of one field; a part that its type does not have is None.

    Attributes:
        count: Rows that have the field.
        missing: Rows that lack it.
        values: Its numbers, those of lists and arrays all together.
        elements: Each element of arrays and of steps of one length.
        lengths: How many values its lists hold, or steps.
        bytes: The sizes of its byte strings.
        characters: The lengths of its texts in characters.
        widths: Of its images, in pixels.
        heights: Of its images, in pixels.
        frequencies: Its values, those of lists all together.
        formats: The formats of its images.
    """

    count: int
    missing: int
    values: Distribution | None = None
    elements: Elements | None = None
    lengths: Distribution | None = None
    bytes: Distribution | None = None
    characters: Distribution | None = None
    widths: Distribution | None = None
    heights: Distribution | None = None
    frequencies: Frequencies | None = None
    formats: Frequencies | None = None


_NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_LEVELS = tuple(map(str, QUANTILES))
_NUMBERS = ("min", "max", "mean", "deviation")


def dump_statistics(num_rows: int, fields: Mapping[str, FieldStatistics]) -> dict[str, Any]:
    """Return the JSON form, in plain dicts and lists."""
    return {"num_rows": num_rows, "fields": {name: _dump_field(field) for name, field in fields.items()}}


def load_statistics(form: object, place: str = "$") -> dict[str, FieldStatistics]:
    """Return what a form tells of each field; `place` is where the form itself was found.

    Raises:
        SchemaError: The form is not what `dump_statistics` makes; `field` and the message give the place.
    """
    root = _need_object(place, form, ("num_rows", "fields"))
    _load_count(f"{place}.num_rows", root.get("num_rows"))
    fields = _need_object(f"{place}.fields", root.get("fields"))
    return {name: _load_field(join_place(f"{place}.fields", name), item) for name, item in fields.items()}


def _dump_field(field: FieldStatistics) -> dict[str, Any]:
    form: dict[str, Any] = {}
    for name, part in vars(field).items():
        if part is None:
            continue
        if isinstance(part, Distribution):
            form[name] = _dump_distribution(part)
        elif isinstance(part, Frequencies):
            values = [_dump_value(value) for value in part.values]
            form[name] = {
                "num_distinct": part.num_distinct,
                "is_complete": part.is_complete,
                "values": values,
                "counts": list(part.counts),
            }
        elif isinstance(part, Elements):
            form[name] = {key: [_dump_number(x) for x in array.tolist()] for key, array in vars(part).items()}
        else:
            form[name] = part
    return form


def _dump_distribution(part: Distribution) -> dict[str, Any]:
    form = dict(vars(part))
    for name in _NUMBERS:
        form[name] = _dump_number(form[name])
    del form["quantiles"]
    if part.quantiles is not None:  # the last key
        are_finite = all(map(math.isfinite, part.quantiles))
        values = part.quantiles if are_finite else map(_dump_number, part.quantiles)
        form["quantiles"] = dict(zip(_LEVELS, values, strict=True))
    return form


def _dump_number(value: float | None) -> Any:
    # JSON has no such numbers, and parsers differ on `NaN`.
    return value if value is None or math.isfinite(value) else {"float": str(value)}


def _dump_value(value: str | bytes | int) -> Any:
    return {"base64": base64.b64encode(value).decode("ascii")} if isinstance(value, bytes) else value


def _load_field(place: str, form: object) -> FieldStatistics:
    given = _need_object(place, form, FieldStatistics.__dataclass_fields__)
    loaded: dict[str, Any] = {name: _load_count(f"{place}.{name}", given.get(name)) for name in _COUNTS}
    for name, part in given.items():
        if name not in _COUNTS:
            loaded[name] = _PARTS[name](f"{place}.{name}", part)
    return FieldStatistics(**loaded)


def _load_distribution(place: str, form: object) -> Distribution:
    given = _need_object(place, form, Distribution.__dataclass_fields__)
    loaded: dict[str, Any] = {}
    for name in ("num_values", "num_nan", "num_inf", "num_zero", "num_sampled"):
        loaded[name] = _load_count(f"{place}.{name}", given.get(name))
    for name in _NUMBERS:
        value = given.get(name)
        loaded[name] = None if value is None else _load_number(f"{place}.{name}", value)
    quantiles = given.get("quantiles")
    return Distribution(
        quantiles=None if quantiles is None else _load_quantiles(f"{place}.quantiles", quantiles), **loaded
    )


def _load_quantiles(place: str, form: object) -> tuple[float, ...]:
    given = _need_object(place, form, _LEVELS)
    return tuple(_load_number(join_place(place, level), given.get(level)) for level in _LEVELS)


def _load_elements(place: str, form: object) -> Elements:
    given = _need_object(place, form, ("means", "deviations"))
    means, deviations = (
        _load_numbers(f"{place}.{name}", given.get(name)) for name in ("means", "deviations")
    )
    if len(means) != len(deviations):
        _refuse(f"{place}.deviations", f"{len(means)} numbers, as of means", str(len(deviations)))
    return Elements(means, deviations)


def _load_frequencies(place: str, form: object) -> Frequencies:
    given = _need_object(place, form, ("num_distinct", "is_complete", "values", "counts"))
    is_complete = given.get("is_complete")
    if not isinstance(is_complete, bool):
        _refuse(f"{place}.is_complete", "true or false", _show(is_complete))
    values = _load_list(f"{place}.values", given.get("values"), _load_value)
    counts = _load_list(f"{place}.counts", given.get("counts"), _load_count)
    for i, value in enumerate(values):
        if isinstance(value, int) != isinstance(values[0], int):
            _refuse(f"{place}.values[{i}]", "texts or whole numbers, not both", _show(value))
    if len(values) != len(counts):
        _refuse(f"{place}.counts", f"{len(values)} counts, one per value", str(len(counts)))
    num_distinct = _load_count(f"{place}.num_distinct", given.get("num_distinct"))
    return Frequencies(tuple(values), tuple(counts), num_distinct, is_complete)


_COUNTS = ("count", "missing")
_PARTS: dict[str, Callable[[str, object], Any]] = {
    "elements": _load_elements,
    "frequencies": _load_frequencies,
    "formats": _load_frequencies,
    **dict.fromkeys(("values", "lengths", "bytes", "characters", "widths", "heights"), _load_distribution),
}


def _load_numbers(place: str, form: object) -> NDArray[np.float64]:
    return np.array(_load_list(place, form, _load_number), np.float64)


def _load_list(place: str, form: object, load: Callable[[str, object], Any]) -> list[Any]:
    if not isinstance(form, list):
        _refuse(place, "an array", _show(form))
    return [load(f"{place}[{i}]", item) for i, item in enumerate(form)]


def _load_count(place: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        _refuse(place, "a count", _show(value))
    return value


def _load_number(place: str, value: object) -> float:
    if isinstance(value, Mapping):
        name = _need_object(place, value, ("float",)).get("float")
        if not isinstance(name, str) or name not in _NON_FINITE:
            _refuse(f"{place}.float", list_choices(_NON_FINITE), _show(name))
        return _NON_FINITE[name]
    if not is_finite(value):
        _refuse(place, "a finite number", _show(value))
    return value


def _load_value(place: str, value: object) -> str | bytes | int:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        if not -(2**63) <= value < 2**63:
            _refuse(place, "a whole number of 64 bits", _show(value))
        return value
    text = _need_object(place, value, ("base64",)).get("base64")
    try:
        return base64.b64decode(text.encode("ascii") if isinstance(text, str) else b"?", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        _refuse(f"{place}.base64", "base64", _show(text))


def _need_object(place: str, value: object, allowed: Iterable[str] | None = None) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        _refuse(place, "an object", _show(value))
    for key in value:
        if not isinstance(key, str):
            _refuse(place, "keys that are strings", show(key))
        if allowed is not None and key not in allowed:
            _refuse(join_place(place, key), f"only {list_choices(allowed)}", "a key of another name")
    return value


def _show(value: object) -> str:
    return "nothing" if value is None else show(value)


def _refuse(place: str, expected: str, got: str) -> NoReturn:
    raise SchemaError(f"statistics at {place}", field=place, expected=expected, got=got)
