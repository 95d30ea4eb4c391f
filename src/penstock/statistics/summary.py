"""Statistics of the fields of a data set, as plain frozen objects, and their JSON form.

In: measured statistics, or their JSON form. Out: `FieldStatistics`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.foundation.json_form import Document, JsonValue, Load, dump_value, list_of, optional
from penstock.statistics.quantiles import QUANTILES


@dataclass(frozen=True)
class Distribution:
    """Distribution of numbers; except for the counts, of the finite numbers, and None if there are none.

    Attributes:
        num_values: Number of values, finite or not.
        num_nan: Number of values that are NaN.
        num_inf: Number of infinite values.
        num_zero: Number of values that are zero.
        min: Minimum.
        max: Maximum.
        mean: Mean.
        deviation: Population standard deviation.
        quantiles: Values at the `QUANTILES`, from a sample.
        num_sampled: Number of values in the sample; the quantiles are exact if it has all finite values.
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
    """Frequencies of values.

    Attributes:
        values: Strings (bytes if they are not UTF-8) or ints, most frequent first.
        counts: Number of occurrences of each value; lower bounds if `is_complete` is False.
        num_distinct: Number of distinct values; a lower bound if `is_complete` is False.
        is_complete: Whether `values` has all values.
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
    """Statistics of one field; parts that its type does not have are None.

    Attributes:
        count: Number of rows that have the field.
        missing: Number of rows that lack it.
        values: Distribution of its numbers, including all numbers in lists and arrays.
        elements: Statistics of each element of arrays, and of steps of one length.
        lengths: Distribution of the number of values, or steps, per list.
        bytes: Distribution of the sizes of its byte strings.
        characters: Distribution of the lengths of its texts in characters.
        widths: Distribution of the widths of its images in pixels.
        heights: Distribution of the heights of its images in pixels.
        frequencies: Frequencies of its values, including all values in lists.
        formats: Frequencies of the formats of its images.
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


_LEVELS = tuple(map(str, QUANTILES))
_NUMBERS = ("min", "max", "mean", "deviation")


def dump_statistics(num_rows: int, fields: Mapping[str, FieldStatistics]) -> dict[str, Any]:
    """Return the JSON form, in plain dicts and lists."""
    return {"num_rows": num_rows, "fields": {name: _dump_field(field) for name, field in fields.items()}}


def load_statistics(form: object, root: str = "$") -> dict[str, FieldStatistics]:
    """Return the statistics of each field; the `field` of an error is the path of the fault."""
    value = JsonValue(form, Document("statistics", root=root))
    value.object("num_rows", "fields")
    value.child("num_rows").count()
    return {name: _load_field(field) for name, field in value.child("fields").children().items()}


def _dump_field(field: FieldStatistics) -> dict[str, Any]:
    form: dict[str, Any] = {}
    for name, part in vars(field).items():
        if part is None:
            continue
        if isinstance(part, Distribution):
            form[name] = _dump_distribution(part)
        elif isinstance(part, Frequencies):
            form[name] = {
                "num_distinct": part.num_distinct,
                "is_complete": part.is_complete,
                "values": dump_value(part.values),
                "counts": list(part.counts),
            }
        elif isinstance(part, Elements):
            form[name] = {key: dump_value(array.tolist()) for key, array in vars(part).items()}
        else:
            form[name] = part
    return form


def _dump_distribution(part: Distribution) -> dict[str, Any]:
    form = dict(vars(part))
    for name in _NUMBERS:
        form[name] = dump_value(form[name])
    del form["quantiles"]
    if part.quantiles is not None:  # the last key
        form["quantiles"] = dict(zip(_LEVELS, dump_value(part.quantiles), strict=True))
    return form


def _load_field(value: JsonValue) -> FieldStatistics:
    given = value.children(*FieldStatistics.__dataclass_fields__)
    loaded: dict[str, Any] = {name: value.child(name).count() for name in _COUNTS}
    for name, part in given.items():
        if name not in _COUNTS:
            loaded[name] = _PARTS[name](part)
    return FieldStatistics(**loaded)


def _load_distribution(value: JsonValue) -> Distribution:
    value.object(*Distribution.__dataclass_fields__)
    loaded: dict[str, Any] = {}
    for name in ("num_values", "num_nan", "num_inf", "num_zero", "num_sampled"):
        loaded[name] = value.child(name).count()
    for name in _NUMBERS:
        loaded[name] = _load_optional_number(value.child(name))
    return Distribution(quantiles=_load_quantiles(value.child("quantiles")), **loaded)


def _load_quantiles(value: JsonValue) -> tuple[float, ...] | None:
    if value.value is None:
        return None
    value.object(*_LEVELS)
    return tuple(value.child(level).any_number() for level in _LEVELS)


def _load_elements(value: JsonValue) -> Elements:
    value.object("means", "deviations")
    means, deviations = (
        np.array(_load_numbers(value.child(name)), np.float64) for name in ("means", "deviations")
    )
    if len(means) != len(deviations):
        expected = f"{len(means)} numbers, as many as means"
        raise value.child("deviations").refuse(expected, len(deviations))
    return Elements(means, deviations)


def _load_frequencies(value: JsonValue) -> Frequencies:
    value.object("num_distinct", "is_complete", "values", "counts")
    is_complete = value.child("is_complete").flag()
    values = _load_entries(value.child("values"))
    counts = _load_counts(value.child("counts"))
    for entry, item in zip(values, value.child("values").elements(), strict=True):
        if isinstance(entry, int) != isinstance(values[0], int):
            raise item.refuse("strings or integers, not both")
    if len(values) != len(counts):
        raise value.child("counts").refuse(f"{len(values)} counts, one per value", len(counts))
    return Frequencies(values, counts, value.child("num_distinct").count(), is_complete)


_load_optional_number = optional(JsonValue.any_number)
_load_numbers = list_of(JsonValue.any_number)
_load_entries = list_of(JsonValue.entry)
_load_counts = list_of(JsonValue.count)

_COUNTS = ("count", "missing")
_PARTS: dict[str, Load] = {
    "elements": _load_elements,
    "frequencies": _load_frequencies,
    "formats": _load_frequencies,
    **dict.fromkeys(("values", "lengths", "bytes", "characters", "widths", "heights"), _load_distribution),
}
