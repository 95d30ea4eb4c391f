"""Calibration of probabilities by a temperature, which divides their logits.

In: probabilities of a model. Out: probabilities that are less certain (above 1) or more certain (below 1).
The order of records, and of labels, stays the same. Loads no Keras.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.model.task import Kind

MIN_TEMPERATURE: Final = 0.5
MAX_TEMPERATURE: Final = 5.0
"""Range of temperatures. Without a lower limit, a model that makes no mistake on few validation records would
become certain of everything."""

SMALLEST_CHANCE: Final = 1e-7
"""Probabilities are at least this before their logarithm is taken, as in Keras."""

NUM_BINS: Final = 15
"""Number of bins of equal width of the expected calibration error; 15 is the usual choice."""


def apply_temperature(kind: Kind, predicted: NDArray[Any], temperature: float) -> NDArray[Any]:
    """Return probabilities whose logits are divided by a temperature.

    `predicted`: probabilities: (n, labels) for several labels, else of the second label. `temperature`: the
    temperature; 1 returns the probabilities unchanged.

    Example:
        >>> apply_temperature("binary", np.array([0.5, 0.9]), 2.0)
        array([0.5 , 0.75])
    """
    if temperature == 1:
        return predicted
    logits = compute_logits(kind, predicted) / temperature
    return compute_softmax(logits) if kind == "multiclass" else compute_sigmoid(logits)


def compute_logits(kind: Kind, predicted: NDArray[Any]) -> NDArray[np.float64]:
    """Return finite logits of probabilities, in double precision."""
    chances = np.clip(predicted.astype(np.float64), SMALLEST_CHANCE, 1.0)
    if kind == "multiclass":
        return np.asarray(np.log(chances))
    return np.asarray(np.log(chances) - np.log(np.clip(1 - chances, SMALLEST_CHANCE, 1.0)))


def compute_sigmoid(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return 1 / (1 + exp(-x)) without overflow."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -logits)))


def compute_softmax(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the softmax over the last axis without overflow."""
    shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))
