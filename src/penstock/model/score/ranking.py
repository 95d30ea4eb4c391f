"""How well scores put positives before negatives: areas under the ROC and the precision–recall curve.

In: truths, scores, and how often each record counts. Out: an area a row of counts, NaN where none is defined.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.model.score.weighing import Counts, count_once, divide


class Ranking:
    """Records by their scores, sorted once; records of equal score are one step of every curve.

    Args:
        truth: Which records are positive; there is one record at least.
        scores: Of each; the higher, the likelier it is positive.
    """

    def __init__(self, truth: NDArray[np.bool_], scores: NDArray[np.floating]) -> None:
        scores = np.ascontiguousarray(scores)
        self._order = np.argsort(scores)  # which of equal ones comes first does not matter
        ordered = scores[self._order]
        self._truth = truth[self._order].astype(np.float64)
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        self._starts = starts if len(starts) < len(scores) else None

    def areas(self, counts: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the areas under both curves, a row of `counts` each.

        ROC: the share of pairs of a positive and a negative in which the positive has the higher score, ties
        counting half. Precision–recall: the mean precision at each positive, without interpolation. Neither
        is defined where all records are positive, or none.
        """
        ordered = np.take(counts, self._order, axis=1)
        positives = ordered * self._truth
        if self._starts is not None:
            positives = np.add.reduceat(positives, self._starts, axis=1)
            ordered = np.add.reduceat(ordered, self._starts, axis=1)
        negatives = ordered - positives
        all_positives = positives.sum(axis=1)
        below = np.cumsum(negatives, axis=1)
        all_negatives = below[:, -1].copy()
        pairs = (positives * (below - negatives / 2)).sum(axis=1)
        # From here on `below` is what lies above, so that no further array is made.
        found = np.cumsum(positives, axis=1)
        np.subtract(all_positives[:, None] + positives, found, out=found)
        np.subtract(all_negatives[:, None] + negatives, below, out=below)
        below += found
        np.maximum(below, 1, out=below)  # where there is nothing above, nothing is found, either
        precision = (positives * found / below).sum(axis=1)
        is_mixed = (all_positives > 0) & (all_negatives > 0)
        return (
            divide(pairs, all_positives * all_negatives),
            divide(precision, np.where(is_mixed, all_positives, 0)),
        )


def auc(truth: NDArray[np.bool_], scores: NDArray[np.floating]) -> float:
    """Return the area under the ROC curve of records that count once; NaN where it is not defined."""
    return float(Ranking(truth, scores).areas(count_once(len(truth)))[0][0])
