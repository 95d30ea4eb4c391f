"""Numbers: all of them side by side, through one dense layer; and vectors, each through its own.

In: inputs of one number a record, or of one vector. Out: one vector. A layer for each number would cost more
time than it learns.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.batch.graph.tree import Term
from penstock.model.blueprint import INPUTS, LAYERS, OPS, Blueprint, cast_float
from penstock.model.feature import Feature


def encode_numbers(blueprint: Blueprint, features: Sequence[Feature]) -> Term:
    """Describe the encoder of all numbers; return the term for the vector."""
    scaled = [each for each in features if each.is_scaled]
    others = [each for each in features if not each.is_scaled]
    variable = blueprint.variable("numbers")
    blueprint.block.note(f"Numbers: {', '.join(each.name for each in features)}.")
    parts = []
    if scaled:
        parts.append(blueprint.bind(variable, _stack(scaled)))
    if others:
        blueprint.remark("Not scaled by the pipeline.")
        raw = blueprint.variable("raw_numbers") if scaled else variable
        x = blueprint.bind(raw, _stack(others))
        parts.append(blueprint.bind(raw, blueprint.normalize("numbers_normalization", x)))
    if len(parts) > 1:
        blueprint.bind(variable, LAYERS.Concatenate(name=blueprint.layer("numbers_all"))(parts))
    x = Term.name(variable)
    return blueprint.bind(variable, blueprint.dense("numbers_dense", blueprint.width, x))


def encode_row(blueprint: Blueprint, feature: Feature) -> Term:
    """Describe the encoder of one vector; return the term for what it becomes."""
    name = feature.name
    variable = blueprint.variable(name)
    blueprint.block.note(f"{name}: a vector of {feature.output.shape[0]}.")
    x = cast_float(INPUTS[name], feature.output.dtype)
    if not feature.is_scaled:
        x = blueprint.bind(variable, blueprint.normalize(f"{name}_normalization", x))
    return blueprint.bind(variable, blueprint.dense(f"{name}_dense", blueprint.width, x))


def _stack(features: Sequence[Feature]) -> Term:
    terms = [cast_float(INPUTS[each.name], each.output.dtype) for each in features]
    return OPS.stack(terms, axis=-1) if len(terms) > 1 else OPS.expand_dims(terms[0], -1)
