"""A trial: a short training whose predictions of the validation records are compared with others.

In: a plan, and the number of epochs. Out: predictions and losses of the validation records, as users get
them. A trial depends on data, options and seed alone, and leaves nothing behind.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock.errors import NonFiniteError
from penstock.model.batch_predictor import SMALLEST_CHANCE
from penstock.model.task import Task
from penstock.score.scores import Number, score_main
from penstock.training.fit import Fit
from penstock.training.train_plan import TrainPlan

MIN_VALIDATION: Final = 30
"""Minimum number of validation records for a trial; with fewer its outcome would be chance."""

MOST_VALIDATION: Final = 10_000
"""Maximum number of validation records that a trial predicts."""

_NO_CHECKPOINTS: Final = 1e9  # seconds
_SHIFTS: Final = (1, 2, 3)  # of the records of a batch, so that they have the values of others

Predictions = dict[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Trial:
    """Predictions of the validation records after a short training.

    Attributes:
        tasks: Task of each target.
        truths: True values by target, as stored.
        predictions: Predictions by target, in the same units.
        exchanged: By part of the inputs: predictions where each record has that part of another record.
        fit_seconds: Seconds of the training, without those predictions.
    """

    tasks: Mapping[str, Task]
    truths: Mapping[str, NDArray[np.float64]]
    predictions: Mapping[str, NDArray[np.float64]]
    exchanged: Mapping[str, Sequence[Predictions]] = field(default_factory=dict)
    fit_seconds: float = 0.0

    def score(self) -> dict[str, Number]:
        """Return the main score of each target; higher is better."""
        return {
            name: score_main(task, self.truths[name], self.predictions[name])
            for name, task in self.tasks.items()
        }

    def find_losses(self, plan: TrainPlan) -> NDArray[np.float64]:
        """Return the loss of each record, the sum over the targets, with the weights of the options."""
        return self._find_losses(plan, self.predictions)

    def find_exchanged_losses(self, plan: TrainPlan) -> dict[str, NDArray[np.float64]]:
        """Return, by part, the mean loss of each record with that part of other records."""
        return {
            part: np.mean([self._find_losses(plan, each) for each in found], axis=0)
            for part, found in self.exchanged.items()
        }

    def _find_losses(
        self, plan: TrainPlan, predictions: Mapping[str, NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        weights = plan.options.loss_weights
        losses = [
            float(weights.get(name, 1.0))
            * compute_losses(
                task,
                self.truths[name],
                predictions[name],
                is_robust=plan.losses.get(name) == "huber",
            )
            for name, task in self.tasks.items()
        ]
        return np.asarray(np.sum(losses, axis=0), np.float64)


def run_trial(
    plan: TrainPlan, epochs: int, parts: Mapping[str, Collection[str]] | None = None
) -> Trial | None:
    """Train in a temporary folder, and predict the validation records.

    Return None if the loss or a prediction was not finite, or without validation.
    """
    options = plan.options.replace(epochs=epochs, checkpoint_seconds=_NO_CHECKPOINTS)
    with tempfile.TemporaryDirectory(prefix="penstock-trial-") as folder:
        return fit_and_predict(Fit(replace(plan, options=options), Path(folder)), parts or {})


def fit_and_predict(fit: Fit, parts: Mapping[str, Collection[str]]) -> Trial | None:
    """Train up to the last checkpoint, and predict the validation records.

    See `run_trial`.
    """
    begun = time.monotonic()
    try:
        predict, loaders = fit.run_unfinished()
    except NonFiniteError:
        return None
    fit_seconds = time.monotonic() - begun
    if loaders.validation is None:
        return None
    tasks, number = predict.tasks, 0
    truths: dict[str, list[NDArray[np.float64]]] = {name: [] for name in tasks}
    found: dict[tuple[str, int], dict[str, list[NDArray[np.float64]]]] = {}
    units = {("", 0): (), **{(part, shift): names for part, names in parts.items() for shift in _SHIFTS}}
    with loaders.validation.read(0) as batches:
        for inputs, targets, *_ in batches:
            for name, task in tasks.items():
                truths[name].append(task.undo(np.array(targets[name], np.float64)))
            for unit, names in units.items():
                predicted = predict({**inputs, **{name: np.roll(inputs[name], unit[1], 0) for name in names}})
                lists = found.setdefault(unit, {name: [] for name in tasks})
                for name in tasks:
                    lists[name].append(np.asarray(predicted[name], np.float64))
            number += len(next(iter(targets.values())))
            if number >= MOST_VALIDATION:
                break
    # Trials with other batches end elsewhere, but comparisons need the same records.
    made = {
        unit: {name: np.concatenate(each)[:MOST_VALIDATION] for name, each in lists.items()}
        for unit, lists in found.items()
    }
    if not all(np.isfinite(each).all() for predictions in made.values() for each in predictions.values()):
        return None
    whole: dict[str, NDArray[Any]] = {
        name: np.concatenate(each)[:MOST_VALIDATION] for name, each in truths.items()
    }
    exchanged = {part: [made[part, shift] for shift in _SHIFTS] for part in parts}
    return Trial(tasks, whole, made["", 0], exchanged, fit_seconds)


def compute_losses(
    task: Task, truth: NDArray[np.float64], predicted: NDArray[np.float64], *, is_robust: bool = False
) -> NDArray[np.float64]:
    """Return the loss of each record, as in training: cross-entropy, or squared errors of scaled numbers.

    `truth`: codes, or zeros and ones by label, or numbers as stored. `predicted`: probabilities of the second
    label or of each label, or numbers as stored. `is_robust`: whether errors of numbers beyond one standard
    deviation count linearly.

    Example:
        >>> task = Task("adopted", "binary", ("no", "yes"))
        >>> compute_losses(task, np.array([1.0, 0.0]), np.array([0.5, 0.5])).round(3).tolist()
        [0.693, 0.693]
    """
    if task.kind == "regression":
        errors = (task.scale(predicted) - task.scale(truth)) / (task.deviation or 1.0)
        sizes = np.abs(errors)
        squares = np.where(sizes <= 1, errors**2, 2 * sizes - 1) if is_robust else errors**2
        return np.asarray(squares.reshape(len(truth), -1).mean(axis=1), np.float64)
    if task.kind == "multiclass":
        right = predicted[np.arange(len(truth)), truth.astype(np.int64).reshape(-1)]
    else:
        right = np.where(truth > 0, predicted, 1 - predicted)
    losses = -np.log(np.clip(right, SMALLEST_CHANCE, 1)).reshape(len(truth), -1)
    return np.asarray(losses.mean(axis=1), np.float64)
