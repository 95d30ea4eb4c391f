"""Whether probabilities mean what they say.

In: probabilities, and whether what they were given to came true. Out: the expected calibration error.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock.model.weighing import Counts, divide, sum_by_code

NUM_BINS: Final = 15
"""Of equal width: so many are usual."""


def calibration_error(
    probabilities: NDArray[np.floating], truth: NDArray[np.bool_], counts: Counts
) -> NDArray[np.float64]:
    """Return how far probabilities are from frequencies: the mean over bins, weighted by their records."""
    bins = np.clip((probabilities * NUM_BINS).astype(np.int64), 0, NUM_BINS - 1)
    gaps = truth.astype(np.float64) - probabilities
    sums = sum_by_code(bins, NUM_BINS, counts * gaps)
    return divide(np.abs(sums).sum(axis=1), counts.sum(axis=1))
