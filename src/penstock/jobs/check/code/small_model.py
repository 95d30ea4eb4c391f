"""Code of a small model for the inputs and targets of a pipeline, with Keras or torch.

In: features, tasks. Out: lines of code that bind `model`, compiled; or define a module `Model` and its loss.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, Final

from penstock.codegen.program import StatementBlock, Term, lift
from penstock.codegen.program_text import Layout, write_flat, write_lines
from penstock.jobs.check.code.tensorflow import quote
from penstock.model.blueprint import KERAS, Namer, make_stem
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
_TORCH_LOSSES: Final = {
    "binary": "binary_cross_entropy_with_logits",
    "multiclass": "cross_entropy",
    "multilabel": "binary_cross_entropy_with_logits",
    "regression": "mse_loss",
}


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


def write_torch_model(
    features: list[Feature], tasks: Mapping[str, Task], *, has_weights: bool
) -> Iterator[str]:
    """Yield the lines of a module `Model` and of a function `find_loss`, with weights of records if any."""
    parts = [_Part(feature, number) for number, feature in enumerate(features)]
    yield "class Model(nn.Module):"
    yield '    """One vector per input, then a hidden layer, and one output per target."""'
    yield ""
    yield "    def __init__(self):"
    yield "        super().__init__()"
    for part in parts:
        yield from (f"        {line}" for line in part.layers())
    yield f"        self.hidden = nn.Linear({sum(part.width for part in parts)}, 64)"
    heads = ", ".join(f"nn.Linear(64, {task.units})" for task in tasks.values())
    yield f"        self.heads = nn.ModuleList([{heads}])"
    yield ""
    yield "    def forward(self, inputs):"
    yield "        vectors = ["
    for part in parts:
        yield f"            {part.call()},"
    yield "        ]"
    yield "        x = torch.relu(self.hidden(torch.cat(vectors, dim=1)))"
    names = ", ".join(map(quote, tasks))
    yield f"        return dict(zip([{names}], [head(x) for head in self.heads]))"
    yield ""
    yield ""
    yield f"def find_loss(outputs, targets{', weights' if has_weights else ''}):"
    yield '    """Return the sum of the losses of all targets."""'
    losses = [_write_loss(name, task, has_weights=has_weights) for name, task in tasks.items()]
    yield f"    return {' + '.join(losses)}"


def _write_loss(name: str, task: Task, *, has_weights: bool) -> str:
    arguments = f"outputs[{quote(name)}]{_write_target(name, task)}"
    if not has_weights:
        return f"nn.functional.{_TORCH_LOSSES[task.kind]}({arguments})"
    losses = f'nn.functional.{_TORCH_LOSSES[task.kind]}({arguments}, reduction="none")'
    if task.shape and task.kind != "multiclass":
        losses += ".flatten(1).mean(1)"
    return f"({losses} * weights[{quote(name)}]).mean()"


def _write_target(name: str, task: Task) -> str:
    if task.kind == "multiclass":
        return f", targets[{quote(name)}].long()"
    rows = "" if task.shape else "[:, 0]"
    return f"{rows}, targets[{quote(name)}].float()"


class _Part:
    """The layers of one input."""

    def __init__(self, feature: Feature, number: int) -> None:
        self.feature = feature
        self.name = f"{make_stem(feature.name)}_{number}"
        self.width = self._find_width()

    def _find_width(self) -> int:
        feature, shape = self.feature, self.feature.output.shape
        if feature.kind == "code":
            return choose_width(max(feature.sizes)) * (prod(dim or 1 for dim in shape) if shape else 1)
        if feature.kind in ("ids", "steps", "image"):
            return {"ids": 32, "steps": 16, "image": 32}[feature.kind]
        return prod(dim or 1 for dim in shape)

    def layers(self) -> Iterator[str]:
        """Yield the lines that create the layers."""
        feature, shape = self.feature, self.feature.output.shape
        if feature.kind in ("code", "ids"):
            size = max(feature.sizes)
            padding = f", padding_idx={int(feature.padding)}" if feature.kind == "ids" else ""
            width = 32 if feature.kind == "ids" else choose_width(size)
            layer = "EmbeddingBag" if feature.kind == "ids" else "Embedding"  # the mean without padding
            yield f"self.{self.name} = nn.{layer}({size}, {width}{padding})"
        elif feature.kind == "steps":
            yield f"self.{self.name} = nn.Conv1d({shape[1] if len(shape) > 1 else 1}, 16, 3, padding=1)"
        elif feature.kind == "image":
            yield f"self.{self.name} = nn.Sequential("
            yield f"    nn.Conv2d({shape[-1]}, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),"
            yield "    nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),"
            yield ")"
        elif not feature.is_scaled:
            yield f"self.{self.name} = nn.BatchNorm1d({self.width})"

    def call(self) -> str:
        """Return the expression of the vector."""
        feature = self.feature
        value = f"inputs[{quote(feature.name)}]"
        if feature.kind == "code":
            return f"self.{self.name}({value}){'.flatten(1)' if feature.output.shape else ''}"
        if feature.kind == "ids":
            return f"self.{self.name}({value})"
        if feature.kind == "steps":
            is_row = len(feature.output.shape) == 1
            steps = f"{value}.float(){'.unsqueeze(1)' if is_row else '.transpose(1, 2)'}"
            return f"torch.relu(self.{self.name}({steps})).amax(2)"
        if feature.kind == "image":
            scale = " / 255" if feature.output.dtype == "uint8" else ""
            return f"self.{self.name}({value}.permute(0, 3, 1, 2).float(){scale}).mean((2, 3))"
        flat = f"{value}.float().reshape(-1, {self.width})"
        return flat if feature.is_scaled else f"self.{self.name}({flat})"
