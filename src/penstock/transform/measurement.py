"""Statistics and counts from a pass over the columns, where the manifest does not have them.

In: blocks of columns. Out: `FieldStatistics`, distributions of elements, counts of values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Column, Dense
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
    """Counts of the distinct values of a field.

    Attributes:
        values: Strings or integers in the order of their first occurrence.
        counts: Number of occurrences of each value.
        is_complete: Whether all values were counted: there are at most `MAX_COUNTED` distinct ones.
        num_missing: Number of records without a value.
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
