"""A regular file, open for reading by position, closed with its last holder.

In: a path. Out: `OpenFile` with a descriptor, and the facts that tell whether the file is still the same.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol

from penstock.errors import ChangedFileError, MissingShardError, NoSuchPathError, PathError
from penstock.foundation.process import ProcessLock


class FileIdentity(NamedTuple):
    """What changes when a file's content does.

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
        """Return whether two identities are equal in everything but the time of the last change."""
        return self[:3] == other[:3]


class Readable(Protocol):
    """A file whose bytes can be had by position."""

    path: Path

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset` on; fewer only at the end of the file."""


class OpenFile:
    """A file that was opened, and is closed when nobody holds this object any more."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = -1
        self.fd = _open_regular(path)
        self.identity = self._identity_now()

    def check_unchanged(self, since: FileIdentity) -> None:
        """Compare with what the file was.

        A shard may get a hard link or new permissions while it is read, for a backup perhaps: the time of
        the last change does not count. See `check_untouched`.

        Raises:
            ChangedFileError: Its size or modification time is another.
        """
        facts = os.fstat(self.fd)  # once a read: kept short
        if facts.st_size != since.size or facts.st_mtime_ns != since.mtime_ns or facts.st_ino != since.inode:
            raise_changed(self.path, since, self._identity_now())

    def check_untouched(self, since: FileIdentity) -> None:
        """Compare with what the file was, where not even its modification time may be believed.

        Raises:
            ChangedFileError: Content or metadata were changed since.
        """
        now = self._identity_now()
        if now != since:
            raise_changed(self.path, since, now)

    @property
    def size(self) -> int:
        """How many bytes the file has now."""
        return os.fstat(self.fd).st_size

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset` on; fewer only at the end of the file."""
        pieces = []
        while size > 0:
            piece = os.pread(self.fd, size, offset)
            if not piece:
                break
            pieces.append(piece)
            offset += len(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _identity_now(self) -> FileIdentity:
        return FileIdentity.from_status(os.fstat(self.fd))

    def close(self) -> None:
        """Close the file; a second time does nothing."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        # At the end of the interpreter `os` may be gone before the last file is.
        if self.fd >= 0:
            close(self.fd)
            self.fd = -1


def raise_changed(path: Path, since: FileIdentity, now: FileIdentity) -> NoReturn:
    """Refuse a file that is no longer what it was.

    Raises:
        ChangedFileError: Always.
    """
    what, expected, got = "size", since.size, now.size
    if expected == got:
        what, expected, got = "modification time", since.mtime_ns, now.mtime_ns
    if expected == got:
        what, expected, got = "file behind the path", since.inode, now.inode
    if expected == got:
        what, expected, got = "content or metadata", since.ctime_ns, now.ctime_ns
    raise ChangedFileError(
        f"{what} changed since the file was opened",
        path=path,
        expected=expected,
        got=got,
        advice="Open it again once no other program writes to it.",
    )


def _open_regular(path: Path) -> int:
    # O_NONBLOCK: opening a pipe that nobody writes to must not wait for ever.
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise NoSuchPathError("no such file", path=path, advice="Check the path.") from error
    except OSError as error:
        is_too_many = error.errno in (errno.EMFILE, errno.ENFILE)
        advice = (
            "Raise the limit of open files ('ulimit -n')."
            if is_too_many
            else "Check what it is and who may read it."
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
        advice="Name a TFRecord file.",
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


# Opening costs as much as reading a few records; a process may have 1024 files open, a data set has more.
MOST_FILES = 128


class KeptFiles:
    """The files used last; any number of threads may ask.

    One that is pushed out is closed when nobody holds it any more, so whoever reads from its descriptor must
    hold it.
    """

    def __init__(self, most_files: int = MOST_FILES) -> None:
        self._most_files = most_files
        self._lock = ProcessLock()
        self._files: OrderedDict[Path, OpenFile] = OrderedDict()

    def open(self, path: Path) -> OpenFile:
        """Return the file, open.

        Raises:
            PathError: It cannot be opened.
        """
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
        self._files.clear()  # few are allowed here: those that are kept must go
        return OpenFile(path)

    def forget(self, path: Path) -> None:
        """Open the file anew next time."""
        with self._lock:
            self._files.pop(path, None)


class KeptFile:
    """One file among the kept ones, which must stay what it was."""

    def __init__(self, path: Path, identity: FileIdentity, files: KeptFiles) -> None:
        self.path = path
        self._identity = identity
        self._files = files

    def open(self) -> OpenFile:
        """Return the file, open.

        Raises:
            PathError: It cannot be opened.
            ChangedFileError: It is another than it was.
        """
        file = self._files.open(self.path)
        file.check_unchanged(self._identity)
        return file

    def check(self) -> None:
        """Compare what lies at the path now with what was opened.

        Raises:
            MissingShardError: Nothing lies there.
            ChangedFileError: It is another file, or another content.
        """
        try:
            facts = os.stat(self.path)  # noqa: PTH116 - once a shard and epoch: the quick way
        except FileNotFoundError as error:
            raise MissingShardError(
                "the shard is gone since it was opened",
                path=self.path,
                expected=f"{self._identity.size} bytes",
                got="no file",
                advice="Bring it back, or open the data set again.",
            ) from error
        now = FileIdentity.from_status(facts)
        if not now.is_like(self._identity):
            self._files.forget(self.path)
            raise_changed(self.path, self._identity, now)

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset` on; fewer only at the end of the file."""
        return self.open().read(offset, size)
