"""A location in the memory of this process, the third kind of storage: it shows that the methods suffice.

It has what every kind of storage must have, and takes everything else from `Location`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import ClassVar, Self

import numpy as np

from penstock.errors import ChangedFileError, NoSuchPathError
from penstock.storage.location import ABSENT, Content, Entry, Location, OpenLocation, Part, Ranges
from penstock.storage.open_file import FileIdentity
from penstock.storage.store_path import StorePath


@dataclass
class Memory:
    """Files by key, each with the number of the write that made it."""

    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    num_writes: int = 0
    lock: RLock = field(default_factory=RLock)


class MemoryLocation(Location):
    """A file or a common beginning of keys, in memory."""

    has_folders: ClassVar[bool] = False

    def __init__(self, memory: Memory, path: StorePath) -> None:
        self._memory = memory
        self._path = path

    @property
    def path(self) -> StorePath:
        return self._path

    def __truediv__(self, name: str) -> Self:
        return type(self)(self._memory, self._path / name)

    @property
    def parent(self) -> Self:
        return type(self)(self._memory, self._path.parent)

    def look_up(self) -> Entry | None:
        found = self._memory.files.get(self._path.key)
        return None if found is None else Entry(self.name, len(found[0]), str(found[1]))

    def list(
        self,
        skips: Callable[[str], bool] = lambda _: False,
        folders: MutableSequence[str] | None = None,
    ) -> Iterator[Entry]:
        prefix = f"{self._path.key}/" if self._path.key else ""
        names = [key[len(prefix) :].split("/") for key in self._memory.files if key.startswith(prefix)]
        for parts in sorted(names, key=lambda parts: [os.fsencode(part) for part in parts]):
            if not any(map(skips, parts)):
                data, number = self._memory.files[prefix + "/".join(parts)]
                yield Entry("/".join(parts), len(data), str(number))

    def list_folders(self, skips: Callable[[str], bool] = lambda _: False) -> Sequence[str]:
        names = {each.name.split("/")[0] for each in self.list() if "/" in each.name}
        return sorted((name for name in names if not skips(name)), key=os.fsencode)

    def fetch(
        self, start: int = 0, stop: int | None = None, *, version: str | None = None, most: int | None = None
    ) -> Content:
        found = self._memory.files.get(self._path.key)
        if found is None:
            raise NoSuchPathError("no such file", path=self._path)
        if version not in (None, str(found[1])):
            raise ChangedFileError("changed", path=self._path, expected=version, got=found[1])
        if most is not None and len(found[0]) > most:
            raise OSError(errno.EFBIG, "too large", str(self._path))
        return Content(memoryview(found[0])[start:stop], str(found[1]))

    def open(self) -> OpenLocation:
        return _OpenMemory(self._path, self.read())

    def open_ranges(self) -> Ranges:
        return _MemoryRanges(self)

    def write(self, data: bytes, *, over: str | None = None, syncs_folder: bool = True) -> bool:
        with self._memory.lock:
            found = self.look_up()
            if over is not None and (ABSENT if found is None else found.version) != over:
                return False
            self._memory.num_writes += 1
            self._memory.files[self._path.key] = (bytes(data), self._memory.num_writes)
            return True

    def write_file(self, file: Path) -> None:
        self.write(file.read_bytes())

    def remove_files(self, names: Iterable[str]) -> None:
        for name in names:
            self._memory.files.pop((self._path / name).key, None)


@dataclass
class _OpenMemory:
    path: StorePath
    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def identity(self) -> FileIdentity:
        return FileIdentity(self.size, 0, 0)

    def check_unchanged(self, since: FileIdentity) -> None:
        pass

    def read(self, offset: int, size: int) -> bytes:
        return self.data[offset : offset + size]


class _MemoryRanges(Ranges):
    def __init__(self, folder: MemoryLocation) -> None:
        self._folder = folder

    def fill(self, parts: Sequence[Part]) -> None:
        for name, offset, into in parts:
            if not into.nbytes:
                continue
            data = (self._folder / name).read()[offset : offset + into.nbytes]
            if len(data) < into.nbytes:
                raise ChangedFileError("shorter than expected", path=(self._folder / name).path)
            into.reshape(-1).view(np.uint8)[:] = np.frombuffer(data, np.uint8)
