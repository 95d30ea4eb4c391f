"""How often each record counts in a score: once, or as often as a resample drew it.

In: numbers of records. Out: `Counts`, a row a score, and sums and quotients over them. Matrices are not
multiplied: the last bit of what that gives may depend on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Counts: TypeAlias = NDArray[np.float64]
"""(scores wanted, records)."""


def count_once(num_records: int) -> Counts:
    """Return counts for one score in which every record counts once."""
    return np.ones((1, num_records))


def divide(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return quotients, NaN where there is nothing to divide by."""
    out = np.full(np.shape(part), np.nan)
    np.divide(part, whole, out=out, where=whole != 0)
    return out


def total(values: NDArray[np.float64], counts: Counts) -> NDArray[np.float64]:
    """Return the sum of a number a record, a row of `counts` each."""
    return np.asarray((counts * values).sum(axis=1))


def average(values: NDArray[np.float64], counts: Counts) -> NDArray[np.float64]:
    """Return the mean of a number a record, a row of `counts` each."""
    return divide(total(values, counts), counts.sum(axis=1))


def sum_by_code(codes: NDArray[np.int64], num_codes: int, counts: Counts) -> NDArray[np.float64]:
    """Return how often each code counts: (scores, codes)."""
    sums = np.empty((len(counts), num_codes))
    for row, each in enumerate(counts):
        sums[row] = np.bincount(codes, weights=each, minlength=num_codes)
    return sums


def average_defined(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the means of the numbers of each row that are defined; NaN where none is."""
    is_defined = ~np.isnan(values)
    return divide(np.where(is_defined, values, 0).sum(axis=1), is_defined.sum(axis=1).astype(np.float64))


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


@dataclass(frozen=True)
class ClassCounts:
    """How often each class is there, is predicted, and is both: (scores, classes).

    Attributes:
        support: How many records are of it.
        predicted: How many are taken for it.
        right: How many of those are of it.
    """

    support: NDArray[np.float64]
    predicted: NDArray[np.float64]
    right: NDArray[np.float64]

    @property
    def precision(self) -> NDArray[np.float64]:
        """The share of the predicted that are right; NaN where none is predicted."""
        return divide(self.right, self.predicted)

    @property
    def recall(self) -> NDArray[np.float64]:
        """The share of a class that is found; NaN where there is none of it."""
        return divide(self.right, self.support)

    @property
    def f1(self) -> NDArray[np.float64]:
        """The harmonic mean of both; NaN where a class is neither there nor predicted."""
        return divide(2 * self.right, self.support + self.predicted)

    @property
    def balanced_accuracy(self) -> NDArray[np.float64]:
        """The mean recall of the classes that are there."""
        return average_defined(self.recall)

    @property
    def macro_f1(self) -> NDArray[np.float64]:
        """The mean F1 of the classes that are there or predicted."""
        return average_defined(self.f1)


def count_classes(
    truth: NDArray[np.int64], predicted: NDArray[np.int64], num_classes: int, counts: Counts
) -> ClassCounts:
    """Return how often each class is there, is predicted, and is both."""
    right = np.where(truth == predicted, truth, num_classes)
    return ClassCounts(
        sum_by_code(truth, num_classes, counts),
        sum_by_code(predicted, num_classes, counts),
        sum_by_code(right, num_classes + 1, counts)[:, :num_classes],
    )


def confusion_matrix(
    truth: NDArray[np.int64], predicted: NDArray[np.int64], num_classes: int
) -> NDArray[np.int64]:
    """Return how many records of each class (rows) are taken for each (columns).

    Example:
        >>> confusion_matrix(np.array([0, 0, 1]), np.array([0, 1, 1]), 2).tolist()
        [[1, 1], [0, 1]]
    """
    places = truth * num_classes + predicted
    return np.bincount(places, minlength=num_classes**2).reshape(num_classes, num_classes)
