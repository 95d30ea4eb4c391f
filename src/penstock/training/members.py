"""Training of ensembles: each member learns from its own loss, and predictions are the mean of all members.

In: a model whose outputs are means of layers named `…_members`. Out: a model of the same layers that returns
what the members predict, and metrics of their mean. A loss of the mean alone would let members make up for
each other's errors, which they do on records they were trained on and not on others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import keras
from keras import ops

from penstock.model.signature import find_outputs, is_graph, name_outputs
from penstock.model.task import Task

_SUFFIX: Final = "_members"
_MEAN: Final = "GlobalAveragePooling1D"


def find_members(model: keras.Model, tasks: Mapping[str, Task]) -> keras.Model | None:
    """Return a model that shares the layers of `model` and returns the predictions of the members.

    Args:
        model: The model.
        tasks: Task of each target.

    Returns:
        A model with outputs of shape (records, members, units), or None if an output is not the mean of a
        layer named `…_members`.
    """
    if not is_graph(model):
        return None
    tensors = {name: _find(each) for name, each in name_outputs(model, tasks, find_outputs(model)).items()}
    if any(each is None for each in tensors.values()):
        return None
    outputs = tensors if len(tensors) > 1 else next(iter(tensors.values()))
    return keras.Model(model.input, outputs, name=model.name)


def _find(tensor: Any) -> Any:
    """Return the predictions of the members whose mean a symbolic output is, or None."""
    operation: Any
    operation, node, _ = getattr(tensor, "_keras_history", (None, 0, 0))
    if type(operation).__name__ != _MEAN:
        return None
    (members,) = operation._inbound_nodes[node].input_tensors
    made_by = members._keras_history[0]
    return members if made_by.name.endswith(_SUFFIX) else None


class MeanMetric(keras.metrics.Metric):  # type: ignore[misc]
    """A metric of the mean prediction of the members.

    Args:
        metric: The metric.
    """

    def __init__(self, metric: keras.metrics.Metric) -> None:
        super().__init__(name=metric.name, dtype=metric.dtype)
        self.metric = metric

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add the records of a batch."""
        self.metric.update_state(y_true, ops.mean(y_pred, axis=1), sample_weight)

    def result(self) -> Any:
        """Return the value of the metric."""
        return self.metric.result()

    def reset_state(self) -> None:
        """Forget all records."""
        self.metric.reset_state()
