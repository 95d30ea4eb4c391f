"""Atomic writing: a file or a folder appears under its name complete or not at all.

In: bytes, or a new folder. Out: a file (temporary name in the same folder, flush, fsync, rename, fsync of the
folder), or the new folder under the name of the old one. Temporary folders hold files that are uploaded, and
copies, until a context or the process ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import io
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from penstock.errors import PathError, StoreError, WriteError
from penstock.storage.store_path import SCHEMES, AnyPath

# Every 16 MiB the kernel starts to write to the disk, while the next bytes are made. With this, 256 MB with
# their SHA-256 took 0.37 s (fsync 0.01 s); without it, 0.47 s (fsync 0.12 s), on ext4 on a virtual disk.
_WRITEBACK_BYTES = 16 << 20
# Calls end at multiples of this: for larger ones, Linux looks for large blocks of free memory. On ext4 of
# Linux 6.18, calls of 4 MiB took 0.3 to 1.4 s of CPU for 860 MB, of 512 KiB 0.2 to 0.4, and of 256 KiB 0.18.
_CALL_BYTES = 256 << 10

_ADVICE = {
    errno.EFBIG: "Raise the limit of file sizes ('ulimit -f'), or write smaller files.",
    errno.EMFILE: "Raise the limit of open files ('ulimit -n').",
    errno.EACCES: "Choose a folder that you may write to.",
    errno.EPERM: "Choose a folder that you may write to.",
    errno.EROFS: "Choose a folder that you may write to.",
}

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
"""On macOS, the request that also empties the cache of the disk, which `fsync` does not do there."""

_ZEROS = bytes(1 << 20)
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2

# The C library, the kernel or the file system (NFS, some overlays) does not support it.
_NOT_SUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


class AtomicFile:
    """A file being written; `with` renames it to its final name at the end, or removes it after an error.

    Example:
        >>> with AtomicFile(Path("notes")) as file:
        ...     file.write(b"all or nothing")
    """

    def __init__(
        self, path: Path, *, overwrite: bool = False, planned_bytes: int = 0, syncs_folder: bool = True
    ) -> None:
        """Create the temporary file.

        `planned_bytes`: final size in bytes, if known, for the error message when the disk is full.
        `syncs_folder`: whether to sync the folder after the rename. To write many files to one folder, pass
        False and call `sync_folder` once.
        """
        self.path = path
        self.num_bytes = 0
        self._overwrite = overwrite
        self._planned_bytes = planned_bytes
        self._syncs_folder = syncs_folder
        self._num_sent = 0
        self._fd = -1
        _refuse_store_name(path)
        if not overwrite:
            refuse_existing(path)
        # Hidden, so that it is not read as data. Without the final name, which may have the maximum length.
        self._temporary = path.parent / f".tmp-{secrets.token_hex(8)}"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            # 0o666 minus the umask, like any file; only the owner could read a file made by `tempfile`.
            self._fd = os.open(self._temporary, flags, 0o666)
        except OSError as error:
            raise write_failure(path, error) from error

    @property
    def is_closed(self) -> bool:
        """Whether the file was committed or discarded."""
        return self._fd < 0

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes."""
        rest = memoryview(data)
        if self.is_closed:
            raise WriteError("the file is already closed", path=self.path)
        try:
            while rest:
                offset = self.num_bytes + len(data) - len(rest)
                rest = rest[os.write(self._fd, rest[: _CALL_BYTES - offset % _CALL_BYTES]) :]
        except OSError as error:
            end = self.num_bytes + len(data)
            total = max(self._planned_bytes, end)
            left = f"{total - end + len(rest)} of {total} bytes are left to write"
            raise write_failure(self.path, error, left) from error
        self.num_bytes += len(data)
        self._begin_writeback()

    def truncate(self, num_bytes: int) -> None:
        """Cut the file to its first `num_bytes` bytes."""
        try:
            os.ftruncate(self._fd, num_bytes)
            os.lseek(self._fd, num_bytes, os.SEEK_SET)
        except OSError as error:
            raise write_failure(self.path, error) from error
        self.num_bytes = num_bytes
        self._num_sent = min(self._num_sent, num_bytes)

    def commit(self) -> None:
        """Rename the file to its final name; does nothing after `discard`."""
        if self.is_closed:
            return
        if not self._overwrite:
            refuse_existing(self.path)
        try:
            sync_descriptor(self._fd)
            self._close()
            self._temporary.replace(self.path)
            if self._syncs_folder:
                sync_folder(self.path.parent)
        except OSError as error:
            raise write_failure(self.path, error, f"{self.num_bytes} bytes in all") from error

    def discard(self) -> None:
        """Remove the temporary file."""
        self._close()
        with contextlib.suppress(OSError):
            self._temporary.unlink()

    def _begin_writeback(self) -> None:
        """Start writing to the disk; the kernel drops no page from memory, because none is clean yet."""
        num_bytes = self.num_bytes - self._num_sent
        if num_bytes >= _WRITEBACK_BYTES and hasattr(os, "posix_fadvise"):
            with contextlib.suppress(OSError):  # only an optimization, which some file systems do not support
                os.posix_fadvise(self._fd, self._num_sent, num_bytes, os.POSIX_FADV_DONTNEED)
            self._num_sent = self.num_bytes

    def _close(self) -> None:
        if not self.is_closed:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def __enter__(self) -> AtomicFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.discard()


class ByteSink(io.RawIOBase):
    """File object for libraries such as pyarrow: passes the bytes that they write to a function.

    Closing it leaves the file behind the function open.

    Attributes:
        is_open: Whether bytes are passed on. Set it to False after an error: pyarrow writes a footer when its
            writer is closed.
    """

    def __init__(self, write: Callable[[memoryview], None]) -> None:
        self.is_open = True
        self._write = write
        self._num_bytes = 0

    def write(self, data: Any) -> int:
        """Append bytes."""
        view = memoryview(data).cast("B")
        if self.is_open:
            self._write(view)
        self._num_bytes += len(view)
        return len(view)

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self._num_bytes

    def writable(self) -> bool:
        """Return True."""
        return True


def write_failure(path: Path, error: OSError, more: str = "") -> WriteError:
    """Return the error for a system error while writing a file."""
    reason = error.strerror or str(error)
    return WriteError(
        f"cannot be written ({reason}{'; ' if more else ''}{more})",
        path=path,
        advice=_ADVICE.get(error.errno or 0, "Free some disk space, or choose another folder."),
    )


def refuse_existing(path: Path) -> None:
    """Refuse to overwrite a file."""
    if os.path.lexists(path):
        raise make_existing(path)


def make_existing(path: AnyPath) -> PathError:
    """Return the error for an output that exists."""
    advice = "Choose another name, or overwrite it: `overwrite=True`."
    return PathError("already exists", path=path, advice=advice)


def _refuse_store_name(path: Path) -> None:
    """Refuse a path such as `s3:/bucket/key`, which `pathlib` makes of one in an object store."""
    first = path.parts[0] if path.parts else ""
    if first.removesuffix(":") in SCHEMES and first.endswith(":") and not os.path.lexists(first):
        raise PathError(
            "is in an object store, where this file cannot be written",
            path=path,
            advice="Pass a path on a disk, and copy the file.",
        )


def sync_descriptor(fd: int) -> None:
    """Write an open file or folder to the disk, so that it survives a loss of power."""
    if _FULL_SYNC is not None:
        with contextlib.suppress(OSError):  # not every file system has it, network folders for example
            fcntl.fcntl(fd, _FULL_SYNC)
            return
    os.fsync(fd)


def reserve_blocks(fd: int, num_bytes: int) -> None:
    """Reserve the first bytes of a file, so that a full disk is an error now, and no signal in a mapping."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, num_bytes)
        return
    # macOS lacks it: zeros take the blocks after the end; before it, our files have no holes.
    at = os.fstat(fd).st_size
    while at < num_bytes:
        at += os.pwrite(fd, _ZEROS[: num_bytes - at], at)


def sync_folder(folder: Path) -> None:
    """Write the entries of a folder, the names of its files, to the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync_descriptor(fd)
    finally:
        os.close(fd)


def exchange(new: Path, old: Path, aside: Path) -> None:
    """Give the folder `new` the name of `old`; afterwards the old folder is at `new` or at `aside`.

    `aside` is used only where two names cannot be exchanged in one step. Then, for a moment, no folder has
    the name of `old`; after a crash at that moment, `restore_folder` restores it.
    """
    if _exchange_names(new, old):
        return
    old.rename(aside)
    try:
        new.rename(old)
    except BaseException:
        aside.rename(old)
        raise


def restore_folder(aside: Path, old: Path) -> None:
    """Restore the name of a folder after a crash, unless something else has that name now."""
    with contextlib.suppress(OSError):
        aside.rename(old)  # an empty folder is replaced, anything else is not


def _exchange_names(one: Path, other: Path) -> bool:
    """Exchange two names and return True; return False, with nothing done, if that is not supported."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except AttributeError:
        return False
    code = renameat2(
        ctypes.c_int(_AT_FDCWD),
        ctypes.c_char_p(os.fsencode(one)),
        ctypes.c_int(_AT_FDCWD),
        ctypes.c_char_p(os.fsencode(other)),
        ctypes.c_uint(_RENAME_EXCHANGE),
    )
    if code == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_SUPPORTED:
        return False
    raise OSError(number, os.strerror(number), os.fspath(other))


_folders: list[tempfile.TemporaryDirectory[str]] = []


@contextmanager
def scratch_folder(*, is_kept: bool = True) -> Iterator[Path]:
    """Create a folder for temporary files, removed at the end; with `is_kept`, not if the store fails."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="penstock-"))
    except OSError as error:
        raise write_failure(Path(tempfile.gettempdir()), error) from error
    has_files = False
    try:
        yield folder
    except StoreError as error:
        has_files = is_kept and any(folder.iterdir())
        if has_files:
            error.advice += f" What was to be uploaded is kept in {folder}."
        raise
    finally:
        if not has_files:
            shutil.rmtree(folder, ignore_errors=True)


def make_temporary_folder() -> Path:
    """Return a new folder, which is removed when the process ends."""
    try:
        made = tempfile.TemporaryDirectory(prefix="penstock-copy-", ignore_cleanup_errors=True)
    except OSError as error:
        raise write_failure(Path(tempfile.gettempdir()), error) from error
    _folders.append(made)
    return Path(made.name)
