"""Files that the cells of a table name: on a disk beside the table, or in object stores.

In: names, the folder that they are relative to, and what else they may refer to. Out: absolute paths and
URLs, and the bytes of the files. Objects of stores are read many at a time, ahead of the caller.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from penstock.errors import NoSuchPathError, OptionError
from penstock.storage.remote_file import load_store
from penstock.storage.request_threads import MAX_REQUESTS, call_ahead
from penstock.storage.store_path import SCHEMES, StorePath, is_store_path, parse_store_path

MAX_FILE_BYTES: Final = 2**31 - 1
"""Maximum size of a protobuf message, and thus of a record."""

_REASONS: Final = {
    errno.ENOENT: "no such file",
    errno.ENOTDIR: "no such file",
    errno.EISDIR: "a folder",
    errno.EACCES: "a file without read permission",
    errno.EPERM: "a file without read permission",
    errno.ENAMETOOLONG: "a name that is too long",
    errno.ELOOP: "a circular link",
    errno.EINVAL: "not a regular file",
    errno.EFBIG: "a file of 2 GiB or more",
}
_URLS: Final = tuple(f"{scheme}://" for scheme in SCHEMES)


class RefusedNameError(OSError):
    """A cell names a file that cells may not name."""

    advice = "If the table may read it, allow the folder: `files_from=[URL]`."


class NamedFiles(NamedTuple):
    """The files that cells of a table may name.

    A table on a disk, or in memory, may name any local file. A table in a store may name what is in its own
    folder there. Everything else must be allowed: a table that another person wrote must not choose which
    addresses are requested, and with whose credentials.

    Attributes:
        folder: Folder that relative names start from, a URL for one in a store; None is the working folder.
        allowed: Other folders and URLs whose files cells may name.
    """

    folder: str | None = None
    allowed: tuple[str, ...] = ()

    def resolve(self, name: str) -> str:
        """Return the absolute path or the URL of a file; "" for an empty name."""
        if not name:
            return ""
        if name[:8].lower().startswith(_URLS):
            return self._resolve_url(name)
        if self.folder is None or not is_store_path(self.folder):
            return name if name.startswith("/") else f"{Path(self.folder or '').absolute()}/{name}"
        if name.startswith("/"):
            return self._resolve_local(name)
        folder = parse_store_path(self.folder)
        key = posixpath.normpath(f"{folder.key}/{name}").lstrip("/")
        return self._check(StorePath(folder.scheme, folder.bucket, key), name)

    def make_resolver(self) -> Callable[[str], str]:
        """Return `resolve` for many names: a local folder is made absolute once."""
        if self.folder is not None and is_store_path(self.folder):
            return self.resolve
        start = f"{Path(self.folder or '').absolute()}/"

        def resolve(name: str) -> str:
            if not name or "://" in name[:8]:
                return self.resolve(name)
            return name if name.startswith("/") else start + name

        return resolve

    def read_starts(self, names: Iterable[str], num_bytes: int) -> Iterator[bytes | None]:
        """Yield the first bytes of each file; None for a file that does not exist, or is refused."""
        paths: list[str | None] = []
        for name in names:
            try:
                paths.append(self.resolve(name))
            except RefusedNameError:
                paths.append(None)
        for found in _read_each(paths, num_bytes):
            yield found if isinstance(found, bytes) else None

    def is_refused(self, name: str) -> bool:
        """Return whether cells may not name a file."""
        try:
            self.resolve(name)
        except RefusedNameError:
            return True
        return False

    def _resolve_url(self, name: str) -> str:
        try:
            return self._check(parse_store_path(name), name)
        except OptionError as error:
            raise RefusedNameError(errno.EINVAL, f"a URL that is not valid ({error.what})", name) from None

    def _check(self, path: StorePath, name: str) -> str:
        if ".." in path.key.split("/") or not path.key.isprintable():
            raise RefusedNameError(errno.EINVAL, "a name that is not valid in a store", name)
        for folder in (self.folder, *self.allowed):
            if folder is not None and is_store_path(folder) and _is_below(path, parse_store_path(folder)):
                return str(path)
        raise RefusedNameError(errno.EACCES, "a file that is not in the folder of the table", name)

    def _resolve_local(self, name: str) -> str:
        if "\0" not in name:
            real = Path(os.path.realpath(name))
            folders = [folder for folder in self.allowed if not is_store_path(folder)]
            if any(real.is_relative_to(os.path.realpath(folder)) for folder in folders):
                return name
        raise RefusedNameError(errno.EACCES, "a local file, named by a table in a store", name)


def _is_below(path: StorePath, folder: StorePath) -> bool:
    try:
        return path == folder or bool(path.relative_to(folder))
    except ValueError:
        return False


def read_file(path: str, stop: int | None = None) -> bytes:
    """Return the bytes of a regular file, or of an object of a store, all or the first `stop`."""
    if is_store_path(path):
        return _read_object(parse_store_path(path), stop)
    if "\0" in path:
        raise OSError(errno.ENOENT, "a path cannot contain NUL", path)
    # Not blocking: opening a pipe would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL, "no file", path)
        if stop is not None:
            return os.read(descriptor, stop)
        if status.st_size > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, "too large", path)
        data = os.read(descriptor, status.st_size + 1)
        if len(data) >= status.st_size:
            return data
        pieces = [data]  # interrupted by a signal, or more than the kernel reads at once
        while piece := os.read(descriptor, status.st_size + 1):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def _read_object(path: StorePath, stop: int | None) -> bytes:
    try:
        return bytes(load_store(path).fetch(path, 0, stop, max_bytes=MAX_FILE_BYTES).data)
    except NoSuchPathError:
        raise OSError(errno.ENOENT, "no such object", str(path)) from None


def read_files(paths: Iterable[str | None]) -> Iterator[bytes | OSError | None]:
    """Yield the content of each file, or why it cannot be read; objects are requested ahead of the caller."""
    return _read_each(paths, None)


def _read_each(paths: Iterable[str | None], stop: int | None) -> Iterator[bytes | OSError | None]:
    calls = (partial(_try_to_read, path, stop) for path in paths)
    return call_ahead(calls, MAX_REQUESTS, is_remote=lambda call: is_store_path(call.args[0]))


def _try_to_read(path: str | None, stop: int | None) -> bytes | OSError | None:
    if path is None:
        return None
    try:
        return read_file(path, stop)
    except OSError as error:
        if not error.errno:  # of a store, which is not a fault of the file
            raise
        return error


def explain(error: OSError) -> str:
    """Return a description of the object found instead of a readable file."""
    if isinstance(error, RefusedNameError):
        return str(error.strerror)
    return _REASONS.get(error.errno or 0) or f"a file that cannot be read ({error.strerror or error})"
