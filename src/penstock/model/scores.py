"""Scores by task: how good predictions are, in the numbers that people compare.

In: truths and predictions of some records. Out: numbers by name, None where one is not defined.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.model.calibration import calibration_error
from penstock.model.confusion import count_classes
from penstock.model.ranking import Ranking, auc
from penstock.model.task import Kind, Task
from penstock.model.weighing import Counts, average, average_defined, count_once, divide

Number: TypeAlias = float | None
Scores: TypeAlias = dict[str, Number]
Rows: TypeAlias = dict[str, NDArray[np.float64]]
"""By name, a number a row of counts; NaN where it is not defined."""

CLASS_SCORES: Final = ("accuracy", "balanced_accuracy", "auc", "pr_auc", "f1", "log_loss", "ece")
NUMBER_SCORES: Final = ("rmse", "mae", "r2", "mape")
MAIN_SCORES: Final[dict[Kind, str]] = {
    "binary": "auc",
    "multiclass": "accuracy",
    "multilabel": "auc",
    "regression": "r2",
}
"""By which inputs are compared; the higher, the better."""

_LEAST: Final = 1e-7
"""Probabilities are cut to this and 1 − this before their logarithm is taken, as Keras does."""


def score(task: Task, truth: NDArray[Any], predicted: NDArray[Any]) -> Scores:
    """Return the scores of some records.

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
    found = score_rows(task, truth, predicted, count_once(len(truth)))
    return {name: to_number(found[name][0]) for name in names}


def score_main(task: Task, truth: NDArray[Any], predicted: NDArray[Any]) -> Number:
    """Return the one score by which inputs are compared."""
    if not is_sound(truth, predicted):
        return None
    counts = count_once(len(truth))
    if task.kind == "binary":
        return to_number(auc(truth > 0, predicted, counts)[0])
    if task.kind == "multilabel":
        areas = [auc(truth[:, k] > 0, predicted[:, k], counts) for k in range(len(task.labels))]
        return to_number(average_defined(np.stack(areas, axis=1))[0])
    if task.kind == "multiclass":
        return to_number(float(np.mean(predict_codes(task, predicted) == truth)))
    return to_number(_score_numbers(truth, predicted, counts)["r2"][0])


def is_sound(truth: NDArray[Any], predicted: NDArray[Any]) -> bool:
    """Whether there is a record, and all numbers are finite: no score is defined otherwise."""
    return bool(len(truth) and np.isfinite(truth).all() and np.isfinite(predicted).all())


def score_rows(task: Task, truth: NDArray[Any], predicted: NDArray[Any], counts: Counts) -> Rows:
    """Return the scores for each row of counts: for resamples, of which there are many."""
    return _SCORERS[task.kind](truth, predicted, counts)


def predict_codes(task: Task, predicted: NDArray[Any]) -> NDArray[np.int64]:
    """Return the codes that probabilities stand for: of the likeliest label, or 1 for each of at least a half."""
    codes = predicted.argmax(axis=1) if task.kind == "multiclass" else predicted >= 0.5
    return np.asarray(codes, np.int64)


def lose(task: Task, truth: NDArray[Any], predicted: NDArray[Any]) -> NDArray[np.float64]:
    """Return how wrong each record is: its log loss, or the mean distance of its numbers."""
    if task.kind == "regression":
        losses = np.abs(_flat(predicted) - _flat(truth))
    elif task.kind == "multiclass":
        losses = _log_loss_of(predicted[np.arange(len(truth)), truth])[:, None]
    else:
        losses = _flat(_log_loss_of(np.where(truth > 0, predicted, 1 - predicted)))
    return np.asarray(losses.mean(axis=1))


def to_number(value: float) -> Number:
    """Return a number as JSON can hold it: None, if it is not finite."""
    return float(value) if math.isfinite(value) else None


def _score_binary(truth: NDArray[Any], predicted: NDArray[Any], counts: Counts) -> Rows:
    is_true = truth > 0
    codes = (predicted >= 0.5).astype(np.int64)
    classes = count_classes(is_true.astype(np.int64), codes, 2, counts)
    roc, precision = Ranking(is_true, predicted).areas(counts)
    return {
        "accuracy": divide(classes.right.sum(axis=1), counts.sum(axis=1)),
        "balanced_accuracy": classes.balanced_accuracy,
        "auc": roc,
        "pr_auc": precision,
        "f1": classes.f1[:, 1],
        "log_loss": average(_log_loss_of(np.where(is_true, predicted, 1 - predicted)), counts),
        "ece": calibration_error(predicted, is_true, counts),
    }


def _score_classes(truth: NDArray[Any], predicted: NDArray[Any], counts: Counts) -> Rows:
    num_classes, codes = predicted.shape[1], predicted.argmax(axis=1)
    classes = count_classes(truth.astype(np.int64), codes, num_classes, counts)
    areas = [Ranking(truth == code, predicted[:, code]).areas(counts) for code in range(num_classes)]
    at = np.arange(len(truth))
    return {
        "accuracy": divide(classes.right.sum(axis=1), counts.sum(axis=1)),
        "balanced_accuracy": classes.balanced_accuracy,
        "auc": average_defined(np.stack([roc for roc, _ in areas], axis=1)),
        "pr_auc": average_defined(np.stack([precision for _, precision in areas], axis=1)),
        "f1": classes.macro_f1,
        "log_loss": average(_log_loss_of(predicted[at, truth]), counts),
        "ece": calibration_error(predicted[at, codes], codes == truth, counts),
    }


def _score_labels(truth: NDArray[Any], predicted: NDArray[Any], counts: Counts) -> Rows:
    each = [_score_binary(truth[:, k], predicted[:, k], counts) for k in range(predicted.shape[1])]
    return {name: average_defined(np.stack([rows[name] for rows in each], axis=1)) for name in CLASS_SCORES}


def _score_numbers(truth: NDArray[Any], predicted: NDArray[Any], counts: Counts) -> Rows:
    true, guessed = _flat(truth), _flat(predicted)
    distance = np.abs(guessed - true)
    squares = counts @ (distance**2)
    total = counts.sum(axis=1)
    spread = sum(_spread(column, counts) for column in true.T)
    is_some = true != 0
    shares = np.divide(distance, np.abs(true), out=np.zeros_like(distance), where=is_some)
    width = true.shape[1]
    return {
        "rmse": np.sqrt(divide(squares.sum(axis=1), total * width)),
        "mae": divide((counts @ distance).sum(axis=1), total * width),
        "r2": 1 - divide(squares.sum(axis=1), np.asarray(spread)),
        "mape": divide((counts @ shares).sum(axis=1), (counts @ is_some.astype(np.float64)).sum(axis=1)),
    }


def _spread(column: NDArray[np.float64], counts: Counts) -> NDArray[np.float64]:
    """Return the sum of squares around the mean: exactly 0 where all numbers that count are one."""
    gaps = column - average(column, counts)[:, None]
    is_there = counts > 0
    high = np.max(np.broadcast_to(column, counts.shape), axis=1, where=is_there, initial=-np.inf)
    low = np.min(np.broadcast_to(column, counts.shape), axis=1, where=is_there, initial=np.inf)
    return np.where(high > low, (counts * gaps**2).sum(axis=1), 0.0)


def _flat(values: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(values, np.float64).reshape(len(values), -1)


def _log_loss_of(probabilities: NDArray[Any]) -> NDArray[np.float64]:
    return -np.log(np.clip(probabilities.astype(np.float64), _LEAST, 1 - _LEAST))


_SCORERS: Final[dict[Kind, Callable[[NDArray[Any], NDArray[Any], Counts], Rows]]] = {
    "binary": _score_binary,
    "multiclass": _score_classes,
    "multilabel": _score_labels,
    "regression": _score_numbers,
}
