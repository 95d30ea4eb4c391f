"""Which inputs are of one kind: numbers, categories, text, image, sequence, tensor.

In: a pipeline. Out: the fields that feed its inputs, and the kinds that they are of.
"""

from __future__ import annotations

from typing import Final

from penstock.transform.pipeline import Pipeline

_MODALITIES: Final = {"number": "numbers", "category": "categories"}


def find_inputs(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the fields that feed inputs, also those that a group or a map takes."""
    schema = pipeline.schema
    return tuple(name for name in pipeline.fields if schema[name].role in ("input", "id"))


def find_modalities(pipeline: Pipeline) -> dict[str, tuple[str, ...]]:
    """Return the fields of each kind, in the order in which the kinds come first."""
    found: dict[str, tuple[str, ...]] = {}
    for name in find_inputs(pipeline):
        kind = pipeline.schema[name].type_name
        kind = _MODALITIES.get(kind, kind)
        found[kind] = (*found.get(kind, ()), name)
    return found
