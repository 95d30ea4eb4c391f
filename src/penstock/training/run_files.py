"""Settings of a run in `run.yaml`, and its identity in `state.json`.

In: settings by table. Out: the file, written atomically, and its content again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_args

import yaml

from penstock.errors import NoSuchPathError, SchemaError, importing
from penstock.foundation.json_form import Document, JsonValue
from penstock.foundation.safe_yaml import read_yaml
from penstock.foundation.wording import find_nearest, show
from penstock.model.task import Kind
from penstock.storage.atomic import AtomicFile
from penstock.storage.paths import PathLike
from penstock.storage.store_path import AnyPath, StorePath, is_store_path, parse_store_path
from penstock.training.history import HISTORY_NAME
from penstock.training.validation_choice import ValidationChoice

CONFIG_NAME: Final = "run.yaml"
OWN_MODEL: Final = "own"
"""Value of `model` in `run.yaml` for a user's own model, whose code is not stored."""

TABLES: Final = (
    *("source", "data", "target", "declared", "convert", "fields", "groups", "ensemble", "folds", "model"),
    *("train", "facts"),
)
"""`source` and `data` are paths; `declared` are the declared fields of TFRecords; `facts` are results of this
run, which another run with the same settings does not take over. `ensemble` and `folds` hold how many runs
there are, in folders of their own."""

_STRINGS: Final = ("source", "data", "target")

_HEADER: Final = (
    "# What this run was made with. `penstock train --config run.yaml --out OTHER` makes another like it.\n"
)


def write_run_config(folder: Path, tables: Mapping[str, Any]) -> None:
    """Write the settings of a run.

    Raises:
        WriteError: The disk is full, or fails.
    """
    text = yaml.safe_dump(_as_plain(dict(tables)), sort_keys=False, allow_unicode=True, width=110)
    with AtomicFile(folder / CONFIG_NAME, overwrite=True) as file:
        file.write((_HEADER + text).encode())


def read_run_config(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the settings of a run, from a run's folder or from a file that a user wrote.

    Raises:
        NoSuchPathError: There is no such file.
        PathError: The file cannot be read.
        SchemaError: The file is not valid YAML, or has unknown or wrong tables; the message names the line.
    """
    content, lines = read_yaml(path)
    tables = {} if content is None else content
    if not isinstance(tables, dict):
        raise SchemaError("settings", path=path, expected="tables by name", got=show(content))
    for name, table in tables.items():
        line = f"line {lines.get(f'$.{name}', 1)}: "
        if name not in TABLES:
            nearest = find_nearest(str(name), TABLES)
            advice = f"Did you mean {nearest!r}?" if nearest else f"Choose one of {', '.join(TABLES)}."
            raise SchemaError(
                f"{line}table {name!r}",
                path=path,
                expected="a table of a run",
                got=show(name),
                advice=advice,
            )
        if table is not None and not _is_table(name, table):
            expected = "a string, or a list of strings" if name in _STRINGS else "options by name"
            raise SchemaError(f"{line}table {name!r}", path=path, expected=expected, got=show(table))
    return {name: table for name, table in tables.items() if table is not None}


def _is_table(name: str, table: Any) -> bool:
    if name in _STRINGS:
        strings = table if isinstance(table, list) else [table]
        return bool(strings) and all(isinstance(each, str) for each in strings)
    return isinstance(table, dict) or (name == "model" and table == OWN_MODEL)


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


STATE_NAME: Final = "state.json"
WEIGHTS_NAME: Final = "weights.safetensors"
FIELDS_NAME: Final = "fields.json"
MEMBER_NAME: Final = "member-{}"
"""Folder of a member of an ensemble, with its number from 1."""

RUN_NAMES: Final = (CONFIG_NAME, PIPELINE_NAME, FIELDS_NAME, WEIGHTS_NAME, HISTORY_NAME, STATE_NAME)
"""Files of a run that its readers need."""

_FOR_TRAINING: Final = ("checkpoints", DATA_NAME, "folds", "head")
"""Folders in a run that only training needs, and its data."""


def find_data(folder: AnyPath, settings: Mapping[str, Any]) -> AnyPath | list[AnyPath]:
    """Return the path of the data of a run, or the paths of several files, from its settings."""
    stored = settings.get("data", DATA_NAME)
    paths = [_locate(folder, each) for each in (stored if isinstance(stored, list) else [stored])]
    return paths if isinstance(stored, list) else paths[0]


def _locate(folder: AnyPath, stored: str) -> AnyPath:
    if is_store_path(stored):
        return parse_store_path(stored)
    if isinstance(folder, StorePath) and Path(stored).is_absolute():
        return Path(stored)
    return folder / stored


def copy_run(folder: StorePath) -> Path:
    """Return a local copy of the files of a run in an object store, without checkpoints and data.

    Raises:
        NoSuchPathError: The folder holds no run.
        MissingPackageError: The package for object stores is not installed.
        StoreError: The store does not answer, or refuses.
    """
    with importing(f"{folder.scheme}://", "cloud"):
        from penstock.storage.folder_copy import (  # noqa: PLC0415 - obstore, which only stores need
            copy_folder,
            copy_named,
            make_temporary_folder,
        )

    if folder.is_writable:
        try:
            return copy_folder(folder, _is_read)
        except NoSuchPathError:
            raise refuse_other_folder(folder) from None
    copy = make_temporary_folder()
    copy_named(folder, RUN_NAMES, copy)
    if not (copy / CONFIG_NAME).is_file():
        raise refuse_other_folder(folder)
    members = read_count(read_run_config(copy / CONFIG_NAME), "ensemble", "members", folder / CONFIG_NAME)
    names = [MEMBER_NAME.format(each + 1) for each in range(members or 0)]
    copy_named(folder, [f"{member}/{name}" for member in names for name in RUN_NAMES], copy)
    return copy


def _is_read(name: str) -> bool:
    """Whether readers of a run need a file, by its path within the folder."""
    *folders, last = name.split("/")
    return last in RUN_NAMES and not any(each in _FOR_TRAINING for each in folders)


def refuse_other_folder(folder: AnyPath) -> NoSuchPathError:
    """Return the error for a folder that holds no run."""
    advice = "Pass a folder that 'penstock train --out' wrote."
    return NoSuchPathError(f"is not a run (it has no {CONFIG_NAME})", path=folder, advice=advice)


HELD_OUT: Final = "held out of train"
"""Value of `validation` in `facts`, where a share of the train split is held out for validation."""

MOST_RUNS: Final = 100
"""Maximum number of runs of an ensemble, or of folds."""

MOST_LABELS: Final = 1_000_000
"""Maximum number of labels of a target; more is taken for a damaged file."""


def check_facts(facts: object, path: PathLike) -> None:
    """Raise an error for a table `facts` with wrong values; only what opening a run needs is checked.

    Args:
        facts: The table: `targets` with kind and number of labels, `logits` with true or false.
        path: Path of the file, for errors.

    Raises:
        SchemaError: A value has the wrong type, or is out of range.

    Example:
        >>> check_facts({"targets": {"y": {"kind": "binary", "labels": 2}}}, "run.yaml")
    """
    table = _open_facts(facts, path).children()
    targets, logits = (
        table[name].children() if name in table and table[name].value is not None else {}
        for name in ("targets", "logits")
    )
    for target in targets.values():
        kind = target.child("kind").choice(get_args(Kind))
        target.child("labels").integer(0 if kind == "regression" else 1, MOST_LABELS)
    for is_logit in logits.values():
        is_logit.flag()


def read_count(settings: Mapping[str, Any], table: str, key: str, path: PathLike) -> int | None:
    """Return the number of runs in a table such as `ensemble`; None if there is no such table.

    Raises:
        SchemaError: It is not a whole number of at least 2.
    """
    if table not in settings:
        return None
    value = JsonValue(settings[table], Document("run", path=path, root=table)).child(key)
    return value.integer(2, MOST_RUNS)


def read_choices(facts: object, path: PathLike) -> dict[str, ValidationChoice]:
    """Return the choices made on validation, by target, from the table `facts`; none if it has none.

    Raises:
        SchemaError: A value has the wrong type, or is out of range.
    """
    stored = _open_facts(facts, path).child("choices")
    found = {} if stored.value is None else stored.children()
    return {name: ValidationChoice.from_json(each) for name, each in found.items()}


def _open_facts(facts: object, path: PathLike) -> JsonValue:
    advice = "The file was changed after the run wrote it."
    return JsonValue(facts or {}, Document("run", path=path, root="facts", advice=advice))


def read_train_fingerprint(folder: Path) -> str | None:
    """Return the fingerprint of the split that a run was trained on; None if it is not stored."""
    try:
        state = json.loads((folder / STATE_NAME).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None  # an evaluation does not need it
    identity = state.get("identity") if isinstance(state, dict) else None
    data = identity.get("data") if isinstance(identity, dict) else None
    return data if isinstance(data, str) else None
