"""How the data that a model was trained on was made of raw columns, so that new rows are made the same way.

In: a pipeline, and what its run says of the data set. Out: `Recipe`: all fields, the columns that they come
from, how those hold them, and to what images were shrunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError, SchemaError
from penstock.foundation.wording import show
from penstock.schema.declaration import Form, NanMeaning, load_form
from penstock.schema.schema import Schema
from penstock.shards.manifest import Manifest, load_manifest
from penstock.transform.pipeline import Pipeline


@dataclass(frozen=True)
class Recipe:
    """What is known of the raw data.

    Attributes:
        schema: The fields of the data set; those that the pipeline reads are as it was fitted to them.
        columns: Names of raw columns by field, where they differ.
        forms: How columns hold values, by field; "value" is not told.
        resize: To what the shorter side of images was shrunk, or None.
        missing: Cells of a CSV that meant that nothing is there.
        words: Texts that meant a missing value in a column, by field.
        nans: What NaN meant in a column, by field; "missing" is not listed.
    """

    schema: Schema
    columns: Mapping[str, str] = field(default_factory=dict)
    forms: Mapping[str, Form] = field(default_factory=dict)
    resize: int | None = None
    missing: tuple[str, ...] = ("",)
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    nans: Mapping[str, NanMeaning] = field(default_factory=dict)


def find_recipe(pipeline: Pipeline, settings: Mapping[str, Any], data: Path | None) -> Recipe:
    """Return what a run knows of its raw data.

    Args:
        pipeline: What is fed.
        settings: May hold `schema` and `plan`, as a manifest has them, and `convert`, as `run.yaml` has it.
        data: The data set, whose manifest says it elsewhere, if it is still there. What nobody knows is found
            out from the new data alone.

    Raises:
        SchemaError: The settings are none that a run writes.
    """
    schema, plan = settings.get("schema"), settings.get("plan")
    declared = Schema({}) if schema is None else Schema.from_json(schema)
    if schema is None or plan is None:
        manifest = _find_manifest(data)
        if manifest is not None:
            declared = manifest.schema if schema is None else declared
            plan = manifest.plan if plan is None else plan
    try:
        whole = Schema({**declared, **pipeline.schema})
    except SchemaError:
        whole = pipeline.schema  # the data set was opened with other roles than its manifest has
    if plan is not None and not isinstance(plan, Mapping):
        raise SchemaError("plan of the run", field="$.plan", expected="an object", got=show(plan))
    missing = _find_missing(plan, settings.get("convert"))
    if not plan:
        return Recipe(whole, missing=missing)
    resize = plan.get("resize")
    if resize is not None and (
        not isinstance(resize, int) or isinstance(resize, bool) or not 1 <= resize < 2**31
    ):
        raise SchemaError(
            "plan of the run", field="$.plan.resize", expected="a number of pixels", got=show(resize)
        )
    told = load_form({key: plan[key] for key in ("columns", "drop") if key in plan})
    named = {each.name or column: (column, each) for column, each in told.columns.items()}
    return Recipe(
        whole,
        {name: column for name, (column, _) in named.items() if name != column},
        {name: each.form for name, (_, each) in named.items() if each.form not in (None, "value")},
        resize,
        missing,
        {name: each.missing for name, (_, each) in named.items() if each.missing},
        {name: each.nan for name, (_, each) in named.items() if each.nan is not None},
    )


def _find_missing(plan: object, converted: object) -> tuple[str, ...]:
    """Return the words for what is missing: those of the data set, else those that a run was told."""
    for table in (plan, converted):
        words = table.get("missing") if isinstance(table, Mapping) else None
        if words is None:
            continue
        words = [words] if isinstance(words, str) else words
        if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
            raise SchemaError("missing of the run's data", expected="a list of texts", got=show(words))
        return tuple(words)
    return ("",)


def _find_manifest(data: Path | None) -> Manifest | None:
    try:
        return None if data is None else load_manifest(data)
    except (PenstockError, OSError):
        return None  # the data set may be gone: a run stands on its own
