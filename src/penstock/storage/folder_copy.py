"""Local copies of folders in object stores. Loaded when needed, because it needs `obstore`.

In: a folder in a store with few files, such as a run or an export. Out: a local folder with the same files,
each in the version that was listed. A copy is removed when the process ends.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from penstock.errors import ChangedFileError, NoSuchPathError, PathError, PenstockError
from penstock.storage.atomic import AtomicFile, write_failure
from penstock.storage.object_store import fetch, list_objects, look_up
from penstock.storage.object_version import StoreObject
from penstock.storage.request_threads import call_all
from penstock.storage.store_path import StorePath

_PIECE_BYTES: Final = 32 << 20  # of a file that is copied
_MAX_ATTEMPTS: Final = 3

_copies: dict[StorePath, tuple[list[StoreObject], Path]] = {}
_folders: list[tempfile.TemporaryDirectory[str]] = []


def copy_folder(folder: StorePath, is_needed: Callable[[str], bool]) -> Path:
    """Return a local copy of the files in a folder; the same copy, if they have not changed since.

    Args:
        folder: The folder, in a store that can list objects.
        is_needed: Whether to copy a file, by its path within the folder.

    Raises:
        NoSuchPathError: There is no such file in the folder.
        ChangedFileError: The files change again and again while they are copied.
        StoreError: The store does not answer, or refuses.
        WriteError: The disk is full, or fails.
    """
    for attempt in range(_MAX_ATTEMPTS):
        found = [each for each in list_objects(folder) if is_needed(each.path.relative_to(folder))]
        known = _copies.get(folder)
        if known is not None and known[0] == found and all(each.etag for each in found) and known[1].is_dir():
            return known[1]
        if not found:
            raise NoSuchPathError("no such folder", path=folder, advice="Check the path.")
        target = make_temporary_folder()
        try:
            copy_objects(found, folder, target)
        except (ChangedFileError, NoSuchPathError):  # a run that is being trained
            if attempt == _MAX_ATTEMPTS - 1:
                raise
            continue
        _copies[folder] = (found, target)
        return target
    raise RuntimeError("a copy has no attempts")


def copy_named(folder: StorePath, names: Iterable[str], target: Path) -> None:
    """Copy those of the named files that exist; for HTTPS, which cannot list objects.

    Raises:
        StoreError: The store does not answer, or refuses.
        WriteError: The disk is full, or fails.
    """
    asked = call_all([partial(look_up, folder / name) for name in names])
    copy_objects([each for each in asked if each is not None], folder, target)


def copy_objects(found: Iterable[StoreObject], folder: StorePath, target: Path) -> None:
    """Copy objects below a folder of a store to a local folder, several at the same time.

    Raises:
        PathError: The key of an object is not the path of a file.
        NoSuchPathError: An object was deleted.
        ChangedFileError: An object has another version by now.
        StoreError: The store does not answer, or refuses.
        WriteError: The disk is full, or fails.
    """
    calls = [partial(_copy, each, target / _check_name(each.path, folder)) for each in found]
    for _ in call_all(calls):
        pass


def _check_name(path: StorePath, folder: StorePath) -> str:
    name = path.relative_to(folder)
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise PathError("the key is not the path of a file", path=path, advice="Delete the object.")
    return name


def _copy(found: StoreObject, target: Path) -> None:
    with AtomicFile(target, planned_bytes=found.num_bytes, overwrite=True, syncs_folder=False) as file:
        for start in range(0, found.num_bytes, _PIECE_BYTES):
            stop = min(start + _PIECE_BYTES, found.num_bytes)
            piece = fetch(found.path, start, stop, etag=found.etag)
            if piece.found.num_bytes != found.num_bytes:
                raise ChangedFileError(
                    "the object changed while it was copied",
                    path=found.path,
                    expected=f"{found.num_bytes} bytes",
                    got=f"{piece.found.num_bytes} bytes",
                    advice="Try again when no other program writes to it.",
                )
            file.write(memoryview(piece.data))


def make_temporary_folder() -> Path:
    """Return a new local folder, which is removed when the process ends.

    Raises:
        WriteError: It cannot be created.
    """
    try:
        made = tempfile.TemporaryDirectory(prefix="penstock-copy-", ignore_cleanup_errors=True)
    except OSError as error:
        raise write_failure(Path(tempfile.gettempdir()), error) from error
    _folders.append(made)
    return Path(made.name)


@contextmanager
def naming_original(copy: Path, folder: StorePath) -> Iterator[None]:
    """Let errors about files of a copy name the objects that they are copies of."""
    try:
        yield
    except PenstockError as error:
        if error.path is not None and Path(error.path).is_relative_to(copy):
            relative = Path(error.path).relative_to(copy).as_posix()
            error.path = str(folder if relative == "." else folder / relative)
        raise
