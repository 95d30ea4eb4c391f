"""Statistics of a field with a default: records without a value count with the default.

In: statistics of the records that have a value. Out: statistics of all records, as a model sees them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from penstock.columns import Column
from penstock.schema.field import Field
from penstock.schema.scalar import Number
from penstock.schema.schema import Schema
from penstock.statistics.summary import Distribution, FieldStatistics
from penstock.transform.base import FitSource
from penstock.transform.measurement import measure_columns


class FilledSource:
    """Records to fit on, in which missing values of a field are replaced by its default.

    Args:
        source: The records as stored.
        field: The field, which has a default.
        needs_quantiles: Whether quantiles are needed, which take a pass over the data.
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
