"""How often each record counts in a score: once, or as often as a resample drew it.

In: numbers of records. Out: `Counts`, a row a score, and sums and quotients over them. Matrices are not
multiplied: the last bit of what that gives may depend on the number of threads.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Counts: TypeAlias = NDArray[np.float64]
"""(scores wanted, records)."""


def count_once(num_records: int) -> Counts:
    """Return counts for one score in which every record counts once."""
    return np.ones((1, num_records))


def divide(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return quotients, NaN where there is nothing to divide by."""
    out = np.full(np.shape(part), np.nan)
    np.divide(part, whole, out=out, where=whole != 0)
    return out


def total(values: NDArray[np.float64], counts: Counts) -> NDArray[np.float64]:
    """Return the sum of a number a record, a row of `counts` each."""
    return np.asarray((counts * values).sum(axis=1))


def average(values: NDArray[np.float64], counts: Counts) -> NDArray[np.float64]:
    """Return the mean of a number a record, a row of `counts` each."""
    return divide(total(values, counts), counts.sum(axis=1))


def sum_by_code(codes: NDArray[np.int64], num_codes: int, counts: Counts) -> NDArray[np.float64]:
    """Return how often each code counts: (scores, codes)."""
    sums = np.empty((len(counts), num_codes))
    for row, each in enumerate(counts):
        sums[row] = np.bincount(codes, weights=each, minlength=num_codes)
    return sums


def average_defined(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of the numbers of each row that are defined; NaN where none is."""
    is_defined = ~np.isnan(values)
    return divide(np.where(is_defined, values, 0).sum(axis=1), is_defined.sum(axis=1).astype(np.float64))
