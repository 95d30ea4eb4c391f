"""Statistics and counts from a pass over the columns, where the manifest does not have them.

In: blocks of columns. Out: `FieldStatistics`, distributions of elements, counts of values; and statistics of
a field with a default, in which records without a value count with the default.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Column, Dense
from penstock.schema.field import Field
from penstock.schema.scalar import Number
from penstock.schema.schema import Schema
from penstock.statistics.statistics import Statistics, measure_block
from penstock.statistics.summary import Distribution, FieldStatistics
from penstock.transform.base import FitSource

MAX_MEASURED: Final = 1024
"""Maximum number of elements that are measured separately; their samples take 80 MB."""

MAX_COUNTED: Final = 1 << 22
"""Maximum number of distinct values of a vocabulary; more take gigabytes and are not categories."""

_SAMPLE_SEED: Final = 0  # selects the rows that quantiles are computed from


def measure_columns(schema: Schema, blocks: Iterable[Mapping[str, Column]]) -> dict[str, FieldStatistics]:
    """Return the statistics of fields from blocks of columns in order."""
    statistics, row = Statistics(schema), 0
    for columns in blocks:
        num_rows = len(next(iter(columns.values())))
        keys = _native.mix_rows(_SAMPLE_SEED, row, num_rows)
        statistics.merge(measure_block(schema, columns, None, keys))
        row += num_rows
    return statistics.fields()


def measure_elements(name: str, source: FitSource, size: int) -> list[Distribution | None]:
    """Return the distribution of each of the `size` elements of arrays or steps; None without values."""
    schema = Schema({str(i): Number("float64") for i in range(size)})

    def split(column: Column) -> dict[str, Column]:
        items = _present_items(column).reshape(-1, size)
        return {str(i): Dense(np.ascontiguousarray(items[:, i])) for i in range(size)}

    blocks = (split(column) for column in source.columns(name))
    measured = measure_columns(schema, blocks)
    return [measured[str(i)].values for i in range(size)]


class ValueCounts(NamedTuple):
    """Counts of the distinct values of a field, in the order of their first occurrence.

    They are complete for at most `MAX_COUNTED` distinct values. `num_missing` records have no value.
    """

    values: list[bytes] | list[int]
    counts: list[int]
    is_complete: bool
    num_missing: int


def count_values(name: str, source: FitSource) -> ValueCounts:
    """Count the distinct values of a field of strings or integers, or of lists of them."""
    counter = _native.ValueCounter(MAX_COUNTED)
    num_missing = 0
    for column in source.columns(name):
        if column.present is not None:
            num_missing += len(column) - int(np.count_nonzero(column.present))
        values, keep = column.items()
        if isinstance(values, np.ndarray):
            counter.add_ints(np.ascontiguousarray(values), keep)
        else:
            arena, starts, stops = values.spans()
            counter.add_strings(arena, starts, stops, keep)
    found, counts, num_overflowed = counter.take()
    known = found if isinstance(found, list) else found.tolist()
    return ValueCounts(known, counts.tolist(), not num_overflowed, num_missing)


def _present_items(column: Column) -> NDArray[Any]:
    values, keep = column.items()
    if not isinstance(values, np.ndarray):
        raise TypeError(f"expected a column of numbers, got {values!r}")
    return values if keep is None else values[keep]


class FilledSource:
    """Records to fit on, in which missing values of a field are replaced by its default.

    Quantiles, if they are needed, take a pass over the data.
    """

    def __init__(self, source: FitSource, field: Field, *, needs_quantiles: bool) -> None:
        self._source = source
        self._field = field
        self._needs_quantiles = needs_quantiles

    @property
    def num_rows(self) -> int:
        """Number of records."""
        return self._source.num_rows

    def knows(self, name: str) -> bool:
        """Whether the statistics of a field are available without a pass over the data."""
        return self._source.knows(name)

    def statistics(self, name: str) -> FieldStatistics:
        """Return the statistics of a field, including defaults."""
        found = self._source.statistics(name)
        if not found.missing:
            return found
        if isinstance(self._field, Number) and found.values is not None and not self._needs_quantiles:
            values = _add_equal(found.values, float(self._field.default), found.missing)
            return replace(found, values=values)
        blocks = ({name: column} for column in self.columns(name))
        return measure_columns(Schema({name: self._field}), blocks)[name]

    def columns(self, name: str, num_wanted: int | None = None) -> Iterator[Column]:
        """Yield the values of a field block by block; decoding has filled in the default."""
        return (column.without_mask() for column in self._source.columns(name, num_wanted))

    def sample(self, name: str) -> Column:
        """Return a sample of the values of a field; decoding has filled in the default."""
        return self._source.sample(name).without_mask()


def _add_equal(known: Distribution, number: float, count: int) -> Distribution:
    """Return the distribution with `count` further copies of a number; without quantiles."""
    total = replace(known, num_values=known.num_values + count, quantiles=None, num_sampled=0)
    if not math.isfinite(number):
        is_nan = math.isnan(number)
        return replace(
            total, num_nan=known.num_nan + count * is_nan, num_inf=known.num_inf + count * (not is_nan)
        )
    mean, low, high, deviation = known.mean, known.min, known.max, known.deviation
    if mean is None or low is None or high is None or deviation is None:
        return replace(total, min=number, max=number, mean=number, deviation=0.0)
    num_finite = known.num_values - known.num_nan - known.num_inf
    share = count / (num_finite + count)
    gap = number - mean
    # Variance of two groups: within the first (it is 0 within the second) plus between their means.
    variance = deviation * deviation * (1 - share) + gap * gap * share * (1 - share)
    return replace(
        total,
        num_zero=known.num_zero + count * (number == 0),
        min=min(low, number),
        max=max(high, number),
        mean=mean + gap * share,
        deviation=math.sqrt(variance),
    )
