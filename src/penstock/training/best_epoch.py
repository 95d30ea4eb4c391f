"""The best epoch of a run, and when to stop waiting for a better one.

In: what each epoch came to. Out: a Keras callback that keeps the weights of the best, and stops the run.
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
"""The loss of the validation as Keras computes it, with the penalties of the model's weights."""

DATA_LOSS: Final = "val_data_loss"
"""The loss of the validation without those penalties."""


class DataLoss(keras.callbacks.Callback):  # type: ignore[misc]
    """Adds the validation loss without the penalties on weights (`kernel_regularizer` and the like) to logs.

    Penalties shrink or grow with the weights whatever the records are, so that an epoch may have a lower
    `val_loss` and predict worse. It comes before callbacks that read the logs.
    """

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:  # noqa: ARG002
        """Add the loss of an epoch."""
        if logs and VALIDATION_LOSS in logs:
            logs[DATA_LOSS] = float(logs[VALIDATION_LOSS]) - _sum_penalties(self.model)


def _sum_penalties(model: Any) -> float:
    """Return what the weights add to the loss of a batch; nothing, where a model computes its loss itself."""
    for method in ("test_step", "compute_loss"):
        if getattr(type(model), method) is not getattr(keras.Model, method):
            return 0.0
    weights = [each for each in model.trainable_variables if each.regularizer is not None]
    return sum(float(keras.ops.convert_to_numpy(each.regularizer(each))) for each in weights)


class BestEpoch(keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps the weights of the best epoch, and stops when none was better for a while.

    All that it remembers are its attributes, which a checkpoint holds.

    Args:
        monitor: What tells: a name of the logs. None takes every epoch for better than those before it: what
            training says of itself tells nothing.
        is_lower_better: Whether less of it is better.
        patience: Stop after this many epochs in a row without a better one, as Keras' `EarlyStopping` does;
            None never stops.

    Attributes:
        best: What the best epoch came to.
        best_epoch: Which it was, from 0 on; −1 before there is one.
        best_weights: The weights of the model then.
        num_waited: Epochs since.
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
            advice = f"Did you mean {nearest!r}?" if nearest else f"There are {', '.join(known)}."
            raise OptionError(
                "monitor", expected="a name of the history", got=repr(self._monitor), advice=advice
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
    def is_told(self) -> bool:
        """Whether anything tells which epoch is the best."""
        return self._monitor is not None

    def restore(self) -> None:
        """Give the model the weights of the best epoch, if there was one."""
        for weight, array in zip(self.model.weights, self.best_weights, strict=bool(self.best_weights)):
            weight.assign(array)
