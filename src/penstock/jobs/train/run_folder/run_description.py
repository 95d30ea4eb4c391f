"""The first tables of `run.yaml`: the data of a run, its declarations, and the settings of fields.

In: the job, its data set and its fitted pipeline. Out: a `RunConfig` without model and options.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.dataset import Dataset
from penstock.jobs.train.job import TrainJob
from penstock.schema.field import Field
from penstock.settings.training import TrainOptions
from penstock.storage.paths import find_real_path
from penstock.training.run_config import RunConfig
from penstock.training.run_facts import RunFacts
from penstock.training.run_files import DATA_NAME, list_data_paths
from penstock.transform.pipeline import Pipeline


def describe_run(
    job: TrainJob, data: Dataset, pipeline: Pipeline, folder: Path, known: RunConfig | None
) -> RunConfig:
    """Return the content of `run.yaml` before a training: for a run that is resumed, the stored content."""
    if known is not None:
        return replace(known, model=None, train=TrainOptions(), facts=RunFacts())
    fitted = pipeline.to_json()
    # The settings of each field, without fitted values; functions over columns have no settings.
    fields = {name: _list_settings(fitted["transforms"].get(name)) for name in data.schema}
    groups = {each["name"]: tuple(each["members"]) for each in fitted.get("groups") or ()}
    return replace(describe_data(job, data, folder), fields=fields, groups=groups)


def describe_data(job: TrainJob, data: Dataset, folder: Path) -> RunConfig:
    """Return the entries of `run.yaml` about the data."""
    inside = folder / DATA_NAME
    named = tuple(find_real_path(path) for path in list_data_paths(data))
    is_inside = inside.is_dir() and named[0] == os.path.realpath(inside)
    location = DATA_NAME if is_inside else named if len(named) > 1 else named[0]
    config, targets = replace(job.config, data=location), tuple(data.schema.targets)
    if config.convert is not None:
        return config
    target = targets if len(targets) > 1 else targets[0] if targets else None
    return replace(config, target=target, declared=_list_declared(job, data))


def _list_declared(job: TrainJob, data: Dataset) -> dict[str, Field]:
    given = job.declaration
    names = dict.fromkeys([*given.types, *given.fields, *filter(None, (given.weight, given.id))])
    return {name: data.schema[name] for name in names if name in data.schema}


def _list_settings(transform: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if transform is None else {key: each for key, each in transform.items() if key != "fitted"}
