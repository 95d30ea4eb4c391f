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

from penstock.errors import SchemaError
from penstock.foundation.json_form import Document, JsonValue
from penstock.foundation.safe_yaml import read_yaml
from penstock.foundation.wording import find_nearest, show
from penstock.model.task import Kind
from penstock.storage.atomic import AtomicFile
from penstock.storage.paths import PathLike
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


def find_data(folder: Path, settings: Mapping[str, Any]) -> Path | list[Path]:
    """Return the path of the data of a run, or the paths of several files, from its settings."""
    stored = settings.get("data", DATA_NAME)
    paths = [folder / each for each in (stored if isinstance(stored, list) else [stored])]
    return paths if isinstance(stored, list) else paths[0]


STATE_NAME: Final = "state.json"
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
