"""Shift, factor and bounds of `Scale`, from the statistics of the train split.

In: statistics of a field. Out: a `Span`: what to subtract, what to multiply by, where to clip.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
