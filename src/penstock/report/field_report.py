"""The fields of a data set: distribution, missing values and drift of each, by split.

In: samples of all splits. Out: one dict per field, JSON-able: `parts` have the bins or the most frequent
values that charts are drawn from, with the counts of each split. Drift is a distance from 0 (the same) to 1
(nothing in common), with a bound that random splits of the same data exceed about once in a thousand times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.decode.sample import round_measure, show_number
from penstock.report.split_sample import SplitSample
from penstock.schema.date import DAY
from penstock.schema.field import Field
from penstock.score.evaluation import format_date
from penstock.score.mistakes import plain_label
from penstock.score.scores import to_number
from penstock.statistics.frequency import choose_edges, count_values
from penstock.statistics.quantiles import QUANTILES
from penstock.statistics.summary import Distribution, FieldStatistics, Frequencies

_MOST_VALUES: Final = 12  # of a chart; the others are counted together
_PARTS: Final = ("frequencies", "values", "lengths", "characters", "widths", "heights", "formats", "bytes")
_MOST_CHARS: Final = 80  # of a value that is listed
# A data set has dozens of fields, so that one in a hundred would be a false alarm in most reports.
_KOLMOGOROV: Final = 1.95  # quantile of 99.9 % of the distribution of the scaled statistic
_NORMAL: Final = 3.3  # 99.9 % quantile of a normal distribution, both sides
_SMALLEST_DRIFT: Final = 0.1
"""Distances below are not worth a warning, even where there are enough records to be sure of them."""


def describe_field(
    name: str,
    field: Field,
    samples: Sequence[SplitSample],
    reference: SplitSample | None,
    form: str = "value",
    known: FieldStatistics | None = None,
) -> dict[str, Any]:
    """Return all figures of one field.

    `reference`: sample of the split that others are compared with, usually the train split. `form`: type of
    the values in the raw data: "date" and "time" are stored as numbers. `known`: statistics of all records of
    the reference split, which the manifest has.
    """
    found = {each.name: each.fields[name] for each in samples}
    if known is not None and reference is not None and not reference.is_whole:
        found[reference.name] = known
    parts = {}
    for part in _PARTS:
        if part == "bytes" and field.type_name == "text":
            continue  # its number of characters says the same
        described = {split: getattr(each, part) for split, each in found.items()}
        described = {split: each for split, each in described.items() if each is not None}
        if not described:
            continue
        is_counted = isinstance(next(iter(described.values())), Frequencies)
        parts[part] = (
            _describe_values(described) if is_counted else _describe_numbers(name, part, described, samples)
        )
    for part in ("values", "lengths"):
        if part in parts and form in ("date", "time"):
            _add_dates(parts[part], form)
    return {
        "name": name,
        "type": field.type_name,
        "role": field.role,
        "description": field.describe(),
        "form": form,
        "splits": {split: _describe_presence(each) for split, each in found.items()},
        "parts": parts,
        "drift": {
            each.name: [drift.to_json() for drift in _find_drifts(name, reference, each)]
            for each in samples
            if reference is not None and each is not reference
        },
    }


def _describe_presence(found: FieldStatistics) -> dict[str, Any]:
    total = found.count + found.missing
    return {
        "count": found.count,
        "missing": found.missing,
        "missing_share": found.missing / total if total else None,
    }


def _describe_numbers(
    name: str, part: str, described: Mapping[str, Distribution], samples: Sequence[SplitSample]
) -> dict[str, Any]:
    values = {each.name: each.values.get(name, {}).get(part, np.zeros(0)) for each in samples}
    edges = choose_edges(np.concatenate(list(values.values())))
    return {
        "kind": "numbers",
        "edges": [to_number(float(edge)) for edge in edges],
        "counts": {split: count_values(each, edges).tolist() for split, each in values.items()},
        "summary": {split: _summarize(each) for split, each in described.items()},
    }


def _summarize(found: Distribution) -> dict[str, Any]:
    levels = map(str, QUANTILES)
    quantiles = found.quantiles or ()
    return {
        **{key: value for key, value in vars(found).items() if key.startswith("num_")},
        **{
            key: None if value is None else to_number(float(value))
            for key, value in vars(found).items()
            if key in ("min", "max", "mean", "deviation")
        },
        "quantiles": dict(zip(levels, map(to_number, quantiles), strict=False)),
    }


def _describe_values(described: Mapping[str, Frequencies]) -> dict[str, Any]:
    """Return the counts of the values that have the largest share in any split."""
    shares: dict[Any, float] = {}
    for each in described.values():
        total = sum(each.counts)
        for value, number in zip(each.values, each.counts, strict=True):
            shares[value] = max(shares.get(value, 0.0), number / total)
    ordered = sorted(shares, key=lambda value: -shares[value])[:_MOST_VALUES]
    kept = sorted(ordered) if all(isinstance(value, int) for value in ordered) else ordered
    counts = {split: dict(zip(each.values, each.counts, strict=True)) for split, each in described.items()}
    return {
        "kind": "values",
        "values": [_shorten(plain_label(value)) for value in kept],
        "counts": {split: [each.get(value, 0) for value in kept] for split, each in counts.items()},
        "others": {
            split: sum(each.values()) - sum(each.get(value, 0) for value in kept)
            for split, each in counts.items()
        },
        "num_distinct": {split: each.num_distinct for split, each in described.items()},
        "is_complete": all(each.is_complete for each in described.values()),
    }


def _shorten(value: str | int) -> str | int:
    is_long = isinstance(value, str) and len(value) > _MOST_CHARS
    return f"{str(value)[:_MOST_CHARS]}…" if is_long else value


def _add_dates(part: dict[str, Any], form: str) -> None:
    """Add minimum, maximum, mean, quantiles and deviation as text to the summaries of dates and times."""
    for summary in part["summary"].values():
        summary["first"], summary["last"] = (
            format_date(summary[key], form) if summary[key] is not None else None for key in ("min", "max")
        )
        found = {"mean": summary["mean"], **summary["quantiles"]}
        texts = {key: format_date(each, form) for key, each in found.items()}
        summary["dates"] = {key: text.partition(".")[0] for key, text in texts.items() if text is not None}
        if summary["deviation"] is not None:
            days = summary["deviation"] / (DAY if form == "time" else 1)
            summary["dates"]["deviation"] = f"{show_number(round_measure(days))} days"


@dataclass(frozen=True)
class _Drift:
    """Distance between two splits in one part of a field.

    Attributes:
        part: Compared part: "missing", or a part of the statistics, such as "values" or "lengths".
        distance: Largest difference between the cumulative distributions of numbers (Kolmogorov–Smirnov);
            half the sum of the differences between the shares of values (total variation); or the difference
            between the shares of missing values.
        chance: Distance that random splits rarely exceed.
    """

    part: str
    distance: float
    chance: float

    @property
    def is_notable(self) -> bool:
        """Whether the distance is larger than chance explains, and large enough to matter."""
        return self.distance > max(self.chance, _SMALLEST_DRIFT)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**vars(self), "is_notable": self.is_notable}


def _find_drifts(name: str, first: SplitSample, second: SplitSample) -> list[_Drift]:
    """Return the distances of all parts of a field between two samples; none if one has no records."""
    if not first.num_read or not second.num_read:
        return []
    one, other = first.fields[name], second.fields[name]
    found = []
    if one.missing or other.missing:
        found.append(
            _compare_shares(one.missing, first.num_read, other.missing, second.num_read, part="missing")
        )
    if not one.count or not other.count:
        return found
    numbers, others = first.values[name], second.values[name]
    for part in numbers:
        if part in others and len(numbers[part]) and len(others[part]):
            distance = _compare_numbers(numbers[part], others[part])
            found.append(_Drift(part, distance, _KOLMOGOROV * sqrt(1 / one.count + 1 / other.count)))
    for part in ("frequencies", "formats"):
        counts, more = getattr(one, part), getattr(other, part)
        if counts is not None and more is not None and counts.counts and more.counts:
            found.append(_compare_values(counts, more, one.count, other.count, part))
    return found


def _compare_numbers(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the Kolmogorov–Smirnov distance of two sorted samples, each of at least one number.

    Example:
        >>> _compare_numbers(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
        0.5
    """
    points = np.concatenate([first, second])
    shares = [np.searchsorted(each, points, side="right") / len(each) for each in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def _compare_values(
    first: Frequencies, second: Frequencies, num_first: int, num_second: int, part: str = "frequencies"
) -> _Drift:
    """Return the total variation distance of counted values.

    `num_second`: number of records that the second counts come from.
    """
    totals = sum(first.counts), sum(second.counts)
    shares = dict(zip(first.values, (count / totals[0] for count in first.counts), strict=True))
    others = dict(zip(second.values, (count / totals[1] for count in second.counts), strict=True))
    pairs = np.array([(shares.get(each, 0.0), others.get(each, 0.0)) for each in {**shares, **others}])
    noise = 1 / num_first + 1 / num_second
    pooled = pairs.mean(axis=1)
    # The mean distance of two random samples, and its spread, which is at most half of sqrt(noise).
    usual = float(np.sqrt(pooled * (1 - pooled) * noise * 2 / pi).sum()) / 2
    distance = float(np.abs(pairs[:, 0] - pairs[:, 1]).sum()) / 2
    return _Drift(part, min(1.0, distance), usual + _NORMAL / 2 * sqrt(noise))


def _compare_shares(first: int, num_first: int, second: int, num_second: int, part: str) -> _Drift:
    """Return the difference between two shares of records."""
    pooled = (first + second) / (num_first + num_second)
    spread = sqrt(pooled * (1 - pooled) * (1 / num_first + 1 / num_second))
    return _Drift(part, abs(first / num_first - second / num_second), _NORMAL * spread)
