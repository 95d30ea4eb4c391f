"""Keras callbacks that decide by the metrics: the best epoch, early stopping, and losses that are not finite.

In: the metrics of each step and epoch. Out: the weights of the best epoch, which the optimizer may average; a
`LossFault`, and the `NonFiniteError` that names the records of the batch, which is read again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import keras
import numpy as np
from numpy.typing import NDArray

from penstock.batch.loader import Loader
from penstock.errors import NonFiniteError, OptionError
from penstock.foundation.wording import find_nearest, override
from penstock.training.history import DATA_LOSS, VALIDATION_LOSS
from penstock.training.snapshot import copy_array


def find_averages(model: Any) -> dict[int, Any]:
    """Return the moving average of each trainable variable, by its `id`; empty if the optimizer has none."""
    optimizer: Any = getattr(model, "optimizer", None)
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # of a loss scale
    if not getattr(optimizer, "use_ema", False):
        return {}
    pairs = zip(optimizer._trainable_variables, optimizer._model_variables_moving_average, strict=True)
    return {id(variable): average for variable, average in pairs}


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
    averages = find_averages(model)
    weights = [each for each in model.trainable_variables if each.regularizer is not None]
    return sum(
        float(keras.ops.convert_to_numpy(each.regularizer(averages.get(id(each), each)))) for each in weights
    )


class AveragedWeights(keras.callbacks.Callback):  # type: ignore[misc]
    """Validates with the moving averages of the weights, if the optimizer has them.

    Keras' own `SwapEMAWeights` swaps by additions on TensorFlow, which changes the last digits of weights.
    """

    def on_test_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        """Exchange weights and averages."""
        self._swap()

    def on_test_end(self, logs: Any = None) -> None:  # noqa: ARG002
        """Exchange them again."""
        self._swap()

    def _swap(self) -> None:
        averages = find_averages(self.model)
        for variable in self.model.trainable_variables if averages else ():
            average = averages[id(variable)]
            value = copy_array(variable)
            variable.assign(average)
            average.assign(value)


class BestEpoch(keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps the weights of the best epoch, and stops training after `patience` epochs without improvement.

    Its whole state is in its attributes, which a checkpoint holds. Without a metric to monitor, the last
    epoch is the best one; without `patience`, training is not stopped.

    Attributes:
        best: Value of the metric in the best epoch.
        best_epoch: Number of the best epoch, from 0; −1 before there is one.
        best_weights: Weights of the model after the best epoch, as averaged by the optimizer.
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
            if find_averages(self.model):  # at the end, the model gets them instead of the last weights
                self.best_weights = self._copy_weights()
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
            self.best_weights = self._copy_weights()
            return
        self.num_waited += 1
        if self._patience is not None and self.num_waited >= self._patience and epoch > 0:
            self.model.stop_training = True

    @property
    def has_monitor(self) -> bool:
        """Whether a metric decides the best epoch."""
        return self._monitor is not None

    def _copy_weights(self) -> list[NDArray[Any]]:
        """Return the weights of the model, with averages where the optimizer has them."""
        averages = find_averages(self.model)
        return [copy_array(averages.get(id(weight), weight)) for weight in self.model.weights]

    def restore(self) -> None:
        """Restore the weights of the best epoch, if there was one."""
        for weight, array in zip(self.model.weights, self.best_weights, strict=bool(self.best_weights)):
            weight.assign(array)


_NUM_NAMED: Final = 3


class LossFault(Exception):  # noqa: N818 - internal: callers get NonFiniteError
    """The loss of a step of an epoch is not finite."""

    def __init__(self, epoch: int, step: int, loss: float) -> None:
        super().__init__(epoch, step, loss)
        self.epoch = epoch
        self.step = step
        self.loss = loss


class LossGuard(keras.callbacks.Callback):  # type: ignore[misc]
    """Stops training at the first step whose loss is not finite; must come after the feed's callback.

    Keras reports the mean loss of the epoch so far: once a step is not finite, the mean is not either.
    """

    def __init__(self, loader: Loader) -> None:
        super().__init__()
        self._loader = loader

    def on_train_batch_end(self, batch: int, logs: Mapping[str, float] | None = None) -> None:  # noqa: ARG002
        """Check the loss of a step."""
        loss = float((logs or {}).get("loss", 0.0))
        if not math.isfinite(loss):
            epoch, step = self._loader.position
            raise LossFault(epoch, max(0, step - 1), loss)


def explain_fault(loader: Loader, fault: LossFault, cause: tuple[int, int]) -> NonFiniteError:
    """Return the error for a step: the records of its batch, and the first value that is not finite.

    The error names only the batch that caused it. The step at which the loss shows it depends on the
    processor: some kernels of ReLU turn NaN into 0, others keep it.

    `cause`: epoch and step of the batch that caused it: the same step, or an earlier one after which the
    weights were not finite although its loss was.
    """
    fault = LossFault(*cause, fault.loss)
    origins = loader.where(fault.step, fault.epoch)
    records = tuple((origin.path, origin.record) for origin in origins)
    named = [f"record {record} of {path}" for path, record in records[:_NUM_NAMED]]
    more = f" and {len(records) - _NUM_NAMED} more" if len(records) > _NUM_NAMED else ""
    found = _find_bad_value(loader, fault)
    if found is None:
        got = f"loss {fault.loss} although all values are finite: {', '.join(named)}{more}"
        advice = "Lower the learning rate, or clip gradients: `clip=1.0`."
        path = record = name = None
    else:
        kind, name, value, row = found
        path, record = records[row] if row < len(records) else records[0]
        got = f"loss {fault.loss} from a batch of {len(records)} records: {kind} {name!r} contains {value}"
        scaled = override(name, "Scale(nan='missing')")
        advice = (
            f"Fix the data; or drop the field: {override(name, 'None')}; or treat NaN as missing: {scaled}."
        )
    return NonFiniteError(
        f"step {fault.step} of epoch {fault.epoch}",
        epoch=fault.epoch,
        step=fault.step,
        records=records,
        expected="a finite loss and finite weights",
        got=got,
        advice=f"{advice} The weights before that step are kept.",
        path=path,
        record=record,
        field=name,
    )


def _find_bad_value(loader: Loader, fault: LossFault) -> tuple[str, str, float, int] | None:
    """Return the first value of a batch that is not finite: kind and name of the array, value, row."""
    with loader.read(fault.epoch, fault.step, fault.step + 1) as batches:
        batch = next(iter(batches))
    for kind, part in zip(("input", "target", "weight"), batch, strict=False):
        for name, array in part.items():
            if isinstance(array, np.ndarray) and array.dtype.kind == "f":
                bad = np.argwhere(~np.isfinite(array))
                if len(bad):
                    return kind, name, float(array[tuple(bad[0])]), int(bad[0][0])
    return None
