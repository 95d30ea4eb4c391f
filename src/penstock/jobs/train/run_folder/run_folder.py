"""The folder of a run: its name, its lock, and the data that was converted into it.

In: the folder that a user named, and errors. Out: a folder that one process at a time writes to, and whether
the converted data in it is of use after an error.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from penstock.dataset import Dataset
from penstock.errors import (
    BusyError,
    FieldError,
    OptionError,
    PathError,
    PenstockError,
    SchemaError,
    SourceError,
    TrainingDataError,
    UnknownNameError,
)
from penstock.format.manifest import MANIFEST_NAME
from penstock.jobs.train.job import TrainJob
from penstock.schema.field import Field
from penstock.settings.training import TrainOptions
from penstock.shards.staging.destination import find_staging
from penstock.shards.staging.lock import WriterLock
from penstock.storage.atomic import write_failure
from penstock.storage.paths import PathLike, find_real_path
from penstock.training.run_config import RunConfig
from penstock.training.run_facts import RunFacts
from penstock.training.run_files import CONFIG_NAME, DATA_NAME, list_data_paths
from penstock.transform.pipeline import Pipeline

RUNS: Final = "runs"
"""Default parent folder of runs."""


def choose_folder(out: PathLike | None, data: Any) -> Path:
    """Return the folder of a run: the given one, or an unused name in `runs/`."""
    if out is not None:
        return Path(out)
    source = data
    if isinstance(data, Dataset) and data.paths:
        source = data.paths[0].parent
        if data.manifest is not None and data.manifest.folder:  # its shards are in a separate folder
            source = source.parent
    is_path = isinstance(source, str | os.PathLike)
    stem = Path(source).resolve().name.split(".")[0] if is_path else ""
    base = Path(RUNS) / (stem or "run")
    number = 1
    folder = base
    while folder.exists():
        number += 1
        folder = base.with_name(f"{base.name}-{number}")
    return folder


@contextmanager
def claim_folder(folder: Path, *, may_hold: bool) -> Iterator[None]:
    """Create and lock a folder; at the end, unlock it, and remove it if it is empty."""
    if folder.exists() and not may_hold and (not folder.is_dir() or any(folder.iterdir())):
        advice = "Continue that run: `resume=True`; or choose another folder."
        raise PathError("already exists and is not empty", path=folder, advice=advice)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_failure(folder, error) from error
    try:
        lock = WriterLock(folder)
    except BusyError:
        raise
    except OSError as error:
        raise write_failure(folder, error) from error
    try:
        yield
    finally:
        lock.release()
        with contextlib.suppress(OSError):
            folder.rmdir()  # succeeds only for an empty folder


@contextmanager
def discard_unusable_data(folder: Path) -> Iterator[list[Path]]:
    """Remove the data that was converted in this context if an error about the data is raised.

    The corrected call needs other data, or another conversion of the same data, and should find the folder
    of the run unused. Files that were in the folder before are kept, and so is the data of a run that has
    started. The removed folders are added to the list that this yields.
    """
    there = {path for path in _list_converted(folder) if path.exists()}
    removed: list[Path] = []
    try:
        yield removed
    except PenstockError as error:
        if not (folder / CONFIG_NAME).is_file() and _is_about_data(error, folder):
            for path in _list_converted(folder):
                if path.is_dir() and path not in there:
                    shutil.rmtree(path, ignore_errors=True)
                    removed.append(path)
        raise


def can_reuse_data(error: BaseException, folder: Path) -> bool:
    """Whether the corrected call after an error can reuse the data that was converted for a run."""
    if not (folder / DATA_NAME / MANIFEST_NAME).is_file() or (folder / CONFIG_NAME).is_file():
        return False
    if not isinstance(error, PenstockError):
        return True
    is_inside = error.path is not None and Path(error.path).resolve().is_relative_to(
        (folder / DATA_NAME).resolve()
    )
    return not is_inside and not _is_about_data(error, folder)


def _is_about_data(error: PenstockError, folder: Path) -> bool:
    """Whether correcting an error takes other data, or another conversion."""
    kinds: tuple[type[PenstockError], ...] = (FieldError, SchemaError, SourceError, TrainingDataError)
    if not (folder / DATA_NAME).is_dir():  # the error was raised before the conversion
        kinds = (*kinds, OptionError, UnknownNameError)
    return isinstance(error, kinds)


def _list_converted(folder: Path) -> list[Path]:
    """Return the folders of the converted data of a run: the finished and the unfinished one."""
    return [folder / DATA_NAME, find_staging(folder / DATA_NAME)]


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
