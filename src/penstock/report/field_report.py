"""The fields of a data set: distribution, missing values and drift of each, by split.

In: samples of all splits. Out: one dict per field, JSON-able: `parts` have the bins or the most frequent
values that charts are drawn from, with the counts of each split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from penstock.decode.short_value import round_measure, show_number
from penstock.report.drift import find_drifts
from penstock.report.split_sample import SplitSample
from penstock.schema.date import DAY
from penstock.schema.field import Field
from penstock.score.evaluation import format_date
from penstock.score.mistakes import plain_label
from penstock.score.scores import to_number
from penstock.statistics.bins import choose_edges, count_values
from penstock.statistics.quantiles import QUANTILES
from penstock.statistics.summary import Distribution, FieldStatistics, Frequencies

MOST_VALUES: Final = 12
"""Maximum number of values of a chart; the others are counted together."""

_PARTS: Final = ("frequencies", "values", "lengths", "characters", "widths", "heights", "formats", "bytes")
_MOST_CHARS: Final = 80  # of a value that is listed


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
            each.name: [drift.to_json() for drift in find_drifts(name, reference, each)]
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
    ordered = sorted(shares, key=lambda value: -shares[value])[:MOST_VALUES]
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
