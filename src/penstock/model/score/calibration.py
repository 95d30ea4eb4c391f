"""Whether probabilities mean what they say.

In: probabilities, and whether what they were given to came true. Out: the expected calibration error.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock.model.score.weighing import Counts, divide, sum_by_code

NUM_BINS: Final = 15
"""Of equal width: so many are usual."""


class Calibration:
    """How far probabilities are from frequencies, bin by bin."""

    def __init__(self, probabilities: NDArray[np.floating], truth: NDArray[np.bool_]) -> None:
        self._bins = np.clip((probabilities * NUM_BINS).astype(np.int64), 0, NUM_BINS - 1)
        self._gaps = truth.astype(np.float64) - probabilities

    def error(self, counts: Counts) -> NDArray[np.float64]:
        """Return the mean over the bins, weighted by their records, a row of `counts` each."""
        sums = sum_by_code(self._bins, NUM_BINS, counts * self._gaps)
        return divide(np.abs(sums).sum(axis=1), counts.sum(axis=1))
