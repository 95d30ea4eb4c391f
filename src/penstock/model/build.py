"""Build the model for a pipeline.

In: a schema, a fitted pipeline, options. Out: a `keras.Model` whose inputs and outputs are named.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import keras

from penstock.codegen.interpreter import Interpreter
from penstock.errors import OptionError
from penstock.model.design import design_model
from penstock.model.presets import fill_in_preset
from penstock.schema.schema import Schema
from penstock.settings.model import ModelOptions
from penstock.transform.pipeline import Pipeline


def build_model(schema: Schema, pipeline: Pipeline, options: ModelOptions | None = None) -> keras.Model:
    """Build the model for the inputs and targets of a pipeline.

    The model takes a dict with one array per input of the pipeline, and returns an array for one target, or a
    dict for several: probabilities of classes, or numbers as scaled in the batches.

    Args:
        schema: Schema of the data.
        pipeline: Pipeline fitted to data with this schema.
        options: Encoders and sizes.

    Raises:
        OptionError: There is no input or no target, or one that is not supported.
        UnknownNameError: The schema lacks a field that the pipeline reads.
        SchemaError: A field has another type than the pipeline was fitted to.

    Example:
        >>> import penstock as ps
        >>> pets = ps.open("pets/", target="adopted")
        >>> model = build_model(pets.schema, ps.Pipeline.fit(pets))
        >>> model.output_shape
        (None, 1)
    """
    chosen = fill_in_preset(options or ModelOptions())
    scope = {
        "keras": keras,
        "layers": keras.layers,
        "ops": keras.ops,
        "applications": _Applications(),
        "initializers": keras.initializers,
        "regularizers": keras.regularizers,
    }
    model: keras.Model = Interpreter(scope).run(design_model(schema, pipeline, chosen))
    model.built_from = chosen  # a run stores these options to rebuild the model, and no code
    return model


class _Applications:
    """The models of `keras.applications`, with an error that names the option."""

    def __getattr__(self, name: str) -> Callable[..., keras.Model]:
        return partial(_make_backbone, name)


def _make_backbone(name: str, /, **keywords: Any) -> keras.Model:
    try:
        return getattr(keras.applications, name)(**keywords)
    except (ValueError, OSError) as error:  # images that are too small, or weights of another model
        raise OptionError(
            f"image of ModelOptions: {name} for images of {keywords['input_shape']}",
            field="image",
            expected="images and weights that fit the model",
            got=str(error).strip().splitlines()[0].rstrip("."),
            advice="Use another image size, such as Image(size=224), or `ModelOptions(image='resnet')`.",
        ) from error
