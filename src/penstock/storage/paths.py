"""Finding files: resolve paths, glob patterns and folders to TFRecord files.

In: a path or several. Out: existing files in a stable order.
"""

from __future__ import annotations

import difflib
import glob
import os
import re
import reprlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from penstock.errors import NoSuchPathError, OptionError, PathError, importing
from penstock.storage.compression import FIRST_BYTES, begins_with_record
from penstock.storage.disk import Disk
from penstock.storage.location import Location
from penstock.storage.open_file import FileIdentity, OpenFile
from penstock.storage.remote_file import RemoteFile, load_store
from penstock.storage.store_path import (
    AnyPath,
    StorePath,
    as_path,
    is_store_path,
    parse_store_path,
    split_pattern,
)

PathLike: TypeAlias = str | os.PathLike[str]

# Common names of TFRecord files: pets.tfrecord, x.tfrecords.gz, data_tfrecord-00000-of-00012.gz,
# data_tfrecord_eval.gz, a.record, b.tfr-00000-of-00001, c.tfrec, and any shard NAME-00000-of-00004. The
# pattern matches to the end of the name, because checksums, backups, archives and partial downloads only add
# a suffix. It includes unsupported compressions: opening such a file is an error instead of a silent gap.
_DATA_FILE = re.compile(
    r"""
    ( tfrecords?\d* | \.tfr | \.tfrecs? | \.records? | -\d{5,}-of-\d{5,} )
    ( [-_][^\W_]* | \.\d+ | \.(train|training|validation|valid|val|dev|eval|test|testing)
      | \.(gz|gzip|zlib|zz|z|zst|zstd|bz2|xz|lz4|snappy) )*\Z
    """,
    re.IGNORECASE | re.VERBOSE,
)
_HIDDEN = (".", "_")
_PATH_ADVICE = "Pass a file, a list of files, a glob pattern or a folder."


def locate(path: PathLike) -> Location:
    """Return the location that a path names; a location as it is."""
    if isinstance(path, Location):
        return path
    parsed = as_path(path)
    if isinstance(parsed, Path):
        return Disk(parsed)
    with importing(f"{parsed.scheme}://", "cloud"):
        from penstock.storage.stored import Stored  # noqa: PLC0415 - obstore, which only stores need

    return Stored(parsed)


def is_named_like_tfrecord(name: str) -> bool:
    """Return whether a file has the name of a TFRecord file."""
    return _DATA_FILE.search(name) is not None


def is_tfrecord(path: AnyPath) -> bool:
    """Return whether a file is a TFRecord file, by its name or first bytes; in a store, by its name alone."""
    if is_named_like_tfrecord(path.name):
        return True  # if it is damaged, or another format, opening it is an error
    if not isinstance(path, Path):
        return False
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return begins_with_record(file.read(FIRST_BYTES))
    except OSError:
        return False


def find_files(paths: PathLike | Iterable[PathLike]) -> tuple[list[AnyPath], bool]:
    """Return the files for `paths`, each under its first name, and whether each was named explicitly."""
    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    elif isinstance(paths, bytes | bytearray) or not isinstance(paths, Iterable):
        raise _refuse_path("path", paths)
    by_real_path: dict[str, AnyPath] = {}
    by_name = True
    for number, each in enumerate(paths):
        files, named = _find(each, number)
        for file in files:
            by_real_path.setdefault(find_real_path(file), file)
        by_name &= named
    if not by_real_path:
        raise NoSuchPathError("no paths were given", advice=_PATH_ADVICE)
    return list(by_real_path.values()), by_name


def find_local_files(paths: PathLike | Iterable[PathLike]) -> tuple[list[Path], bool]:
    """Return the files for `paths` as `find_files` does; paths in object stores are refused."""
    files, by_name = find_files(paths)
    return [refuse_remote(file) for file in files], by_name


def refuse_remote(path: AnyPath) -> Path:
    """Return a local path."""
    if isinstance(path, StorePath):
        advice = "Copy it to a local folder first."
        raise PathError("is in an object store, where this is not supported", path=path, advice=advice)
    return path


def find_real_path(path: AnyPath) -> str:
    """Return the one name of a file: links are resolved, and objects of a store have one name anyway."""
    return os.path.realpath(path) if isinstance(path, Path) else str(path)


def _refuse_path(what: str, got: object) -> OptionError:
    return OptionError(
        what,
        expected="a str, an os.PathLike, or a list of them",
        got=reprlib.repr(got),
        advice="Decode it with os.fsdecode." if isinstance(got, bytes) else _PATH_ADVICE,
    )


def _find(given: PathLike, number: int) -> tuple[Sequence[AnyPath], bool]:
    if is_store_path(given):
        return _find_objects(parse_store_path(given))
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else given
    if not isinstance(path, str):  # a PathLike may hold bytes
        raise _refuse_path(f"path[{number}]", given)
    location = Path(path)
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for a name that is too long, or in a closed folder
        return _folder_files(location), False
    if os.path.lexists(path):
        return [location], True
    matches = find_matches(path)
    if matches:
        return _matched_files(path, matches), False
    if glob.has_magic(path):
        raise NoSuchPathError(f"no file matches {path!r}", path=path, advice="Check the pattern.")
    raise NoSuchPathError("no such file or folder", path=path, advice=_suggest_name(location))


def find_matches(given: object) -> list[Path]:
    """Return the sorted matches of a glob pattern; an empty list for an existing path or no pattern."""
    if is_store_path(given):
        return []
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if not isinstance(path, str) or not glob.has_magic(path) or os.path.lexists(path):
        return []
    # pathlib does not support absolute patterns.
    return sorted(Path(match) for match in glob.glob(path, recursive=True))  # noqa: PTH207


def find_given(given: PathLike) -> tuple[Sequence[AnyPath], AnyPath | None]:
    """Return the files that a path or a pattern names; or no file, and the folder that the path names."""
    if is_store_path(given):
        path = parse_store_path(given)
        found = find_objects(path)
        return ([], path) if found != [path] and split_pattern(path) is None else (found, None)
    name = os.fspath(given)  # which may be bytes
    if isinstance(name, str) and os.path.isdir(name):  # noqa: PTH112 - Path.is_dir raises for a long name
        return [], Path(name)
    return find_local_files(given)[0], None


def refuse_irregular(path: AnyPath) -> None:
    """Reject a local path of something else than a regular file."""
    if isinstance(path, Path) and path.exists() and not path.is_file():
        raise PathError("not a regular file", path=path, advice="Pass a file, a glob or a folder.")


def find_objects(path: StorePath) -> list[StorePath]:
    """Return the objects that a path in a store names: itself, all below it, or all matches of a pattern."""
    store = load_store(path)
    if path.key and store.look_up(path) is not None:  # also with a bracket, as local files
        return [path]
    pattern = split_pattern(path)
    if pattern is not None:
        folder, keys = pattern
        found = [each.path for each in store.list_objects(folder) if keys.fullmatch(each.path.key)]
        if not found:
            raise NoSuchPathError(f"no object matches {str(path)!r}", path=path, advice="Check the pattern.")
        return found
    found = [each.path for each in store.list_objects(path)] if path.is_writable else []
    if not found:
        raise NoSuchPathError("no such object or folder", path=path, advice="Check the path.")
    return found


def _find_objects(path: StorePath) -> tuple[list[StorePath], bool]:
    found = find_objects(path)
    if found == [path]:
        return found, True
    folder = path if split_pattern(path) is None else None
    if folder is not None:  # of a pattern, all matches count
        visible = (each for each in found if _is_visible(each.relative_to(folder)))
        found = [each for each in visible if is_named_like_tfrecord(each.name)]
    if found:
        return found, False
    raise NoSuchPathError(
        "the folder has no TFRecord files",
        path=path,
        expected="objects with a TFRecord name",
        got="none",
        advice="Check the path; a conversion to it may be unfinished.",
    )


def _is_visible(relative: str) -> bool:
    *folders, name = relative.split("/")
    return not name.startswith(_HIDDEN) and not any(
        part.startswith(".") or part == "quarantine" for part in folders
    )


def _matched_files(pattern: str, matches: Iterable[Path]) -> list[Path]:
    """Return the files among the matches of a pattern; if only folders match, the files in them."""
    files = [match for match in matches if not match.is_dir()]
    files = files or [file for match in matches for file in _list_folder(match)]
    if files:
        return files
    raise NoSuchPathError(
        f"{pattern!r} matches only folders without TFRecord files",
        path=pattern,
        advice="Pass the files themselves.",
    )


def _list_folder(folder: Path) -> list[Path]:
    """Return the files with a TFRecord name, as others may be backups; without any, by content."""
    files = sorted(
        entry
        for entry in folder.rglob("*")
        # Broken links and pipes count: opening them is an error instead of a silent gap.
        if not entry.is_dir() and _is_visible(entry.relative_to(folder).as_posix())
    )
    named = [file for file in files if is_named_like_tfrecord(file.name)]
    return named or [file for file in files if is_tfrecord(file)]


def _folder_files(folder: Path) -> list[Path]:
    files = _list_folder(folder)
    if files:
        return files
    raise NoSuchPathError(
        "the folder has no TFRecord files",
        path=folder,
        expected="files with a TFRecord name or TFRecord content",
        got="none",
        advice=f"Check the path. For CSV, Parquet or images: `ps.convert({str(folder)!r}, 'OUT')`.",
    )


def _suggest_name(path: Path) -> str:
    """Return advice for a path that does not exist: the most similar name in its folder."""
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return "Check the path."
    near = difflib.get_close_matches(path.name, names, n=1)
    return f"Did you mean {str(path.parent / near[0])!r}?" if near else "Check the path."


def may_be_folder(path: AnyPath) -> bool:
    """Return whether a path may be a folder; in a store, no pattern and no name of a TFRecord file is."""
    if isinstance(path, Path):
        return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises for a name that is too long
    return not is_named_like_tfrecord(path.name) and split_pattern(path) is None


def find_folder(name: str) -> AnyPath | None:
    """Return the path of a folder; None for other paths, as far as they are known without a request."""
    path = parse_store_path(name) if is_store_path(name) else Path(name)
    return path if may_be_folder(path) else None


def is_missing(path: AnyPath) -> bool:
    """Return whether a local path does not exist; nothing in a store is looked up."""
    return isinstance(path, Path) and not os.path.lexists(path)


def is_there(path: AnyPath) -> bool:
    """Return whether a local path exists; nothing in a store is looked up."""
    return isinstance(path, Path) and path.exists()


def find_local_size(path: AnyPath, otherwise: int) -> int | None:
    """Return the size of a local file, None if there is none; `otherwise` for an object of a store."""
    if not isinstance(path, Path):
        return otherwise
    return path.stat().st_size if path.is_file() else None


def identify_local(path: AnyPath) -> FileIdentity | None:
    """Return the identity of a local file; None for an object of a store, which has a version instead."""
    return FileIdentity.from_status(path.stat()) if isinstance(path, Path) else None


def refuse_missing(path: AnyPath) -> None:
    """Reject a local path that does not exist; objects of stores are looked up when they are opened."""
    if isinstance(path, Path) and is_missing(path):
        raise NoSuchPathError("no such file or folder", path=path, advice=_suggest_name(path))


def refuse_inside(target: Path, sources: Iterable[Path]) -> None:
    """Reject an output folder that contains one of the input files."""
    resolved = target.resolve()
    for source in sources:
        if source.resolve().parent == resolved:
            raise PathError(
                "the output folder is the folder of the input",
                path=target,
                advice="Choose another output folder.",
            )


def write_name(name: str) -> str:
    r"""Return a file name as valid JSON text; bytes that are not UTF-8 are written as `\xe9`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def open_path(path: AnyPath) -> OpenFile | RemoteFile:
    """Open a file, or an object of a store."""
    return RemoteFile(path) if isinstance(path, StorePath) else OpenFile(path)
