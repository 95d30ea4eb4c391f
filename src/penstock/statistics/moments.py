"""Count, mean and spread of numbers, merged without loss.

In: arrays of numbers. Out: `Moments` of all of them, and `ElementMoments` of each element of arrays of one
shape. Sums are taken over fixed pieces, and pieces merged in order, so the bits depend on the data alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Mask


class Moments:
    """Statistics of many numbers; mean, spread and extremes describe the finite ones.

    Attributes:
        num_values: Number of values, finite or not.
        num_nan: Number of values that are NaN.
        num_inf: Number of infinite values.
        num_zero: Number of zeros.
        minimum: Minimum of the finite values; None if there are none.
        maximum: Maximum of the finite values; None if there are none.
        mean: Mean of the finite values; 0 if there are none.
        squares: Sum of the squared distances of the finite values from their mean.
    """

    __slots__ = ("maximum", "mean", "minimum", "num_inf", "num_nan", "num_values", "num_zero", "squares")

    def __init__(self) -> None:
        self.num_values = self.num_nan = self.num_inf = self.num_zero = 0
        self.minimum: float | None = None
        self.maximum: float | None = None
        self.mean = self.squares = 0.0

    @classmethod
    def of(cls, values: NDArray[Any], keep: Mask | None = None) -> Moments:
        """Measure an array of any shape; of a flat one, where `keep` is True."""
        flat = _as_numbers(values).reshape(-1)
        moments = cls()
        measured = _MEASURES[flat.dtype](np.ascontiguousarray(flat), keep)
        moments.num_values, moments.num_nan, moments.num_inf, moments.num_zero = measured[:4]
        if moments.num_finite:
            moments.minimum, moments.maximum, moments.mean, moments.squares = measured[4:]
        return moments

    @classmethod
    def of_counts(cls, values: NDArray[np.int64], counts: NDArray[np.int64]) -> Moments:
        """Measure one or more integers that were counted."""
        moments = cls()
        moments._note_extremes(values.min().item(), values.max().item())
        moments.num_zero = int(counts[values == 0].sum())
        num_values = int(counts.sum())
        mean = _add_up(values * (counts / num_values))
        distances = values - mean
        moments._add(num_values, mean, _add_up(distances * distances * counts))
        return moments

    @property
    def num_finite(self) -> int:
        """Number of finite values."""
        return self.num_values - self.num_nan - self.num_inf

    @property
    def deviation(self) -> float:
        """Population standard deviation of the finite values."""
        return math.sqrt(self.squares / self.num_finite) if self.num_finite else 0.0

    def merge(self, other: Moments) -> None:
        """Add numbers that were measured apart."""
        self._note_extremes(other.minimum, other.maximum)
        self.num_zero += other.num_zero
        num_finite = other.num_finite
        # The counts go last: _add needs the number of finite values before.
        self._add(num_finite, other.mean, other.squares)
        self.num_values += other.num_values - num_finite
        self.num_nan += other.num_nan
        self.num_inf += other.num_inf

    def _note_extremes(self, minimum: float | None, maximum: float | None) -> None:
        if minimum is not None and (self.minimum is None or minimum < self.minimum):
            self.minimum = minimum
        if maximum is not None and (self.maximum is None or maximum > self.maximum):
            self.maximum = maximum

    def _add(self, num_finite: int, mean: float, squares: float) -> None:
        """Add the mean and the squares of finite numbers (Chan, Golub and LeVeque's rule), and count them."""
        if not num_finite:
            return
        before = self.num_finite
        distance = mean - self.mean
        share = num_finite / (before + num_finite)
        # The first numbers are taken as they are: 0 + (mean - 0) * 1 is the mean, and nothing is rounded.
        self.mean += distance * share
        self.squares += squares + distance * (distance * (before * share))
        self.num_values += num_finite


class ElementMoments:
    """Mean and spread of the finite values of each element of many arrays of one shape.

    Attributes:
        counts: Number of finite values of each element.
        means: Mean of each element; 0 without finite values.
        squares: Sum of squared distances from the mean of each element.
    """

    __slots__ = ("counts", "means", "squares")

    def __init__(self, size: int) -> None:
        self.counts = np.zeros(size, np.int64)
        self.means = np.zeros(size)
        self.squares = np.zeros(size)

    def whole(self) -> tuple[int, float, float]:
        """Return the count, the mean and the squares of all finite numbers together."""
        count = int(self.counts.sum())
        mean = _add_up(self.means * (self.counts / max(1, count)))
        distances = self.means - mean
        return count, mean, _add_up(self.squares) + _add_up(distances * distances * self.counts)

    @property
    def deviations(self) -> NDArray[np.float64]:
        """The standard deviation of each element."""
        deviations: NDArray[np.float64] = np.sqrt(self.squares / np.maximum(self.counts, 1))
        return deviations

    def blank(self) -> ElementMoments:
        """Return moments of no arrays of the same shape."""
        return ElementMoments(len(self.counts))

    def merge(self, other: ElementMoments) -> None:
        """Add arrays that were measured apart."""
        self._add(other.counts, other.means, other.squares)

    def _add(
        self, counts: NDArray[np.int64], means: NDArray[np.float64], squares: NDArray[np.float64]
    ) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            distances = means - self.means
            shares = counts / np.maximum(self.counts + counts, 1)
            self.means = self.means + distances * shares
            self.squares = self.squares + squares + distances * (distances * (self.counts * shares))
        self.counts = self.counts + counts


# By the type itself: NumPy makes its name anew each time, which takes longer than measuring a few values.
_MEASURES: dict[np.dtype[Any], Callable[[NDArray[Any], Mask | None], _native.Measured]] = {
    np.dtype(np.int64): _native.measure_ints,
    np.dtype(np.float32): _native.measure_floats,
    np.dtype(np.float64): _native.measure_doubles,
}


def _as_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in a type that the core measures; uint64 beyond int64 is rounded."""
    if values.dtype in _MEASURES:
        return values
    if values.dtype.kind == "f":
        return values.astype(np.float32)
    is_large = values.dtype == np.uint64 and values.size and values.max() > np.iinfo(np.int64).max
    return values.astype(np.float64 if is_large else np.int64)


def _add_up(values: NDArray[np.float64]) -> float:
    # NumPy adds pairwise, in an order that only the length decides; a dot product goes to BLAS, whose order
    # depends on its threads.
    return float(np.add.reduce(values))


def measure_rows(rows: NDArray[Any], keep: Mask | None) -> tuple[Moments, ElementMoments]:
    """Measure arrays that are the rows of a matrix, where `keep` is True: all numbers, and each element."""
    if not rows.shape[1]:
        return Moments(), ElementMoments(0)
    if rows.dtype not in _ROW_MEASURES:
        rows, keep = _as_numbers(rows if keep is None else rows[keep]), None
    flat = np.ascontiguousarray(rows).reshape(-1)
    measured = _ROW_MEASURES[rows.dtype](flat, rows.shape[1], keep)
    _, num_nan, num_inf, num_zero, least, greatest, counts, means, squares = measured
    elements = ElementMoments(rows.shape[1])
    elements.counts, elements.means, elements.squares = counts, means, squares
    moments = Moments()
    with np.errstate(over="ignore", invalid="ignore"):
        moments._add(*elements.whole())
    if moments.num_values:
        moments.minimum, moments.maximum = least, greatest
    moments.num_zero, moments.num_nan, moments.num_inf = num_zero, num_nan, num_inf
    moments.num_values += num_nan + num_inf
    return moments, elements


_ROW_MEASURES: dict[np.dtype[Any], Callable[[NDArray[Any], int, Mask | None], _native.MeasuredRows]] = {
    np.dtype(np.int64): _native.measure_rows_of_ints,
    np.dtype(np.float32): _native.measure_rows_of_floats,
    np.dtype(np.float64): _native.measure_rows_of_doubles,
}
