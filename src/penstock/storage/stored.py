"""Locations in object stores. Loaded when needed, because it needs `obstore`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Final, Self

import numpy as np
from numpy.typing import NDArray

from penstock.errors import ChangedFileError, NoSuchPathError, PathError, PenstockError
from penstock.storage.atomic import AtomicFile, make_temporary_folder, write_failure
from penstock.storage.location import ABSENT, Content, Entry, Location, Part, Ranges
from penstock.storage.object_store import (
    copy,
    delete,
    fetch,
    list_objects,
    list_prefixes,
    look_up,
    put,
    put_file,
    put_if,
    refuse_read_only,
)
from penstock.storage.object_version import StoreObject
from penstock.storage.remote_file import RemoteFile
from penstock.storage.request_threads import RANGE_BYTES, call_all
from penstock.storage.store_path import StorePath

_PIECE_BYTES: Final = 32 << 20  # of a file that is copied
_MAX_COPIED_BYTES: Final = 5 << 30  # limit of S3 for a copy by one request


class Stored(Location):
    """An object, or a common beginning of keys."""

    has_folders: ClassVar[bool] = False
    _path: StorePath

    def look_up(self) -> Entry | None:
        """Return the size and the version of the object; None if there is no such object."""
        found = look_up(self._path)
        return None if found is None else Entry(self.name, found.num_bytes, found.etag)

    def list(
        self,
        skips: Callable[[str], bool] = lambda _: False,
        folders: MutableSequence[str] | None = None,  # noqa: ARG002 - there are none
    ) -> Iterator[Entry]:
        """Yield the objects below this key, in the order of a local folder with the same files."""
        found = []
        for each in list_objects(self._path):
            name = each.path.relative_to(self._path)
            parts = name.split("/")
            if not any(map(skips, parts)):
                found.append(([os.fsencode(part) for part in parts], Entry(name, each.num_bytes, each.etag)))
        found.sort(key=lambda each: each[0])
        return iter([entry for _, entry in found])

    def list_folders(self, skips: Callable[[str], bool] = lambda _: False) -> Sequence[str]:
        """Return the names of the prefixes directly below this key."""
        return sorted((name for name in list_prefixes(self._path) if not skips(name)), key=os.fsencode)

    def fetch(
        self, start: int = 0, stop: int | None = None, *, version: str | None = None, most: int | None = None
    ) -> Content:
        """Return bytes of the object, and its version; see `Location.fetch`."""
        data, found = fetch(self._path, start, stop, etag=version, max_bytes=most)
        return Content(memoryview(data), found.etag)

    def open(self) -> RemoteFile:
        """Open the object."""
        return RemoteFile(self._path)

    def open_ranges(self) -> Ranges:
        """Return random access to the objects below this key."""
        return _StoreRanges(self._path)

    def copy_once(self, make_folder: Callable[[], Path]) -> tuple[Path, Entry | None]:
        """Return a copy of the object, and the original; see `Location.copy_once`."""
        local = make_folder() / self.name
        remote = RemoteFile(self._path)
        try:
            with local.open("wb") as out:
                for chunk in remote.chunks():
                    out.write(chunk)
        except OSError as error:
            if isinstance(error, PenstockError):
                raise
            raise write_failure(local, error) from error
        return local, Entry(self.name, remote.size, remote.version)

    def copy_folder(
        self, is_needed: Callable[[str], bool], list_needed: Callable[[Path], Iterable[str]]
    ) -> Path:
        """Return a local copy of objects below this key; see `Location.copy_folder`."""
        if self._path.is_writable:
            return super().copy_folder(is_needed, list_needed)
        target = make_temporary_folder()  # HTTPS cannot list objects
        asked: set[str] = set()
        while names := [name for name in list_needed(target) if name not in asked]:
            asked.update(names)
            found = call_all([partial(look_up, self._path / name) for name in names])
            self._copy_objects([each for each in found if each is not None], target)
        if not any(target.iterdir()):
            raise NoSuchPathError("no such folder", path=self._path, advice="Check the path.")
        return target

    def copy_files(self, entries: Iterable[Entry], target: Path) -> None:
        """Copy listed objects to a local folder, several at the same time; see `Location.copy_files`."""
        self._copy_objects(
            [StoreObject(self._path / each.name, each.num_bytes, each.version) for each in entries], target
        )

    def _copy_objects(self, found: Sequence[StoreObject], target: Path) -> None:
        names = [self._check_name(each.path.relative_to(self._path)) for each in found]
        calls = [partial(_copy, each, target / name) for each, name in zip(found, names, strict=True)]
        for _ in call_all(calls):
            pass

    def refuse_output(self, *, overwrite: bool) -> None:
        """Refuse an object that exists, or that cannot be written; see `Location.refuse_output`."""
        self.refuse_read_only()
        super().refuse_output(overwrite=overwrite)

    def refuse_read_only(self, advice: str = "") -> None:
        """Refuse a location that cannot be written, or a whole bucket."""
        refuse_read_only(self._path)
        if not self._path.key:
            advice = advice or f"Choose a name in it: {self._path}/NAME."
            raise PathError("is a whole bucket", path=self._path, advice=advice)

    def write(
        self,
        data: bytes,
        *,
        over: str | None = None,
        syncs_folder: bool = True,  # noqa: ARG002 - there are no folders
    ) -> bool:
        """Write a small object; see `Location.write`."""
        if over is not None:
            return put_if(self._path, data, None if over == ABSENT else over)
        put(self._path, data)
        return True

    def can_copy(self, num_bytes: int) -> bool:
        """Return whether the store copies objects of that size by one request."""
        return self._path.scheme != "s3" or num_bytes <= _MAX_COPIED_BYTES

    def copy_from(self, source: Self) -> None:
        """Copy an object inside the bucket."""
        copy(source._path, self._path)

    def write_file(self, file: Path) -> None:
        """Upload a local file, in parts."""
        put_file(self._path, file)

    def remove_files(self, names: Iterable[str]) -> None:
        """Remove objects below this key by name, many per request."""
        if paths := [self._path / name for name in names]:
            delete(paths)


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


class _StoreRanges(Ranges):
    """Objects below a key, read by many requests at a time."""

    def __init__(self, folder: StorePath) -> None:
        self._folder = folder

    def fill(self, parts: Sequence[Part]) -> None:
        calls: list[Callable[[], None]] = []
        for name, offset, into in parts:
            data = into.reshape(-1).view(np.uint8) if into.nbytes else np.empty(0, np.uint8)
            calls += [
                partial(self._fetch, name, offset + start, data[start : start + RANGE_BYTES])
                for start in range(0, len(data), RANGE_BYTES)
            ]
        for _ in call_all(calls):
            pass

    def _fetch(self, name: str, start: int, into: NDArray[np.uint8]) -> None:
        data = fetch(self._folder / name, start, start + len(into)).data
        if len(data) < len(into):
            raise ChangedFileError("the object is shorter than expected", path=self._folder / name)
        into[:] = np.frombuffer(memoryview(data), np.uint8)
