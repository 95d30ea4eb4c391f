"""Code of a small Keras model for the inputs and targets of a pipeline.

In: features, tasks. Out: lines of code that bind `model`, compiled.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from penstock.jobs.check.tensorflow_code import quote
from penstock.model.blueprint import Namer
from penstock.model.feature import Feature
from penstock.model.task import Task
from penstock.transform.output import Output

_TAKEN: Final = ("data", "dataset", "features", "feed", "held", "keras", "model", "pipeline", "ps", "tf", "x")
_LOSSES: Final = {
    "binary": "keras.losses.BinaryCrossentropy(from_logits=True)",
    "multiclass": "keras.losses.SparseCategoricalCrossentropy(from_logits=True)",
    "multilabel": "keras.losses.BinaryCrossentropy(from_logits=True)",
    "regression": "keras.losses.MeanSquaredError()",
}
_METRICS: Final = {
    "binary": 'keras.metrics.BinaryAccuracy("accuracy", threshold=0.0)',
    "multiclass": 'keras.metrics.SparseCategoricalAccuracy("accuracy")',
    "multilabel": 'keras.metrics.BinaryAccuracy("accuracy", threshold=0.0)',
    "regression": 'keras.metrics.MeanAbsoluteError("mae")',
}


def write_keras_model(
    features: list[Feature], inputs: Mapping[str, Output], tasks: Mapping[str, Task], *, is_named: bool
) -> Iterator[str]:
    """Yield the lines that build and compile a model.

    Args:
        features: Features of the pipeline.
        inputs: Inputs of the pipeline, which include masks.
        tasks: Task of each target.
        is_named: Whether batches are dicts also of a single input and target.
    """
    take = Namer()
    for name in _TAKEN:
        take.keep(name)
    names = {name: take(name) for name in inputs}
    yield "# One input for each output of the pipeline, matched by name."
    for name, output in inputs.items():
        yield f"{names[name]} = {_write_input(name, names[name], output)}"
    yield ""
    yield "# Each input as a vector: replace these layers with your own."
    vectors = []
    for feature in features:
        variable = names[feature.name]
        yield from _write_encoder(feature, variable)
        vectors.append(f"{variable}_vector")
    joined = vectors[0] if len(vectors) == 1 else f"keras.layers.Concatenate()([{', '.join(vectors)}])"
    yield f"x = {joined}"
    yield 'x = keras.layers.Dense(64, activation="relu")(x)'
    outputs = {name: f"keras.layers.Dense({task.units})(x)" for name, task in tasks.items()}
    only = next(iter(outputs.values()))
    is_dict = is_named or len(tasks) > 1
    yield f"outputs = {_write_dict(outputs) if is_dict else only}"
    single = names[next(iter(inputs))] if len(inputs) == 1 and not is_named else None
    yield f"model = keras.Model({single or _write_dict(names)}, outputs)"
    losses = {name: _LOSSES[task.kind] for name, task in tasks.items()}
    metrics = {name: f"[{_METRICS[task.kind]}]" for name, task in tasks.items()}
    yield "model.compile("
    yield "    optimizer=keras.optimizers.Adam(1e-3),"
    yield f"    loss={_write_dict(losses) if is_dict else next(iter(losses.values()))},"
    yield f"    metrics={_write_dict(metrics) if is_dict else next(iter(metrics.values()))},"
    yield ")"
    yield "model.summary()"


def _write_input(name: str, variable: str, output: Output) -> str:
    dtype = "" if output.dtype == "float32" else f', dtype="{output.dtype}"'
    if "/" not in name:
        return f"keras.Input({output.shape!r}, name={quote(name)}{dtype})"
    # Keras refuses names of layers with a slash, but not names of tensors.
    tensor = f"keras.KerasTensor({(None, *output.shape)!r}, name={quote(name)}{dtype})"
    return f'keras.Input(tensor={tensor}, name="{variable}")'


def _write_encoder(feature: Feature, variable: str) -> Iterator[str]:
    """Yield the lines that bind the vector of an input."""
    vector, value = f"{variable}_vector", variable
    dtype = feature.output.dtype
    if feature.kind in ("code", "ids"):
        yield from _write_table(feature, variable)
        return
    if feature.kind == "image" and dtype == "uint8":
        yield f"{vector} = keras.layers.Rescaling(1 / 255)({value})"
        value = vector
    elif dtype != "float32":
        yield f'{vector} = keras.ops.cast({value}, "float32")'
        value = vector
    if feature.kind == "number":
        yield f"{vector} = keras.layers.Reshape((1,))({value})"
    elif feature.kind == "steps":
        if len(feature.output.shape) == 1:
            yield f"{vector} = keras.layers.Reshape((-1, 1))({value})"
            value = vector
        yield f'{vector} = keras.layers.Conv1D(16, 3, padding="same", activation="relu")({value})'
        yield f"{vector} = keras.layers.GlobalMaxPooling1D()({vector})"
    elif feature.kind == "image":
        yield f'{vector} = keras.layers.Conv2D(16, 3, padding="same", activation="relu")({value})'
        yield f"{vector} = keras.layers.MaxPooling2D()({vector})"
        yield f'{vector} = keras.layers.Conv2D(32, 3, padding="same", activation="relu")({vector})'
        yield f"{vector} = keras.layers.GlobalAveragePooling2D()({vector})"
    else:
        yield f"{vector} = keras.layers.Flatten()({value})"
    if not feature.is_scaled and feature.kind in ("number", "row", "array"):
        yield f"{vector} = keras.layers.BatchNormalization()({vector})"


def _write_table(feature: Feature, variable: str) -> Iterator[str]:
    vector, size = f"{variable}_vector", max(feature.sizes)
    if feature.kind == "code":
        table = f"keras.layers.Embedding({size}, {choose_width(size)})({variable})"
        yield f"{vector} = {table}"
        if feature.output.shape:
            yield f"{vector} = keras.layers.Flatten()({vector})"
        return
    mask = ", mask_zero=True" if feature.padding == 0 else ""
    yield f"{vector} = keras.layers.Embedding({size}, 32{mask})({variable})"
    yield f"{vector} = keras.layers.GlobalAveragePooling1D()({vector})"


def choose_width(num_codes: int) -> int:
    """Return the number of dimensions of an embedding of so many codes."""
    return min(32, max(2, round(math.sqrt(num_codes))))


def _write_dict(parts: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{quote(name)}: {text}' for name, text in parts.items())}}}"
