"""A trial: a short training whose predictions of the validation records are compared with those of others.

In: a training, what to change about it. Out: predictions and losses of the validation records. A trial
depends on data, options and seed alone, and leaves nothing behind.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock.errors import NonFiniteError
from penstock.model.task import Task
from penstock.model.temperature import SMALLEST_CHANCE
from penstock.score.scores import Number, score_main
from penstock.training.progress import SilentWatcher
from penstock.training.train import Training

MIN_VALIDATION: Final = 30
"""Minimum number of validation records for a trial; with fewer its outcome would be chance."""

_NO_CHECKPOINTS: Final = 1e9  # seconds


@dataclass(frozen=True)
class Trial:
    """Predictions of the validation records after a short training.

    Attributes:
        tasks: Task of each target.
        truths: True values by target, as stored.
        predictions: Predictions by target, in the same units.
    """

    tasks: Mapping[str, Task]
    truths: Mapping[str, NDArray[np.float64]]
    predictions: Mapping[str, NDArray[np.float64]]

    def score(self) -> dict[str, Number]:
        """Return the main score of each target; higher is better."""
        return {
            name: score_main(task, self.truths[name], self.predictions[name])
            for name, task in self.tasks.items()
        }

    def find_losses(self, training: Training) -> NDArray[np.float64]:
        """Return the loss of each record, the sum over the targets, with the weights of the options."""
        weights = training.options.loss_weights
        losses = [
            float(weights.get(name, 1.0))
            * compute_losses(
                task,
                self.truths[name],
                self.predictions[name],
                is_robust=training.losses.get(name) == "huber",
            )
            for name, task in self.tasks.items()
        ]
        return np.asarray(np.sum(losses, axis=0), np.float64)


def run_trial(training: Training, epochs: int) -> Trial | None:
    """Train in a temporary folder, and predict the validation records.

    Args:
        training: The training; its watcher and callbacks are not used.
        epochs: Maximum number of epochs.

    Returns:
        The trial; None if the loss or a prediction was not finite, or there is no validation.
    """
    options = replace(training.options, epochs=epochs, checkpoint_seconds=_NO_CHECKPOINTS)
    quiet = replace(training, options=options, watcher=SilentWatcher(), callbacks=())
    quiet = replace(quiet, choose=None, launch=None)
    loader = quiet.make_loaders().validation
    if loader is None:
        return None
    with tempfile.TemporaryDirectory(prefix="penstock-trial-") as folder:
        try:
            run = replace(quiet, folder=Path(folder)).run()
        except NonFiniteError:
            return None
        predict = run.predictor()
        truths: dict[str, list[NDArray[np.float64]]] = {name: [] for name in run.tasks}
        found: dict[str, list[NDArray[np.float64]]] = {name: [] for name in run.tasks}
        with loader.read(0) as batches:
            for inputs, targets, *_ in batches:
                predicted = predict(inputs)
                for name, task in run.tasks.items():
                    truths[name].append(task.undo(np.array(targets[name], np.float64)))
                    found[name].append(predicted[name].astype(np.float64))
    predictions = {name: np.concatenate(each) for name, each in found.items()}
    if not all(np.isfinite(each).all() for each in predictions.values()):
        return None
    return Trial(run.tasks, {name: np.concatenate(each) for name, each in truths.items()}, predictions)


def compute_losses(
    task: Task, truth: NDArray[np.float64], predicted: NDArray[np.float64], *, is_robust: bool = False
) -> NDArray[np.float64]:
    """Return the loss of each record, as in training: cross-entropy, or squared errors of scaled numbers.

    Args:
        task: Task of the target.
        truth: Codes, or zeros and ones by label, or numbers as stored.
        predicted: Probabilities of the second label or of each label, or numbers as stored.
        is_robust: Whether errors of numbers beyond one standard deviation count linearly.

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
