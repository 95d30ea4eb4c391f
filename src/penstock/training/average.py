"""One Keras model that averages several: the model of an ensemble.

In: models with the same inputs and targets. Out: a functional model with one set of inputs, which returns the
mean of their probabilities, and of their numbers in the units of the target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import keras
from keras import ops

from penstock.bridge.keras_model import takes_array
from penstock.model.blueprint import Namer
from penstock.model.signature import find_inputs, find_outputs, is_graph, name_outputs
from penstock.model.task import Task
from penstock.transform.output import Output
from penstock.transform.pipeline import Pipeline

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
