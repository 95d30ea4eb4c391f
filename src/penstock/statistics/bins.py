"""Bins of equal width for charts of distributions.

In: finite numbers, such as the sample of a `Spread`. Out: the edges of bins, and counts of further numbers.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

NUM_BINS: Final = 30
"""Number of bins: a bar of a chart on a phone is then about ten pixels wide."""

_SPAN: Final = (0.005, 0.995)  # quantiles: a single outlier would leave one bar and an empty chart


def choose_edges(values: NDArray[Any], num_bins: int = NUM_BINS) -> NDArray[np.float64]:
    """Return the edges of bins between the 0.5 % and 99.5 % quantiles of some numbers.

    Whole numbers in a small range have one bin each. Equal numbers have one bin of width 0, and no numbers
    have no edges.

    Example:
        >>> choose_edges(np.array([1, 2, 2, 4])).tolist()
        [0.5, 1.5, 2.5, 3.5, 4.5]
    """
    numbers = np.asarray(values, np.float64)
    if not len(numbers):
        return np.zeros(0)
    low, high = (float(each) for each in np.quantile(numbers, _SPAN, method="nearest"))
    if not low < high:
        low, high = float(numbers.min()), float(numbers.max())
    with np.errstate(over="ignore"):
        width = np.float64(high) - np.float64(low)
    if not width > 0 or not np.isfinite(width):
        return np.array([low, high])
    if width < num_bins and bool((numbers == np.rint(numbers)).all()):
        edges = np.arange(low, high + 2) - 0.5
        return edges if len(edges) == width + 2 else np.array([low, high])  # beyond 2**53, 0.5 is lost
    edges = np.linspace(low, high, num_bins + 1)
    return edges if bool((np.diff(edges) > 0).all()) else np.array([low, high])


def count_values(values: NDArray[Any], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the number of values in each bin; values beyond the edges are in the first or the last bin.

    Example:
        >>> count_values(np.array([-7.0, 0.2, 1.5, 9.0]), np.array([0.0, 1.0, 2.0])).tolist()
        [2, 2]
    """
    num_bins = max(0, len(edges) - 1)
    if not num_bins:
        return np.zeros(0, np.int64)
    places = np.searchsorted(edges, np.asarray(values, np.float64), side="right") - 1
    return np.bincount(np.clip(places, 0, num_bins - 1), minlength=num_bins).astype(np.int64)
