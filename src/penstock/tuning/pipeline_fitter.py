"""Fit the pipeline of a run with the settings of its fields, its images and the parts of its inputs.

In: a data set, options, settings of fields. Out: a fitted pipeline. A tuner fits it again with
other settings.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.dataset import Dataset
from penstock.errors import OptionError
from penstock.foundation.wording import list_choices
from penstock.schema.scalar import Image as ImageField
from penstock.schema.schema import Schema
from penstock.score.importance import find_parts
from penstock.settings.model import ModelOptions
from penstock.settings.training import ALL_PARTS, AUTO_PARTS, TrainOptions
from penstock.training.loaders import HeldOut
from penstock.transform.augment import Augment
from penstock.transform.image import Image
from penstock.transform.pipeline import Pipeline, without_fields

IMAGE_OPTIONS: Final = ("image_size", "augment")
"""Options of training that are settings of images."""

_FLIP: Final = 0.5  # half of the images


def set_images(
    schema: Schema, fields: Mapping[str, object], options: TrainOptions, *, is_built: bool
) -> dict[str, object]:
    """Return the settings of fields, with the size and augmentation of images that were given.

    For a model that is built, images without a given transform or augmentation are augmented
    lightly.

    `fields`: settings of fields for `Pipeline.fit_config`. `is_built`: whether the model is built, and not
    the user's own.
    """
    changes = _list_changes(options)
    inputs = _list_inputs(schema)
    if changes and not inputs:
        raise _refuse_without_images(
            next(name for name in IMAGE_OPTIONS if getattr(options, name) is not None)
        )
    is_light = is_built and options.augment is None
    changed = {}
    for name in inputs:
        given = fields.get(name, {})
        if is_light and isinstance(given, Mapping) and not given.keys() & {"kind", "augment"}:
            given = {**given, "augment": Augment.light().to_json()}
        if given is not None and (given or changes):
            changed[name] = _change(given, changes)
    return {**fields, **changed}


def note_augmentation(
    pipeline: Pipeline, fields: Mapping[str, object], options: TrainOptions
) -> Iterator[str]:
    """Yield a note on images that are augmented by default, and not by options or settings of fields."""
    chosen = {name for name, given in fields.items() if not isinstance(given, Mapping) or "augment" in given}
    names = [
        name
        for name, each in pipeline.transforms.items()
        if isinstance(each, Image) and each.augment == Augment.light() and name not in chosen
    ]
    if names and options.augment is None:
        yield (
            f"Training images ({', '.join(names)}) are changed at random, with {Augment.light()!r}: the "
            "default for models that are built. `augment='none'` turns it off."
        )


def check_image_encoder(schema: Schema, options: ModelOptions | None) -> None:
    """Refuse options of a pretrained image encoder that would have no effect on a new run, or spoil it."""
    if options is None:
        return
    for name in ("image_weights", "freeze_image"):
        if getattr(options, name) and not _list_inputs(schema):
            raise _refuse_without_images(name)
    if options.freeze_image and options.image_weights is None:
        raise OptionError(
            "freeze_image",
            field="freeze_image",
            expected="pretrained weights, as random ones would be kept fixed",
            got="no weights",
            advice="Add `ModelOptions(image_weights='FILE.h5')`; to train the encoder "
            "from scratch, leave this option out.",
        )


def refuse_image_options(options: TrainOptions) -> None:
    """Refuse options of images for a pipeline that is already fitted."""
    for name in IMAGE_OPTIONS:
        if getattr(options, name) is not None:
            expected = "no value, because a fitted pipeline is passed"
            advice = "Fit the pipeline with Image(size=…, augment=…), or pass no pipeline."
            raise options.refuse(name, expected, advice=advice)


def _list_inputs(schema: Schema) -> list[str]:
    """Return the names of the images that are inputs."""
    return [name for name, field in schema.items() if isinstance(field, ImageField) and field.role == "input"]


def _refuse_without_images(option: str) -> OptionError:
    return OptionError(
        option,
        field=option,
        expected="data with an image as an input",
        got="inputs of other types",
        advice="Remove this option, or declare the field with images: `fields={NAME: ps.fields.Image()}`.",
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


@dataclass(frozen=True)
class PipelineFitter:
    """Settings of the pipeline of a run.

    Attributes:
        fields: Settings of fields that the user gave, for `Pipeline.fit_config`.
        groups: Groups of inputs, for `Pipeline.fit_config`.
        held_out: Records of the train split to validate with, which the pipeline is not fitted to; or None.
        is_built: Whether the model is built, and not the user's own.
    """

    data: Dataset
    options: TrainOptions
    fields: Mapping[str, object] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    held_out: HeldOut | None = None
    is_built: bool = True

    def fit(self, more: Mapping[str, object] | None = None) -> Pipeline:
        """Return the pipeline, with more settings of fields."""
        given = {**self.fields, **(more or {})}
        fields = set_images(self.data.schema, given, self.options, is_built=self.is_built)
        part = None if self.held_out is None else self.held_out.rows.invert()
        settings = {"fields": fields, "groups": self.groups}
        return _select_parts(Pipeline.fit_config(self.data, settings, part=part), self.options.parts)


def _select_parts(pipeline: Pipeline, wanted: str | Sequence[str]) -> Pipeline:
    """Return the pipeline with the parts that an option names; unchanged if it names none."""
    if wanted in (AUTO_PARTS, ALL_PARTS):
        return pipeline
    parts = find_parts(pipeline)
    for part in wanted:
        if part not in parts:
            expected = f"parts of the inputs: {list_choices(parts)}"
            advice = "Name some of these, or leave the option out to use those that help."
            raise OptionError("parts", field="parts", expected=expected, got=repr(part), advice=advice)
    names = [name for part, fields in parts.items() if part not in wanted for name in fields]
    return without_fields(pipeline, names, "it was left out")
