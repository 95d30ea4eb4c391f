"""Choices that are made with the validation records once the best epoch is known.

In: the model with its best weights, and the validation batches. Out: one `ValidationChoice` per target with
classes, stored in `run.yaml`. They depend on weights and records alone, so that a resumed run repeats them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.foundation.json_form import JsonValue
from penstock.model.batch_predictor import (
    MAX_TEMPERATURE,
    MIN_TEMPERATURE,
    NUM_BINS,
    SMALLEST_CHANCE,
    apply_temperature,
    compute_logits,
    compute_sigmoid,
    compute_softmax,
)
from penstock.model.task import Kind, Task

USUAL_THRESHOLD: Final = 0.5
"""The second label of two is predicted from this probability on."""

_SIGNIFICANT: Final = 3.84
_NUM_HALVINGS: Final = 30
MIN_TEMPERATURE_ROWS: Final = 100
"""Minimum number of validation records to fit a temperature: fewer say little about probabilities."""

_LEAST_ROWS: Final = 1_000
_MOST_NUMBERS: Final = 1 << 22
"""Maximum number of probabilities that a temperature is fitted to; the first records are used."""

Predict: TypeAlias = Callable[[Mapping[str, NDArray[Any]]], Mapping[str, NDArray[Any]]]
"""Function from the inputs of a batch to probabilities and numbers by target."""


@dataclass(frozen=True, kw_only=True)
class ValidationChoice:
    """Measurements and choices for one target on the validation records.

    Attributes:
        records: Number of validation records.
        balanced_accuracy: Balanced accuracy of the usual predictions: the most likely label, or the second
            label from a probability of 0.5 on.
        temperature: Number that the logits are divided by in predictions; 1 changes nothing.
        log_loss: Log loss with this temperature.
        raw_log_loss: Log loss of the model's own probabilities.
        ece: Expected calibration error with this temperature, as an evaluation defines it.
        raw_ece: Expected calibration error of the model's own probabilities.
        threshold: For two labels, the threshold with the highest balanced accuracy; None for other targets,
            and where only one label occurs.
        threshold_balanced_accuracy: Balanced accuracy with this threshold.
    """

    records: int = 0
    temperature: float = 1.0
    log_loss: float | None = None
    raw_log_loss: float | None = None
    ece: float | None = None
    raw_ece: float | None = None
    balanced_accuracy: float | None = None
    threshold: float | None = None
    threshold_balanced_accuracy: float | None = None

    def to_json(self) -> dict[str, float | None]:
        """Return the JSON form."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: JsonValue) -> ValidationChoice:
        """Return a choice for its JSON form.

        Raises:
            SchemaError: A value has the wrong type, or is out of range.
        """
        children = value.children(*(each for each in cls.__dataclass_fields__))
        records = children.pop("records").count() if "records" in children else 0
        temperature = 1.0
        if "temperature" in children:
            given = children.pop("temperature")
            temperature = given.number()
            if not MIN_TEMPERATURE <= temperature <= MAX_TEMPERATURE:
                raise given.refuse(expected=f"a number from {MIN_TEMPERATURE} to {MAX_TEMPERATURE}")
        scores = {name: _read_score(name, each) for name, each in children.items()}
        return cls(records=records, temperature=temperature, **scores)

    def describe(self) -> list[str]:
        """Return lines about calibration and balanced accuracy, as far as they are known."""
        lines = []
        if self.ece is not None and self.raw_ece is not None:
            text = f"calibration error on validation: {self.ece:#.3g}"
            if self.temperature != 1:
                text += f" with a temperature of {self.temperature:.3g}, {self.raw_ece:#.3g} without"
            lines.append(text)
        if self.balanced_accuracy is not None:
            text = f"balanced accuracy on validation: {self.balanced_accuracy:#.3g}"
            if self.threshold is not None and self.threshold_balanced_accuracy is not None:
                text += (
                    f" at a threshold of {USUAL_THRESHOLD}, at most {self.threshold_balanced_accuracy:#.3g}, "
                    f"at a threshold of {self.threshold:.3g}"
                )
            lines.append(text)
        return lines


def choose_on_validation(
    predict: Predict, tasks: Mapping[str, Task], batches: Iterable[Any], keep: Collection[str] = ()
) -> dict[str, ValidationChoice]:
    """Return the choice for each target with classes; none for targets whose predictions are not finite.

    `predict`: predictions of the model for the inputs of a batch. `batches`: validation batches: inputs,
    targets, and possibly weights, which are ignored, as in an evaluation. `keep`: targets whose probabilities
    come from the model alone, without a temperature.
    """
    chosen = {name: task for name, task in tasks.items() if task.labels}
    if not chosen:
        return {}
    truths: dict[str, list[NDArray[Any]]] = {name: [] for name in chosen}
    found: dict[str, list[NDArray[Any]]] = {name: [] for name in chosen}
    for inputs, targets, *_ in batches:
        predicted = predict(inputs)
        for name in chosen:
            truths[name].append(np.asarray(targets[name]).astype(np.int64))
            found[name].append(np.array(predicted[name], np.float64))
    choices = {}
    for name, task in chosen.items():
        if truths[name] and all(np.isfinite(each).all() for each in found[name]):
            chances = np.concatenate(found[name])
            shape = chances.shape[:1] if task.kind == "multiclass" else chances.shape
            truth = np.concatenate(truths[name]).reshape(shape)
            choices[name] = _choose(task, truth, chances, name in keep)
    return choices


def _choose(
    task: Task, truth: NDArray[np.int64], predicted: NDArray[np.float64], is_kept: bool
) -> ValidationChoice:
    temperature = 1.0 if is_kept else fit_temperature(task.kind, truth, predicted)
    cooled = apply_temperature(task.kind, predicted, temperature)
    choice = ValidationChoice(
        records=len(truth),
        temperature=temperature,
        log_loss=_compute_log_loss(task.kind, truth, cooled),
        raw_log_loss=_compute_log_loss(task.kind, truth, predicted),
        ece=_compute_ece(task.kind, truth, cooled),
        raw_ece=_compute_ece(task.kind, truth, predicted),
    )
    if task.kind == "multilabel":
        return choice
    if task.kind == "multiclass":
        right = cooled.argmax(axis=1) == truth
    else:
        right = (cooled >= USUAL_THRESHOLD) == (truth > 0)
    recalls = [float(right[truth == code].mean()) for code in np.unique(truth)]
    threshold, highest = find_threshold(truth > 0, cooled) if task.kind == "binary" else (None, None)
    return replace(
        choice,
        balanced_accuracy=sum(recalls) / len(recalls),
        threshold=threshold,
        threshold_balanced_accuracy=highest,
    )


def fit_temperature(kind: Kind, truth: NDArray[np.int64], predicted: NDArray[np.float64]) -> float:
    """Return the temperature of the lowest log loss; 1 if the gain may be chance.

    The gain is significant if twice the difference of the log likelihoods exceeds 3.84, the 95 % quantile of
    the chi-squared distribution with one degree of freedom.

    `truth`: codes (n,), or (n, labels) of 0 and 1. `predicted`: probabilities of the second label (n,), or
    probabilities (n, labels).

    Example:
        >>> truth = np.array([1] * 70 + [0] * 30)
        >>> fit_temperature("binary", truth, np.full(100, 0.99))  # right in 70 of 100 records
        5.0
    """
    if len(truth) < MIN_TEMPERATURE_ROWS or (kind != "multilabel" and len(np.unique(truth)) < 2):
        return 1.0
    most = max(_LEAST_ROWS, _MOST_NUMBERS // max(1, predicted.size // max(1, len(predicted))))
    truth, predicted = truth[:most], predicted[:most]
    logits = compute_logits(kind, predicted)
    sign = np.where(truth > 0, 1.0, -1.0) if kind != "multiclass" else None
    rows = np.arange(len(truth))

    def slope(scale: float) -> float:
        """Return the derivative of the log loss by the scale, which rises with the scale."""
        if sign is not None:
            return float(np.mean(-sign * logits * compute_sigmoid(-sign * logits * scale)))
        chances = compute_softmax(logits * scale)
        return float(np.mean((chances * logits).sum(axis=1) - logits[rows, truth]))

    low, high = math.log(1 / MAX_TEMPERATURE), math.log(1 / MIN_TEMPERATURE)
    for _ in range(_NUM_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(math.exp(middle)) > 0 else (middle, high)
    temperature = float(f"{math.exp(-(low + high) / 2):.4g}")
    cooled = apply_temperature(kind, predicted, temperature)
    gain = _compute_log_loss(kind, truth, predicted) - _compute_log_loss(kind, truth, cooled)
    is_certain = 2 * gain * truth.size > _SIGNIFICANT
    return temperature if is_certain and MIN_TEMPERATURE <= temperature <= MAX_TEMPERATURE else 1.0


def find_threshold(
    truth: NDArray[np.bool_], predicted: NDArray[np.float64]
) -> tuple[float | None, float | None]:
    """Return the threshold with the highest balanced accuracy, and that accuracy; None for a single class.

    Thresholds lie halfway between neighbouring predictions. Of equally good ones, the nearest to 0.5 is
    taken, and 0.5 itself if it is as good as any.

    Example:
        >>> find_threshold(np.array([False, False, True, True]), np.array([0.1, 0.2, 0.3, 0.9]))
        (0.25, 1.0)
    """
    num_true = int(truth.sum())
    num_false = len(truth) - num_true
    if not num_true or not num_false:
        return None, None
    values, at = np.unique(predicted, return_inverse=True)
    hits = np.bincount(at, weights=truth, minlength=len(values))
    misses = np.bincount(at, weights=~truth, minlength=len(values))
    middles = (values[1:] + values[:-1]) / 2
    # A middle that is rounded to its lower neighbour would count that one, too.
    middles = np.where(middles > values[:-1], middles, values[1:])
    # Below the first middle lies the first value, and so on.
    recalls = 1 - np.cumsum(hits)[:-1] / num_true
    accuracies = (recalls + np.cumsum(misses)[:-1] / num_false) / 2
    usual = predicted >= USUAL_THRESHOLD
    known = float((usual[truth].mean() + 1 - usual[~truth].mean()) / 2)
    thresholds = np.append(middles, USUAL_THRESHOLD)
    accuracies = np.append(accuracies, known)
    best = np.flatnonzero(accuracies >= accuracies.max() - _ROUNDING)
    nearest = best[np.argmin(np.abs(thresholds[best] - USUAL_THRESHOLD))]
    return float(thresholds[nearest]), float(accuracies[nearest])


_ROUNDING: Final = 1e-12  # accuracies that differ by less are equal


def _compute_log_loss(kind: Kind, truth: NDArray[np.int64], predicted: NDArray[np.float64]) -> float:
    if kind == "multiclass":
        right = predicted[np.arange(len(truth)), truth]
    else:
        right = np.where(truth > 0, predicted, 1 - predicted)
    return float(-np.log(np.clip(right, SMALLEST_CHANCE, 1)).mean())


def _compute_ece(kind: Kind, truth: NDArray[np.int64], predicted: NDArray[np.float64]) -> float:
    """Return the expected calibration error; for several labels, the mean over the labels."""
    if kind == "multilabel":
        pairs = zip(truth.T, predicted.T, strict=True)
        return float(np.mean([_compute_ece("binary", *each) for each in pairs]))
    chances, right = predicted, truth > 0
    if kind == "multiclass":
        codes = predicted.argmax(axis=1)
        chances, right = predicted[np.arange(len(codes)), codes], codes == truth
    bins = np.clip((chances * NUM_BINS).astype(np.int64), 0, NUM_BINS - 1)
    return float(np.abs(np.bincount(bins, weights=right - chances)).sum() / len(bins))


def _read_score(name: str, value: JsonValue) -> float | None:
    if value.value is None:
        return None
    number = value.number()
    if number < 0 or (number > 1 and not name.endswith("log_loss")):
        raise value.refuse(expected="a number from 0 to 1")
    return number
