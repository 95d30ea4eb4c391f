"""Edges of the bins of a number, between which a built model learns a straight line.

In: a sample of the values of a field. Out: edges, ascending. Half of the edges are quantiles of the values,
so that bins have similar numbers of records; half are quantiles of the distinct values, so that the rare ones
of a skewed field are not all in one bin. Frequent values have separate bins.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Column, Dense

MAX_BINS: Final = 1024

# A value is frequent if so many records have it, so large a share of all, and so many times as many as have
# the values next to it. Amounts of 0, round figures and caps are; ids and ages are not.
_LEAST_COUNT: Final = 16
_LEAST_SHARE: Final = 0.004
_LEAST_RATIO: Final = 4.0
_NUM_NEIGHBOURS: Final = 5  # on each side
_MAX_FREQUENT: Final = 16


def find_edges(column: Column, num_bins: int, fill: float | None = None) -> tuple[float, ...]:
    """Return the edges of the bins of a field; empty if it has fewer than two distinct finite values.

    `column`: values of the field; infinite ones are ignored. `num_bins`: number of bins. A field with fewer
    distinct values has an edge at each of them. `fill`: number that replaces missing values and NaN. Where
    many are missing it is a frequent value, so that a model can tell them from similar values. None ignores
    them.
    """
    numbers = np.asarray(Dense.of(column).values).astype(np.float64)
    if column.present is not None:
        numbers[~column.present] = np.nan
    if fill is not None:
        numbers[np.isnan(numbers)] = fill
    distinct, counts = np.unique(numbers[np.isfinite(numbers)], return_counts=True)
    if len(distinct) < 2:
        return ()
    if len(distinct) <= num_bins + 1:
        return tuple(distinct.tolist())
    return tuple(distinct[_choose(counts, num_bins)].tolist())


def _choose(counts: NDArray[Any], num_bins: int) -> NDArray[np.int64]:
    """Return which of the distinct values, in ascending order, are edges."""
    last = len(counts) - 1
    by_values = num_bins // 2
    # The value of each quantile is found in the counts: values between two others are not edges.
    ranks = np.linspace(0, counts.sum() - 1, by_values + 1)
    quantiles = np.searchsorted(np.cumsum(counts), ranks, side="right")
    spread = np.round(np.linspace(0, last, num_bins - by_values + 1)).astype(np.int64)
    frequent = find_frequent(counts)
    # With its neighbours as edges, a line rises to a frequent value and falls again: it has its own height.
    around = np.concatenate([frequent - 1, frequent, frequent + 1])
    return np.unique(np.clip(np.concatenate([quantiles, spread, around]), 0, last))


def find_frequent(counts: NDArray[Any]) -> NDArray[np.int64]:
    """Return which of the distinct values are so frequent that each has its own effect, by frequency."""
    least = max(_LEAST_COUNT, _LEAST_SHARE * counts.sum())
    found: list[int] = []
    for at in np.argsort(-counts, kind="stable"):
        if len(found) == _MAX_FREQUENT or counts[at] < least:
            break
        before, after = counts[max(0, at - _NUM_NEIGHBOURS) : at], counts[at + 1 : at + 1 + _NUM_NEIGHBOURS]
        # The median, as another frequent value may be near.
        if counts[at] >= _LEAST_RATIO * np.median(np.concatenate([before, after])):
            found.append(int(at))
    return np.array(found, np.int64)
