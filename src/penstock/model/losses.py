"""The loss of a task, with the weights of its classes inside.

In: targets and outputs of a batch. Out: a number a record, which Keras weighs by the record and averages.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from penstock.model.task import Task


class TaskLoss(keras.losses.Loss):  # type: ignore[misc]
    """What a model is to make small for a target.

    Cross-entropy for classes; for numbers the squared error in units of their deviation, so that the losses
    of several targets are of one size.

    Attributes:
        task: The task.
        from_logits: Whether outputs are logits.
        class_weights: By code, how much a record counts; none counts more than others if not given.
    """

    def __init__(
        self, task: Task, *, from_logits: bool = False, class_weights: tuple[float, ...] | None = None
    ) -> None:
        super().__init__(name=f"{task.kind}_loss")
        self.task = task
        self.from_logits = from_logits
        self.class_weights = class_weights

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return the loss of each record."""
        task = self.task
        if task.kind == "multiclass":
            codes = ops.cast(ops.reshape(y_true, (-1,)), "int32")
            values = ops.sparse_categorical_crossentropy(codes, y_pred, from_logits=self.from_logits)
            return self._weigh(values, codes)
        # As (n, k) both: of two vectors Keras would take the mean over the batch, and lose the records.
        wanted = ops.reshape(y_true, (-1, task.units))
        given = ops.reshape(y_pred, (-1, task.units))
        if task.kind == "regression":
            return ops.mean(ops.square((given - wanted) / (task.deviation or 1.0)), axis=-1)
        values = ops.mean(ops.binary_crossentropy(wanted, given, from_logits=self.from_logits), axis=-1)
        if task.kind == "multilabel":
            return values
        return self._weigh(values, ops.cast(ops.reshape(y_true, (-1,)), "int32"))

    def _weigh(self, values: Any, codes: Any) -> Any:
        if self.class_weights is None:
            return values
        weights = ops.convert_to_tensor(self.class_weights, dtype=values.dtype)
        return values * ops.take(weights, codes, axis=0)
