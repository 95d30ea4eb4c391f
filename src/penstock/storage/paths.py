"""From what a caller names (a path, several, a glob, a folder) to the files it means.

In: a path or paths. Out: existing files, in a stable order, and the folder's data files among them.
"""

from __future__ import annotations

import difflib
import glob
import os
import re
import reprlib
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from penstock.errors import NoSuchPathError, OptionError, PathError
from penstock.storage.compression import FIRST_BYTES, begins_with_record

PathLike: TypeAlias = str | os.PathLike[str]

# What a TFRecord file is called in the wild: pets.tfrecord, x.tfrecords.gz, data_tfrecord-00000-of-00012.gz,
# data_tfrecord_eval.gz, a.record, b.tfr-00000-of-00001, c.tfrec, and any shard NAME-00000-of-00004. To the
# very end of the name: checksums, backups, archives and halves of downloads are called so too, and then more.
# Compressions that cannot be read are among it: whoever opens such a file says so; a hole would be silent.
_DATA_FILE = re.compile(
    r"""
    ( tfrecords?\d* | \.tfr | \.tfrecs? | \.records? | -\d{5,}-of-\d{5,} )
    ( [-_][^\W_]* | \.\d+ | \.(train|training|validation|valid|val|dev|eval|test|testing)
      | \.(gz|gzip|zlib|zz|z|zst|zstd|bz2|xz|lz4|snappy) )*\Z
    """,
    re.IGNORECASE | re.VERBOSE,
)
_HIDDEN = (".", "_")


def is_named_like_tfrecord(name: str) -> bool:
    """Tell whether a file is named like a TFRecord."""
    return _DATA_FILE.search(name) is not None


def is_tfrecord(path: Path) -> bool:
    """Tell whether a file is a TFRecord: by its name or, under any other name, by its first bytes."""
    if is_named_like_tfrecord(path.name):
        return True  # if it is damaged, or something else, opening it says so
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return begins_with_record(file.read(FIRST_BYTES))
    except OSError:
        return False


def find_files(paths: PathLike | Iterable[PathLike]) -> tuple[list[Path], bool]:
    """Return the files that `paths` means, and whether each was named by itself rather than found.

    A file counts once, under the first of its names: `a`, `./a` and a link to `a` are one.

    Raises:
        OptionError: That is no path, and no paths.
        NoSuchPathError: There is no such path, a glob matches nothing, or a folder holds no data file.
    """
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    elif isinstance(paths, bytes | bytearray) or not isinstance(paths, Iterable):
        raise _no_path("path", paths)
    by_real_path: dict[str, Path] = {}
    by_name = True
    for number, each in enumerate(paths):
        files, named = _find(each, number)
        for file in files:
            by_real_path.setdefault(os.path.realpath(file), file)
        by_name &= named
    if not by_real_path:
        raise NoSuchPathError("no paths were given", advice="Name a file, several, a glob or a folder.")
    return list(by_real_path.values()), by_name


def _no_path(what: str, got: object) -> OptionError:
    return OptionError(
        what,
        expected="a str or an os.PathLike, or several",
        got=reprlib.repr(got),
        advice="Decode it with os.fsdecode."
        if isinstance(got, bytes)
        else "Name a file, several, a glob or a folder.",
    )


def _find(given: PathLike, number: int) -> tuple[list[Path], bool]:
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else given
    if not isinstance(path, str):  # a PathLike may hold bytes
        raise _no_path(f"path[{number}]", given)
    place = Path(path)
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for a name that is too long, or in a closed folder
        return _folder_files(place), False
    if os.path.lexists(path):
        return [place], True
    matches = find_matches(path)
    if matches:
        return _matched_files(path, matches), False
    if glob.has_magic(path):
        raise NoSuchPathError(f"nothing matches {path!r}", path=path, advice="Check the pattern.")
    raise NoSuchPathError("no such file or folder", path=path, advice=_nearest(place))


def find_matches(given: object) -> list[Path]:
    """Return the files and folders that a glob matches, sorted; nothing for what is no glob, or exists."""
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(path, str) or not glob.has_magic(path) or os.path.lexists(path):
        return []
    # pathlib takes no pattern with a root.
    return sorted(Path(match) for match in glob.glob(path, recursive=True))  # noqa: PTH207


def _matched_files(pattern: str, matches: Iterable[Path]) -> list[Path]:
    """Return the files among what a glob matches; those in the folders, if there are none but folders."""
    files = [match for match in matches if not match.is_dir()]
    files = files or [file for match in matches for file in _list_folder(match)]
    if files:
        return files
    raise NoSuchPathError(
        f"{pattern!r} matches only folders, and none of them holds a TFRecord",
        path=pattern,
        advice="Name the files themselves.",
    )


def _list_folder(folder: Path) -> list[Path]:
    """Return the files that are named like TFRecords; if there are none, those that are TFRecords by content.

    Where some are named so, others may be their backups.
    """
    files = sorted(
        entry
        for entry in folder.rglob("*")
        # Broken links and pipes count: opening them is an error, and no data set has a silent hole.
        if not entry.is_dir()
        and not entry.name.startswith(_HIDDEN)
        and not any(
            part.startswith(".") or part == "quarantine" for part in entry.relative_to(folder).parts[:-1]
        )
    )
    named = [file for file in files if is_named_like_tfrecord(file.name)]
    return named or [file for file in files if is_tfrecord(file)]


def _folder_files(folder: Path) -> list[Path]:
    files = _list_folder(folder)
    if files:
        return files
    raise NoSuchPathError(
        "the folder holds no TFRecord",
        path=folder,
        expected="files that are named like TFRecords, or whose content is records",
        got="none",
        advice="Check the path.",
    )


def _nearest(place: Path) -> str:
    """Name what lies beside a path that does not exist and is spelt most like it."""
    try:
        names = [entry.name for entry in place.parent.iterdir()]
    except OSError:
        return "Check the path."
    near = difflib.get_close_matches(place.name, names, n=1)
    return f"Did you mean {str(place.parent / near[0])!r}?" if near else "Check the path."


def refuse_missing(path: Path) -> None:
    """Refuse a path that leads nowhere.

    Raises:
        NoSuchPathError: It does; the message names what is spelt most like it.
    """
    if not os.path.lexists(path):
        raise NoSuchPathError("no such file or folder", path=path, advice=_nearest(path))


def refuse_inside(target: Path, sources: Iterable[Path]) -> None:
    """Refuse a target folder that holds one of the sources.

    Raises:
        PathError: Writing there could overwrite what is being read.
    """
    resolved = target.resolve()
    for source in sources:
        if source.resolve().parent == resolved:
            raise PathError(
                "the output folder is the folder of the input",
                path=target,
                advice="Choose another output folder.",
            )


def write_name(name: str) -> str:
    r"""Return the name of a file as text that any JSON reader takes: bytes that are not UTF-8 as `\xe9`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
