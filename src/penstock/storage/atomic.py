"""A file that appears under its name whole or not at all.

In: bytes. Out: a file: temporary name in the same folder, flush, fsync, rename, fsync of the folder.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from types import TracebackType

from penstock.errors import PathError, WriteError


class AtomicFile:
    """A file being written; `with` puts it in its place at the end, or removes it after an error.

    Example:
        >>> with AtomicFile(Path("notes")) as file:
        ...     file.write(b"all or nothing")
    """

    def __init__(self, path: Path, *, overwrite: bool = False) -> None:
        """Begin a file.

        Raises:
            PathError: It exists, and `overwrite` is False.
            WriteError: It cannot be made.
        """
        self.path = path
        self.num_bytes = 0
        self._overwrite = overwrite
        if not overwrite:
            refuse_existing(path)
        # Hidden, so that nobody takes it for data. The name itself is not in it: it may be of full length.
        self._temporary = path.parent / f".tmp-{secrets.token_hex(8)}"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            # 0o666 less the umask, like any file; what `tempfile` makes only its owner could read.
            self._fd = os.open(self._temporary, flags, 0o666)
        except OSError as error:
            raise self._failure(error) from error

    def write(self, data: bytes) -> None:
        """Append bytes.

        Raises:
            WriteError: The disk is full, or fails.
        """
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError as error:
            raise self._failure(error, f"{len(rest)} of {len(data)} bytes are left to write") from error
        self.num_bytes += len(data)

    def truncate(self, num_bytes: int) -> None:
        """Drop what was written beyond some bytes."""
        try:
            os.ftruncate(self._fd, num_bytes)
        except OSError as error:
            raise self._failure(error) from error
        self.num_bytes = num_bytes

    def commit(self) -> None:
        """Put the file in its place; one that was discarded stays so.

        Raises:
            PathError: Somebody else has put one there, and `overwrite` is False.
            WriteError: The disk is full, or fails.
        """
        if self._fd < 0:
            return
        if not self._overwrite:
            refuse_existing(self.path)
        try:
            os.fsync(self._fd)
            self._close()
            self._temporary.replace(self.path)
            _sync_folder(self.path.parent)
        except OSError as error:
            raise self._failure(error) from error

    def discard(self) -> None:
        """Remove what was written."""
        self._close()
        with contextlib.suppress(OSError):
            self._temporary.unlink()

    def _close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def _failure(self, error: OSError, more: str = "") -> WriteError:
        reason = error.strerror or str(error)
        return WriteError(
            f"cannot be written ({reason}{'; ' if more else ''}{more})",
            path=self.path,
            advice="Make room there, or choose another place.",
        )

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


def refuse_existing(path: Path) -> None:
    """Refuse to write over a file.

    Raises:
        PathError: It is there.
    """
    if os.path.lexists(path):
        advice = "Choose another folder, or overwrite it: --overwrite, in Python overwrite=True."
        raise PathError("exists already", path=path, advice=advice)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
