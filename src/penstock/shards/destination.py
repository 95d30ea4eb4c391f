"""Whether a data set may be written to a place, told before any work is done.

In: the path that somebody named. Out: the folder it means, or a `PathError`. Only files that a manifest there
lists are ever given up to `overwrite`: never a file of somebody else's.
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
from penstock.foundation.wording import show
from penstock.shards.index import INDEX_FOLDER
from penstock.shards.manifest import MANIFEST_NAME, load_manifest
from penstock.shards.shard_file import name_files
from penstock.storage.atomic import refuse_existing
from penstock.storage.paths import PathLike

REJECTS_NAME: Final = "rejects.jsonl"
_OWN_NAMES = (MANIFEST_NAME, REJECTS_NAME, "dataset_info.json", "features.json")
_MOST_NAMED = 3


def find_place(out: PathLike) -> Path:
    """Return the folder that a path means: of a link to one, where it leads.

    Raises:
        OptionError: It is no path.
    """
    if not isinstance(out, str | os.PathLike) or not os.fspath(out):
        raise OptionError("out", expected="the path of a folder", got=show(out))
    return Path(os.path.realpath(out))


def find_staging(place: Path) -> Path:
    """Return the hidden folder in which the data set of a folder is written until it is complete."""
    return place.parent / f".{place.name}.partial"


def check_place(place: Path, *, overwrite: bool) -> bool:
    """Tell whether a data set is there that the new one replaces.

    Raises:
        PathError: The place cannot be written to: it is no folder, or holds what must not be lost.
    """
    try:
        is_folder = stat.S_ISDIR(place.lstat().st_mode)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise refuse_place(place, error) from error
    if not is_folder:
        raise PathError("not a folder", path=place, advice="Name a folder for the output.")
    _refuse_fixed(place)
    try:
        return _check_contents(place, overwrite=overwrite)
    except PathError:
        raise
    except OSError as error:
        raise refuse_place(place, error) from error


def refuse_place(place: Path, error: OSError) -> PathError:
    """Make the error for a place that the system refuses."""
    advice = "Choose a folder that you may write to."
    return PathError(f"cannot be written ({error.strerror or error})", path=place, advice=advice)


def _refuse_fixed(place: Path) -> None:
    """Refuse a folder that another cannot take the place of."""
    advice = f"Name a folder inside it, such as {os.fspath(place / 'data')!r}."
    if place.is_mount():
        raise PathError("the root of a file system, which cannot be replaced", path=place, advice=advice)
    with contextlib.suppress(FileNotFoundError):  # the current folder may have been removed
        if place.samefile(os.curdir):
            # Whoever stands in it would go on standing in the folder that was there before.
            raise PathError("the current folder, which cannot be replaced", path=place, advice=advice)


def _check_contents(place: Path, *, overwrite: bool) -> bool:
    if next(place.iterdir(), None) is None:
        return False
    is_data_set = os.path.lexists(place / MANIFEST_NAME)
    if is_data_set and not overwrite:
        refuse_existing(place)
    own = _name_own_files(place) if is_data_set else frozenset()
    foreign = list(itertools.islice((name for name in _walk(place) if name not in own), _MOST_NAMED + 1))
    if foreign:
        named = ", ".join(show(name) for name in foreign[:_MOST_NAMED])
        more = " and more" if len(foreign) > _MOST_NAMED else ""
        what = "has other files beside its data set" if is_data_set else "holds files, and is no data set"
        advice = "Move them elsewhere, or choose another folder."
        raise PathError(f"{what}: {named}{more}", path=place, advice=advice)
    return True


def _name_own_files(place: Path) -> frozenset[str]:
    """Return the paths, in the folder, of all files that its manifest lists, and of those beside it."""
    try:
        manifest = load_manifest(place)
    except ManifestError as error:
        raise PathError(
            "has a manifest that cannot be read, so that its files cannot be told from others",
            path=place,
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
