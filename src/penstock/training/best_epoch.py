"""Early stopping: keep the weights of the best epoch, and stop when there is no improvement.

In: the metrics of each epoch. Out: Keras callbacks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import keras
from numpy.typing import NDArray

from penstock.errors import OptionError
from penstock.foundation.wording import find_nearest
from penstock.training.snapshot import copy_array

VALIDATION_LOSS: Final = "val_loss"
"""The validation loss as Keras computes it, with the penalties on the model's weights."""

DATA_LOSS: Final = "val_data_loss"
"""The validation loss without those penalties."""


class DataLoss(keras.callbacks.Callback):  # type: ignore[misc]
    """Adds the validation loss without the penalties on weights (such as `kernel_regularizer`) to the logs.

    Penalties depend only on the weights, not on the records, so that an epoch may have a lower `val_loss` and
    predict worse. Must come before callbacks that read the logs.
    """

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:  # noqa: ARG002
        """Add the loss of an epoch."""
        if logs and VALIDATION_LOSS in logs:
            logs[DATA_LOSS] = float(logs[VALIDATION_LOSS]) - _sum_penalties(self.model)


def _sum_penalties(model: Any) -> float:
    """Return the penalties on weights in the loss of a batch; 0 if the model computes its own loss."""
    for method in ("test_step", "compute_loss"):
        if getattr(type(model), method) is not getattr(keras.Model, method):
            return 0.0
    weights = [each for each in model.trainable_variables if each.regularizer is not None]
    return sum(float(keras.ops.convert_to_numpy(each.regularizer(each))) for each in weights)


class BestEpoch(keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps the weights of the best epoch, and stops training after `patience` epochs without improvement.

    Its whole state is in its attributes, which a checkpoint holds.

    Args:
        monitor: Name of the metric in the logs. None, for a run without validation, takes the last epoch as
            the best.
        is_lower_better: Whether a lower value of the metric is better.
        patience: Stop after this many epochs in a row without improvement, as Keras' `EarlyStopping` does;
            None never stops.

    Attributes:
        best: Value of the metric in the best epoch.
        best_epoch: Number of the best epoch, from 0; −1 before there is one.
        best_weights: Weights of the model after the best epoch.
        num_waited: Number of epochs since the best epoch.
    """

    def __init__(self, monitor: str | None, *, is_lower_better: bool, patience: int | None) -> None:
        super().__init__()
        self._monitor = monitor
        self._sign = 1.0 if is_lower_better else -1.0
        self._patience = patience
        self.best = math.inf * self._sign
        self.best_epoch = -1
        self.best_weights: list[NDArray[Any]] = []
        self.num_waited = 0

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:
        """Compare an epoch with the best."""
        known = logs or {}
        if self._monitor is None:
            self.best_epoch = epoch
            return
        if self._monitor not in known:
            nearest = find_nearest(self._monitor, known)
            advice = f"Did you mean {nearest!r}?" if nearest else f"Choose one of {', '.join(known)}."
            raise OptionError(
                "monitor",
                expected="the name of a metric in the history",
                got=repr(self._monitor),
                advice=advice,
            )
        value = float(known[self._monitor])
        if math.isfinite(value) and value * self._sign < self.best * self._sign:
            self.best, self.best_epoch, self.num_waited = value, epoch, 0
            self.best_weights = [copy_array(weight) for weight in self.model.weights]
            return
        self.num_waited += 1
        if self._patience is not None and self.num_waited >= self._patience and epoch > 0:
            self.model.stop_training = True

    @property
    def has_monitor(self) -> bool:
        """Whether a metric decides the best epoch."""
        return self._monitor is not None

    def restore(self) -> None:
        """Set the weights of the model to those of the best epoch, if there was one."""
        for weight, array in zip(self.model.weights, self.best_weights, strict=bool(self.best_weights)):
            weight.assign(array)
