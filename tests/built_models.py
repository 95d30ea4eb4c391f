"""Pipelines without files, batches of them, and the models that are built for them, in both ways."""

import types
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from fit_sources import ColumnSource, numbers, strings
from penstock.columns import Column
from penstock.fields import Category, Number, Text
from penstock.model.build import build_model
from penstock.model.design import write_model
from penstock.schema.field import Field
from penstock.schema.schema import Schema
from penstock.settings.model import ModelOptions
from penstock.transform import Encode, Output, Scale, Tokenize
from penstock.transform.assembly import Assembly
from penstock.transform.base import Transform
from penstock.transform.map import Mapped
from penstock.transform.pipeline import Pipeline

NUM_ROWS = 6
Part = tuple[Field, Transform, Column]

YES = (Category("int64", role="target"), Encode(), numbers([0, 1, 0, 1, 1, 0], "int64"))
AGE = (Number(), Scale(), numbers([1, 2, 3, 4, 5, 6]))
BREED = (Category(), Encode(), strings(["cat", "dog", "cat", "eel", "dog", "cat"]))
NOTE = (Text(), Tokenize(), strings(["a cat", "", "a small dog", "an eel that swims", "", "cat"]))


def make_pipeline(
    parts: Mapping[str, Part], maps: Any = (), groups: Any = (), num_rows: int = NUM_ROWS
) -> tuple[Pipeline, dict[str, Any]]:
    """Fit transforms to columns; return the pipeline, and the inputs of a batch of all rows."""
    schema = Schema({name: field for name, (field, _, _) in parts.items()})
    columns = {name: column for name, (_, _, column) in parts.items()}
    source = ColumnSource(schema, columns)
    fitted = {name: each.fit(name, field, source) for name, (field, each, _) in parts.items()}
    pipeline = Pipeline(Assembly(schema, fitted, maps, groups))
    return pipeline, pipeline.apply(columns, num_rows)[0]


def make_map(field: str, name: str, array: Any) -> Mapped:
    """Return a map that makes one array, whatever it gets; the field is fed all the same."""
    made = np.asarray(array)
    output = Output(name, made.dtype.name, made.shape[1:])
    return Mapped(name, lambda _: {name: made}, (field,), (output,), keep=True)


def build_both(pipeline: Pipeline, options: ModelOptions | None = None) -> tuple[keras.Model, keras.Model]:
    """Return the model that is built, and the one that its code builds, with the same weights."""
    built = build_model(pipeline.schema, pipeline, options)
    module = types.ModuleType("written")
    code = write_model(pipeline.schema, pipeline, options)
    exec(compile(code, "written.py", "exec"), module.__dict__)  # noqa: S102 - what a user would import
    written = module.build()
    rng = np.random.default_rng(0)
    # Other weights than initial ones, so that no bias is 0 and no scale 1.
    shifted = [each + rng.normal(0, 0.1, each.shape).astype(each.dtype) ** 2 for each in built.get_weights()]
    built.set_weights(shifted)
    written.set_weights(shifted)
    return built, written


def list_layers(model: keras.Model) -> tuple[list[Any], list[Any]]:
    """Return what the layers are, in order, and which weights they have."""
    shapes = [(each.path, tuple(each.shape)) for each in model.weights]
    # A model within a model has layers whose names Keras counts up.
    configs = [each.name if isinstance(each, keras.Model) else each.get_config() for each in model.layers]
    kinds = [type(each).__name__ for each in model.layers]
    return list(zip(kinds, configs, strict=True)), shapes


def run(model: keras.Model, inputs: Mapping[str, Any]) -> Any:
    """Return what a model makes of a batch, as arrays."""
    given = model(dict(inputs), training=False)
    return keras.tree.map_structure(lambda x: np.asarray(keras.ops.convert_to_numpy(x)), given)
