"""Records that lack a field, counted with the default that they get.

In: what is told of the records that have the field. Out: what is told of all, as a model sees them.
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
from penstock.transform.measuring import measure_columns


class FilledSource:
    """A source whose records have the default of a field where they lack it.

    Args:
        source: The records as they are.
        field: The field, which has a default.
        needs_quantiles: Whether those are asked for: they take a pass, as no other number tells them.
    """

    def __init__(self, source: FitSource, field: Field, *, needs_quantiles: bool) -> None:
        self._source = source
        self._field = field
        self._needs_quantiles = needs_quantiles

    @property
    def num_rows(self) -> int:
        """How many records there are."""
        return self._source.num_rows

    def knows(self, name: str) -> bool:
        """Whether what is told of a field is at hand, without a pass."""
        return self._source.knows(name)

    def statistics(self, name: str) -> FieldStatistics:
        """Return what is told of a field, defaults included."""
        found = self._source.statistics(name)
        if not found.missing:
            return found
        if isinstance(self._field, Number) and found.values is not None and not self._needs_quantiles:
            values = _add_equal(found.values, float(self._field.default), found.missing)
            return replace(found, values=values)
        blocks = ({name: column} for column in self.columns(name))
        return measure_columns(Schema({name: self._field}), blocks)[name]

    def columns(self, name: str) -> Iterator[Column]:
        """Yield a field's values block by block, all of them present: decoding has put the default in."""
        return (column.without_mask() for column in self._source.columns(name))


def _add_equal(known: Distribution, number: float, count: int) -> Distribution:
    """Return what is told of numbers and of `count` equal ones more; without the quantiles."""
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
    # The variance of two parts: that within the first, the second having none, and that between their means.
    variance = deviation * deviation * (1 - share) + gap * gap * share * (1 - share)
    return replace(
        total,
        num_zero=known.num_zero + count * (number == 0),
        min=min(low, number),
        max=max(high, number),
        mean=mean + gap * share,
        deviation=math.sqrt(variance),
    )
