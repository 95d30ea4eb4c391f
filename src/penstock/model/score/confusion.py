"""Which classes are taken for which.

In: true and predicted codes. Out: the confusion matrix; precision, recall and F1 of each class.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.model.score.weighing import Counts, average_defined, divide, sum_by_code


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
