"""Fit the pipeline of a run with the settings of its fields, its images and the parts of its inputs.

In: a data set, options, settings of fields. Out: a fitted pipeline. A tuner fits it again with
other settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.dataset import Dataset
from penstock.errors import OptionError
from penstock.foundation.wording import list_choices
from penstock.score.importance import find_parts
from penstock.settings.training import ALL_PARTS, AUTO_PARTS, TrainOptions
from penstock.training.loaders import HeldOut
from penstock.transform.pipeline import Pipeline
from penstock.transform.pipeline_parts import without_fields
from penstock.tuning.image_fields import set_images


@dataclass(frozen=True)
class PipelineFitter:
    """Settings of the pipeline of a run.

    Attributes:
        data: The data set.
        options: Options of the training.
        fields: Settings of fields that the user gave, for `Pipeline.fit_config`.
        groups: Groups of inputs, for `Pipeline.fit_config`.
        held_out: Records of the train split to validate with, which the pipeline is not fitted to; or None.
        is_built: Whether the model is built, and not the user's own.
    """

    data: Dataset
    options: TrainOptions
    fields: Mapping[str, object] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    held_out: HeldOut | None = None
    is_built: bool = True

    def fit(self, more: Mapping[str, object] | None = None) -> Pipeline:
        """Return the pipeline, with more settings of fields."""
        given = {**self.fields, **(more or {})}
        fields = set_images(self.data.schema, given, self.options, is_built=self.is_built)
        part = None if self.held_out is None else self.held_out.rows.invert()
        settings = {"fields": fields, "groups": self.groups}
        return _select_parts(Pipeline.fit_config(self.data, settings, part=part), self.options.parts)


def _select_parts(pipeline: Pipeline, wanted: str | Sequence[str]) -> Pipeline:
    """Return the pipeline with the parts that an option names; unchanged if it names none."""
    if wanted in (AUTO_PARTS, ALL_PARTS):
        return pipeline
    parts = find_parts(pipeline)
    for part in wanted:
        if part not in parts:
            expected = f"parts of the inputs: {list_choices(parts)}"
            advice = "Name some of these, or leave the option out to use those that help."
            raise OptionError("parts", field="parts", expected=expected, got=repr(part), advice=advice)
    names = [name for part, fields in parts.items() if part not in wanted for name in fields]
    return without_fields(pipeline, names, "it was left out")
