"""What all inputs say, together: side by side, through dense layers.

In: a vector for each input. Out: one vector, which the heads take.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.foundation.program import Term
from penstock.model.blueprint import LAYERS, Blueprint


def combine(blueprint: Blueprint, vectors: Sequence[Term]) -> Term:
    """Describe the layers; return the term for the vector."""
    blueprint.block.note("Together.")
    x = vectors[0]
    if len(vectors) > 1:
        x = blueprint.bind("x", LAYERS.Concatenate(name=blueprint.layer("combined"))(list(vectors)))
    for number, units in enumerate(blueprint.options.units or (), start=1):
        x = blueprint.bind("x", blueprint.dense(f"combined_dense_{number}", units, x))
        x = blueprint.drop("x", f"combined_dropout_{number}", x)
    return x
