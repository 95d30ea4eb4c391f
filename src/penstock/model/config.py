"""A run's settings as `run.yaml`: everything that it was made with, resolved.

In: tables of settings. Out: the file, and the tables again; every fault names the line.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from penstock.errors import SchemaError
from penstock.foundation.safe_yaml import read_yaml
from penstock.foundation.wording import find_nearest, show
from penstock.storage.atomic import AtomicFile

CONFIG_NAME: Final = "run.yaml"
OWN_MODEL: Final = "own"
"""What stands for a model that a run was given: its code is nowhere in the run."""

TABLES: Final = (
    *("source", "data", "target", "declared", "convert", "fields", "groups", "model", "train", "facts"),
)
"""`source` and `data` are paths; `declared` are fields of TFRecords, as a schema has them; `facts` are what
came of the others: another run has its own."""

_WORDS: Final = ("source", "data", "target")

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
    """Read the settings of a run, or what a person wrote of them.

    Raises:
        NoSuchPathError: There is no such file.
        PathError: It cannot be read.
        SchemaError: It is no YAML, or has another form; the message names the line.
    """
    form, lines = read_yaml(path)
    tables = {} if form is None else form
    if not isinstance(tables, dict):
        raise SchemaError("settings", path=path, expected="tables by name", got=show(form))
    for name, table in tables.items():
        line = f"line {lines.get(f'$.{name}', 1)}: "
        if name not in TABLES:
            nearest = find_nearest(str(name), TABLES)
            advice = f"Did you mean {nearest!r}?" if nearest else f"There are {', '.join(TABLES)}."
            raise SchemaError(
                f"{line}table {name!r}", path=path, expected="one of a run", got=show(name), advice=advice
            )
        if table is not None and not _is_table(name, table):
            expected = "a word, or several" if name in _WORDS else "options by name"
            raise SchemaError(f"{line}table {name!r}", path=path, expected=expected, got=show(table))
    return {name: table for name, table in tables.items() if table is not None}


def _is_table(name: str, table: Any) -> bool:
    if name in _WORDS:
        words = table if isinstance(table, list) else [table]
        return bool(words) and all(isinstance(word, str) for word in words)
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
