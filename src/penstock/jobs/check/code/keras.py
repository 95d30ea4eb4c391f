"""Code of a small Keras model for the inputs and targets of a pipeline.

In: features, tasks. Out: lines of code that bind `model`, compiled.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from penstock.codegen.program import StatementBlock, Term, lift
from penstock.codegen.program_text import Layout, write_flat, write_lines
from penstock.model.blueprint import KERAS, Namer
from penstock.model.feature import Feature
from penstock.model.task import Task
from penstock.transform.output import Output

_TAKEN: Final = ("data", "dataset", "features", "feed", "held", "keras", "model", "pipeline", "ps", "tf", "x")
_LOSSES: Final = {
    "binary": KERAS.losses.BinaryCrossentropy(from_logits=True),
    "multiclass": KERAS.losses.SparseCategoricalCrossentropy(from_logits=True),
    "multilabel": KERAS.losses.BinaryCrossentropy(from_logits=True),
    "regression": KERAS.losses.MeanSquaredError(),
}
_METRICS: Final = {
    "binary": KERAS.metrics.BinaryAccuracy("accuracy", threshold=0.0),
    "multiclass": KERAS.metrics.SparseCategoricalAccuracy("accuracy"),
    "multilabel": KERAS.metrics.BinaryAccuracy("accuracy", threshold=0.0),
    "regression": KERAS.metrics.MeanAbsoluteError("mae"),
}
_LAYOUT: Final = Layout(width=sys.maxsize)  # one line per layer


def write_keras_model(
    features: list[Feature], inputs: Mapping[str, Output], tasks: Mapping[str, Task], *, is_named: bool
) -> Iterator[str]:
    """Yield the lines that build and compile a model.

    `is_named`: whether batches are dicts also of a single input and target.
    """
    block, take = StatementBlock(), Namer()
    for name in _TAKEN:
        take.keep(name)
    names = {name: take(name) for name in inputs}
    block.note("One input for each output of the pipeline, matched by name.")
    given = {name: block.bind(names[name], _make_input(names[name], each)) for name, each in inputs.items()}
    block.note("Each input as a vector: replace these layers with your own.")
    vectors = [_encode(block, names[each.name], each) for each in features]
    x = block.bind("x", vectors[0] if len(vectors) == 1 else KERAS.layers.Concatenate()(vectors))
    x = block.bind("x", KERAS.layers.Dense(64, activation="relu")(x))

    def arrange(parts: Mapping[str, Any]) -> Any:
        """Return one part per target in the form of the targets of a batch."""
        return parts if is_named or len(tasks) > 1 else next(iter(parts.values()))

    heads = {name: KERAS.layers.Dense(task.units)(x) for name, task in tasks.items()}
    outputs = block.bind("outputs", arrange(heads))
    is_single = len(inputs) == 1 and not is_named
    block.bind("model", KERAS.Model(next(iter(given.values())) if is_single else given, outputs))
    yield from write_lines(block.statements, _LAYOUT)
    losses = arrange({name: _LOSSES[task.kind] for name, task in tasks.items()})
    metrics = arrange({name: [_METRICS[task.kind]] for name, task in tasks.items()})
    yield "model.compile("
    yield "    optimizer=keras.optimizers.Adam(1e-3),"
    yield f"    loss={write_flat(lift(losses))},"
    yield f"    metrics={write_flat(lift(metrics))},"
    yield ")"
    yield "model.summary()"


def _make_input(variable: str, output: Output) -> Term:
    dtype = {} if output.dtype == "float32" else {"dtype": output.dtype}
    if "/" not in output.name:
        return KERAS.Input(output.shape, name=output.name, **dtype)
    # Keras refuses names of layers with a slash, but not names of tensors.
    tensor = KERAS.KerasTensor((None, *output.shape), name=output.name, **dtype)
    return KERAS.Input(tensor=tensor, name=variable)


def _encode(block: StatementBlock, variable: str, feature: Feature) -> Term:
    """Bind the vector of an input; return the term for it."""
    vector, value = f"{variable}_vector", Term.name(variable)
    is_image_of_bytes = feature.kind == "image" and feature.output.dtype == "uint8"
    if not (feature.kind in ("code", "ids") or feature.output.dtype == "float32" or is_image_of_bytes):
        value = block.bind(vector, KERAS.ops.cast(value, "float32"))
    for layer in _find_layers(feature):
        value = block.bind(vector, layer(value))
    return value


def _find_layers(feature: Feature) -> Iterator[Term]:
    """Yield the layers that make the vector of an input, in the order of their calls."""
    layers, shape = KERAS.layers, feature.output.shape
    convolution = {"padding": "same", "activation": "relu"}
    if feature.kind == "code":
        size = max(feature.sizes)
        yield layers.Embedding(size, choose_width(size))
        if shape:
            yield layers.Flatten()
        return
    if feature.kind == "ids":
        yield layers.Embedding(
            max(feature.sizes), 32, **({"mask_zero": True} if feature.padding == 0 else {})
        )
        yield layers.GlobalAveragePooling1D()
        return
    if feature.kind == "number":
        yield layers.Reshape((1,))
    elif feature.kind == "steps":
        if len(shape) == 1:
            yield layers.Reshape((-1, 1))
        yield layers.Conv1D(16, 3, **convolution)
        yield layers.GlobalMaxPooling1D()
    elif feature.kind == "image":
        if feature.output.dtype == "uint8":
            yield layers.Rescaling(Term(lift(1)) / 255)
        yield layers.Conv2D(16, 3, **convolution)
        yield layers.MaxPooling2D()
        yield layers.Conv2D(32, 3, **convolution)
        yield layers.GlobalAveragePooling2D()
    else:
        yield layers.Flatten()
    if not feature.is_scaled and feature.kind in ("number", "row", "array"):
        yield layers.BatchNormalization()


def choose_width(num_codes: int) -> int:
    """Return the number of dimensions of an embedding of so many codes."""
    return min(32, max(2, round(math.sqrt(num_codes))))
