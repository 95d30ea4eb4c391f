"""The first tables of `run.yaml`: the data of a run, what is declared about it, and the settings of fields.

In: the job and what was opened and fitted for it. Out: the tables, and declared fields again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.dataset import Dataset
from penstock.jobs.train.choices import read_table
from penstock.jobs.train.job import TrainJob
from penstock.jobs.train.run_folder import list_data_paths
from penstock.schema.field import Field
from penstock.schema.json_form import VERSION, dump_fields, load_fields
from penstock.storage.paths import find_real_path
from penstock.training.run_files import DATA_NAME
from penstock.transform.pipeline import Pipeline


def recall_fields(tables: Mapping[str, Any]) -> dict[str, Field]:
    """Return the declared fields that `run.yaml` stores."""
    declared = read_table(tables, "declared")
    return dict(load_fields({"version": VERSION, "fields": declared})) if declared else {}


def _list_declared(job: TrainJob, data: Dataset) -> dict[str, Any]:
    """Return the declared fields for `run.yaml`, in the JSON form of a schema with all attributes."""
    given = job.declaration
    names = dict.fromkeys([*given.types, *given.fields, *filter(None, (given.weight, given.id))])
    chosen = {name: data.schema[name] for name in names if name in data.schema}
    return {"declared": dict(dump_fields(chosen)["fields"])} if chosen else {}


def describe_run(
    job: TrainJob, data: Dataset, pipeline: Pipeline, folder: Path, known: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the first tables of `run.yaml`."""
    if known:
        return {name: table for name, table in known.items() if name not in ("model", "train", "facts")}
    tables = describe_data(job, data, folder)
    fitted = pipeline.to_json()
    # The settings of each field, without fitted values; functions over columns have no settings.
    tables["fields"] = {name: _list_settings(fitted["transforms"].get(name)) for name in data.schema}
    if fitted.get("groups"):
        tables["groups"] = {each["name"]: each["members"] for each in fitted["groups"]}
    return tables


def describe_data(job: TrainJob, data: Dataset, folder: Path) -> dict[str, Any]:
    """Return the tables of `run.yaml` about the data."""
    inside = folder / DATA_NAME
    named = [find_real_path(path) for path in list_data_paths(data)]
    is_inside = inside.is_dir() and named[0] == os.path.realpath(inside)
    location = DATA_NAME if is_inside else named if len(named) > 1 else named[0]
    tables: dict[str, Any] = {"data": location, **job.settings}
    targets = list(data.schema.targets)
    if "convert" not in tables and targets:
        tables["target"] = targets if len(targets) > 1 else targets[0]
    if "convert" not in tables:
        tables |= _list_declared(job, data)
    return tables


def _list_settings(transform: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if transform is None else {key: each for key, each in transform.items() if key != "fitted"}
