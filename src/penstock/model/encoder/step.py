"""The steps of texts and sequences: a vector for each, and which of them are no padding.

In: inputs of ids or numbers in order, padded. Out: `Steps`.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from penstock.errors import OptionError
from penstock.foundation.program import Term
from penstock.model.blueprint import INPUTS, LAYERS, OPS, REGULARIZERS, TABLE_COST, Blueprint, cast_float
from penstock.model.feature import Feature

_WORD_DROPOUT: Final = 0.5  # of whole words


class Steps(NamedTuple):
    """A sequence while it is encoded.

    Attributes:
        name: What the names of its layers begin with.
        x: A vector a step.
        mask: True where a step is no padding.
        length: How many steps there are, or None where that varies.
    """

    name: str
    x: Term
    mask: Term
    length: int | None


def embed_steps(blueprint: Blueprint, feature: Feature, *, is_pooled: bool = False) -> Steps:
    """Describe how a sequence becomes a vector a step.

    Ids have a row each of a table. Numbers go through a dense layer; single whole numbers may be amounts or
    ids, and are taken as both.

    Args:
        blueprint: What is described.
        feature: The sequence.
        is_pooled: Whether its steps are words that are added up: then rows of the table cost something, and
            words are left out at random.

    Raises:
        OptionError: Steps hold any number of numbers.
    """
    mask = _find_mask(blueprint, feature)
    if feature.kind == "ids":
        x = _embed_ids(blueprint, feature, is_pooled=is_pooled)
    else:
        x = _embed_numbers(blueprint, feature, mask)
    return Steps(feature.stem, x, mask, feature.output.shape[0])


def _find_mask(blueprint: Blueprint, feature: Feature) -> Term:
    if feature.mask is not None:
        return INPUTS[feature.mask]
    padding = float(feature.padding) if "float" in feature.output.dtype else int(feature.padding)
    is_value = OPS.not_equal(INPUTS[feature.name], padding)
    inner = list(range(2, len(feature.output.shape) + 1))
    if inner:
        is_value = OPS.any(is_value, axis=inner if len(inner) > 1 else inner[0])
    if feature.kind == "ids":
        return blueprint.bind("mask", is_value)
    # A number may be what others are padded with.
    blueprint.remark(f"Padding is what stands behind the last step that is not {padding}.")
    mask = blueprint.bind("mask", OPS.flip(OPS.cast(is_value, "int32"), axis=1))
    return blueprint.bind("mask", OPS.flip(OPS.cumsum(mask, axis=1), axis=1) > 0)


def _embed_ids(blueprint: Blueprint, feature: Feature, *, is_pooled: bool) -> Term:
    ids, name = INPUTS[feature.name], blueprint.layer(f"{feature.stem}_embedding")
    cost = {"embeddings_regularizer": REGULARIZERS.L2(TABLE_COST)} if is_pooled else {}
    table = LAYERS.Embedding(feature.sizes[0], blueprint.token_width, **cost, name=name)
    x = blueprint.bind("x", table(ids))
    if is_pooled and blueprint.options.dropout:
        blueprint.remark("Whole words are left out: a name that comes twice must not tell all.")
        name = blueprint.layer(f"{feature.stem}_dropout")
        x = blueprint.bind("x", LAYERS.Dropout(_WORD_DROPOUT, noise_shape=(None, None, 1), name=name)(x))
    if len(feature.output.shape) < 2:
        return x
    blueprint.remark("A step holds several values: it is their mean.")
    held = blueprint.bind("held", OPS.cast(OPS.not_equal(ids, int(feature.padding)), x.dtype))
    held = blueprint.bind("held", OPS.expand_dims(held, -1))
    return blueprint.bind("x", OPS.sum(x * held, axis=2) / OPS.maximum(OPS.sum(held, axis=2), 1))


def _embed_numbers(blueprint: Blueprint, feature: Feature, mask: Term) -> Term:
    name, width, given = feature.stem, blueprint.token_width, INPUTS[feature.name]
    size, rank = _count_numbers(feature), len(feature.output.shape)
    x = cast_float(given, feature.output.dtype)
    if rank == 1:
        x = blueprint.bind("x", OPS.expand_dims(x, -1))
    elif rank > 2:
        x = blueprint.bind("x", LAYERS.Reshape((-1, size), name=blueprint.layer(f"{name}_steps"))(x))
    if feature.is_scaled:
        x = blueprint.bind("x", blueprint.dense(f"{name}_steps_dense", width, x))
    else:
        # Behind the dense layer: Keras cannot normalise a single number a step by a mask.
        x = blueprint.bind("x", blueprint.dense(f"{name}_steps_dense", width, x, activation=None))
        x = blueprint.bind("x", blueprint.normalize(f"{name}_normalization", x, mask=mask))
        x = blueprint.bind("x", LAYERS.ReLU(name=blueprint.layer(f"{name}_relu"))(x))
    return _add_ids(blueprint, feature, x) if feature.is_whole and rank == 1 else x


def _add_ids(blueprint: Blueprint, feature: Feature, x: Term) -> Term:
    given, num_ids = INPUTS[feature.name], blueprint.options.num_ids
    if feature.output.dtype not in ("int32", "int64"):  # a byte does not hold the number of rows
        given = OPS.cast(given, "int32")
    blueprint.remark(f"Whole numbers may be amounts or ids: both. Those from {num_ids} on share rows.")
    ids = blueprint.bind("ids", OPS.cast(OPS.mod(given, num_ids), "int32"))
    name = blueprint.layer(f"{feature.stem}_embedding")
    ids = blueprint.bind("ids", LAYERS.Embedding(num_ids, blueprint.token_width, name=name)(ids))
    return blueprint.bind("x", x + ids)


def _count_numbers(feature: Feature) -> int:
    """Return how many numbers a step has."""
    inner = feature.output.shape[1:]
    if None in inner:
        raise OptionError(
            f"input {feature.name!r}",
            field=feature.name,
            expected="steps of one size",
            got=feature.output.describe(),
            advice="Give its transform a step_length, such as Pad(step_length=8).",
        )
    return math.prod(dim or 1 for dim in inner)
