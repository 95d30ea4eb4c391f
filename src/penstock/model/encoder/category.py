"""Categories: a table of learned vectors for each, with a row for every code.

In: inputs of codes. Out: a vector for each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from penstock.foundation.program import Term
from penstock.model.blueprint import INPUTS, LAYERS, REGULARIZERS, TABLE_COST, Blueprint
from penstock.model.feature import Feature


def encode_categories(blueprint: Blueprint, features: Sequence[Feature]) -> list[Term]:
    """Describe the tables; return the terms for the vectors."""
    blueprint.block.note("Categories: a table of learned vectors each, with a row for every code.")
    cost = blueprint.bind("cost", REGULARIZERS.L2(TABLE_COST))
    found = []
    for feature in features:
        for column, size in enumerate(feature.sizes):
            codes, name = INPUTS[feature.name], feature.stem
            if feature.output.shape:
                codes, name = codes[:, column], f"{name}_{column}"
            layer = LAYERS.Embedding(
                size,
                choose_width(size, blueprint.options.max_category_width),
                embeddings_regularizer=cost,
                name=blueprint.layer(f"{name}_embedding"),
            )
            found.append(blueprint.finish(name, layer(codes)))
    return found


def choose_width(num_codes: int, most: int) -> int:
    """Return how many numbers stand for a code: more for more codes, as there is more to tell apart."""
    return max(1, min(most, math.ceil(1.6 * math.sqrt(num_codes))))
