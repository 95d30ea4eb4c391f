"""Metrics over weighted records: AUC, calibration, precision, recall, F1, confusion matrix.

In: truths, predictions, and `Counts`: how often each record counts, one row per score (once, or as often as a
resample drew it). Out: one number per row. There is no matrix product, as its last bit may depend on the
number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.model.batch_predictor import NUM_BINS

Counts: TypeAlias = NDArray[np.float64]
"""How often each record counts: (scores, records)."""


def count_once(num_records: int) -> Counts:
    """Return counts for one score in which every record counts once."""
    return np.ones((1, num_records))


def divide(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return quotients, NaN where the divisor is 0."""
    out = np.full(np.shape(part), np.nan)
    np.divide(part, whole, out=out, where=whole != 0)
    return out


def total(values: NDArray[np.float64], counts: Counts) -> NDArray[np.float64]:
    """Return the weighted sum of one number per record, for each row of `counts`."""
    return np.asarray((counts * values).sum(axis=1))


def average(values: NDArray[np.float64], counts: Counts) -> NDArray[np.float64]:
    """Return the weighted mean of one number per record, for each row of `counts`."""
    return divide(total(values, counts), counts.sum(axis=1))


def sum_by_code(codes: NDArray[np.int64], num_codes: int, counts: Counts) -> NDArray[np.float64]:
    """Return the total count of each code: (scores, codes)."""
    sums = np.empty((len(counts), num_codes))
    for row, each in enumerate(counts):
        sums[row] = np.bincount(codes, weights=each, minlength=num_codes)
    return sums


def average_defined(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of the defined numbers of each row; NaN where none is defined."""
    is_defined = ~np.isnan(values)
    return divide(np.where(is_defined, values, 0).sum(axis=1), is_defined.sum(axis=1).astype(np.float64))


class Ranking:
    """Records sorted by score, once; records of equal score are one step of every curve.

    `truth`: whether each record is positive; at least one record. `scores`: the higher the score of a record,
    the more likely it is positive.
    """

    def __init__(self, truth: NDArray[np.bool_], scores: NDArray[np.floating]) -> None:
        scores = np.ascontiguousarray(scores)
        self._order = np.argsort(scores)  # the order of equal scores does not matter
        ordered = scores[self._order]
        self._truth = truth[self._order].astype(np.float64)
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        self._starts = starts if len(starts) < len(scores) else None

    def areas(self, counts: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the areas under both curves, for each row of `counts`.

        ROC: the share of pairs of a positive and a negative in which the positive has the higher score, ties
        counting half. Precision–recall: the mean precision at each positive, without interpolation. Both are
        undefined where all records are positive, or all negative.
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
        # From here on `below` holds the counts above, to save an array.
        found = np.cumsum(positives, axis=1)
        np.subtract(all_positives[:, None] + positives, found, out=found)
        np.subtract(all_negatives[:, None] + negatives, below, out=below)
        below += found
        np.maximum(below, 1, out=below)  # where nothing is above, `found` is 0 too
        precision = (positives * found / below).sum(axis=1)
        is_mixed = (all_positives > 0) & (all_negatives > 0)
        return (
            divide(pairs, all_positives * all_negatives),
            divide(precision, np.where(is_mixed, all_positives, 0)),
        )

    def count_above(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the numbers of positives and of negatives at or above each score, the highest score first.

        These are the points of the ROC and the precision–recall curve, one per distinct score.
        """
        positives, ordered = self._truth, np.ones_like(self._truth)
        if self._starts is not None:
            positives = np.add.reduceat(positives, self._starts)
            ordered = np.add.reduceat(ordered, self._starts)
        return np.cumsum(positives[::-1]), np.cumsum((ordered - positives)[::-1])


def auc(truth: NDArray[np.bool_], scores: NDArray[np.floating]) -> float:
    """Return the area under the ROC curve, every record counting once; NaN where it is undefined."""
    return float(Ranking(truth, scores).areas(count_once(len(truth)))[0][0])


class Calibration:
    """Expected calibration error: the difference of probabilities and frequencies, by bin of equal width."""

    num_bins = NUM_BINS

    def __init__(self, probabilities: NDArray[np.floating], truth: NDArray[np.bool_]) -> None:
        self._probabilities, self._truth = probabilities.astype(np.float64), truth
        self._bins = np.clip((probabilities * NUM_BINS).astype(np.int64), 0, NUM_BINS - 1)
        self._gaps = truth.astype(np.float64) - probabilities

    def error(self, counts: Counts) -> NDArray[np.float64]:
        """Return the mean over the bins, weighted by their records, for each row of `counts`."""
        sums = sum_by_code(self._bins, NUM_BINS, counts * self._gaps)
        return divide(np.abs(sums).sum(axis=1), counts.sum(axis=1))

    def draw_errors(self, rng: np.random.Generator, num_draws: int) -> NDArray[np.float64]:
        """Return the errors of calibrated models: of truths that are drawn with the probabilities."""
        gaps = (rng.random((num_draws, len(self._bins))) < self._probabilities) - self._probabilities
        sums = sum_by_code(self._bins, NUM_BINS, gaps)
        return np.asarray(np.abs(sums).sum(axis=1) / len(self._bins))

    def bins(self) -> NDArray[np.float64]:
        """Return records, mean probability and frequency of each bin: (bins, 3); NaN where it is empty."""
        once = count_once(len(self._bins))
        records, probabilities, trues = (
            sum_by_code(self._bins, NUM_BINS, once * each)[0]
            for each in (1, self._probabilities, self._truth)
        )
        return np.stack([records, divide(probabilities, records), divide(trues, records)], axis=1)


@dataclass(frozen=True)
class ClassCounts:
    """Numbers of records by class, (scores, classes): of the class, predicted as the class, and both."""

    support: NDArray[np.float64]
    predicted: NDArray[np.float64]
    right: NDArray[np.float64]

    @property
    def precision(self) -> NDArray[np.float64]:
        """Share of the predictions of a class that are correct; NaN where there are none."""
        return divide(self.right, self.predicted)

    @property
    def recall(self) -> NDArray[np.float64]:
        """Share of the records of a class that are predicted correctly; NaN where there are none."""
        return divide(self.right, self.support)

    @property
    def f1(self) -> NDArray[np.float64]:
        """Harmonic mean of both; NaN where a class has neither records nor predictions."""
        return divide(2 * self.right, self.support + self.predicted)

    @property
    def balanced_accuracy(self) -> NDArray[np.float64]:
        """Mean recall of the classes that have records."""
        return average_defined(self.recall)

    @property
    def macro_f1(self) -> NDArray[np.float64]:
        """Mean F1 of the classes that have records or predictions."""
        return average_defined(self.f1)


def count_classes(
    truth: NDArray[np.int64], predicted: NDArray[np.int64], num_classes: int, counts: Counts
) -> ClassCounts:
    """Return support, predictions and correct predictions of each class."""
    right = np.where(truth == predicted, truth, num_classes)
    return ClassCounts(
        sum_by_code(truth, num_classes, counts),
        sum_by_code(predicted, num_classes, counts),
        sum_by_code(right, num_classes + 1, counts)[:, :num_classes],
    )


def confusion_matrix(
    truth: NDArray[np.int64], predicted: NDArray[np.int64], num_classes: int
) -> NDArray[np.int64]:
    """Return the confusion matrix: rows are true classes, columns are predicted ones.

    Example:
        >>> confusion_matrix(np.array([0, 0, 1]), np.array([0, 1, 1]), 2).tolist()
        [[1, 1], [0, 1]]
    """
    cells = truth * num_classes + predicted
    return np.bincount(cells, minlength=num_classes**2).reshape(num_classes, num_classes)
