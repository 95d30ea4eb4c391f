"""How well scores put positives before negatives: areas under the ROC and the precision–recall curve.

In: truths, scores, and how often each record counts. Out: an area a row of counts, NaN where none is defined.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.model.weighing import Counts, divide


class Ranking:
    """Records by their scores, sorted once; records of equal score are one step of every curve.

    Args:
        truth: Which records are positive; there is one record at least.
        scores: Of each; the higher, the likelier it is positive.
    """

    def __init__(self, truth: NDArray[np.bool_], scores: NDArray[np.floating]) -> None:
        self._order = np.argsort(scores, kind="stable")
        ordered = scores[self._order]
        self._truth = truth[self._order].astype(np.float64)
        self._starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))

    def areas(self, counts: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the areas under both curves, a row of `counts` each.

        ROC: the share of pairs of a positive and a negative in which the positive has the higher score, ties
        counting half. Precision–recall: the mean precision at each positive, without interpolation. Neither
        is defined where all records are positive, or none.
        """
        ordered = counts[:, self._order]
        positive = ordered * self._truth
        positives = np.add.reduceat(positive, self._starts, axis=1)
        negatives = np.add.reduceat(ordered - positive, self._starts, axis=1)
        all_positives, all_negatives = positives.sum(axis=1), negatives.sum(axis=1)
        below = np.cumsum(negatives, axis=1)
        pairs = (positives * (below - negatives / 2)).sum(axis=1)
        roc = divide(pairs, all_positives * all_negatives)
        found = all_positives[:, None] - np.cumsum(positives, axis=1) + positives
        taken = found + all_negatives[:, None] - below + negatives
        precision = np.divide(found, taken, out=np.zeros_like(found), where=taken > 0)
        is_mixed = (all_positives > 0) & (all_negatives > 0)
        mean_precision = divide((positives * precision).sum(axis=1), np.where(is_mixed, all_positives, 0))
        return roc, mean_precision


def auc(truth: NDArray[np.bool_], scores: NDArray[np.floating], counts: Counts) -> NDArray[np.float64]:
    """Return the area under the ROC curve, a row of `counts` each."""
    return Ranking(truth, scores).areas(counts)[0]
