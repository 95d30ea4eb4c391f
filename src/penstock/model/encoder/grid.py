"""Encoders of images and arrays: a small residual network, or a model of `keras.applications`.

In: inputs of two or more dimensions, with channels or without. Out: one vector per record and input.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Final, NamedTuple

from penstock.codegen.program import Term, lift
from penstock.model.blueprint import INPUTS, LAYERS, OPS, Blueprint, cast_float
from penstock.model.feature import BACKBONES, Feature, Scaling

_UNKNOWN_SIDE: Final = 64
# Of the residual network. On photos, 3,400 of two and 905 of five classes, four stages of one block were as
# accurate as deeper and wider ones.
_FIRST_SIDE: Final = 56  # of the first stage, at most
_STAGE_SIDES: Final = (0, 8, 18, 24)  # shortest side, before the stages, from which there is one more
_SMALL_SIDE: Final = 24
_MOMENTUM: Final = 0.95
# Of the network of earlier versions.
_LARGE_SIDE: Final = 128  # from here on the first layer has stride 2, which is a quarter of the work
_LAST_SIDE: Final = 4
_MAX_STAGES: Final = 6
_MAX_FILTERS: Final = 256
_CHANNELS: Final = (1, 3, 4)
_BYTE: Final = Term(lift(1)) / 255


def encode_images(blueprint: Blueprint, features: Sequence[Feature]) -> Term:
    """Describe one encoder for images of the same shape; return the term for the vectors of all of them."""
    options, first = blueprint.options, features[0]
    if options.image in BACKBONES:
        return _encode_by_backbone(blueprint, features)
    sides = " × ".join(map(str, first.output.shape))
    names = ", ".join(each.name for each in features)
    what = "an image" if len(features) == 1 else f"{len(features)} images with one encoder, each"
    blueprint.note(f"{names}: {what} of {sides}.")
    name = _name_encoder(features)
    x = _rescale_pixels(blueprint, first, name, _join(blueprint, features))
    x, shape = _arrange(blueprint, first, name, x)
    return _divide(blueprint, features, name, _convolve(blueprint, name, x, shape, options.image))


def encode_array(blueprint: Blueprint, feature: Feature) -> Term:
    """Describe the encoder of an array; return the term for the vector."""
    name = feature.stem
    sides = " × ".join("?" if dim is None else str(dim) for dim in feature.output.shape)
    blueprint.note(f"{feature.name}: an array of {sides}.")
    x = _rescale_pixels(blueprint, feature, name, INPUTS[feature.name])
    x, shape = _arrange(blueprint, feature, name, x)
    x = _convolve(blueprint, name, x, shape, blueprint.options.array)
    return blueprint.finish(name, x)


def _name_encoder(features: Sequence[Feature]) -> str:
    """Return the prefix of the names of layers: the name of the field, or "images" for several."""
    return features[0].stem if len(features) == 1 else "images"


def _join(blueprint: Blueprint, features: Sequence[Feature]) -> Term:
    """Describe the input of one encoder for several images: the images of all fields as one longer batch.

    So batch normalization sees all of them together, in training as later.
    """
    if len(features) == 1:
        return INPUTS[features[0].name]
    x = blueprint.bind("x", OPS.stack([INPUTS[each.name] for each in features], axis=1))
    return blueprint.bind("x", OPS.reshape(x, (-1, *features[0].output.shape)))


def _divide(blueprint: Blueprint, features: Sequence[Feature], name: str, x: Term) -> Term:
    """Describe the vector of each record: the vectors of all its images, in the order of the fields."""
    if len(features) > 1:
        x = OPS.reshape(blueprint.bind("x", x), (-1, len(features) * blueprint.width))
    return blueprint.finish(name, x)


def _rescale_pixels(blueprint: Blueprint, feature: Feature, name: str, x: Term) -> Term:
    if feature.pixels == Scaling():
        rescale = LAYERS.Rescaling(_BYTE, name=blueprint.layer(f"{name}_rescaling"))
        return blueprint.bind("x", rescale(x))
    if feature.output.dtype != "float32":
        return blueprint.bind("x", cast_float(x, feature.output.dtype))
    return x


def _arrange(
    blueprint: Blueprint, feature: Feature, name: str, x: Term
) -> tuple[Term, tuple[int | None, ...]]:
    """Reshape an array to two or three dimensions followed by channels."""
    shape = feature.output.shape
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


def _convolve(blueprint: Blueprint, name: str, x: Term, shape: tuple[int | None, ...], network: str) -> Term:
    """Describe a convolutional network, global average pooling, and a dense layer."""
    rank, sides = len(shape) - 1, [dim or _UNKNOWN_SIDE for dim in shape[:-1]]
    if network == "cnn":
        x = _convolve_plainly(blueprint, name, x, sides)
    else:
        x = _convolve_residually(blueprint, name, x, sides)
    pool = getattr(LAYERS, f"GlobalAveragePooling{rank}D")(name=blueprint.layer(f"{name}_pooling"))
    x = blueprint.bind("x", pool(x))
    if network != "cnn" and blueprint.options.image_dropout:
        dropout = LAYERS.Dropout(blueprint.options.image_dropout, name=blueprint.layer(f"{name}_dropout"))
        x = blueprint.bind("x", dropout(x))
    return blueprint.dense(f"{name}_dense", blueprint.width, x)


def _convolve_residually(blueprint: Blueprint, name: str, x: Term, sides: list[int]) -> Term:
    """Describe a residual network with normalization before each convolution (pre-activation)."""
    plan = plan_stages(sides, blueprint.options.filters or 0)
    rank = len(sides)
    for number in range(1, plan.num_halvings + 1):
        # Convolutions of large images are most of the work: they have half of the filters.
        part = f"{name}_stem" if number == 1 else f"{name}_stem_{number}"
        if number == 1:
            x = blueprint.bind("x", _add_convolution(blueprint, part, (plan.stem, 3, 2), rank, x))
            x = _normalize(blueprint, part, x)
            continue
        pool = getattr(LAYERS, f"MaxPooling{rank}D")
        x = blueprint.bind(
            "x", pool(3, strides=2, padding="same", name=blueprint.layer(f"{part}_pooling"))(x)
        )
    if not plan.num_halvings:
        part = f"{name}_stem"
        x = blueprint.bind("x", _add_convolution(blueprint, part, (plan.stem, 3, 1), rank, x))
    num_channels = plan.stem
    for number, filters in enumerate(plan.filters, start=1):
        stride = 1 if number == 1 else 2
        x = _add_block(blueprint, f"{name}_{number}", x, (num_channels, filters, stride), rank)
        num_channels = filters
    return _normalize(blueprint, f"{name}_last", x)


def _add_block(blueprint: Blueprint, part: str, x: Term, sizes: tuple[int, int, int], rank: int) -> Term:
    """Describe two convolutions beside a shortcut; sizes are channels before and after, and the stride."""
    num_channels, filters, stride = sizes
    y = _normalize(blueprint, f"{part}_before", x, "y")
    if stride > 1 or num_channels != filters:
        shortcut = y
        if stride > 1:
            pool = getattr(LAYERS, f"AveragePooling{rank}D")
            pool = pool(stride, padding="same", name=blueprint.layer(f"{part}_shortcut_pooling"))
            shortcut = blueprint.bind("shortcut", pool(shortcut))
        layer = _add_convolution(blueprint, f"{part}_shortcut", (filters, 1, 1), rank, shortcut)
        x = blueprint.bind("shortcut", layer)  # in place of the input
    y = blueprint.bind("y", _add_convolution(blueprint, f"{part}_first", (filters, 3, stride), rank, y))
    y = _normalize(blueprint, f"{part}_between", y, "y")
    y = blueprint.bind("y", _add_convolution(blueprint, f"{part}_second", (filters, 3, 1), rank, y))
    return blueprint.bind("x", LAYERS.Add(name=blueprint.layer(f"{part}_sum"))([x, y]))


def _add_convolution(
    blueprint: Blueprint, part: str, sizes: tuple[int, int, int], rank: int, x: Term
) -> Term:
    """Return a convolution, called with a term; sizes are filters, side of the kernel, and stride."""
    filters, side, stride = sizes
    layer: Term = getattr(LAYERS, f"Conv{rank}D")(
        filters,
        side,
        **({"strides": stride} if stride > 1 else {}),
        padding="same",
        use_bias=False,
        **blueprint.regularize(),
        name=blueprint.layer(f"{part}_convolution"),
    )
    return layer(x)


def _normalize(blueprint: Blueprint, part: str, x: Term, variable: str = "x") -> Term:
    """Describe batch normalization, then a ReLU."""
    layer = LAYERS.BatchNormalization(momentum=_MOMENTUM, name=blueprint.layer(f"{part}_normalization"))
    x = blueprint.bind(variable, layer(x))
    return blueprint.bind(variable, LAYERS.ReLU(name=blueprint.layer(f"{part}_relu"))(x))


class StagePlan(NamedTuple):
    """Sizes of a residual network.

    Attributes:
        num_halvings: How often the sides are halved before the first stage.
        stem: Number of filters of the first convolution.
        filters: Number of filters of each stage; each stage but the first halves the sides.
    """

    num_halvings: int
    stem: int
    filters: tuple[int, ...]


def plan_stages(sides: Sequence[int], filters: int) -> StagePlan:
    """Return the sizes of a residual network for images with these sides.

    `sides`: height and width; three sides for arrays of volumes. `filters`: number of filters of the first
    stage; a third of them for images of less than 24 pixels on a side, which are less complex.
    """
    side = math.prod(sides) ** (1 / len(sides))
    num_halvings = 0
    while side > _FIRST_SIDE:
        side, num_halvings = side / 2, num_halvings + 1
    shortest = min(sides) / 2**num_halvings
    num_stages = sum(shortest >= least for least in _STAGE_SIDES)
    first = filters if side >= _SMALL_SIDE else max(1, filters // 3)
    stem = max(1, first // 2) if num_halvings else first
    return StagePlan(num_halvings, stem, tuple(first << number for number in range(num_stages)))


def _convolve_plainly(blueprint: Blueprint, name: str, x: Term, sides: list[int]) -> Term:
    """Describe the network of earlier versions: one convolution per halving of the sides."""
    rank, side = len(sides), min(sides)
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
    return x


def count_stages(side: int) -> int:
    """Return how often a side is halved after the first layer, until it is about 4."""
    halved = side / 2 if side >= _LARGE_SIDE else side
    return max(1, min(_MAX_STAGES, round(math.log2(halved / _LAST_SIDE))))


def _encode_by_backbone(blueprint: Blueprint, features: Sequence[Feature]) -> Term:
    """Describe a model of `keras.applications` as the encoder; return the term for the vectors."""
    options, first, name = blueprint.options, features[0], _name_encoder(features)
    height, width, _ = first.output.shape
    names = ", ".join(each.name for each in features)
    what = "an image" if len(features) == 1 else f"{len(features)} images, each"
    blueprint.note(f"{names}: {what} of {height} × {width}, encoded by {options.image}.")
    x = _prepare(blueprint, first, name, _join(blueprint, features))
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
    return _divide(blueprint, features, name, blueprint.dense(f"{name}_dense", blueprint.width, x))


def _prepare(blueprint: Blueprint, feature: Feature, name: str, x: Term) -> Term:
    """Describe the preprocessing that a model needs: three channels, with its own scaling."""
    channels = feature.output.shape[-1]
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
