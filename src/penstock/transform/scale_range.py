"""What `Scale` learns from the train split: shift, factor and bounds, and the edges of bins.

In: statistics of a field, and a sample of its values. Out: a `Span`: what to subtract, what to multiply by,
where to clip; and ascending edges of the bins, between which a built model learns a straight line. Half of
the edges are quantiles of the values, so that bins have similar numbers of records; half are quantiles of the
distinct values, so that the rare values of a skewed field are not all in one bin. Frequent values have
separate bins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Column, Dense
from penstock.errors import OptionError
from penstock.foundation.wording import show
from penstock.statistics.quantiles import QUANTILES
from penstock.statistics.summary import Distribution, Elements
from penstock.transform.base import FitSource
from penstock.transform.measurement import MAX_MEASURED, measure_elements

SMALLEST_SPREAD: Final = float(np.finfo(np.float32).tiny)
"""Numbers with a smaller spread count as equal: their scale factor is out of the range of float32."""

# A spread this small relative to the mean is a rounding error in sums of equal numbers.
_ROUNDING: Final = 1e-14


class Span(NamedTuple):
    """How numbers are scaled: (clip(x, low, high) − shift) · factor.

    Attributes:
        shift: Subtracted from a number; one value, or one per element.
        factor: Multiplied with the difference; one value, or one per element.
        low: Lower bound; −inf for none.
        high: Upper bound; inf for none.
        mean: Mean of the stored numbers; 0 if there are none.
    """

    shift: tuple[float, ...] = (0.0,)
    factor: tuple[float, ...] = (1.0,)
    low: float = -math.inf
    high: float = math.inf
    mean: tuple[float, ...] = (0.0,)


def find_span(name: str, source: FitSource, method: str, size: int, levels: tuple[float, float]) -> Span:
    """Return the scale of a field.

    `method`: method of `Scale`. `size`: number of elements that have their own scale; 0 if all numbers share
    one. `levels`: the two quantiles for "clip".
    """
    statistics = source.statistics(name)
    whole = statistics.values
    if whole is None or whole.mean is None:
        return Span()  # there are no numbers
    if not size:
        return _scale_whole(name, method, whole, levels)
    if method == "clip":
        raise _refuse(
            name,
            "per='whole' for method 'clip'",
            "per='element'",
            "Use Scale('clip', per='whole'): all elements share their bounds.",
        )
    if method != "minmax":
        elements = statistics.elements
        if elements is None:
            raise _refuse(
                name, "per='whole' for a tensor of many elements", show(size), "Use Scale(per='whole')."
            )
        if method == "standard":
            return _standardize_each(name, elements)
        return Span(mean=_plain(elements.means))
    if size > MAX_MEASURED:
        expected = f"per='whole' for more than {MAX_MEASURED} elements"
        raise _refuse(name, expected, show(size), "Use Scale('minmax', per='whole').")
    each = measure_elements(name, source, size)
    spans = [Span() if part is None else _scale_whole(name, method, part, levels) for part in each]
    return Span(
        shift=tuple(span.shift[0] for span in spans),
        factor=tuple(span.factor[0] for span in spans),
        mean=tuple(span.mean[0] for span in spans),
    )


def _scale_whole(name: str, method: str, numbers: Distribution, levels: tuple[float, float]) -> Span:
    mean, low, high = float(numbers.mean or 0.0), float(numbers.min or 0.0), float(numbers.max or 0.0)
    _need_finite(name, (mean, low, high))
    if method == "standard":
        # Rounding may shift the mean of equal numbers and make their deviation nonzero.
        shift, width = (low, 0.0) if low == high else (mean, float(numbers.deviation or 0.0))
        return Span((shift,), (_invert(name, width),), mean=(mean,))
    if method == "minmax":
        return Span((low,), (_invert(name, high - low),), mean=(mean,))
    if method == "clip":
        ends = [(numbers.quantiles or ())[QUANTILES.index(level)] for level in levels]
        _need_finite(name, ends)
        return Span((ends[0],), (_invert(name, ends[1] - ends[0]),), ends[0], ends[1], (mean,))
    return Span(mean=(mean,))


def _standardize_each(name: str, elements: Elements) -> Span:
    means, deviations = elements.means, elements.deviations
    _need_finite(name, means)
    widths = np.where(deviations <= np.abs(means) * _ROUNDING, 0.0, deviations)
    factors = tuple(_invert(name, width) for width in widths.tolist())
    return Span(_plain(means), factors, mean=_plain(means))


def _plain(numbers: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(numbers.tolist())


def _invert(name: str, width: float) -> float:
    """Return the factor that scales a width to 1; 1 for numbers that count as equal."""
    if width < SMALLEST_SPREAD:
        return 1.0
    factor = 1.0 / width
    _need_finite(name, (width, factor))
    return factor


def _need_finite(name: str, numbers: Iterable[float]) -> None:
    for number in numbers:
        if not math.isfinite(number):
            advice = "Use Scale('log1p'), or leave the field out: set its transform to None."
            raise _refuse(name, "numbers whose spread is in the range of float64", show(number), advice)


def _refuse(name: str, expected: str, got: str, advice: str) -> OptionError:
    return OptionError(f"scale of field {name!r}", field=name, expected=expected, got=got, advice=advice)


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
