"""Parts of a pipeline: without targets or some fields, or with other transforms; and a check of inputs.

In: a pipeline. Out: another one with the same notes; the given one is not changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from penstock.transform.base import Transform
from penstock.transform.inputs import refuse_no_inputs
from penstock.transform.pipeline import Pipeline


def without_targets(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline with the same inputs, without targets and weights."""
    return Pipeline(pipeline.assembly.without_roles("target", "weight"), pipeline.notes)


def without_weights(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline with the same inputs and targets, without weights."""
    return Pipeline(pipeline.assembly.without_roles("weight"), pipeline.notes)


def without_fields(pipeline: Pipeline, names: Collection[str], reason: str = "") -> Pipeline:
    """Return a pipeline without some fields and groups of them; the reason is for the notes."""
    notes = {**pipeline.notes, **(dict.fromkeys(names, reason) if reason else {})}
    return Pipeline(pipeline.assembly.without_fields(names), notes)


def with_transforms(pipeline: Pipeline, transforms: Mapping[str, Transform]) -> Pipeline:
    """Return a pipeline with other fitted transforms for some of its fields."""
    return Pipeline(pipeline.assembly.with_transforms(transforms), pipeline.notes)


def check_inputs(pipeline: Pipeline) -> None:
    """Refuse a pipeline that has no input."""
    if not pipeline.inputs:
        raise refuse_no_inputs(pipeline.warnings)
