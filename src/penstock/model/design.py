"""The description of a model for a pipeline, as statements to execute or to write as code.

In: a schema, a fitted pipeline, options. Out: the statements of a function that returns a `keras.Model`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from penstock.foundation.program import Statement, Term
from penstock.model.blueprint import INPUTS, KERAS, LAYERS, Blueprint, make_stem
from penstock.model.encoder.grid import encode_array, encode_image
from penstock.model.encoder.sequence import encode_sequence
from penstock.model.encoder.table import encode_categories, encode_numbers, encode_row
from penstock.model.feature import Feature, find_features
from penstock.model.options import ModelOptions
from penstock.model.task import Task, find_tasks
from penstock.schema.schema import Schema
from penstock.transform.output import Output
from penstock.transform.pipeline import Pipeline


def combine(blueprint: Blueprint, vectors: Sequence[Term]) -> Term:
    """Describe the layers that combine the vectors of all inputs; return the term for the result."""
    blueprint.block.note("Together.")
    x = vectors[0]
    if len(vectors) > 1:
        x = blueprint.bind("x", LAYERS.Concatenate(name=blueprint.layer("combined"))(list(vectors)))
    for number, units in enumerate(blueprint.options.units or (), start=1):
        x = blueprint.bind("x", blueprint.dense(f"combined_dense_{number}", units, x))
        x = blueprint.drop("x", f"combined_dropout_{number}", x)
    return x


_ACTIVATIONS: Final = {"binary": "sigmoid", "multiclass": "softmax", "multilabel": "sigmoid"}


def add_heads(blueprint: Blueprint, tasks: Mapping[str, Task], x: Term) -> Term:
    """Describe the output layers; return the term for the outputs of the model."""
    blueprint.block.note("Predicted.")
    found = {name: _add_head(blueprint, task, x) for name, task in tasks.items()}
    if len(found) == 1:
        return blueprint.block.bind("outputs", *found.values())
    return blueprint.block.bind("outputs", found)


def _add_head(blueprint: Blueprint, task: Task, x: Term) -> Term:
    # float32 for any dtype policy: probabilities in half precision round to 0 and 1.
    precision: dict[str, Any] = {"dtype": "float32"}
    regularizers, stem = blueprint.regularize(), make_stem(task.name)
    if task.kind != "regression":
        activation, name = _ACTIVATIONS[task.kind], blueprint.layer(stem)
        return LAYERS.Dense(task.units, activation=activation, **regularizers, **precision, name=name)(x)
    name = f"{stem}_dense"
    dense = LAYERS.Dense(task.units, **regularizers, **precision, name=blueprint.layer(name))
    dense = blueprint.finish(name, dense(x))
    # The dense layer learns standardized numbers; mean and deviation of the target need only a few digits.
    deviation, mean = (float(f"{each:.6g}") for each in (task.deviation, task.mean))
    return LAYERS.Rescaling(deviation, mean, **precision, name=blueprint.layer(stem))(dense)


def design_model(schema: Schema, pipeline: Pipeline, options: ModelOptions | None) -> tuple[Statement, ...]:
    """Describe the model for the inputs and targets of a pipeline.

    Raises:
        OptionError: There is no input or no target, or one that is not supported.
        UnknownNameError: The schema lacks a field that the pipeline reads.
        SchemaError: A field has another type than the pipeline was fitted to.
    """
    pipeline.check_schema(schema)
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
    vectors = [encode_numbers(blueprint, numbers)] if numbers else []
    if categories:
        vectors += encode_categories(blueprint, categories)
    for feature in features:
        encode = _ENCODERS.get(feature.kind)
        if encode is not None:
            vectors.append(encode(blueprint, feature))
    return vectors


_ENCODERS = {
    "row": encode_row,
    "ids": encode_sequence,
    "steps": encode_sequence,
    "image": encode_image,
    "array": encode_array,
}


def _make_input(blueprint: Blueprint, output: Output) -> Term:
    name, shape, dtype = output.name, output.shape, output.dtype
    if "/" not in name:
        return KERAS.Input(shape, dtype=dtype, name=blueprint.layer.keep(name))
    # Keras does not allow a slash in the name of a layer, but in the name of a tensor.
    tensor = KERAS.KerasTensor((None, *shape), dtype=dtype, name=name)
    return KERAS.Input(tensor=tensor, name=blueprint.layer(make_stem(name)))
