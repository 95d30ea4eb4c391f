"""Encoders of texts and sequences: mean pooling, n-grams, GRU, convolution or transformer.

In: padded sequences of ids or numbers. Out: one vector per record. Padding has no influence, and an empty
sequence gives zeros: Keras' own masked pooling divides by the number of steps, which gives NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

from penstock.codegen.program import Term
from penstock.errors import OptionError
from penstock.model.blueprint import INPUTS, LAYERS, OPS, REGULARIZERS, TABLE_COST, Blueprint, cast_float
from penstock.model.encoder.ngrams import weigh_ngrams
from penstock.model.feature import Feature

_WORD_DROPOUT: Final = 0.5  # share of whole words


class Steps(NamedTuple):
    """A sequence as one vector per step; the mask is True for steps, and the length None if it varies."""

    name: str
    x: Term
    mask: Term
    length: int | None


def embed_steps(blueprint: Blueprint, feature: Feature, *, is_pooled: bool = False) -> Steps:
    """Describe the layers that turn a sequence into one vector per step.

    Ids get an embedding. Numbers go through a dense layer; whole numbers, one per step, may be amounts or
    ids, and are used as both.

    `is_pooled`: whether the steps are words that are averaged: embeddings then have L2 regularization, and
    whole words are dropped at random.
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
    # A number may be equal to the padding value.
    blueprint.remark(f"Steps after the last one that is not {padding} are padding.")
    mask = blueprint.bind("mask", OPS.flip(OPS.cast(is_value, "int32"), axis=1))
    return blueprint.bind("mask", OPS.flip(OPS.cumsum(mask, axis=1), axis=1) > 0)


def _embed_ids(blueprint: Blueprint, feature: Feature, *, is_pooled: bool) -> Term:
    ids, name = INPUTS[feature.name], blueprint.layer(f"{feature.stem}_embedding")
    cost = {"embeddings_regularizer": REGULARIZERS.L2(TABLE_COST)} if is_pooled else {}
    table = LAYERS.Embedding(feature.sizes[0], blueprint.token_width, **cost, name=name)
    x = blueprint.bind("x", table(ids))
    if is_pooled and blueprint.options.dropout:
        blueprint.remark(
            "Drop whole words, so that the model does not rely on a single name that occurs twice."
        )
        name = blueprint.layer(f"{feature.stem}_dropout")
        x = blueprint.bind("x", LAYERS.Dropout(_WORD_DROPOUT, noise_shape=(None, None, 1), name=name)(x))
    if len(feature.output.shape) < 2:
        return x
    blueprint.remark("A step has several values: take their mean.")
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
        # After the dense layer: Keras cannot normalize a single number per step with a mask.
        x = blueprint.bind("x", blueprint.dense(f"{name}_steps_dense", width, x, activation=None))
        x = blueprint.bind("x", blueprint.normalize(f"{name}_normalization", x, mask=mask))
        x = blueprint.bind("x", LAYERS.ReLU(name=blueprint.layer(f"{name}_relu"))(x))
    return _add_ids(blueprint, feature, x) if feature.is_whole and rank == 1 else x


def _add_ids(blueprint: Blueprint, feature: Feature, x: Term) -> Term:
    given, num_ids = INPUTS[feature.name], blueprint.options.num_ids
    if feature.output.dtype not in ("int32", "int64"):  # small integer types cannot hold the number of rows
        given = OPS.cast(given, "int32")
    blueprint.remark(f"Whole numbers may be amounts or ids: use both. Ids from {num_ids} on share rows.")
    ids = blueprint.bind("ids", OPS.cast(OPS.mod(given, num_ids), "int32"))
    name = blueprint.layer(f"{feature.stem}_embedding")
    ids = blueprint.bind("ids", LAYERS.Embedding(num_ids, blueprint.token_width, name=name)(ids))
    return blueprint.bind("x", x + ids)


def _count_numbers(feature: Feature) -> int:
    """Return the number of numbers per step."""
    inner = feature.output.shape[1:]
    if None in inner:
        raise OptionError(
            f"input {feature.name!r}",
            field=feature.name,
            expected="steps of one size",
            got=feature.output.describe(),
            advice="Set step_length in its transform, such as Pad(step_length=8).",
        )
    return math.prod(dim or 1 for dim in inner)


_KERNEL: Final = 5  # steps per convolution: a few words
_NUM_HEADS: Final = 4  # at most, and of two numbers at least
_MAX_POSITIONS: Final = 512  # later steps share the last position


def encode_sequence(blueprint: Blueprint, feature: Feature) -> Term:
    """Describe the encoder of a text or a sequence; return the term for the vector."""
    style = blueprint.options.text if feature.is_text else blueprint.options.sequence
    blueprint.note(f"{feature.name}: {_describe(feature)}.")
    is_pooled = style in ("ngrams", "pool") and feature.is_text
    steps = embed_steps(blueprint, feature, is_pooled=is_pooled)
    vector = _STYLES[style](blueprint, steps)
    if style == "ngrams":
        weigh_ngrams(blueprint, feature, steps.mask)
    return vector


def _describe(feature: Feature) -> str:
    length = feature.output.shape[0]
    many = "any number of" if length is None else str(length)
    if feature.kind == "steps":
        return f"{many} steps of numbers"
    noun = "tokens" if feature.is_text else "values"
    return f"{many} {noun} of a vocabulary of {feature.sizes[0]}; {int(feature.padding)} is padding"


def _pool(blueprint: Blueprint, steps: Steps) -> Term:
    # Without a dense layer, which would memorize rare words in spite of regularization and dropout.
    return blueprint.finish(steps.name, _average(blueprint, steps))


def _average(blueprint: Blueprint, steps: Steps) -> Term:
    weights = _weigh(blueprint, steps)
    blueprint.remark("Mean of the steps; without any step it is 0, not 0 / 0.")
    return OPS.sum(steps.x * weights, axis=1) / OPS.maximum(OPS.sum(weights, axis=1), 1)


def _weigh(blueprint: Blueprint, steps: Steps) -> Term:
    """Bind a variable to 1 for each step, and 0 for padding."""
    return blueprint.bind("weights", OPS.expand_dims(OPS.cast(steps.mask, steps.x.dtype), -1))


def _recur(blueprint: Blueprint, steps: Steps) -> Term:
    costs = blueprint.regularize("kernel_regularizer", "recurrent_regularizer")
    layer = LAYERS.GRU(blueprint.width, **costs, name=blueprint.layer(f"{steps.name}_gru"))
    return blueprint.finish(steps.name, layer(steps.x, mask=steps.mask))


def _convolve(blueprint: Blueprint, steps: Steps) -> Term:
    weights = _weigh(blueprint, steps)
    x = blueprint.bind("x", steps.x * weights)
    for number in (1, 2):
        layer = LAYERS.Conv1D(
            blueprint.width,
            _KERNEL,
            padding="same",
            activation="relu",
            **blueprint.regularize(),
            name=blueprint.layer(f"{steps.name}_convolution_{number}"),
        )
        x = blueprint.bind("x", layer(x))
        x = blueprint.bind("x", x * weights)
    # After a ReLU nothing is below 0, so that the zeros of padding never exceed the maximum of the steps.
    pooling = LAYERS.GlobalMaxPooling1D(name=blueprint.layer(f"{steps.name}_pooling"))
    return blueprint.finish(steps.name, pooling(x))


def _attend(blueprint: Blueprint, steps: Steps) -> Term:
    name = steps.name
    most = min(steps.length or _MAX_POSITIONS, _MAX_POSITIONS)
    positions = blueprint.bind("positions", OPS.cumsum(OPS.cast(steps.mask, "int32"), axis=1))
    positions = blueprint.bind("positions", OPS.minimum(positions, most))
    layer = blueprint.layer(f"{name}_position_embedding")
    table = LAYERS.Embedding(most + 1, blueprint.token_width, name=layer)
    x = blueprint.bind("x", steps.x + blueprint.bind("places", table(positions)))
    seen = blueprint.bind("seen", OPS.expand_dims(steps.mask, 1))
    for number in range(1, (blueprint.options.num_blocks or 0) + 1):
        x = _add_attention(blueprint, f"{name}_block_{number}", x, seen)
        x = _add_dense(blueprint, f"{name}_block_{number}", x)
    norm = LAYERS.LayerNormalization(name=blueprint.layer(f"{name}_norm"))
    x = blueprint.bind("x", _average(blueprint, steps._replace(x=blueprint.bind("x", norm(x)))))
    return blueprint.finish(name, blueprint.dense(f"{name}_dense", blueprint.width, x))


def _add_attention(blueprint: Blueprint, name: str, x: Term, seen: Term) -> Term:
    norm = LAYERS.LayerNormalization(name=blueprint.layer(f"{name}_attention_norm"))
    y = blueprint.bind("y", norm(x))
    dropout = blueprint.options.dropout
    # On TensorFlow, Keras would add the bias of heads of one number to the steps, if there are as many.
    num_heads = min(_NUM_HEADS, blueprint.token_width // 2)
    attention = LAYERS.MultiHeadAttention(
        num_heads,
        blueprint.token_width // num_heads,
        **({"dropout": dropout} if dropout else {}),
        **blueprint.regularize(),
        name=blueprint.layer(f"{name}_attention"),
    )
    y = blueprint.bind("y", attention(y, y, attention_mask=seen))
    return blueprint.bind("x", x + y)


def _add_dense(blueprint: Blueprint, name: str, x: Term) -> Term:
    width = blueprint.token_width
    norm = LAYERS.LayerNormalization(name=blueprint.layer(f"{name}_dense_norm"))
    y = blueprint.bind("y", norm(x))
    y = blueprint.bind("y", blueprint.dense(f"{name}_dense_1", 2 * width, y))
    y = blueprint.bind("y", blueprint.dense(f"{name}_dense_2", width, y, activation=None))
    y = blueprint.drop("y", f"{name}_dropout", y)
    return blueprint.bind("x", x + y)


_STYLES: Final[dict[str, Callable[[Blueprint, Steps], Term]]] = {
    "ngrams": _pool,
    "pool": _pool,
    "gru": _recur,
    "conv": _convolve,
    "transformer": _attend,
}
