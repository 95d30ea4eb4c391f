"""Scores by task: accuracy, AUC, F1, log loss and others for classes; RMSE, R² and others for numbers.

In: truths and predictions of records. Out: numbers by name, None where a score is undefined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.model.batch_predictor import SMALLEST_CHANCE
from penstock.model.task import Kind, Task
from penstock.schema.date import DAY
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
"""By name, one number per row of counts; NaN where the score is undefined."""
Scorer: TypeAlias = Callable[[Counts], ScoreRows]

CLASS_SCORES: Final = ("accuracy", "balanced_accuracy", "auc", "pr_auc", "f1", "log_loss", "ece")
NUMBER_SCORES: Final = ("rmse", "mae", "r2", "mape")
MAIN_SCORES: Final[dict[Kind, str]] = {
    "binary": "auc",
    "multiclass": "accuracy",
    "multilabel": "auc",
    "regression": "r2",
}
"""The score that feature importance is measured by; higher is better."""

THRESHOLD: Final = 0.5
"""The second label of two, or a label of a multilabel target, is predicted from this probability on."""

_FLAT: Final = 1e-12
"""Numbers whose standard deviation is less than this share of their mean are taken as equal."""


def score(task: Task, truth: NDArray[Any], predicted: NDArray[Any], *, has_areas: bool = True) -> Scores:
    """Return the scores of predictions.

    Binary: `accuracy`; `balanced_accuracy`, the mean recall of the classes that have records; `auc` and
    `pr_auc`, the areas under the ROC and the precision–recall curve of the second label, ties counting half,
    without interpolation; `f1` of the second label; `log_loss`; `ece`, the expected calibration error of the
    second label in 15 bins. The second label is predicted from a probability of 0.5 on.

    Multiclass: the same, with areas and F1 as means over the classes, each against the rest, and `ece` of the
    most likely class. Multilabel: the mean of each score over the labels; `accuracy` is the share of labels
    that are correct, not of records with all labels correct.

    Regression: `rmse`, `mae`, `r2`, `mape` (a share: 0.1 is 10 %), over all elements of vectors; `r2` uses
    the variance around the mean of each element. Errors of dates are in days.

    Undefined, and None: areas where all or no records are of the class; F1 of a class with neither records
    nor predictions; `r2` of truths without variance; `mape` of dates, and if all truths are 0 (truths of 0
    are ignored); all scores without records, or with numbers that are not finite.

    `truth`: codes (n,), or (n, labels) of 0 and 1; or stored numbers. `predicted`: probabilities of the
    second label (n,), probabilities (n, labels), or numbers. `has_areas`: whether to compute `auc` and
    `pr_auc`, which take most of the time; None otherwise.

    Example:
        >>> task = Task("adopted", "binary", ("no", "yes"))
        >>> score(task, np.array([0, 1, 1]), np.array([0.2, 0.9, 0.4]))["accuracy"]
        0.6666666666666666
    """
    names = NUMBER_SCORES if task.kind == "regression" else CLASS_SCORES
    if not is_scorable(truth, predicted):
        return dict.fromkeys(names)
    found = make_scorer(task, truth, predicted, has_areas=has_areas)(count_once(len(truth)))
    return {name: to_number(found[name][0]) for name in names}


def score_baseline(task: Task, truth: NDArray[Any], *, has_areas: bool = True) -> Scores:
    """Return the scores of one prediction for all records: the most frequent class, or the mean.

    The probabilities are the shares of the classes in these records, so that no other constant prediction has
    a lower log loss. The calibration error of a constant says nothing, and is None.

    `truth`: truths as for `score`. `has_areas`: whether to compute `auc` and `pr_auc`.

    Example:
        >>> task = Task("adopted", "binary", ("no", "yes"))
        >>> score_baseline(task, np.array([0, 0, 0, 1]))["accuracy"]
        0.75
    """
    if task.kind == "multiclass":
        constant = np.bincount(truth.astype(np.int64), minlength=len(task.labels)) / max(len(truth), 1)
    else:
        constant = truth.astype(np.float64).mean(axis=0) if len(truth) else np.zeros(truth.shape[1:])
    found = score(task, truth, np.broadcast_to(constant, (len(truth), *constant.shape)), has_areas=has_areas)
    return {name: None if name == "ece" else value for name, value in found.items()}


def score_main(task: Task, truth: NDArray[Any], predicted: NDArray[Any]) -> Number:
    """Return the main score of the task, by which feature importance is measured."""
    if not is_scorable(truth, predicted):
        return None
    if task.kind == "binary":
        return to_number(auc(truth > 0, predicted))
    if task.kind == "multilabel":
        areas = [auc(*each) for each in zip(truth.T > 0, predicted.T, strict=True)]
        return to_number(average_defined(np.array([areas]))[0])
    if task.kind == "multiclass":
        return to_number(float(np.mean(predict_codes(task, predicted) == truth)))
    return to_number(_score_numbers(truth, predicted)(count_once(len(truth)))["r2"][0])


def is_scorable(truth: NDArray[Any], predicted: NDArray[Any]) -> bool:
    """Whether scores are defined: there is at least one record, and all numbers are finite."""
    return bool(len(truth) and np.isfinite(truth).all() and np.isfinite(predicted).all())


def make_scorer(
    task: Task, truth: NDArray[Any], predicted: NDArray[Any], *, has_areas: bool = True
) -> Scorer:
    """Return a function from counts to all scores of each row, for many resamples.

    `truth`: truths as for `score`, of at least one record. `predicted`: predictions as for `score`, all
    finite. `has_areas`: whether to compute `auc` and `pr_auc`, which take most of the time.
    """
    if task.kind == "binary":
        return _score_binary(truth, predicted, has_areas)
    if task.kind == "multiclass":
        return _score_classes(truth, predicted, has_areas)
    if task.kind == "multilabel":
        return _score_labels(truth, predicted, has_areas)
    return _score_numbers(*in_days(task, truth, predicted), has_shares=task.unit is None)


def in_days(task: Task, *values: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return the numbers of a target; points in time as days, in which their errors are shown."""
    if task.unit != "microseconds":
        return values
    return tuple(np.asarray(each, np.float64) / DAY for each in values)


def score_threshold(truth: NDArray[Any], predicted: NDArray[Any], threshold: float) -> Scores:
    """Return the scores of a binary target that depend on the threshold, for a threshold of your choice.

    Example:
        >>> score_threshold(np.array([0, 1, 1]), np.array([0.2, 0.9, 0.4]), 0.3)["balanced_accuracy"]
        1.0
    """
    names = ("accuracy", "balanced_accuracy", "f1")
    if not is_scorable(truth, predicted):
        return {"threshold": threshold, **dict.fromkeys(names)}
    codes = (predicted >= threshold).astype(np.float64)  # as probabilities, divided at 0.5
    found = _score_binary(truth, codes, has_areas=False)(count_once(len(truth)))
    return {"threshold": threshold, **{name: to_number(found[name][0]) for name in names}}


def list_calibrations(task: Task, truth: NDArray[Any], predicted: NDArray[Any]) -> list[Calibration]:
    """Return the calibrations whose mean error is `ece`: one, or one per label of a multilabel target.

    `truth`: truths as for `score`, of at least one record. `predicted`: predictions as for `score`, all
    finite.
    """
    if task.kind == "multiclass":
        codes = predicted.argmax(axis=1)
        return [Calibration(predicted[np.arange(len(truth)), codes], codes == truth)]
    columns = zip(predicted.reshape(len(truth), -1).T, truth.reshape(len(truth), -1).T, strict=True)
    return [Calibration(chances, labels > 0) for chances, labels in columns]


def predict_codes(task: Task, predicted: NDArray[Any]) -> NDArray[np.int64]:
    """Return the predicted codes: the most likely label, or 1 from a probability of 0.5 on."""
    codes = predicted.argmax(axis=1) if task.kind == "multiclass" else predicted >= THRESHOLD
    return np.asarray(codes, np.int64)


def compute_losses(task: Task, truth: NDArray[Any], predicted: NDArray[Any]) -> NDArray[np.float64]:
    """Return the loss of each record: its log loss, or its mean absolute error."""
    if task.kind == "regression":
        true, guessed = in_days(task, truth, predicted)
        losses = np.abs(_flat(guessed) - _flat(true))
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
        # One class at a time: with a thousand classes, the sorted indices of all would fill the memory.
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
    """Return the mean of each area over the classes for which it is defined."""
    areas = [ranking.areas(counts) for ranking in rankings]
    if not areas:
        nothing = np.full(len(counts), np.nan)
        return nothing, nothing
    rocs, precisions = zip(*areas, strict=True)
    return average_defined(np.stack(rocs, axis=1)), average_defined(np.stack(precisions, axis=1))


def _score_numbers(truth: NDArray[Any], predicted: NDArray[Any], *, has_shares: bool = True) -> Scorer:
    true, guessed = _flat(truth), _flat(predicted)
    distance = np.abs(guessed - true)
    is_some = (true != 0) & has_shares  # of dates, 0 is not the absence of something
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
    """Return the sum of squares around the mean: exactly 0 where all numbers that count are equal."""
    means = average(column, counts)
    gaps = column - means[:, None]
    gaps *= gaps
    gaps *= counts
    spread = gaps.sum(axis=1)
    return np.where(spread > counts.sum(axis=1) * (_FLAT * means) ** 2, spread, 0.0)


def _flat(values: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(values, np.float64).reshape(len(values), -1)


def _log_loss(probabilities: NDArray[Any]) -> NDArray[np.float64]:
    chances = np.clip(probabilities.astype(np.float64), SMALLEST_CHANCE, 1 - SMALLEST_CHANCE)  # as in Keras
    return -np.log(chances)
