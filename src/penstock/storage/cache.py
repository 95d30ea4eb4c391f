"""Caches on a local disk: files that are expensive to make again, and ranges of objects in stores.

Cache files are under `$PENSTOCK_CACHE`, else `$XDG_CACHE_HOME/penstock`, else `~/.cache/penstock`; they may
be deleted at any time, and without a writable folder the work is done again. Objects of stores are kept in
chunks of one size, shared by processes: a chunk appears by a rename, and the least recently used are deleted.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from penstock import _native
from penstock.errors import OptionError
from penstock.foundation.process import ProcessLock
from penstock.foundation.wording import show
from penstock.storage.store_path import AnyPath, StorePath

MAX_INFLATED_BYTES = 16 << 30  # total size of all decompressed copies

BYTES_VARIABLE: Final = "PENSTOCK_STORE_CACHE_BYTES"

# The size of a block of a block shuffle: a larger chunk would read more bytes than a batch needs.
CHUNK_BYTES: Final = 1 << 20
_HEADER_BYTES: Final = 512
_LOCK_NAME: Final = ".lock"
_TEMPORARY: Final = ".tmp-"
_ABANDONED_SECONDS: Final = 3600.0  # a temporary file of this age was left by a process that was killed

# Other processes write too: the folder is measured again after this part of the limit was written.
_SCAN_SHARE: Final = 64


def cache_folder() -> Path:
    """Return the path of the cache folder, which need not exist."""
    chosen = os.environ.get("PENSTOCK_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "penstock"


def cache_path(kind: str, source: AnyPath, *versions: object) -> Path:
    """Return the path of the cache file made from `source`; `versions` distinguish variants of it."""
    name = os.path.realpath(source) if isinstance(source, Path) else str(source)
    text = "\n".join([name, *map(str, versions)])
    return cache_folder() / kind / hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:40]


def write_cached(path: Path, chunks: Iterable[bytes]) -> bool:
    """Write a cache file atomically. Return whether it was written; errors of `chunks` are raised."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fd, name = tempfile.mkstemp(dir=path.parent, prefix=".tmp-")
    except OSError:
        return False
    try:
        return _write_chunks(fd, chunks) and _rename(Path(name), path)
    finally:
        with contextlib.suppress(OSError):
            Path(name).unlink()


def _write_chunks(fd: int, chunks: Iterable[bytes]) -> bool:
    out = os.fdopen(fd, "wb")
    try:
        for chunk in chunks:  # outside of the `try` below: errors from making a chunk must be raised
            try:
                out.write(chunk)
                out.flush()
            except OSError:
                return False
        return True
    finally:
        with contextlib.suppress(OSError):
            out.close()


def _rename(name: Path, path: Path) -> bool:
    try:
        name.replace(path)
    except OSError:
        return False
    return True


def make_room(folder: Path, needed_bytes: int, limit_bytes: int = MAX_INFLATED_BYTES) -> bool:
    """Delete the least recently used files until more bytes fit within the limit; return whether they do."""
    if needed_bytes > limit_bytes:
        return False
    files = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):  # another process may have deleted or renamed it
                status = entry.stat()
                files.append((status.st_atime_ns, status.st_size, entry.path))
    used = sum(size for _, size, _ in files)
    for _, size, name in sorted(files):
        if used + needed_bytes <= limit_bytes:
            break
        with contextlib.suppress(OSError):
            Path(name).unlink()
            used -= size
    return used + needed_bytes <= limit_bytes


_log = logging.getLogger("penstock")


class Chunk(NamedTuple):
    """A chunk of an object.

    Attributes:
        etag: Version of the object that the chunk was read from, or None.
        data: The bytes.
    """

    etag: str | None
    data: memoryview


class RangeCache:
    """A folder with chunks of objects; safe to use from several threads and processes."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        """Describe the folder; nothing is read or made yet."""
        self.folder = folder
        self._limit = limit_bytes
        self._lock = ProcessLock()
        self._num_bytes: int | None = None  # None until the folder was measured
        self._written = 0  # bytes since then
        self._is_writable = True

    def find_object(self, path: StorePath, num_bytes: int, version: str) -> CachedObject:
        """Return the chunks of one version of an object; the version is a digest or an ETag."""
        key = hashlib.sha256(f"{path}\n{num_bytes}\n{version}".encode()).hexdigest()[:40]
        return CachedObject(self, self.folder / key, num_bytes)

    def write(self, path: Path, header: bytes, data: bytes) -> None:
        """Write a chunk, if there is room for it."""
        num_bytes = len(header) + len(data)
        with self._lock:
            if not self._is_writable or num_bytes > self._limit:
                return
            is_due = self._num_bytes is None or self._written >= self._limit // _SCAN_SHARE
            if is_due or (self._num_bytes or 0) + num_bytes > self._limit:
                self._make_room(num_bytes)
            if (self._num_bytes or 0) + num_bytes > self._limit:
                return  # another process deletes files now
            self._num_bytes = (self._num_bytes or 0) + num_bytes
            self._written += num_bytes
        # Twice: another process may have deleted the folder of the object meanwhile.
        if not any(write_cached(path, [header, data]) for _ in range(2)):
            self._give_up()

    def _make_room(self, num_bytes: int) -> None:
        """Measure the folder, and delete the least recently used chunks if the limit is near."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._locking() as is_locked:
                found = sorted(_scan(self.folder))
                used = sum(size for _, size, _ in found)
                # Some room for the other processes, which measure the folder at other times.
                wanted = max(0, self._limit - self._limit // 8 - num_bytes)
                if is_locked and used + num_bytes > self._limit - self._limit // 16:
                    for _, size, path in found:
                        if used <= wanted:
                            break
                        with contextlib.suppress(FileNotFoundError):
                            path.unlink()
                        used -= size
        except OSError:
            self._give_up()
            return
        self._num_bytes, self._written = used, 0

    @contextlib.contextmanager
    def _locking(self) -> Iterator[bool]:
        """Lock the folder, so that one process deletes at a time; yield whether it is locked."""
        fd = os.open(self.folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield False
            else:
                yield True
        finally:
            os.close(fd)

    def _give_up(self) -> None:
        """Write no more; warn once."""
        is_first, self._is_writable = self._is_writable, False
        if is_first:
            _log.warning(
                "the cache of object stores in %s cannot be written: objects are read from the store each "
                "time; free some space, or set PENSTOCK_CACHE to another folder",
                self.folder,
            )


class CachedObject:
    """The chunks of one version of an object; safe to use from several threads and processes."""

    def __init__(self, cache: RangeCache, folder: Path, num_bytes: int) -> None:
        self._cache = cache
        self._folder = folder
        self._num_bytes = num_bytes

    def find(self, number: int) -> Chunk | None:
        """Return a chunk; None if it is not there. A damaged one is deleted."""
        path = self._folder / str(number)
        try:
            with path.open("rb", buffering=0) as file:
                header, data = file.read(_HEADER_BYTES), file.read(CHUNK_BYTES + 1)
        except OSError:
            return None
        chunk = _decode(header, data, min(CHUNK_BYTES, self._num_bytes - number * CHUNK_BYTES))
        with contextlib.suppress(OSError):
            if chunk is None:
                path.unlink()
            else:
                os.utime(path)  # recently used
        return chunk

    def add(self, number: int, etag: str | None, data: memoryview) -> None:
        """Write a chunk."""
        content = bytes(data)
        text = json.dumps({"etag": etag, "crc32c": _native.crc32c(content)})
        header = text.encode().ljust(_HEADER_BYTES)
        if len(header) == _HEADER_BYTES:
            self._cache.write(self._folder / str(number), header, content)

    def drop(self) -> None:
        """Delete all chunks: the object is another version."""
        shutil.rmtree(self._folder, ignore_errors=True)


def find_cache(limit_bytes: int | None) -> RangeCache | None:
    """Return the cache of this process; None if the limit, by default of the environment, is zero."""
    if limit_bytes is None:
        given = os.environ.get(BYTES_VARIABLE) or "0"
        if not given.isdecimal():
            raise OptionError(
                BYTES_VARIABLE, expected="a number of bytes, such as 50000000000", got=show(given)
            )
        limit_bytes = int(given)
    return _make_cache(cache_folder() / "ranges", limit_bytes) if limit_bytes else None


@lru_cache(maxsize=8)
def _make_cache(folder: Path, limit_bytes: int) -> RangeCache:
    return RangeCache(folder, limit_bytes)


def _decode(header: bytes, data: bytes, num_bytes: int) -> Chunk | None:
    """Return the content of a file; None if it is damaged."""
    try:
        found: Any = json.loads(header)
        crc, etag = found["crc32c"], found["etag"]
    except (ValueError, KeyError, TypeError):
        return None
    if len(data) != num_bytes or crc != _native.crc32c(data):
        return None
    return Chunk(etag if isinstance(etag, str) else None, memoryview(data))


def _scan(folder: Path) -> Iterator[tuple[int, int, Path]]:
    """Yield time of the last use, size and path of each file; abandoned temporary files come first."""
    oldest = time.time() - _ABANDONED_SECONDS
    with os.scandir(folder) as objects:
        for each in objects:
            if not each.is_dir(follow_symlinks=False):
                continue
            num_files = 0
            with contextlib.suppress(OSError), os.scandir(each) as files:
                for file in files:
                    num_files += 1
                    with contextlib.suppress(OSError):  # another process may have deleted it
                        status = file.stat()
                        is_abandoned = file.name.startswith(_TEMPORARY) and status.st_mtime < oldest
                        yield 0 if is_abandoned else status.st_mtime_ns, status.st_size, Path(file.path)
            if not num_files:
                with contextlib.suppress(OSError):
                    if each.stat().st_mtime < oldest:
                        os.rmdir(each)  # noqa: PTH106 - fails if a process writes to it now
