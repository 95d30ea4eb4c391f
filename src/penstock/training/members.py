"""Ensembles in one model: each member learns from its own loss, and predictions are the mean of all members.

In: a model whose outputs are means of layers named `…_members`. Out: a model of the same layers that returns
the predictions of the members, and metrics of their mean. A loss of the mean alone would let members make up
for each other's errors, which they do on records they were trained on and not on others.

A layer `…_members` may end with outputs that are not part of the mean: outputs of single inputs. Their losses
are added, so that an encoder of images learns although a table already explains most of the target.

`average_models` joins separate models with the same inputs and targets: probabilities are averaged, and
numbers in the units of the target.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import keras
from keras import ops

from penstock.bridge.keras_model import takes_array
from penstock.model.blueprint import Namer
from penstock.model.signature import find_inputs, find_outputs, is_graph, name_outputs
from penstock.model.task import Task
from penstock.transform.output import Output
from penstock.transform.pipeline import Pipeline

_SUFFIX: Final = re.compile(r"_members(_\d+)?$")  # with a number if another layer has the name
_MEAN: Final = "GlobalAveragePooling1D"
_SLICE: Final = "GetItem"
_EACH_ALONE: Final = ("Activation", "Rescaling")  # layers after the outputs of members and single inputs

PART_WEIGHT: Final = 0.3
"""Weight of the loss of each output of a single input, beside the mean loss of the members."""

MOST_PARTS_WEIGHT: Final = 0.9
"""Largest sum of these weights, for models with many such outputs."""


class Members(NamedTuple):
    """The members of a model.

    Attributes:
        model: Model that returns their predictions, of shape (records, members, units). On the axis of
            members, predictions from single inputs may follow.
        counts: Number of members, by target.
    """

    model: keras.Model
    counts: Mapping[str, int]


def find_members(model: keras.Model, tasks: Mapping[str, Task]) -> Members | None:
    """Return the members of a model, which share its layers.

    Return None if an output is not the mean of a layer named `…_members`.
    """
    if not is_graph(model):
        return None
    tensors, counts = {}, {}
    for name, output in name_outputs(model, tasks, find_outputs(model)).items():
        found = _find(output)
        if found is None:
            return None
        tensors[name], counts[name] = found
    outputs = tensors if len(tensors) > 1 else next(iter(tensors.values()))
    return Members(keras.Model(model.input, outputs, name=model.name), counts)


def _find(tensor: Any) -> tuple[Any, int] | None:
    """Return the predictions of the members whose mean a symbolic output is, and their number, or None."""
    operation, node = _find_node(tensor)
    if type(operation).__name__ != _MEAN:
        return None
    (members,) = node.input_tensors
    count = members.shape[1]
    made_by, cut = _find_node(members)
    if type(made_by).__name__ == _SLICE:  # outputs of single inputs follow the members
        if cut.arguments.args[1:] != ((slice(None), slice(None, count)),):
            return None
        (members,) = cut.input_tensors
        made_by = _find_node(members)[0]
    return (members, count) if made_by is not None and _SUFFIX.search(made_by.name) else None


def _find_node(tensor: Any) -> tuple[Any, Any]:
    """Return the operation that made a symbolic tensor, and its node in the graph; None if not known."""
    operation: Any
    operation, number, _ = getattr(tensor, "_keras_history", (None, 0, 0))
    return operation, None if operation is None else operation._inbound_nodes[number]


def without_part_outputs(model: keras.Model, tasks: Mapping[str, Task]) -> keras.Model:
    """Return a model of the same layers without the outputs of single inputs, which only training uses.

    A model without such outputs is returned itself.
    """
    if not is_graph(model):
        return model
    named = name_outputs(model, tasks, find_outputs(model))
    found = {name: _leave_out_parts(each) for name, each in named.items()}
    if all(each is None for each in found.values()):
        return model
    outputs = {name: named[name] if each is None else each for name, each in found.items()}
    only = next(iter(outputs.values()))
    return keras.Model(model.input, outputs if len(outputs) > 1 else only, name=model.name)


def _leave_out_parts(tensor: Any) -> Any:
    """Return the mean of the members for a symbolic output, computed for members alone.

    The graph of such an output is: members and outputs of single inputs, concatenated; one layer that works
    on each of them alone; the slice of the members; their mean. Returns None for any other graph.
    """
    found = _find(tensor)
    if found is None:
        return None
    every, count = found
    layer, node = _find_node(every)
    joined, inputs = _find_node(node.input_tensors[0])
    if type(layer).__name__ not in _EACH_ALONE or type(joined).__name__ != "Concatenate":
        return None
    members = inputs.input_tensors[0]
    if joined.axis != 1 or members.shape[1] != count:
        return None
    return _find_node(tensor)[0](layer(members))


class WrappedMetric(keras.metrics.Metric):  # type: ignore[misc]
    """Base class of metrics that pass changed values to another metric, and have its name and value."""

    def __init__(self, metric: keras.metrics.Metric) -> None:
        super().__init__(name=metric.name, dtype=metric.dtype)
        self.metric = metric

    def result(self) -> Any:
        """Return the value of the metric."""
        return self.metric.result()

    def reset_state(self) -> None:
        """Forget all records."""
        self.metric.reset_state()


class MeanMetric(WrappedMetric):
    """A metric of the mean prediction of the members."""

    def __init__(self, metric: keras.metrics.Metric, num_members: int) -> None:
        super().__init__(metric)
        self.num_members = num_members

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add the records of a batch."""
        self.metric.update_state(y_true, ops.mean(y_pred[:, : self.num_members], axis=1), sample_weight)


_ACTIVATIONS: Final = {"binary": "sigmoid", "multilabel": "sigmoid", "multiclass": "softmax"}


def average_models(
    models: Sequence[keras.Model],
    pipeline: Pipeline,
    tasks: Mapping[str, Task],
    logits: Sequence[Mapping[str, bool]],
) -> keras.Model:
    """Return a model that averages the predictions of several models.

    It shares the weights of the models. Its outputs are probabilities, or numbers as scaled in the batches of
    the pipeline, such that undoing the scaling gives the mean of the numbers in the units of the target.
    """
    inputs = {
        name: keras.Input(output.shape, dtype=output.dtype, name=name)
        for name, output in pipeline.inputs.items()
    }
    found: dict[str, list[Any]] = {name: [] for name in tasks}
    for number, model in enumerate(models, 1):
        named = name_outputs(model, tasks, _call(model, f"member_{number}", inputs, pipeline.inputs))
        for name, task in tasks.items():
            values = named[name]
            if _depends_on_scale(task):
                values = task.undo(values, ops)
            elif task.kind in _ACTIVATIONS and logits[number - 1].get(name, False):
                values = keras.layers.Activation(_ACTIVATIONS[task.kind], dtype="float32")(values)
            found[name].append(values)
    name_layer = Namer(("ensemble", *inputs))
    outputs = {}
    for name, task in tasks.items():
        mean = keras.layers.Average(name=name_layer(f"{name}_average"), dtype="float32")(found[name])
        outputs[name] = task.scale(mean, ops) if _depends_on_scale(task) else mean
    only = next(iter(outputs.values()))
    return keras.Model(inputs, outputs if len(outputs) > 1 else only, name="ensemble")


def _call(model: keras.Model, name: str, inputs: Mapping[str, Any], outputs: Mapping[str, Output]) -> Any:
    """Return the symbolic outputs of a model for inputs by name."""
    taken = find_inputs(model, inputs)
    if taken is None or not is_graph(model):
        return model(next(iter(inputs.values())) if takes_array(model, outputs) else dict(inputs))
    # As a layer with a unique name: all built models have the same name, which two layers may not have.
    layer = keras.Model(dict(taken), find_outputs(model), name=name)
    return layer({each: inputs[each] for each in taken})


def _depends_on_scale(task: Task) -> bool:
    """Whether the mean of scaled numbers is not the scaled mean of the numbers: on a log scale alone."""
    return task.kind == "regression" and task.method == "log1p"
