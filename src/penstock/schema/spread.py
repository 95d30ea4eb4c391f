"""Numbers that a field gives: its values, the lengths of its lists, the sizes of its bytes.

In: an array of them, and those of some rows with their keys. Out: `Spread`, moments and a sample, and what is
told of them in the end, a `Distribution`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.schema.summary import Distribution
from penstock.statistics.moments import Moments
from penstock.statistics.quantiles import Sample, find_quantiles
from penstock.types import Mask


class Spread:
    """Moments of all numbers and a sample of them."""

    __slots__ = ("moments", "sample")

    def __init__(self, moments: Moments | None = None, sample: Sample | None = None) -> None:
        self.moments = Moments() if moments is None else moments
        self.sample = Sample() if sample is None else sample

    @classmethod
    def of(
        cls,
        numbers: NDArray[Any],
        keys: NDArray[np.uint64],
        sampled: NDArray[Any],
        keep: Mask | None = None,
    ) -> Spread:
        """Measure the numbers of a block where `keep` is True; `keys` ascend, and are those of `sampled`."""
        return cls(Moments.of(numbers, keep), Sample(keys, sampled))

    def blank(self) -> Spread:
        """Return a spread of no numbers."""
        return Spread()

    def merge(self, other: Spread) -> None:
        """Add numbers that were measured apart."""
        self.moments.merge(other.moments)
        self.sample.merge(other.sample)

    def summarise(self) -> Distribution:
        """Return what is told of the numbers."""
        moments = self.moments
        ordered = self.sample.values()
        has_any = moments.num_finite > 0
        return Distribution(
            num_values=moments.num_values,
            num_nan=moments.num_nan,
            num_inf=moments.num_inf,
            num_zero=moments.num_zero,
            min=moments.minimum,
            max=moments.maximum,
            mean=moments.mean if has_any else None,
            deviation=moments.deviation if has_any else None,
            quantiles=find_quantiles(ordered) if len(ordered) else None,
            num_sampled=len(ordered),
        )
