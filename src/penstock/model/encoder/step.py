"""The steps of texts and sequences: a vector for each, and which of them are no padding.

In: inputs of ids or numbers in order, padded. Out: `Steps`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from penstock.batch.graph.tree import Term
from penstock.errors import OptionError
from penstock.model.blueprint import INPUTS, LAYERS, OPS, Blueprint, cast_float
from penstock.model.feature import Feature


class Steps(NamedTuple):
    """A sequence while it is encoded.

    Attributes:
        name: Of the input.
        variable: What the vectors are bound to.
        x: A vector a step.
        mask: True where a step is no padding.
        length: How many steps there are, or None where that varies.
    """

    name: str
    variable: str
    x: Term
    mask: Term
    length: int | None


def embed_steps(blueprint: Blueprint, feature: Feature) -> Steps:
    """Describe how a sequence becomes a vector a step.

    Ids have a row each of a table. Numbers go through a dense layer; single whole numbers may be amounts or
    ids, and are taken as both.

    Raises:
        OptionError: Steps hold any number of numbers.
    """
    variable = blueprint.variable(feature.name)
    if feature.kind == "ids":
        mask = _find_mask(blueprint, feature)
        x = _embed_ids(blueprint, feature, variable)
    else:
        size = _count_numbers(feature)
        mask = _find_mask(blueprint, feature)
        x = _embed_numbers(blueprint, feature, variable, size, mask)
    return Steps(feature.name, variable, x, mask, feature.output.shape[0])


def _find_mask(blueprint: Blueprint, feature: Feature) -> Term:
    if feature.mask is not None:
        return INPUTS[feature.mask]
    variable, padding = blueprint.variable(f"{feature.name}_mask"), _find_padding(feature)
    is_value = OPS.not_equal(INPUTS[feature.name], padding)
    inner = list(range(2, len(feature.output.shape) + 1))
    if inner:
        is_value = OPS.any(is_value, axis=inner if len(inner) > 1 else inner[0])
    if feature.kind == "ids":
        return blueprint.bind(variable, is_value)
    # A number may be what others are padded with.
    blueprint.remark(f"Padding is what stands behind the last step that is not {padding}.")
    mask = blueprint.bind(variable, OPS.flip(OPS.cast(is_value, "int32"), axis=1))
    return blueprint.bind(variable, OPS.flip(OPS.cumsum(mask, axis=1), axis=1) > 0)


def _find_padding(feature: Feature) -> float:
    return float(feature.padding) if "float" in feature.output.dtype else int(feature.padding)


def _embed_ids(blueprint: Blueprint, feature: Feature, variable: str) -> Term:
    name, ids = feature.name, INPUTS[feature.name]
    table = LAYERS.Embedding(
        feature.sizes[0], blueprint.token_width, name=blueprint.layer(f"{name}_embedding")
    )
    x = blueprint.bind(variable, table(ids))
    if len(feature.output.shape) < 2:
        return x
    blueprint.remark("A step holds several values: it is their mean.")
    held = blueprint.variable(f"{name}_held")
    counted = blueprint.bind(held, OPS.cast(OPS.not_equal(ids, int(feature.padding)), x.dtype))
    counted = blueprint.bind(held, OPS.expand_dims(counted, -1))
    return blueprint.bind(variable, OPS.sum(x * counted, axis=2) / OPS.maximum(OPS.sum(counted, axis=2), 1))


def _embed_numbers(blueprint: Blueprint, feature: Feature, variable: str, size: int, mask: Term) -> Term:
    name, shape, width = feature.name, feature.output.shape, blueprint.token_width
    x = cast_float(INPUTS[name], feature.output.dtype)
    if len(shape) == 1:
        x = blueprint.bind(variable, OPS.expand_dims(x, -1))
    elif len(shape) > 2:
        reshape = LAYERS.Reshape((-1, size), name=blueprint.layer(f"{name}_steps"))
        x = blueprint.bind(variable, reshape(x))
    if not feature.is_scaled:
        x = blueprint.bind(variable, blueprint.normalize(f"{name}_normalization", x, mask=mask))
    x = blueprint.bind(variable, blueprint.dense(f"{name}_steps_dense", width, x))
    if not feature.is_whole or len(shape) > 1:
        return x
    num_ids = blueprint.options.num_ids
    blueprint.remark(f"Whole numbers may be amounts or ids: both. Those from {num_ids} on share rows.")
    # A byte does not hold the number of rows.
    given = INPUTS[name] if feature.output.dtype in ("int32", "int64") else OPS.cast(INPUTS[name], "int32")
    ids = blueprint.bind(blueprint.variable(f"{name}_ids"), OPS.cast(OPS.mod(given, num_ids), "int32"))
    table = LAYERS.Embedding(num_ids, width, name=blueprint.layer(f"{name}_embedding"))
    return blueprint.bind(variable, x + table(ids))


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
