"""Texts and sequences: the vectors of their steps made one.

In: inputs of ids or numbers in order, padded. Out: one vector. Padding has no influence, and a record without
a single step gets zeros: Keras' own pooling by a mask divides by their number, which gives NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from penstock.foundation.program import Term
from penstock.model.blueprint import LAYERS, OPS, Blueprint
from penstock.model.encoder.step import Steps, embed_steps
from penstock.model.feature import Feature

_KERNEL: Final = 5  # steps that a convolution sees: a few words
_NUM_HEADS: Final = 4
_MAX_POSITIONS: Final = 512  # later steps are taken to stand there


def encode_sequence(blueprint: Blueprint, feature: Feature) -> Term:
    """Describe the encoder of a text or a sequence; return the term for the vector."""
    style = blueprint.options.text if feature.is_text else blueprint.options.sequence
    blueprint.block.note(f"{feature.name}: {_describe(feature)}.")
    is_pooled = style == "pool" and feature.is_text
    return _STYLES[style](blueprint, embed_steps(blueprint, feature, is_pooled=is_pooled))


def _describe(feature: Feature) -> str:
    length = feature.output.shape[0]
    many = "any number of" if length is None else str(length)
    if feature.kind == "steps":
        return f"{many} steps of numbers"
    noun = "tokens" if feature.is_text else "values"
    return f"{many} {noun} of a vocabulary of {feature.sizes[0]}; {int(feature.padding)} is padding"


def _pool(blueprint: Blueprint, steps: Steps) -> Term:
    # No dense layer behind it: that one remembers rare words, in spite of all that is done against it.
    return blueprint.finish(steps.name, _average(blueprint, steps))


def _average(blueprint: Blueprint, steps: Steps) -> Term:
    weights = _weigh(blueprint, steps)
    blueprint.remark("The mean of the steps. There may be none: that is 0, not 0 / 0.")
    return OPS.sum(steps.x * weights, axis=1) / OPS.maximum(OPS.sum(weights, axis=1), 1)


def _weigh(blueprint: Blueprint, steps: Steps) -> Term:
    """Bind a variable to 1 for each step that counts, and 0 for padding."""
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
    # Behind a ReLU nothing is below 0: what padding has become is 0, and never alone the greatest.
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
    attention = LAYERS.MultiHeadAttention(
        _NUM_HEADS,
        blueprint.token_width // _NUM_HEADS,
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
    "pool": _pool,
    "gru": _recur,
    "conv": _convolve,
    "transformer": _attend,
}
