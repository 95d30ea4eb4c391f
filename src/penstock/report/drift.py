"""Drift: how far the values of a field in one split are from those in another, and how far chance may go.

In: samples of numbers, or counts of values. Out: distances from 0 (the same) to 1 (nothing in common), each
with a bound that random splits of the same data exceed about once in a thousand times.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.report.split_sample import SplitSample
from penstock.statistics.summary import Frequencies

# A data set has dozens of fields, so that one in a hundred would be a false alarm in most reports.
_KOLMOGOROV: Final = 1.95  # quantile of 99.9 % of the distribution of the scaled statistic
_NORMAL: Final = 3.3  # 99.9 % quantile of a normal distribution, both sides
SMALLEST_DRIFT: Final = 0.1
"""Distances below are not worth a warning, even where there are enough records to be sure of them."""


@dataclass(frozen=True)
class Drift:
    """Distance between two splits in one part of a field.

    Attributes:
        part: Compared part: "missing", or a part of the statistics, such as "values" or "lengths".
        distance: Largest difference between the cumulative distributions of numbers (Kolmogorov–Smirnov);
            half the sum of the differences between the shares of values (total variation); or the difference
            between the shares of missing values.
        chance: Distance that random splits rarely exceed.
    """

    part: str
    distance: float
    chance: float

    @property
    def is_notable(self) -> bool:
        """Whether the distance is larger than chance explains, and large enough to matter."""
        return self.distance > max(self.chance, SMALLEST_DRIFT)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {**vars(self), "is_notable": self.is_notable}


def find_drifts(name: str, first: SplitSample, second: SplitSample) -> list[Drift]:
    """Return the distances of all parts of a field between two samples; none if one has no records."""
    if not first.num_read or not second.num_read:
        return []
    one, other = first.fields[name], second.fields[name]
    found = []
    if one.missing or other.missing:
        found.append(
            compare_shares(one.missing, first.num_read, other.missing, second.num_read, part="missing")
        )
    if not one.count or not other.count:
        return found
    numbers, others = first.values[name], second.values[name]
    for part in numbers:
        if part in others and len(numbers[part]) and len(others[part]):
            distance = compare_numbers(numbers[part], others[part])
            found.append(Drift(part, distance, _KOLMOGOROV * sqrt(1 / one.count + 1 / other.count)))
    for part in ("frequencies", "formats"):
        counts, more = getattr(one, part), getattr(other, part)
        if counts is not None and more is not None and counts.counts and more.counts:
            found.append(compare_values(counts, more, one.count, other.count, part))
    return found


def compare_numbers(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the Kolmogorov–Smirnov distance of two sorted samples, each of at least one number.

    Example:
        >>> compare_numbers(np.array([1.0, 2.0]), np.array([2.0, 3.0]))
        0.5
    """
    points = np.concatenate([first, second])
    shares = [np.searchsorted(each, points, side="right") / len(each) for each in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def compare_values(
    first: Frequencies, second: Frequencies, num_first: int, num_second: int, part: str = "frequencies"
) -> Drift:
    """Return the total variation distance of counted values.

    `num_second`: number of records that the second counts come from.
    """
    totals = sum(first.counts), sum(second.counts)
    shares = dict(zip(first.values, (count / totals[0] for count in first.counts), strict=True))
    others = dict(zip(second.values, (count / totals[1] for count in second.counts), strict=True))
    pairs = np.array([(shares.get(each, 0.0), others.get(each, 0.0)) for each in {**shares, **others}])
    noise = 1 / num_first + 1 / num_second
    pooled = pairs.mean(axis=1)
    # The mean distance of two random samples, and its spread, which is at most half of sqrt(noise).
    usual = float(np.sqrt(pooled * (1 - pooled) * noise * 2 / pi).sum()) / 2
    distance = float(np.abs(pairs[:, 0] - pairs[:, 1]).sum()) / 2
    return Drift(part, min(1.0, distance), usual + _NORMAL / 2 * sqrt(noise))


def compare_shares(first: int, num_first: int, second: int, num_second: int, part: str) -> Drift:
    """Return the difference between two shares of records."""
    pooled = (first + second) / (num_first + num_second)
    spread = sqrt(pooled * (1 - pooled) * (1 / num_first + 1 / num_second))
    return Drift(part, abs(first / num_first - second / num_second), _NORMAL * spread)
