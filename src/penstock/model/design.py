"""The description of a model for a pipeline, as statements to execute or to write as code.

In: a schema, a fitted pipeline, options. Out: the statements of a function that returns a `keras.Model`; or
the text of a module with that function, for users to edit.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.codegen.program import Term, define_function
from penstock.codegen.program_text import Layout, write_program
from penstock.model.blueprint import INITIALIZERS, INPUTS, KERAS, LAYERS, OPS, Blueprint, make_stem
from penstock.model.encoder.grid import encode_array, encode_images
from penstock.model.encoder.ngrams import add_ngrams
from penstock.model.encoder.sequence import encode_sequence
from penstock.model.encoder.table import encode_categories, encode_numbers, encode_row
from penstock.model.feature import Feature, find_features
from penstock.model.task import Task, find_tasks
from penstock.schema.schema import Schema
from penstock.settings.model import ModelOptions
from penstock.transform.output import Output
from penstock.transform.pipeline import Pipeline


def combine(blueprint: Blueprint, vectors: Sequence[Term]) -> Term:
    """Describe the layers that combine the vectors of all inputs; return the term for the result."""
    blueprint.note("Together.")
    x = vectors[0]
    if len(vectors) > 1:
        x = blueprint.bind("x", LAYERS.Concatenate(name=blueprint.layer("combined"))(list(vectors)))
    num_members = blueprint.options.members or 1
    if num_members > 1:
        x = _add_members(blueprint, x, num_members)
    for number, units in enumerate(blueprint.options.units or (), start=1):
        x = blueprint.bind("x", blueprint.dense(f"combined_dense_{number}", units, x))
        x = blueprint.drop("x", f"combined_dropout_{number}", x)
    return x


def _add_members(blueprint: Blueprint, x: Term, num_members: int) -> Term:
    """Describe the inputs of the members of an ensemble: copies of a vector, each with separate scales."""
    blueprint.remark(
        f"An ensemble of {num_members} members: they share the dense layers, and each has its own scale of "
        "every input and its own output layer."
    )
    layer = LAYERS.EinsumDense(
        "bd,kd->bkd",
        output_shape=(num_members, x.shape[-1]),
        kernel_initializer=INITIALIZERS.RandomNormal(stddev=1.0),
        name=blueprint.layer("combined_members"),
    )
    return blueprint.bind("x", layer(x))


_ACTIVATIONS: Final = {"binary": "sigmoid", "multiclass": "softmax", "multilabel": "sigmoid"}


def add_heads(blueprint: Blueprint, tasks: Mapping[str, Task], x: Term) -> Term:
    """Describe the output layers; return the term for the outputs of the model."""
    blueprint.note("Predicted.")
    found = {name: _add_head(blueprint, task, x) for name, task in tasks.items()}
    if len(found) == 1:
        return blueprint.block.bind("outputs", *found.values())
    return blueprint.block.bind("outputs", found)


def _add_head(blueprint: Blueprint, task: Task, x: Term) -> Term:
    # float32 for any dtype policy: probabilities in half precision round to 0 and 1.
    precision: dict[str, Any] = {"dtype": "float32"}
    stem, has_members = make_stem(task.name), (blueprint.options.members or 1) > 1
    name = f"{stem}_members" if has_members else stem
    if task.kind != "regression":
        found = _add_probabilities(blueprint, task, name, x)
        return _average(blueprint, stem, blueprint.finish(name, found)) if has_members else found
    dense = blueprint.finish(
        f"{stem}_dense", _add_output(blueprint, task, blueprint.layer(f"{stem}_dense"), {})(x)
    )
    dense = _add_part_outputs(blueprint, task, add_ngrams(blueprint, stem, task.units, dense))
    # The dense layer learns standardized numbers; mean and deviation of the target need only a few digits.
    deviation, mean = (float(f"{each:.6g}") for each in (task.deviation, task.mean))
    rescaled = LAYERS.Rescaling(deviation, mean, **precision, name=blueprint.layer(name))(dense)
    return _average(blueprint, stem, blueprint.finish(name, rescaled)) if has_members else rescaled


def _add_probabilities(blueprint: Blueprint, task: Task, name: str, x: Term) -> Term:
    """Describe the layer of the probabilities of a task, of the members of an ensemble or of the model."""
    activation = _ACTIVATIONS[task.kind]
    if not blueprint.ngrams and not blueprint.parts:
        return _add_output(blueprint, task, blueprint.layer(name), {"activation": activation})(x)
    stem = make_stem(task.name)
    dense = _add_output(blueprint, task, blueprint.layer(f"{stem}_dense"), {})
    x = add_ngrams(blueprint, stem, task.units, blueprint.finish(f"{stem}_dense", dense(x)))
    x = _add_part_outputs(blueprint, task, x)
    return LAYERS.Activation(activation, dtype="float32", name=blueprint.layer(name))(x)


def _add_part_outputs(blueprint: Blueprint, task: Task, members: Term) -> Term:
    """Describe an output layer for each input with an encoder; return them after the members' outputs."""
    if not blueprint.parts:
        return members
    stem = make_stem(task.name)
    blueprint.remark("Outputs of single inputs, for training alone: their encoders learn from them too.")
    found = [members]
    for name, vector in blueprint.parts:
        layer = LAYERS.Dense(
            task.units, **blueprint.regularize(), dtype="float32", name=blueprint.layer(f"{stem}_of_{name}")
        )
        found.append(OPS.expand_dims(layer(vector), 1))
    return blueprint.finish(f"{stem}_all", OPS.concatenate(found, axis=1))


def _add_output(blueprint: Blueprint, task: Task, name: str, activation: dict[str, Any]) -> Term:
    """Describe the dense output layer of a task, with weights for each member of an ensemble."""
    keywords = {**activation, **blueprint.regularize()}
    num_members = blueprint.options.members or 1
    if num_members == 1:
        return LAYERS.Dense(task.units, **keywords, dtype="float32", name=name)
    # The default of Keras would count the members as inputs, and begin with weights that are too small.
    limit = float(f"{1 / math.sqrt((blueprint.options.units or (1,))[-1]):.3g}")
    return LAYERS.EinsumDense(
        "bkd,kdu->bku",
        output_shape=(num_members, task.units),
        bias_axes="ku",
        kernel_initializer=INITIALIZERS.RandomUniform(-limit, limit),
        **keywords,
        dtype="float32",
        name=name,
    )


def _average(blueprint: Blueprint, stem: str, members: Term) -> Term:
    """Describe the mean of the predictions of the members."""
    if blueprint.parts:
        members = members[:, : blueprint.options.members]
    return LAYERS.GlobalAveragePooling1D(dtype="float32", name=blueprint.layer(stem))(members)


def design_model(schema: Schema, pipeline: Pipeline, options: ModelOptions | None) -> list[ast.stmt]:
    """Describe the model for the inputs and targets of a pipeline."""
    pipeline.assembly.check_schema(schema)
    tasks = find_tasks(pipeline)
    features = find_features(pipeline)
    blueprint = Blueprint(options or ModelOptions())
    inputs = {name: _make_input(blueprint, output) for name, output in pipeline.inputs.items()}
    blueprint.block.bind("inputs", inputs)
    vectors = _encode(blueprint, features)
    outputs = add_heads(blueprint, tasks, combine(blueprint, vectors))
    return blueprint.block.finish(KERAS.Model(INPUTS, outputs, name="penstock"))


def _encode(blueprint: Blueprint, features: list[Feature]) -> list[Term]:
    numbers = [each for each in features if each.kind == "number"]
    categories = [each for each in features if each.kind == "code"]
    vectors = encode_numbers(blueprint, numbers) if numbers else []
    if categories:
        vectors += encode_categories(blueprint, categories)
    parts: list[tuple[str, Term]] = []
    images: dict[object, list[Feature]] = {}
    for feature in features:
        if feature.kind == "image":
            images.setdefault(_identify_encoder(blueprint, feature), []).append(feature)
    for feature in features:
        encode = _ENCODERS.get(feature.kind)
        if encode is not None:
            vectors.append(encode(blueprint, feature))
            if feature.kind != "row":  # a dense layer, or columns of a table
                parts.append((feature.stem, vectors[-1]))
        elif feature.kind == "image":
            shared = images.pop(_identify_encoder(blueprint, feature), None)
            if shared is not None:  # by the first of them
                vectors.append(encode_images(blueprint, shared))
                parts.append((feature.stem, vectors[-1]))
    if blueprint.options.part_outputs and len(vectors) > 1 and (blueprint.options.members or 1) > 1:
        blueprint.parts = parts
    return vectors


def _identify_encoder(blueprint: Blueprint, feature: Feature) -> object:
    """Return a key that images with a shared encoder have in common."""
    if blueprint.options.share_images:
        return feature.output.shape, feature.output.dtype, feature.pixels
    return feature.name


_ENCODERS = {
    "row": encode_row,
    "ids": encode_sequence,
    "steps": encode_sequence,
    "array": encode_array,
}


def _make_input(blueprint: Blueprint, output: Output) -> Term:
    name, shape, dtype = output.name, output.shape, output.dtype
    if "/" not in name:
        return KERAS.Input(shape, dtype=dtype, name=blueprint.layer.keep(name))
    # Keras does not allow a slash in the name of a layer, but in the name of a tensor.
    tensor = KERAS.KerasTensor((None, *shape), dtype=dtype, name=name)
    return KERAS.Input(tensor=tensor, name=blueprint.layer(make_stem(name)))


_MODULES: Final = ("applications", "initializers", "layers", "ops", "regularizers")
_LAYOUT: Final = Layout(width=110, margin=0, parts_return=False, breaks_operations=False)
_DOCSTRING: Final = """A model of several inputs by name, in Keras alone: yours to edit.

Penstock wrote it. Train it with: penstock train DATASET --model model.py:build
"""


def write_model(schema: Schema, pipeline: Pipeline, options: ModelOptions | None = None) -> str:
    """Return the code of the model that `build_model` builds.

    The code defines a function `build() -> keras.Model`, with the same layers and names, and weights in the
    same order.
    """
    body = design_model(schema, pipeline, options)
    build = define_function("build", (), "Return the model, not compiled.", body, KERAS.Model.node)
    names = {node.id for node in ast.walk(build) if isinstance(node, ast.Name)}
    used = ", ".join(name for name in _MODULES if name in names)
    modules = ["import keras", f"from keras import {used}"]
    return write_program([build], _DOCSTRING, modules, _LAYOUT)
