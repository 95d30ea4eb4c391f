"""Scores by task: how good predictions are, in the numbers that people compare.

In: truths and predictions of some records. Out: numbers by name, None where one is not defined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.model.task import Kind, Task
from penstock.score.metrics import (
    Calibration,
    ClassCounts,
    Counts,
    Ranking,
    auc,
    average,
    average_defined,
    count_classes,
    count_once,
    divide,
    total,
)

Number: TypeAlias = float | None
Scores: TypeAlias = dict[str, Number]
ScoreRows: TypeAlias = dict[str, NDArray[np.float64]]
"""By name, a number a row of counts; NaN where it is not defined."""
Scorer: TypeAlias = Callable[[Counts], ScoreRows]

CLASS_SCORES: Final = ("accuracy", "balanced_accuracy", "auc", "pr_auc", "f1", "log_loss", "ece")
NUMBER_SCORES: Final = ("rmse", "mae", "r2", "mape")
MAIN_SCORES: Final[dict[Kind, str]] = {
    "binary": "auc",
    "multiclass": "accuracy",
    "multilabel": "auc",
    "regression": "r2",
}
"""By which inputs are compared; the higher, the better."""

THRESHOLD: Final = 0.5
"""A label of two, or of a set, is given where its probability is at least this; in predictions, too."""

_LEAST: Final = 1e-7
"""Probabilities are cut to this and 1 − this before their logarithm is taken, as Keras does."""
_FLAT: Final = 1e-12
"""Numbers whose deviation is less than this share of their mean are one number."""


def score(task: Task, truth: NDArray[Any], predicted: NDArray[Any]) -> Scores:
    """Return the scores of some records.

    Of two labels: `accuracy`; `balanced_accuracy`, the mean recall of the classes that are there; `auc` and
    `pr_auc`, the areas under the ROC and the precision–recall curve of the second label, ties counting half
    and nothing interpolated; `f1` of the second label; `log_loss`; `ece`, how far the probability of the
    second label is from its frequency, in 15 bins. A probability of a half or more stands for that label.

    Of several: the same, areas and F1 as means over the classes, each against the rest; `ece` of the
    likeliest class. Of any number at once: the mean over the labels of each score; so `accuracy` is the
    share of labels that are right, not of records that are right in all.

    Of numbers: `rmse`, `mae`, `r2`, `mape` (a share: 0.1 is 10 %), over all elements of vectors; the
    variance of `r2` is that around the mean of each element.

    Not defined, and None: areas where all records are of the class or none is, F1 of a class that is neither
    there nor predicted, `r2` of truths without variance, `mape` without a truth other than 0 (those that are
    0 are left out), everything of no records or of numbers that are not finite.

    Args:
        task: What was predicted.
        truth: As codes: (n,), or (n, labels) of 0 and 1; or as stored numbers.
        predicted: (n,) probabilities of the second label, (n, labels) probabilities, or numbers.

    Example:
        >>> task = Task("adopted", "binary", ("no", "yes"))
        >>> score(task, np.array([0, 1, 1]), np.array([0.2, 0.9, 0.4]))["accuracy"]
        0.6666666666666666
    """
    names = NUMBER_SCORES if task.kind == "regression" else CLASS_SCORES
    if not is_sound(truth, predicted):
        return dict.fromkeys(names)
    found = make_scorer(task, truth, predicted)(count_once(len(truth)))
    return {name: to_number(found[name][0]) for name in names}


def score_main(task: Task, truth: NDArray[Any], predicted: NDArray[Any]) -> Number:
    """Return the one score by which inputs are compared."""
    if not is_sound(truth, predicted):
        return None
    if task.kind == "binary":
        return to_number(auc(truth > 0, predicted))
    if task.kind == "multilabel":
        areas = [auc(*each) for each in zip(truth.T > 0, predicted.T, strict=True)]
        return to_number(average_defined(np.array([areas]))[0])
    if task.kind == "multiclass":
        return to_number(float(np.mean(predict_codes(task, predicted) == truth)))
    return to_number(_score_numbers(truth, predicted)(count_once(len(truth)))["r2"][0])


def is_sound(truth: NDArray[Any], predicted: NDArray[Any]) -> bool:
    """Whether there is a record, and all numbers are finite: no score is defined otherwise."""
    return bool(len(truth) and np.isfinite(truth).all() and np.isfinite(predicted).all())


def make_scorer(
    task: Task, truth: NDArray[Any], predicted: NDArray[Any], *, has_areas: bool = True
) -> Scorer:
    """Return what gives all scores for each row of counts: for resamples, of which there are many.

    Args:
        task: As for `score`.
        truth: Likewise, of one record at least.
        predicted: Likewise, all finite.
        has_areas: Whether `auc` and `pr_auc` are wanted, which cost most.
    """
    if task.kind == "binary":
        return _score_binary(truth, predicted, has_areas)
    if task.kind == "multiclass":
        return _score_classes(truth, predicted, has_areas)
    if task.kind == "multilabel":
        return _score_labels(truth, predicted, has_areas)
    return _score_numbers(truth, predicted)


def predict_codes(task: Task, predicted: NDArray[Any]) -> NDArray[np.int64]:
    """Return the codes that probabilities stand for: of the likeliest label, or 1 from a half on."""
    codes = predicted.argmax(axis=1) if task.kind == "multiclass" else predicted >= THRESHOLD
    return np.asarray(codes, np.int64)


def lose(task: Task, truth: NDArray[Any], predicted: NDArray[Any]) -> NDArray[np.float64]:
    """Return how wrong each record is: its log loss, or the mean distance of its numbers."""
    if task.kind == "regression":
        losses = np.abs(_flat(predicted) - _flat(truth))
    elif task.kind == "multiclass":
        losses = _log_loss(predicted[np.arange(len(truth)), truth])[:, None]
    else:
        losses = _flat(_log_loss(np.where(truth > 0, predicted, 1 - predicted)))
    return np.asarray(losses.mean(axis=1))


def to_number(value: float) -> Number:
    """Return a number as JSON can hold it: None, if it is not finite."""
    return float(value) if math.isfinite(value) else None


def _score_binary(truth: NDArray[Any], predicted: NDArray[Any], has_areas: bool) -> Scorer:
    is_true = truth > 0
    true_codes, codes = is_true.astype(np.int64), (predicted >= THRESHOLD).astype(np.int64)
    rankings = [Ranking(is_true, predicted)] if has_areas else []
    losses = _log_loss(np.where(is_true, predicted, 1 - predicted))
    calibration = Calibration(predicted, is_true)

    def find(counts: Counts) -> ScoreRows:
        classes = count_classes(true_codes, codes, 2, counts)
        areas = _mean_areas(rankings, counts)
        return _list_rows(
            classes, classes.f1[:, 1], areas, average(losses, counts), calibration.error(counts)
        )

    return find


def _score_classes(truth: NDArray[Any], predicted: NDArray[Any], has_areas: bool) -> Scorer:
    num_classes, at = predicted.shape[1], np.arange(len(truth))
    true_codes, codes = truth.astype(np.int64), predicted.argmax(axis=1).astype(np.int64)
    each_class = range(num_classes) if has_areas else ()
    losses = _log_loss(predicted[at, true_codes])
    calibration = Calibration(predicted[at, codes], codes == truth)

    def find(counts: Counts) -> ScoreRows:
        classes = count_classes(true_codes, codes, num_classes, counts)
        # One after the other: of a thousand classes, the orders of all would fill the memory.
        rankings = (Ranking(truth == code, predicted[:, code]) for code in each_class)
        areas = _mean_areas(rankings, counts)
        return _list_rows(
            classes, classes.macro_f1, areas, average(losses, counts), calibration.error(counts)
        )

    return find


def _score_labels(truth: NDArray[Any], predicted: NDArray[Any], has_areas: bool) -> Scorer:
    pairs = list(zip(truth.T, predicted.T, strict=True))

    def find(counts: Counts) -> ScoreRows:
        each = [_score_binary(*pair, has_areas)(counts) for pair in pairs]
        return {
            name: average_defined(np.stack([rows[name] for rows in each], axis=1)) for name in CLASS_SCORES
        }

    return find


def _list_rows(
    classes: ClassCounts,
    f1: NDArray[np.float64],
    areas: tuple[NDArray[np.float64], NDArray[np.float64]],
    log_loss: NDArray[np.float64],
    ece: NDArray[np.float64],
) -> ScoreRows:
    accuracy = divide(classes.right.sum(axis=1), classes.support.sum(axis=1))
    rows = (accuracy, classes.balanced_accuracy, *areas, f1, log_loss, ece)
    return dict(zip(CLASS_SCORES, rows, strict=True))


def _mean_areas(
    rankings: Iterable[Ranking], counts: Counts
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the means over the classes of which each area is defined."""
    areas = [ranking.areas(counts) for ranking in rankings]
    if not areas:
        nothing = np.full(len(counts), np.nan)
        return nothing, nothing
    rocs, precisions = zip(*areas, strict=True)
    return average_defined(np.stack(rocs, axis=1)), average_defined(np.stack(precisions, axis=1))


def _score_numbers(truth: NDArray[Any], predicted: NDArray[Any]) -> Scorer:
    true, guessed = _flat(truth), _flat(predicted)
    distance = np.abs(guessed - true)
    is_some = true != 0
    shares = np.divide(distance, np.abs(true), out=np.zeros_like(distance), where=is_some)
    squares, distances, some, gaps = (
        each.sum(axis=1) for each in (distance**2, distance, is_some.astype(np.float64), shares)
    )

    def find(counts: Counts) -> ScoreRows:
        spread = np.zeros(len(counts))
        for column in true.T:
            spread += _spread(column, counts)
        num_values = counts.sum(axis=1) * true.shape[1]
        lost = total(squares, counts)
        return {
            "rmse": np.sqrt(divide(lost, num_values)),
            "mae": divide(total(distances, counts), num_values),
            "r2": 1 - divide(lost, spread),
            "mape": divide(total(gaps, counts), total(some, counts)),
        }

    return find


def _spread(column: NDArray[np.float64], counts: Counts) -> NDArray[np.float64]:
    """Return the sum of squares around the mean: exactly 0 where all numbers that count are one."""
    means = average(column, counts)
    gaps = column - means[:, None]
    gaps *= gaps
    gaps *= counts
    spread = gaps.sum(axis=1)
    return np.where(spread > counts.sum(axis=1) * (_FLAT * means) ** 2, spread, 0.0)


def _flat(values: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(values, np.float64).reshape(len(values), -1)


def _log_loss(probabilities: NDArray[Any]) -> NDArray[np.float64]:
    return -np.log(np.clip(probabilities.astype(np.float64), _LEAST, 1 - _LEAST))
