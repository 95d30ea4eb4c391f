"""Words and pairs of words of a text on a linear path to the outputs, as in tf-idf with logistic regression.

In: padded ids of tokens. Out: ids and weights of the n-grams of each text; and for an output layer, the sum
of a learned row of each n-gram times its weight. Pairs share rows by their hash.
"""

from __future__ import annotations

from typing import Final

from penstock.codegen.program import Term, lift
from penstock.model.blueprint import INPUTS, LAYERS, OPS, REGULARIZERS, Blueprint, Ngrams
from penstock.model.feature import Feature

# Ids are ranks: the n-th most frequent word has about 1/n of the occurrences of the first, so that the
# logarithm of an id is the logarithm of an inverse frequency, up to a constant. Validation AUC of a logistic
# regression was 0.006 to 0.013 lower with equal weights.
_RANK_WEIGHT: Final = 0.5

# Length of the vector of weights of a text. Adam moves all rows at one speed, whatever their gradient: with
# shorter vectors the rows of decisive words do not grow far enough in a few epochs.
_LENGTH: Final = 10.0

# C of logistic regression: the weight of the sum of all losses, beside half of the squares of the weights of
# a vector of length 1. With a cost that does not depend on the number of texts, 1,600 texts were memorized by
# their rarest pairs after four epochs.
_INVERSE_COST: Final = 8.0
_USUAL_TEXTS: Final = 10_000  # of a pipeline that does not record their number
# Share of the words. Pairs are kept: where "not good" was left out and "good" was not, the model learned that
# "good" is bad. Validation AUC of the linear path alone with 0.5 of the words, 0.3 of the n-grams, and none
# left out: 0.910, 0.904 and 0.899 on 1,600 hotel reviews; 0.879, 0.876 and 0.881 on 3,200 generated phrases.
_DROPOUT: Final = 0.5

_FEWEST_PAIRS: Final = 1 << 10
_MOST_PAIRS: Final = 1 << 18
_MULTIPLIER: Final = 40_503  # of the first word of a pair
_MOST_IDS: Final = 1 << 31

_MAX_WIDTH: Final = 16  # of a row; with more outputs, a dense layer follows


def weigh_ngrams(blueprint: Blueprint, feature: Feature, mask: Term) -> None:
    """Describe the ids and weights of the n-grams of a text, and add them to the n-grams of the blueprint."""
    name, num_words, ids = feature.stem, feature.sizes[0], INPUTS[feature.name]
    blueprint.remark(
        "Weights of words grow with the logarithm of their id, as rare words have large ids; pairs of words "
        "have the weight of a word that is neither rare nor frequent."
    )
    weights = OPS.log(OPS.cast(ids + 1, "float32")) * _RANK_WEIGHT + 1.0
    weights = blueprint.bind("weights", OPS.where(mask, weights, 0.0))
    squares, size, parts = OPS.sum(weights * weights, axis=1, keepdims=True), num_words, []
    if feature.output.shape[0] != 1:
        num_pairs = _count_pairs(num_words, blueprint.options.pairs_per_word)
        multiplier = min(_MULTIPLIER, _MOST_IDS // num_words - 1)  # so that no product exceeds 32 bits
        pairs = OPS.mod(ids[:, :-1] * multiplier + ids[:, 1:], num_pairs) + num_words
        ids = OPS.concatenate([ids, blueprint.bind("pairs", pairs)], axis=1)
        values = blueprint.bind("values", OPS.where(mask[:, 1:], blueprint.options.pair_weight, 0.0))
        squares += OPS.sum(values * values, axis=1, keepdims=True)
        parts, size = [values], size + num_pairs
    ngrams = blueprint.finish(f"{name}_ngrams", ids)
    norm = blueprint.bind("norm", OPS.maximum(OPS.sqrt(squares), 1.0))
    if blueprint.options.dropout:
        dropout = LAYERS.Dropout(_DROPOUT, dtype="float32", name=blueprint.layer(f"{name}_ngrams_dropout"))
        weights = blueprint.bind("weights", dropout(weights))
    if parts:
        weights = blueprint.bind("weights", OPS.concatenate([weights, *parts], axis=1))
    weights = blueprint.finish(f"{name}_weights", OPS.expand_dims(weights * _LENGTH / norm, -1))
    cost = _LENGTH**2 / (2 * _INVERSE_COST * (feature.num_texts or _USUAL_TEXTS))
    blueprint.ngrams.append(Ngrams(name, ngrams, weights, size, float(f"{cost:.3g}")))


def _count_pairs(num_words: int, pairs_per_word: int) -> int:
    """Return the number of rows of pairs: a power of two, larger for more words."""
    wanted = 1 << (pairs_per_word * num_words - 1).bit_length()
    return min(_MOST_PAIRS, max(_FEWEST_PAIRS, wanted))


def add_ngrams(blueprint: Blueprint, stem: str, units: int, x: Term) -> Term:
    """Describe the sum of the outputs of an output layer and of the rows of all n-grams.

    `x`: outputs of the layer, with an axis of members for an ensemble.
    """
    num_members = blueprint.options.members or 1
    for each in blueprint.ngrams:
        blueprint.remark(f"A linear function of the words and pairs of words of {each.name}.")
        name = f"{stem}_{each.name}_ngrams"
        table = LAYERS.Embedding(
            each.size,
            min(units, _MAX_WIDTH),
            embeddings_initializer="zeros",
            embeddings_regularizer=REGULARIZERS.L2(each.cost),
            dtype="float32",
            name=blueprint.layer(name),
        )
        y = blueprint.bind("y", table(each.ids))
        y = blueprint.bind("y", OPS.sum(y * each.weights, axis=1))
        if units > _MAX_WIDTH:
            dense = LAYERS.Dense(
                units, use_bias=False, dtype="float32", name=blueprint.layer(f"{name}_dense")
            )
            y = blueprint.bind("y", dense(y))
        if num_members > 1:
            # Equal shapes: on TensorFlow, Keras adds (n, 1, 1) to (n, members, 1) as a bias of the members if
            # n is known and equals their number, so that predictions depend on the size of the batch.
            y = blueprint.bind("y", OPS.stack(Term(lift([y])) * num_members, axis=1))
        x = blueprint.finish(f"{stem}_sum", x + y)
    return x
