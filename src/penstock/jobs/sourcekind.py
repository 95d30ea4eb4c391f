"""Whether data is raw, or a data set or TFRecords: the one decision that every command and function shares.

In: whatever a caller passes as data. Out: yes or no. Of files the content decides, under any name; the name
decides for a file that holds nothing, is damaged, or does not exist, so that the error fits it.
"""

from __future__ import annotations

import glob
import os
from pathlib import Path

from penstock.dataset import Dataset, Split
from penstock.errors import OptionError, PathError
from penstock.foundation.wording import show
from penstock.shards.manifest import MANIFEST_NAME
from penstock.source.listing import list_files, named_kind
from penstock.storage.paths import find_files, is_tfrecord, refuse_missing


def is_stored(given: object) -> bool:
    """Whether data is a data set or TFRecords; all else is raw data.

    Raises:
        OptionError: Some of the files are TFRecords, and others are raw data.
        NoSuchPathError: One of several paths does not exist.
    """
    if isinstance(given, Dataset | Split):
        return True
    several = given if isinstance(given, list | tuple) else [given]
    named = [os.fspath(each) for each in several if isinstance(each, str | os.PathLike)]
    paths = [path for path in named if isinstance(path, str)]  # a PathLike may hold bytes
    if not several or len(paths) < len(several):
        return False
    if len(paths) > 1:
        for path in paths:
            if not glob.has_magic(path):
                refuse_missing(Path(path))
    found = {entry: is_record for path in paths for entry, is_record in _classify(path).items()}
    if len(set(found.values())) > 1:
        raise _mixture(found)
    return all(found.values())


def _classify(path: str) -> dict[str, bool]:
    """Return, by file or folder that a path means, whether it holds TFRecords."""
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for a name that is too long
        return {path: (Path(path) / MANIFEST_NAME).is_file() or _holds_records(path)}
    try:
        files = find_files(path)[0]
    except PathError:
        files = [Path(path)]
    return {str(file): is_tfrecord(file) for file in files}


def _holds_records(folder: str) -> bool:
    """Whether a folder holds TFRecords, beside which indexes and descriptions may lie."""
    record = raw = None
    for file in list_files(folder):
        if file.name.startswith("quarantine/"):
            continue  # what a repair has put aside
        is_table = named_kind(Path(file.name)) is not None and not file.name.endswith(".json")
        if is_table or file.is_image:
            raw = raw or file.name
        elif record is None and is_tfrecord(Path(folder) / file.name):
            record = file.name
    if record is not None and raw is not None:
        raise _mixture({f"{folder}/{record}": True, f"{folder}/{raw}": False})
    return record is not None


def _mixture(found: dict[str, bool]) -> OptionError:
    record = next(path for path, is_record in found.items() if is_record)
    raw = next(path for path, is_record in found.items() if not is_record)
    return OptionError(
        "source",
        path=record,
        expected="raw data alone or TFRecords alone",
        got=f"TFRecords, and raw data in {show(raw)}",
        advice="Name the files that are meant. To use both, convert the raw data first.",
    )
