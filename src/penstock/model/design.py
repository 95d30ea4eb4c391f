"""The description of a model for a pipeline: statements that are carried out, or written as code.

In: a schema, a fitted pipeline, options. Out: the statements of a function that returns a `keras.Model`.
"""

from __future__ import annotations

from penstock.foundation.program import Statement, Term
from penstock.model.blueprint import INPUTS, KERAS, Blueprint, make_stem
from penstock.model.combiner import combine
from penstock.model.encoder.array import encode_array
from penstock.model.encoder.category import encode_categories
from penstock.model.encoder.image import encode_image
from penstock.model.encoder.number import encode_numbers, encode_row
from penstock.model.encoder.sequence import encode_sequence
from penstock.model.feature import Feature, find_features
from penstock.model.head import add_heads
from penstock.model.options import ModelOptions
from penstock.model.task import find_tasks
from penstock.schema.schema import Schema
from penstock.transform.output import Output
from penstock.transform.pipeline import Pipeline


def design_model(schema: Schema, pipeline: Pipeline, options: ModelOptions | None) -> tuple[Statement, ...]:
    """Describe the model for the inputs and targets of a pipeline.

    Raises:
        OptionError: There is no input or no target, or one that no model is built for.
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
    # Keras refuses a layer of that name; a tensor may have it.
    tensor = KERAS.KerasTensor((None, *shape), dtype=dtype, name=name)
    return KERAS.Input(tensor=tensor, name=blueprint.layer(make_stem(name)))
