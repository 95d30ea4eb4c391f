"""Images: a small network of their own, or a model of `keras.applications`.

In: an input of pixels. Out: one vector.
"""

from __future__ import annotations

import os

from penstock.foundation.program import Term
from penstock.model.blueprint import INPUTS, LAYERS, OPS, Blueprint
from penstock.model.encoder.array import encode_array
from penstock.model.feature import Feature
from penstock.model.options import BACKBONES, Scaling


def encode_image(blueprint: Blueprint, feature: Feature) -> Term:
    """Describe the encoder of an image; return the term for the vector."""
    options, name = blueprint.options, feature.stem
    if options.image == "cnn":
        return encode_array(blueprint, feature)
    height, width, _ = feature.output.shape
    blueprint.block.note(f"{feature.name}: an image of {height} × {width}, seen by {options.image}.")
    x = _prepare(blueprint, feature)
    model = getattr(Term.name("applications"), options.image)(
        include_top=False,
        weights=None if options.image_weights is None else os.fspath(options.image_weights),
        input_shape=(height, width, 3),
        pooling="avg",
        name=blueprint.layer(f"{name}_{options.image}"),
    )
    seen_by = blueprint.bind("backbone", model)
    if options.freeze_image:
        blueprint.block.bind("backbone.trainable", False)
    x = blueprint.bind("x", seen_by(x))
    return blueprint.finish(name, blueprint.dense(f"{name}_dense", blueprint.width, x))


def _prepare(blueprint: Blueprint, feature: Feature) -> Term:
    """Describe how pixels become what a model was made for: three channels, scaled its way."""
    name, channels, x = feature.stem, feature.output.shape[-1], INPUTS[feature.name]
    wanted, given = BACKBONES[blueprint.options.image], feature.pixels or Scaling()
    if given != Scaling():
        blueprint.remark("Back to pixels from 0 to 255.")
        x = blueprint.bind("x", _rescale(blueprint, f"{name}_pixels", given.undo(), x))
    if channels == 1:
        copy = LAYERS.Concatenate(name=blueprint.layer(f"{name}_channels"))
        x = blueprint.bind("x", copy([x, x, x]))
    elif channels == 4:
        blueprint.remark("Without alpha.")
        x = blueprint.bind("x", x[:, :, :, :3])
    if wanted.is_reversed:
        blueprint.remark("Blue, green, red.")
        x = blueprint.bind("x", OPS.flip(x, axis=-1))
    return blueprint.bind("x", _rescale(blueprint, f"{name}_rescaling", wanted, x))


def _rescale(blueprint: Blueprint, name: str, scaling: Scaling, x: Term) -> Term:
    scale, offset = (each[0] if len(set(each)) == 1 else list(each) for each in scaling[:2])
    return LAYERS.Rescaling(scale, offset, name=blueprint.layer(name))(x)
