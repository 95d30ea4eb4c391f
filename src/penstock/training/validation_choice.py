"""Choices that are made with the validation records once the best epoch is known.

In: the model with its best weights, and the validation batches. Out: one `ValidationChoice` per target with
classes, stored in `run.yaml`. They depend on weights and records alone, so that a resumed run repeats them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.foundation.json_form import JsonValue
from penstock.model.task import Task

USUAL_THRESHOLD: Final = 0.5
"""The second label of two is predicted from this probability on."""

Predict: TypeAlias = Callable[[Mapping[str, NDArray[Any]]], Mapping[str, NDArray[Any]]]
"""Function from the inputs of a batch to probabilities and numbers by target."""


@dataclass(frozen=True, kw_only=True)
class ValidationChoice:
    """What was measured and chosen for one target on the validation records.

    Attributes:
        records: Number of validation records.
        balanced_accuracy: Balanced accuracy of the usual predictions: the most likely label, or the second
            label from a probability of 0.5 on.
        threshold: For two labels, the threshold with the highest balanced accuracy; None for other targets,
            and where only one label occurs.
        threshold_balanced_accuracy: Balanced accuracy with this threshold.
    """

    records: int = 0
    balanced_accuracy: float | None = None
    threshold: float | None = None
    threshold_balanced_accuracy: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: JsonValue) -> ValidationChoice:
        """Return a choice for its JSON form.

        Raises:
            SchemaError: A value has the wrong type, or is out of range.
        """
        children = value.children(*(each for each in cls.__dataclass_fields__))
        records = children.pop("records").integer(0, 2**63 - 1) if "records" in children else 0
        return cls(records=records, **{name: _read_share(each) for name, each in children.items()})

    def describe(self) -> str:
        """Return a sentence about balanced accuracy; empty if it is not known."""
        if self.balanced_accuracy is None:
            return ""
        text = f"balanced accuracy on validation: {self.balanced_accuracy:.4f}"
        if self.threshold is None or self.threshold_balanced_accuracy is None:
            return text
        return (
            f"{text} at a threshold of {USUAL_THRESHOLD}, at most {self.threshold_balanced_accuracy:.4f}, "
            f"at a threshold of {self.threshold:.3g}"
        )


def choose_on_validation(
    predict: Predict, tasks: Mapping[str, Task], batches: Iterable[Any]
) -> dict[str, ValidationChoice]:
    """Return the choice for each target with classes; none for targets whose predictions are not finite.

    Args:
        predict: Predictions of the model for the inputs of a batch.
        tasks: Task of each target.
        batches: Validation batches: inputs, targets, and possibly weights, which are ignored, as in an
            evaluation.
    """
    chosen = {name: task for name, task in tasks.items() if task.kind in ("binary", "multiclass")}
    if not chosen:
        return {}
    truths: dict[str, list[NDArray[Any]]] = {name: [] for name in chosen}
    found: dict[str, list[NDArray[Any]]] = {name: [] for name in chosen}
    for inputs, targets, *_ in batches:
        predicted = predict(inputs)
        for name in chosen:
            truths[name].append(np.asarray(targets[name]).astype(np.int64).reshape(-1))
            found[name].append(np.array(predicted[name], np.float64))
    choices = {}
    for name, task in chosen.items():
        if truths[name] and all(np.isfinite(each).all() for each in found[name]):
            choices[name] = _choose(task, np.concatenate(truths[name]), np.concatenate(found[name]))
    return choices


def _choose(task: Task, truth: NDArray[np.int64], predicted: NDArray[np.float64]) -> ValidationChoice:
    if task.kind == "multiclass":
        right = predicted.argmax(axis=1) == truth
    else:
        right = (predicted >= USUAL_THRESHOLD) == (truth > 0)
    recalls = [float(right[truth == code].mean()) for code in np.unique(truth)]
    threshold, highest = find_threshold(truth > 0, predicted) if task.kind == "binary" else (None, None)
    return ValidationChoice(
        records=len(truth),
        balanced_accuracy=sum(recalls) / len(recalls),
        threshold=threshold,
        threshold_balanced_accuracy=highest,
    )


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


def _read_share(value: JsonValue) -> float | None:
    if value.value is None:
        return None
    number = value.number()
    if not 0 <= number <= 1:
        raise value.refuse(expected="a number from 0 to 1")
    return number
