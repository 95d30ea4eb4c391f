"""Settings of the image inputs of a run: the options `image_size` and `augment`, and pretrained weights.

In: a schema, the settings of its fields, and options. Out: the settings with those options for each image.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from penstock.errors import OptionError
from penstock.foundation.wording import show
from penstock.model.options import ModelOptions
from penstock.schema.scalar import Image as ImageField
from penstock.schema.schema import Schema
from penstock.training.options import TrainOptions
from penstock.transform.augment import Augment
from penstock.transform.image import Image

IMAGE_OPTIONS: Final = ("image_size", "augment")
"""Options of training that are settings of images."""

_FLIP: Final = 0.5  # half of the images


def set_images(schema: Schema, fields: Mapping[str, Any], options: TrainOptions) -> dict[str, Any]:
    """Return the settings of fields, with the size and augmentation of images that were given.

    Args:
        schema: Schema of the data.
        fields: Settings of fields for `Pipeline.fit_config`.
        options: Options of training.

    Raises:
        OptionError: An option of images is given, and the data has no image as an input.
    """
    changes = _list_changes(options)
    if not changes:
        return dict(fields)
    inputs = _list_inputs(schema)
    if not inputs:
        raise _refuse_without_images(
            next(name for name in IMAGE_OPTIONS if getattr(options, name) is not None)
        )
    used = [name for name in inputs if fields.get(name, {}) is not None]
    return {**fields, **{name: _change(fields.get(name), changes) for name in used}}


def check_image_encoder(schema: Schema, options: ModelOptions | None) -> None:
    """Refuse options of a pretrained image encoder that would have no effect on a new run, or spoil it.

    Raises:
        OptionError: The data has no image as an input, or weights are to be kept fixed that are not given.
    """
    if options is None:
        return
    for name in ("image_weights", "freeze_image"):
        if getattr(options, name) and not _list_inputs(schema):
            raise _refuse_without_images(name)
    if options.freeze_image and options.image_weights is None:
        raise OptionError(
            "freeze_image",
            field="freeze_image",
            expected="image_weights, as random weights would be kept fixed",
            got="no weights",
            advice="Add --image-weights FILE.h5, in Python image_weights='FILE.h5'; to train the encoder "
            "from scratch, leave freeze_image out.",
        )


def refuse_image_options(choices: Mapping[str, Any]) -> None:
    """Refuse options of images for a pipeline that is already fitted.

    Raises:
        OptionError: One is given.
    """
    for name in IMAGE_OPTIONS:
        if choices.get(name) is not None:
            expected = "no value, because a fitted pipeline is passed"
            advice = "Fit the pipeline with Image(size=…, augment=…), or pass no pipeline."
            raise OptionError(name, field=name, expected=expected, got=show(choices[name]), advice=advice)


def _list_inputs(schema: Schema) -> list[str]:
    """Return the names of the images that are inputs."""
    return [name for name, field in schema.items() if isinstance(field, ImageField) and field.role == "input"]


def _refuse_without_images(option: str) -> OptionError:
    return OptionError(
        option,
        field=option,
        expected="data with an image as an input",
        got="inputs of other types",
        advice="Remove this option, or declare the field with images: --image NAME.",
    )


def _list_changes(options: TrainOptions) -> dict[str, Any]:
    """Return the options of `Image` that are given."""
    changes: dict[str, Any] = {}
    if options.image_size is not None:
        changes["size"] = options.image_size
    if options.augment is not None:
        light = Augment.light()
        kinds = {"none": None, "light": light, "flip": dataclasses.replace(light, flip=_FLIP)}
        changes["augment"] = kinds[options.augment]
    return changes


def _change(given: Any, changes: Mapping[str, Any]) -> Any:
    """Return the setting of one field with other options of `Image`."""
    if isinstance(given, Image):
        return dataclasses.replace(given, **changes)
    plain = {name: each.to_json() if isinstance(each, Augment) else each for name, each in changes.items()}
    if isinstance(given, str):
        return {"kind": given, **plain}
    return {**given, **plain} if isinstance(given, Mapping) else given or plain
