"""Find out whether a model returns probabilities or logits.

In: a Keras model and its tasks. Out: True for logits, by target; also the losses of a compiled model.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Final

import keras
import numpy as np

from penstock.bridge.keras_model import name_model, takes_array
from penstock.errors import OptionError
from penstock.model.signature import find_inputs, find_outputs, is_graph, make_batch, name_outputs
from penstock.model.task import Task
from penstock.transform.pipeline import Pipeline

_SQUASHING: Final = ("sigmoid", "softmax", "hard_sigmoid")
_SQUASHING_LAYERS: Final = ("Sigmoid", "Softmax", "HardSigmoid")
# Layers and operations after which probabilities are still probabilities, and logits are still logits.
_PASSING: Final = frozenset(
    (
        *("Reshape", "Flatten", "Dropout", "Identity", "Squeeze", "ExpandDims", "Ravel", "Cast", "GetItem"),
        *("GlobalAveragePooling1D", "Mean"),
    )
)
_PROBE_ROWS: Final = 64


def find_logits(
    model: keras.Model, tasks: Mapping[str, Task], pipeline: Pipeline | None = None
) -> dict[str, bool]:
    """Find out whether a model returns logits rather than probabilities, by target; False for numbers.

    The loss of a compiled model decides. Otherwise the last activation does: without one, outputs are logits.
    If the last activation is unknown, the model is called on random numbers, and its outputs are checked.

    `model`: the model; a subclassed one must have been built.
    """
    losses = find_losses(model, tasks)
    tensors = name_outputs(model, tasks, find_outputs(model)) if is_graph(model) else {}
    probed: dict[str, Any] | None = None
    found = {}
    for name, task in tasks.items():
        if task.kind == "regression":
            found[name] = False
            continue
        by_loss, by_model = _read_loss(losses.get(name)), _read_graph(tensors.get(name))
        if by_loss is None and by_model is None:
            probed = _probe(model, tasks, pipeline) if probed is None else probed
            by_model = _are_logits(task, probed[name])
        if by_loss is not None and by_model is not None and by_loss != by_model:
            raise _make_error(model, task, by_loss)
        found[name] = bool(by_model if by_loss is None else by_loss)
    return found


def find_losses(model: keras.Model, tasks: Mapping[str, Task]) -> dict[str, Any]:
    """Return the losses that a model was compiled with, by target; empty if it is not compiled."""
    loss = getattr(model, "loss", None) if getattr(model, "compiled", False) else None
    if loss is None:
        return {}
    if isinstance(loss, Mapping):
        if len(tasks) == 1 and len(loss) == 1:
            return dict(zip(tasks, loss.values(), strict=True))
        return {name: loss.get(name) for name in tasks}
    if isinstance(loss, list | tuple):
        names = list(tasks) if len(tasks) == 1 else list(getattr(model, "output_names", None) or ())
        return dict(zip(names, loss, strict=False))
    return dict.fromkeys(tasks, loss)


def name_loss(loss: Any) -> str:
    """Return the name of a loss in the style of Keras, such as `binary_crossentropy`; "" for None."""
    if loss is None:
        return ""
    if isinstance(loss, str):
        text = loss
    elif isinstance(loss, keras.losses.Loss):
        text = type(loss).__name__
    else:
        text = getattr(loss, "__name__", type(loss).__name__)
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in text).lstrip("_")


def _read_loss(loss: Any) -> bool | None:
    """Return whether a loss takes logits; None if that is unknown."""
    from_logits = getattr(loss, "from_logits", None)
    if isinstance(from_logits, bool):
        return from_logits
    # Keras' own losses take probabilities if they are given by name or as functions.
    is_plain = isinstance(loss, str) or loss is getattr(keras.losses, name_loss(loss), None)
    return False if is_plain and name_loss(loss).endswith("crossentropy") else None


def _read_graph(tensor: Any) -> bool | None:
    """Return whether a symbolic output comes from a layer without activation; None if that is unknown."""
    while tensor is not None:
        operation: Any
        operation, node, index = getattr(tensor, "_keras_history", (None, 0, 0))
        kind = type(operation).__name__
        activation = getattr(getattr(operation, "activation", None), "__name__", None)
        if kind in _SQUASHING_LAYERS or activation in _SQUASHING:
            return False
        if is_graph(operation):
            tensor = operation.outputs[index]
        elif kind in _PASSING or (kind == "Activation" and activation == "linear"):
            tensor = operation._inbound_nodes[node].input_tensors[0]
        else:
            return True if activation == "linear" else None
    return None


def _probe(model: keras.Model, tasks: Mapping[str, Task], pipeline: Pipeline | None) -> dict[str, Any]:
    """Return the outputs of a model for random numbers, by target."""
    taken = find_inputs(model)
    if taken is not None:
        shapes = {name: (tuple(each.shape[1:]), str(each.dtype)) for name, each in taken.items()}
    elif pipeline is not None:
        shapes = {name: (each.shape, each.dtype) for name, each in pipeline.inputs.items()}
    else:
        raise OptionError(
            f"outputs of {name_model(model)}",
            expected="a loss that defines whether they are probabilities",
            got="a model that is not compiled",
            advice="Call model.compile(loss=keras.losses.BinaryCrossentropy(from_logits=…)).",
        )
    batch = make_batch(shapes, _PROBE_ROWS, np.random.default_rng(0))
    given: Any = {name: keras.ops.convert_to_tensor(each) for name, each in batch.items()}
    if taken is None and pipeline is not None and takes_array(model, pipeline.inputs):
        (given,) = given.values()
    with keras.StatelessScope(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras warns of a dict for a model with one input
        outputs = model(given)
    named = name_outputs(model, tasks, outputs)
    return {name: keras.ops.convert_to_numpy(each) for name, each in named.items()}


def _are_logits(task: Task, values: Any) -> bool:
    """Return whether outputs cannot be probabilities."""
    if not (np.all(values >= 0) and np.all(values <= 1)) or not values.any():
        return True
    return task.kind == "multiclass" and not np.allclose(values.sum(axis=-1), 1, atol=1e-3)


def _make_error(model: keras.Model, task: Task, takes_logits: bool) -> OptionError:
    activation = "softmax" if task.kind == "multiclass" else "sigmoid"
    expected, got = "probabilities, which its loss takes", "a last layer without an activation"
    advice = f"Use activation={activation!r} in that layer, or from_logits=True for the loss."
    if takes_logits:
        expected, got = "logits, as its loss has from_logits=True", f"the activation {activation!r}"
        advice = "Remove the activation, or use from_logits=False for the loss."
    what = f"output of {name_model(model)} for target {task.name!r}"
    return OptionError(what, field=task.name, expected=expected, got=got, advice=advice)
