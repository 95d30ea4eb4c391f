"""Settings of a run in `run.yaml`, and its identity in `state.json`.

In: settings by table. Out: the file, written atomically, and its content again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from penstock.dataset import Dataset
from penstock.errors import NoSuchPathError, SchemaError, StateError
from penstock.foundation.safe_yaml import add_line, read_yaml
from penstock.storage.atomic import AtomicFile
from penstock.storage.paths import locate
from penstock.storage.store_path import AnyPath, join_path
from penstock.training.history import HISTORY_NAME
from penstock.training.recorded_data import FIELDS_NAME
from penstock.training.run_config import RunConfig
from penstock.training.run_state import STATE_NAME

CONFIG_NAME: Final = "run.yaml"
_HEADER: Final = (
    "# What this run was made with. `penstock train --config run.yaml --out OTHER` makes another like it.\n"
)


def write_config(folder: Path, config: RunConfig) -> None:
    """Write the settings of a run."""
    tables = _as_plain(config.to_json())
    text = yaml.safe_dump(tables, sort_keys=False, allow_unicode=True, width=110)
    with AtomicFile(folder / CONFIG_NAME, overwrite=True) as file:
        file.write((_HEADER + text).encode())


def read_config(path: str | os.PathLike[str]) -> RunConfig:
    """Read the settings of a run, from a run's folder or from a file that a user wrote."""
    content, lines = read_yaml(path)
    try:
        return RunConfig.from_json(content, Path(path))
    except SchemaError as error:
        raise add_line(error, error.field or "", lines, path) from None


def _as_plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            str(key) if not isinstance(key, int | bool) else key: _as_plain(each)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [_as_plain(each) for each in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


PIPELINE_NAME: Final = "pipeline.json"
DATA_NAME: Final = "data"
"""Folder of the data set in the folder of a run that was trained on raw data."""


WEIGHTS_NAME: Final = "weights.safetensors"
MEMBER_NAME: Final = "member-{}"
"""Folder of a member of an ensemble, with its number from 1."""

RUN_NAMES: Final = (CONFIG_NAME, PIPELINE_NAME, FIELDS_NAME, WEIGHTS_NAME, HISTORY_NAME, STATE_NAME)
"""Files of a run that its readers need."""

_FOR_TRAINING: Final = ("checkpoints", DATA_NAME, "folds", "head")
"""Folders in a run that only training needs, and its data."""


def find_data(folder: AnyPath, config: RunConfig) -> AnyPath | list[AnyPath]:
    """Return the path of the data of a run, or the paths of several files."""
    if isinstance(config.data, tuple):
        return [join_path(folder, each) for each in config.data]
    return join_path(folder, config.data or DATA_NAME)


def list_data_paths(data: Dataset) -> list[AnyPath]:
    """Return the paths with which a data set is opened again: its folder, or its files without a manifest."""
    if data.manifest is None:
        return list(data.paths)
    parent = data.paths[0].parent
    return [parent.parent if data.manifest.folder else parent]  # in a store, shards are in a folder below


def copy_run(folder: AnyPath) -> Path:
    """Return the local folder with the files of a run; if needed, a copy without checkpoints and data."""
    try:
        return locate(folder).copy_folder(_is_read, _list_needed)
    except NoSuchPathError:
        raise refuse_other_folder(folder) from None


def _list_needed(copy: Path) -> Iterable[str]:
    """Yield the files that readers of a run need, as far as a copy shows which ones."""
    yield from RUN_NAMES
    if (copy / CONFIG_NAME).is_file():
        for number in range(read_config(copy / CONFIG_NAME).ensemble or 0):
            yield from (f"{MEMBER_NAME.format(number + 1)}/{name}" for name in RUN_NAMES)


def _is_read(name: str) -> bool:
    """Whether readers of a run need a file, by its path within the folder."""
    *folders, last = name.split("/")
    return last in RUN_NAMES and not any(each in _FOR_TRAINING for each in folders)


def refuse_unfinished(folder: Path) -> StateError:
    """Return the error for a run that is not finished."""
    advice = f"Continue it: `ps.train(None, out={str(folder)!r}, resume=True)`."
    return StateError("run", path=folder, expected="a finished run", got="an unfinished one", advice=advice)


def refuse_other_folder(folder: AnyPath) -> NoSuchPathError:
    """Return the error for a folder that holds no run."""
    advice = "Pass a folder that `ps.train(data)` wrote."
    return NoSuchPathError(f"is not a run (it has no {CONFIG_NAME})", path=folder, advice=advice)
