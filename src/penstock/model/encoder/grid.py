"""Encoders of images and arrays: a small convolutional network, or a model of `keras.applications`.

In: an input of two or more dimensions, with channels or without. Out: one vector per record.
"""

from __future__ import annotations

import math
import os
from typing import Final

from penstock.foundation.program import Term, lift
from penstock.model.blueprint import INPUTS, LAYERS, OPS, Blueprint, cast_float
from penstock.model.feature import Feature
from penstock.model.options import BACKBONES, Scaling

_UNKNOWN_SIDE: Final = 64
_LARGE_SIDE: Final = 128  # from here on the first layer has stride 2, which is a quarter of the work
_LAST_SIDE: Final = 4
_MAX_STAGES: Final = 6
_MAX_FILTERS: Final = 256
_CHANNELS: Final = (1, 3, 4)
_BYTE: Final = Term(lift(1)) / 255


def encode_array(blueprint: Blueprint, feature: Feature) -> Term:
    """Describe the encoder of an array; return the term for the vector."""
    name, shape = feature.stem, feature.output.shape
    sides = " × ".join("?" if dim is None else str(dim) for dim in shape)
    blueprint.block.note(
        f"{feature.name}: {'an image' if feature.kind == 'image' else 'an array'} of {sides}."
    )
    x = INPUTS[feature.name]
    if feature.pixels == Scaling():
        rescale = LAYERS.Rescaling(_BYTE, name=blueprint.layer(f"{name}_rescaling"))
        x = blueprint.bind("x", rescale(x))
    elif feature.output.dtype != "float32":
        x = blueprint.bind("x", cast_float(x, feature.output.dtype))
    x, shape = _arrange(blueprint, feature, x)
    return _convolve(blueprint, name, x, shape)


def _arrange(blueprint: Blueprint, feature: Feature, x: Term) -> tuple[Term, tuple[int | None, ...]]:
    """Reshape an array to two or three dimensions followed by channels."""
    name, shape = feature.stem, feature.output.shape
    if len(shape) == 2:
        return blueprint.bind("x", OPS.expand_dims(x, -1)), (*shape, 1)
    if len(shape) == 3 and shape[0] in _CHANNELS and (shape[2] or 0) > max(_CHANNELS):
        permute = LAYERS.Permute((2, 3, 1), name=blueprint.layer(f"{name}_channels_last"))
        return blueprint.bind("x", permute(x)), (*shape[1:], shape[0])
    if len(shape) > 4:
        merged = (*shape[:3], math.prod(dim or 1 for dim in shape[3:]))
        reshape = LAYERS.Reshape(merged, name=blueprint.layer(f"{name}_merged"))
        return blueprint.bind("x", reshape(x)), merged
    return x, shape


def _convolve(blueprint: Blueprint, name: str, x: Term, shape: tuple[int | None, ...]) -> Term:
    rank, side = len(shape) - 1, min(dim or _UNKNOWN_SIDE for dim in shape[:-1])
    filters, num_stages = blueprint.options.filters or 0, count_stages(side)
    for number in range(1, num_stages + 2):
        part = f"{name}_{number}"
        layer = getattr(LAYERS, f"Conv{rank}D")(
            filters,
            3,
            **({"strides": 2} if side >= _LARGE_SIDE and number == 1 else {}),
            padding="same",
            use_bias=False,
            **blueprint.regularize(),
            name=blueprint.layer(f"{part}_convolution"),
        )
        x = blueprint.bind("x", layer(x))
        x = blueprint.bind("x", blueprint.normalize(f"{part}_normalization", x))
        x = blueprint.bind("x", LAYERS.ReLU(name=blueprint.layer(f"{part}_relu"))(x))
        if number <= num_stages:
            pool = getattr(LAYERS, f"MaxPooling{rank}D")
            pool = pool(2, padding="same", name=blueprint.layer(f"{part}_pooling"))
            x = blueprint.bind("x", pool(x))
        filters = min(2 * filters, max(_MAX_FILTERS, filters))
    pool = getattr(LAYERS, f"GlobalAveragePooling{rank}D")(name=blueprint.layer(f"{name}_pooling"))
    x = blueprint.bind("x", pool(x))
    return blueprint.finish(name, blueprint.dense(f"{name}_dense", blueprint.width, x))


def count_stages(side: int) -> int:
    """Return how often a side is halved after the first layer, until it is about 4."""
    halved = side / 2 if side >= _LARGE_SIDE else side
    return max(1, min(_MAX_STAGES, round(math.log2(halved / _LAST_SIDE))))


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
    backbone = blueprint.bind("backbone", model)
    if options.freeze_image:
        blueprint.block.bind("backbone.trainable", False)
    x = blueprint.bind("x", backbone(x))
    return blueprint.finish(name, blueprint.dense(f"{name}_dense", blueprint.width, x))


def _prepare(blueprint: Blueprint, feature: Feature) -> Term:
    """Describe the preprocessing that a model needs: three channels, with its own scaling."""
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
