"""The output folder of a conversion, checked before any work is done.

In: the path that a user passed. Out: the folder it refers to, or a `PathError`. `overwrite` replaces a folder
only if all files in it belong to a data set: other files are never deleted.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from penstock.errors import ManifestError, OptionError, PathError
from penstock.format.index import INDEX_FOLDER
from penstock.format.manifest import MANIFEST_NAME, load_manifest
from penstock.format.tfds import TFDS_NAMES
from penstock.foundation.wording import show
from penstock.shards.shard_file import name_files
from penstock.storage.atomic import refuse_existing
from penstock.storage.paths import PathLike
from penstock.storage.store_path import AnyPath, as_path, resolve_path

REJECTS_NAME: Final = "rejects.jsonl"
_OWN_NAMES = (MANIFEST_NAME, REJECTS_NAME, *TFDS_NAMES)
_MAX_NAMED = 3


def resolve_output(out: PathLike) -> AnyPath:
    """Return the folder that a path refers to, with links resolved."""
    if not isinstance(out, str | os.PathLike) or not os.fspath(out):
        raise OptionError("out", expected="the path of a folder", got=show(out))
    return resolve_path(as_path(out))


def find_staging(folder: Path) -> Path:
    """Return the hidden folder in which a data set is written until it is complete."""
    return folder.parent / f".{folder.name}.partial"


def check_folder(folder: Path, *, overwrite: bool) -> bool:
    """Return whether the folder contains a data set that the new one replaces."""
    try:
        is_folder = stat.S_ISDIR(folder.lstat().st_mode)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise refuse_folder(folder, error) from error
    if not is_folder:
        raise PathError("not a folder", path=folder, advice="Choose a folder for the output.")
    _refuse_fixed(folder)
    try:
        return _check_contents(folder, overwrite=overwrite)
    except PathError:
        raise
    except OSError as error:
        raise refuse_folder(folder, error) from error


def refuse_folder(folder: Path, error: OSError) -> PathError:
    """Return the error for a folder that the operating system refuses to write."""
    advice = "Choose a folder that you may write to."
    return PathError(f"cannot be written ({error.strerror or error})", path=folder, advice=advice)


def _refuse_fixed(folder: Path) -> None:
    """Refuse a folder that cannot be replaced by another."""
    advice = f"Choose a folder inside it, such as {os.fspath(folder / 'data')!r}."
    if folder.is_mount():
        raise PathError("is the root of a file system, which cannot be replaced", path=folder, advice=advice)
    with contextlib.suppress(FileNotFoundError):  # the current folder may have been removed
        if folder.samefile(os.curdir):
            # A shell in it would stay in the old folder.
            raise PathError("is the current folder, which cannot be replaced", path=folder, advice=advice)


def _check_contents(folder: Path, *, overwrite: bool) -> bool:
    if next(folder.iterdir(), None) is None:
        return False
    is_data_set = os.path.lexists(folder / MANIFEST_NAME)
    if is_data_set and not overwrite:
        refuse_existing(folder)
    own = _name_own_files(folder) if is_data_set else frozenset()
    foreign = list(itertools.islice((name for name in _walk(folder) if name not in own), _MAX_NAMED + 1))
    if foreign:
        named = ", ".join(show(name) for name in foreign[:_MAX_NAMED])
        more = " and more" if len(foreign) > _MAX_NAMED else ""
        what = (
            "contains files that do not belong to its data set"
            if is_data_set
            else "contains files, but is not a data set"
        )
        advice = "Move them elsewhere, or choose another folder."
        raise PathError(f"{what}: {named}{more}", path=folder, advice=advice)
    return True


def _name_own_files(folder: Path) -> frozenset[str]:
    """Return the relative paths of all files that the manifest lists, and of the metadata files."""
    try:
        manifest = load_manifest(folder)
    except ManifestError as error:
        raise PathError(
            "has a manifest that cannot be read, so that it is unknown which files belong to the data set",
            path=folder,
            advice="Remove the folder yourself, or choose another.",
        ) from error
    shards = [] if manifest is None else manifest.shards()
    names = (name for shard in shards for name in name_files(shard))
    return frozenset([*_OWN_NAMES, f"{INDEX_FOLDER}/", *names])


def _walk(folder: Path) -> Iterator[str]:
    """Yield the paths of all files below a folder, and of folders without files as `name/`."""

    def fail(error: OSError) -> None:
        raise error

    for where, folders, files in os.walk(folder, onerror=fail):
        inner = Path(where).relative_to(folder)
        links = [name for name in folders if (Path(where) / name).is_symlink()]
        for name in sorted([*files, *links]):
            yield (inner / name).as_posix()
        if not files and not folders and where != os.fspath(folder):
            yield f"{inner.as_posix()}/"
