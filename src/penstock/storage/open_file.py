"""Regular files open for reading at any offset, closed with the last reference.

In: a path. Out: `OpenFile` with a descriptor, and an identity that shows whether the file has changed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol

from penstock._native import Mapping
from penstock.errors import ChangedFileError, MissingShardError, NoSuchPathError, PathError
from penstock.foundation.process import ProcessLock
from penstock.storage.store_path import AnyPath

# Opening a file takes as long as reading a few records; a process may have 1024 open files, a data set more.
MOST_FILES = 128


class FileIdentity(NamedTuple):
    """File metadata that changes when the content of a file changes.

    Attributes:
        size: Size in bytes.
        mtime_ns: Modification time. Programs may set it back.
        inode: Number of the file in its file system.
        ctime_ns: Time of the last change to content or metadata, which no program can set. Hard links, new
            permissions and a new name change it too.
    """

    size: int
    mtime_ns: int
    inode: int
    ctime_ns: int = 0

    @classmethod
    def from_status(cls, status: os.stat_result) -> FileIdentity:
        """Return the identity of a file by its status."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns)

    def is_like(self, other: FileIdentity) -> bool:
        """Return whether two identities are equal except for the time of the last change."""
        return self[:3] == other[:3]


class Readable(Protocol):
    """A file whose bytes can be read at any offset."""

    @property
    def path(self) -> AnyPath:
        """Path of the file."""

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`; fewer only at the end of the file."""


class OpenFile:
    """An open file, closed when no reference to this object is left."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = -1
        self.fd = _open_regular(path)
        self.identity = self._identity_now()
        self._mapping: Mapping | None = None

    def check_unchanged(self, since: FileIdentity) -> None:
        """Check that the file has not changed.

        The time of the last change is ignored, because a shard may get a hard link or new permissions while
        it is read, for instance from a backup. See `check_untouched`.
        """
        status = os.fstat(self.fd)  # called for each read, so kept fast
        if (status.st_size, status.st_mtime_ns, status.st_ino) != (since.size, since.mtime_ns, since.inode):
            _raise_changed(self.path, since, self._identity_now())

    def check_untouched(self, since: FileIdentity) -> None:
        """Check that neither content nor metadata have changed; modification times can be forged."""
        now = self._identity_now()
        if now != since:
            _raise_changed(self.path, since, now)

    @property
    def size(self) -> int:
        """Current size of the file in bytes."""
        return os.fstat(self.fd).st_size

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`; fewer only at the end of the file."""
        pieces = []
        while size > 0:
            piece = os.pread(self.fd, size, offset)
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
            size -= len(piece)
        return b"".join(pieces)

    def map(self) -> Mapping:
        """Return the file mapped into memory, for as long as a reference to the mapping is left.

        Reading through it avoids a system call per read, and copies about twice as fast. The pages that were
        read count as memory of this process.
        """
        mapping = self._mapping
        if mapping is None:
            mapping = self._mapping = Mapping(self.fd, self.identity.size)
        return mapping

    def _identity_now(self) -> FileIdentity:
        return FileIdentity.from_status(os.fstat(self.fd))

    def close(self) -> None:
        """Close the file; further calls do nothing."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # When the interpreter exits, `os` may be deleted before the last file.
        if self.fd >= 0:
            close(self.fd)
            self.fd = -1


def _raise_changed(path: Path, since: FileIdentity, now: FileIdentity) -> NoReturn:
    """Raise the error for a file that has changed."""
    what, expected, got = "size", since.size, now.size
    if expected == got:
        what, expected, got = "modification time", since.mtime_ns, now.mtime_ns
    if expected == got:
        what, expected, got = "file at the path", since.inode, now.inode
    if expected == got:
        what, expected, got = "content or metadata", since.ctime_ns, now.ctime_ns
    raise ChangedFileError(
        f"{what} changed since the file was opened",
        path=path,
        expected=expected,
        got=got,
        advice="Open it again when no other program writes to it.",
    )


def _open_regular(path: Path) -> int:
    # O_NONBLOCK: opening a pipe without a writer must not block.
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise NoSuchPathError("no such file", path=path, advice="Check the path.") from error
    except OSError as error:
        is_too_many = error.errno in (errno.EMFILE, errno.ENFILE)
        advice = (
            "Raise the limit of open files ('ulimit -n')."
            if is_too_many
            else "Check the file and its permissions."
        )
        raise PathError(f"cannot be opened ({error.strerror})", path=path, advice=advice) from error
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    raise PathError(
        "not a regular file",
        path=path,
        expected="a regular file",
        got=_name_mode(mode),
        advice="Pass a TFRecord file.",
    )


def _name_mode(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a pipe",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFSOCK: "a socket",
    }
    return kinds.get(stat.S_IFMT(mode), "something else")


class KeptFiles:
    """The most recently used files, kept open; safe to use from several threads.

    A file that is dropped from here is closed with its last reference, so a caller that reads from its
    descriptor must hold a reference.
    """

    def __init__(self, most_files: int = MOST_FILES) -> None:
        self._most_files = most_files
        self._lock = ProcessLock()
        self._files: OrderedDict[Path, OpenFile] = OrderedDict()

    def open(self, path: Path) -> OpenFile:
        """Return the file, open."""
        with self._lock:
            file = self._files.get(path)
            if file is None:
                file = self._files[path] = self._open(path)
                if len(self._files) > self._most_files:
                    self._files.popitem(last=False)
            else:
                self._files.move_to_end(path)
            return file

    def _open(self, path: Path) -> OpenFile:
        try:
            return OpenFile(path)
        except PathError as error:
            is_too_many = isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EMFILE
            if not is_too_many or not self._files:
                raise
        self._files.clear()  # the limit of open files is low: close the kept ones
        return OpenFile(path)

    def forget(self, path: Path) -> None:
        """Drop a file, so that the next `open` opens it again."""
        with self._lock:
            self._files.pop(path, None)


class KeptFile:
    """One of the kept files, checked for changes when it is opened."""

    def __init__(self, path: Path, identity: FileIdentity, files: KeptFiles) -> None:
        self.path = path
        self._identity = identity
        self._files = files

    def open(self) -> OpenFile:
        """Return the file, open."""
        file = self._files.open(self.path)
        file.check_unchanged(self._identity)
        return file

    def check(self) -> None:
        """Check that the file at the path is still the one that was opened."""
        try:
            status = os.stat(self.path)  # noqa: PTH116 - called per shard and epoch: the fastest way
        except FileNotFoundError as error:
            raise MissingShardError(
                "the shard was deleted after it was opened",
                path=self.path,
                expected=f"{self._identity.size} bytes",
                got="no file",
                advice="Restore the file, or open the data set again.",
            ) from error
        now = FileIdentity.from_status(status)
        if not now.is_like(self._identity):
            self._files.forget(self.path)
            _raise_changed(self.path, self._identity, now)

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`; fewer only at the end of the file."""
        return self.open().read(offset, size)
