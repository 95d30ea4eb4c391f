"""Statistics of the fields of a data set, measured block by block.

In: the columns of fixed blocks of rows. Out: `Statistics`, and its JSON form for the manifest. Any thread may
measure a block; blocks are merged in order, so the result does not depend on the number of workers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Column, Mask
from penstock.foundation.wording import decode_text
from penstock.schema.array import Sequence
from penstock.schema.field import Field
from penstock.schema.scalar import Category
from penstock.schema.schema import Schema
from penstock.statistics.frequency import Frequency
from penstock.statistics.measure import FieldMeasure, Spread, measure_field
from penstock.statistics.moments import ElementMoments
from penstock.statistics.quantiles import Selection
from penstock.statistics.summary import (
    Distribution,
    Elements,
    FieldStatistics,
    Frequencies,
    dump_statistics,
)
from penstock.storage.deferred import Deferred

MAX_VALUES = 1 << 16
"""Maximum number of distinct values that are counted per field: as many as a category may have."""

MAX_LISTED = 1000
"""Maximum number of values in lists that the result has: a vocabulary is fitted, not looked up."""

_MAX_ALL_VALUES = 1 << 20  # in all fields together: about 150 MB
_MIN_VALUES = 1 << 8


class BlockStatistics(NamedTuple):
    """Measured statistics of one block."""

    num_rows: int
    fields: dict[str, FieldMeasure]


def measure_block(
    schema: Schema,
    columns: Mapping[str, Column | Deferred],
    keep: Mask | None,
    keys: NDArray[np.uint64],
) -> BlockStatistics:
    """Measure the rows of a block; safe for any number of threads.

    `keep`: mask of the rows to measure; None for all rows. `keys`: one hash per row, which decides whether
    the row is in the sample for quantiles.
    """
    rows = Selection.of_block(keep, keys)
    max_values = _room_for_values(schema)
    with np.errstate(invalid="ignore"):  # signaling NaNs are values like others
        measures = {
            name: measure_field(field, columns[name], rows, max_values) for name, field in schema.items()
        }
    return BlockStatistics(rows.num_rows, measures)


class Statistics:
    """Statistics of the blocks that were merged so far.

    Quantiles come from a uniform sample of 10,000 rows that have the field, and are exact for fewer rows. The
    sample has at most 16 values per list or array.

    Example:
        >>> from penstock.schema.scalar import Number
        >>> from penstock.columns import Dense
        >>> schema = Schema({"age": Number("int64")})
        >>> ages = {"age": Dense(np.array([3, 4, 8]))}
        >>> statistics = Statistics(schema)
        >>> statistics.merge(measure_block(schema, ages, None, np.arange(3, dtype=np.uint64)))
        >>> statistics.fields()["age"].values.mean
        5.0
    """

    def __init__(self, schema: Schema) -> None:
        self.num_rows = 0
        self._names = tuple(schema)
        # The first block is not copied until a second one comes: wide tables rarely have two.
        self._first: Mapping[str, FieldMeasure] | None = None
        self._merged: dict[str, FieldMeasure] | None = None

    def merge(self, block: BlockStatistics) -> None:
        """Add a block; blocks must come in order, and must not change afterwards."""
        self.num_rows += block.num_rows
        if self._first is None:
            self._first = block.fields
            return
        if self._merged is None:
            self._merged = {name: FieldMeasure() for name in self._names}
            _merge(self._merged, self._first)
        _merge(self._merged, block.fields)

    def fields(self) -> dict[str, FieldStatistics]:
        """Return the statistics of each field."""
        measures = self._first if self._merged is None else self._merged
        if measures is None:
            measures = {name: FieldMeasure() for name in self._names}
        with np.errstate(invalid="ignore"):
            return {name: _summarise(measures[name]) for name in self._names}

    def sampled_values(self) -> dict[str, dict[str, NDArray[np.float64]]]:
        """Return the sorted samples that the quantiles come from, by field and by part of its statistics."""
        measures = (self._first if self._merged is None else self._merged) or {}
        return {
            name: {
                part: each.sample.values()
                for part, each in measures[name].parts.items()
                if isinstance(each, Spread)
            }
            for name in self._names
            if name in measures
        }

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, in plain dicts and lists."""
        return dump_statistics(self.num_rows, self.fields())


def _merge(into: Mapping[str, FieldMeasure], block: Mapping[str, FieldMeasure]) -> None:
    for name, measure in block.items():
        into[name].merge(measure)


def _room_for_values(schema: Schema) -> int:
    num_counted = sum(map(is_counted, schema.values()))
    return min(MAX_VALUES, max(_MIN_VALUES, _MAX_ALL_VALUES // max(1, num_counted)))


def is_counted(field: Field) -> bool:
    """Whether the statistics of a field include the frequencies of its values."""
    # isinstance() of an abstract class is slow for tables of 100,000 columns.
    return type(field) is Category or (
        type(field) is Sequence and field.dtype in ("int64", "string") and field.shape in ((), None)
    )


def _summarise(measure: FieldMeasure) -> FieldStatistics:
    parts: dict[str, Distribution | Elements | Frequencies] = {}
    for name, part in measure.parts.items():
        if isinstance(part, Spread):
            parts[name] = part.summarise()
        elif isinstance(part, ElementMoments):
            parts[name] = Elements(part.means, part.deviations)
        else:
            parts[name] = _summarise_frequency(part, MAX_LISTED if "lengths" in measure.parts else None)
    return FieldStatistics(measure.count, measure.missing, **parts)  # type: ignore[arg-type]


def _summarise_frequency(frequency: Frequency, limit: int | None) -> Frequencies:
    entries = frequency.most_common(limit)
    values = tuple(value if isinstance(value, int) else decode_text(value) for value, _ in entries)
    counts = tuple(count for _, count in entries)
    is_complete = frequency.is_complete and len(entries) == frequency.num_distinct
    return Frequencies(values, counts, frequency.num_distinct, is_complete)
