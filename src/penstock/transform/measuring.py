"""What the manifest does not tell: statistics and counts that a pass over the columns gives.

In: blocks of columns. Out: `FieldStatistics`, distributions of elements, counted values. All measuring is
that of the schema stage and of the core.
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

MOST_MEASURED: Final = 1024
"""Elements that are measured one by one: the samples of so many take 80 MB."""

MOST_COUNTED: Final = 1 << 22
"""Distinct values that a vocabulary is made from: more take gigabytes, and are no categories."""

_SAMPLE_SEED: Final = 0  # decides which rows the quantiles come from


def measure_columns(schema: Schema, blocks: Iterable[Mapping[str, Column]]) -> dict[str, FieldStatistics]:
    """Return the statistics of fields, given block by block in order."""
    statistics, row = Statistics(schema), 0
    for columns in blocks:
        num_rows = len(next(iter(columns.values())))
        keys = _native.mix_rows(_SAMPLE_SEED, row, num_rows)
        statistics.merge(measure_block(schema, columns, None, keys))
        row += num_rows
    return statistics.fields()


def measure_elements(name: str, source: FitSource, size: int) -> list[Distribution | None]:
    """Return what is told of each element of arrays, or of steps, of `size` elements; None where none is."""
    schema = Schema({str(i): Number("float64") for i in range(size)})

    def split(column: Column) -> dict[str, Column]:
        items = _present_items(column).reshape(-1, size)
        return {str(i): Dense(np.ascontiguousarray(items[:, i])) for i in range(size)}

    blocks = (split(column) for column in source.columns(name))
    measured = measure_columns(schema, blocks)
    return [measured[str(i)].values for i in range(size)]


class Counted(NamedTuple):
    """Values of a field.

    Attributes:
        values: Strings or ints, in the order in which they were met.
        counts: How often each was.
        is_complete: Whether these are all: there were no more than `MOST_COUNTED`.
        num_missing: How many records have none.
    """

    values: list[bytes] | list[int]
    counts: list[int]
    is_complete: bool
    num_missing: int


def count_values(name: str, source: FitSource) -> Counted:
    """Count the values of strings or ints, or of lists of them."""
    tally = _native.ValueCounter(MOST_COUNTED)
    num_missing = 0
    for column in source.columns(name):
        if column.present is not None:
            num_missing += len(column) - int(np.count_nonzero(column.present))
        values, keep = column.items()
        if isinstance(values, np.ndarray):
            tally.add_ints(np.ascontiguousarray(values), keep)
        else:
            arena, starts, stops = values.spans()
            tally.add_strings(arena, starts, stops, keep)
    found, counts, num_overflowed = tally.take()
    known = found if isinstance(found, list) else found.tolist()
    return Counted(known, counts.tolist(), not num_overflowed, num_missing)


def _present_items(column: Column) -> NDArray[Any]:
    values, keep = column.items()
    if not isinstance(values, np.ndarray):
        raise TypeError(f"{values!r} holds no numbers")
    return values if keep is None else values[keep]
