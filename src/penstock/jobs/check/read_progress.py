"""Progress of a job that reads whole files.

In: the files to read. Out: calls of `Progress` with the number of bytes read so far and the total.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from penstock._native import IndexScanner
from penstock.read.damage import naming_record
from penstock.storage.open_file import FileIdentity, OpenFile
from penstock.storage.paths import find_local_size, open_path
from penstock.storage.store_path import AnyPath

_REST_BYTES = 1 << 20

Progress: TypeAlias = Callable[[int, int], None]


class ReadProgress:
    """Counts the bytes that are read from several files.

    It counts bytes on disk, because the inflated size of a compressed file is not known in advance.
    """

    def __init__(self, paths: Iterable[AnyPath], report: Progress | None, *, num_passes: int = 1) -> None:
        self._report = report
        self._done = 0
        self._total = num_passes * sum(_size(path) for path in paths)

    @contextlib.contextmanager
    def open(self, path: AnyPath) -> Iterator[CountedFile]:
        """Open a file for one pass; when it is closed, all of its bytes count as read."""
        size = _size(path)
        file = CountedFile(path, self)
        if not size:
            size = file.identity.size
            self._total += size
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


class CountedFile:
    """A file that reports how many bytes were read, and can compute the hash of its content.

    Attributes:
        path: Path of the file.
        identity: Identity of the file when it was opened.
        furthest: Number of bytes read so far.
    """

    def __init__(self, path: AnyPath, progress: ReadProgress) -> None:
        self.path = path
        self._file = open_path(path)
        self.identity = self._file.identity
        self.furthest = 0
        self._read: Callable[[int, int], bytes | memoryview] = self._file.read
        if not isinstance(self._file, OpenFile):
            self._read = self._file.read_ahead()
        self._progress = progress
        self._hash: Any = None
        self._scanner: IndexScanner | None = None

    def begin_hash(self, scanner: IndexScanner | None = None) -> None:
        """Hash the bytes that are read from now on; the file must be read from its start, without gaps.

        `scanner`: gets the same bytes, if it is given.
        """
        self._hash = hashlib.sha256()
        self._scanner = scanner

    def check_unchanged(self, since: FileIdentity) -> None:
        """Check that the file has not changed."""
        self._file.check_unchanged(since)

    def close(self) -> None:
        """Close the file."""
        if isinstance(self._file, OpenFile):
            self._file.close()

    def finish_hash(self) -> str:
        """Return the SHA-256 of the whole file in hex; the bytes that were not read yet are read now."""
        while self.read(self.furthest, _REST_BYTES):
            pass
        return str(self._hash.hexdigest())

    def read(self, offset: int, size: int) -> bytes:
        """Return `size` bytes from `offset` on; fewer only at the end of the file."""
        data = bytes(self._read(offset, size))
        ahead = offset + len(data) - self.furthest
        if ahead > 0:
            if self._hash is not None:
                self._hash.update(memoryview(data)[-ahead:])
            if self._scanner is not None:
                with naming_record(self.path, self._scanner):
                    self._scanner.feed(memoryview(data)[-ahead:])
            self.furthest += ahead
            self._progress.advance(ahead)
        return data


def _size(path: AnyPath) -> int:
    """Return the size of a file; 0 for one that is known when it is opened, or when opening it fails."""
    try:
        return find_local_size(path, 0) or 0
    except OSError:
        return 0
