"""How far a job that reads whole files has come.

In: the files it is going to read. Out: calls of `Progress` with the bytes read so far and those of all files.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from penstock.storage.open_file import OpenFile

_REST_BYTES = 1 << 20

Progress: TypeAlias = Callable[[int, int], None]


class Meter:
    """Adds up what is read of several files.

    It counts bytes on disk: how many a compressed file inflates to nobody knows beforehand.
    """

    def __init__(self, paths: Iterable[Path], report: Progress | None, *, num_passes: int = 1) -> None:
        self._report = report
        self._done = 0
        self._total = num_passes * sum(_size(path) for path in paths)

    @contextlib.contextmanager
    def open(self, path: Path) -> Iterator[MeteredFile]:
        """Open a file for one pass; at the end it counts as read, whatever was read of it."""
        size = _size(path)
        file = MeteredFile(path, self)
        try:
            yield file
        finally:
            self.advance(max(0, size - file.furthest))
            file.close()

    def advance(self, num_bytes: int) -> None:
        """Count bytes as read."""
        self._done += num_bytes
        if self._report is not None and num_bytes:
            self._report(self._done, self._total)


class MeteredFile(OpenFile):
    """A file that tells how much was read of it, and can tell the hash of it all."""

    def __init__(self, path: Path, meter: Meter) -> None:
        super().__init__(path)
        self.furthest = 0
        self._meter = meter
        self._hash: Any = None

    def begin_hash(self) -> None:
        """Hash what is read from now on; nothing may have been read before, and no gap be left."""
        self._hash = hashlib.sha256()

    def finish_hash(self) -> str:
        """Return the SHA-256 of the whole file in hex; what nobody has read yet is read now."""
        while self.read(self.furthest, _REST_BYTES):
            pass
        return str(self._hash.hexdigest())

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset` on; fewer only at the end of the file."""
        data = super().read(offset, size)
        ahead = offset + len(data) - self.furthest
        if ahead > 0:
            if self._hash is not None:
                self._hash.update(memoryview(data)[-ahead:])
            self.furthest += ahead
            self._meter.advance(ahead)
        return data


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # whoever opens it says what is wrong
