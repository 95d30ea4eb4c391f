"""Where a job that writes one file for each it reads puts them.

In: what the caller named, and an output folder. Out: a place for each file, none of which can harm the input.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from penstock.errors import PathError
from penstock.read.naming import group_files
from penstock.storage.atomic import refuse_existing
from penstock.storage.paths import PathLike, find_files, refuse_inside

QUARANTINE = "quarantine"


def place_files(
    paths: PathLike | Iterable[PathLike], out: Path, *, overwrite: bool = False
) -> dict[Path, Path]:
    """Return each file's place below `out`: its path inside the folder that was named, or else its name.

    Raises:
        NoSuchPathError: A path leads to no file.
        MissingShardError: A file of an `-of-N` set is missing.
        PathError: Two files would take one place, a place is taken already, or `out` is where the input is.
    """
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    files, named_singly = find_files(given)
    group_files(files, named_singly=named_singly)
    _refuse_input(out, files, given)
    places: dict[Path, Path] = {}
    owners: dict[Path, Path] = {}
    for each in given:
        folder = Path(each)
        for file in find_files(each)[0]:
            place = file.relative_to(folder) if folder.is_dir() else Path(file.name)
            if places.setdefault(file, place) != place:
                raise _collision("named twice", file, f"{places[file]} and {place}")
            if owners.setdefault(place, file) != file:
                raise _collision(f"has the place of {owners[place]}", file, os.fspath(out / place))
    for place in owners:
        if place.parts[0] == QUARANTINE:
            raise PathError("has the name of the quarantine folder", path=place, advice="Rename it.")
        if not overwrite:
            refuse_existing(out / place)
    return places


def _collision(what: str, file: Path, got: str) -> PathError:
    advice = "Give each folder an output folder of its own."
    return PathError(what, path=file, expected="one place for each file", got=got, advice=advice)


def _refuse_input(out: Path, files: Iterable[Path], given: Iterable[PathLike]) -> None:
    if os.path.lexists(out) and not out.is_dir():
        raise PathError("not a folder", path=out, advice="Name a folder for the output.")
    refuse_inside(out, files)
    resolved = out.resolve()
    for each in given:
        folder = Path(each).resolve()
        # Inside the input too: whoever opens the input folder would find the output in it.
        if folder.is_dir() and (resolved == folder or folder in resolved.parents):
            raise PathError(
                "the output folder lies in the folder of the input",
                path=out,
                advice="Choose another output folder.",
            )
