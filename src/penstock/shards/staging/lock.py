"""The lock that allows one writer per folder.

In: a folder. Out: a `WriterLock`, held through the file `owner.json`, or a `BusyError` that names the other
process. The kernel releases the lock when its process ends for any reason; the file names the process.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import secrets
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from penstock.errors import BusyError

OWNER_NAME: Final = "owner.json"

_MAX_WAIT_SECONDS = 1.0  # for a process that has the lock, but has not yet written the file
_PAUSE_SECONDS = 0.01
_MAX_BYTES = 4096
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(frozen=True)
class Owner:
    """A process that holds a lock.

    Attributes:
        pid: Process ID.
        host: Name of the machine that the process runs on.
        started: Start time, which distinguishes the process from a later one with the same ID.
        token: Unique identifier of the lock.
    """

    pid: int
    host: str
    started: str
    token: str

    @classmethod
    def current(cls) -> Owner:
        """Return the current process, with a new token."""
        pid = os.getpid()
        return cls(pid, socket.gethostname(), _find_start(pid) or "", secrets.token_hex(8))

    @classmethod
    def parse(cls, data: bytes) -> Owner | None:
        """Return the owner that a file names, or None if the file is not valid."""
        try:
            owner = cls(**json.loads(data))
        except (ValueError, TypeError, RecursionError):
            return None
        is_valid = isinstance(owner.pid, int) and all(
            isinstance(text, str) for text in (owner.host, owner.started, owner.token)
        )
        return owner if is_valid else None

    def dump(self) -> bytes:
        """Return the content of the file, which `parse` reads."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @property
    def is_here(self) -> bool:
        """Whether the process runs, or ran, on this machine."""
        return self.host == socket.gethostname()

    @property
    def is_running(self) -> bool:
        """Whether the process is on this machine and has not ended."""
        return self.is_here and _find_start(self.pid) == self.started


class WriterLock:
    """The exclusive right to write to a folder, until `release` or the end of the process."""

    def __init__(self, folder: Path) -> None:
        """Acquire the lock of a folder, which is created if necessary."""
        self.folder = folder
        self.owner = Owner.current()
        self._path = folder / OWNER_NAME
        self._fd = self._acquire()

    def release(self) -> None:
        """Release the lock. A second call does nothing."""
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        # Removed while it is locked: a process that opened it in the meantime sees that it has no name.
        with contextlib.suppress(OSError):
            self._path.unlink()
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_UN)  # after `close` alone, a forked child would keep the lock
        os.close(fd)

    def _acquire(self) -> int:
        deadline = time.monotonic() + _MAX_WAIT_SECONDS
        while True:
            fd, is_new = self._open()
            try:
                if self._claim(fd, is_new=is_new, is_final=time.monotonic() > deadline):
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
            time.sleep(_PAUSE_SECONDS)

    def _open(self) -> tuple[int, bool]:
        """Return the open file and whether it is new; an existing file may be removed at any moment."""
        while True:
            with contextlib.suppress(FileExistsError):
                self.folder.mkdir()
            with contextlib.suppress(FileNotFoundError, FileExistsError):
                return os.open(self._path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666), True
            with contextlib.suppress(FileNotFoundError):
                return os.open(self._path, _FLAGS), False

    def _claim(self, fd: int, *, is_new: bool, is_final: bool) -> bool:
        """Try to lock an open file; return False if another attempt may succeed."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = self._read(fd)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                # A file system without locks: a new file belongs to the process that created it, but an
                # existing one may not be taken over, because two processes could do so.
                if not is_new:
                    raise self._busy(owner) from None
            elif is_final or (owner is not None and (owner.is_running or not owner.is_here)):
                raise self._busy(owner) from None
            else:
                return False
        else:
            if not self._is_current(fd):
                return False
            owner = self._read(fd)
            # No process of this machine has the lock. Not every file system shares locks between machines.
            if owner is not None and (owner.is_running or not owner.is_here):
                raise self._busy(owner)
        os.ftruncate(fd, 0)
        os.pwrite(fd, self.owner.dump(), 0)
        return True

    def _is_current(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), self._path.stat())
        except FileNotFoundError:
            return False

    @staticmethod
    def _read(fd: int) -> Owner | None:
        return Owner.parse(os.pread(fd, _MAX_BYTES, 0))

    def _busy(self, owner: Owner | None) -> BusyError:
        remove = f"remove {os.fspath(self.folder)!r}"
        if owner is None:
            what = "another process, which is not known, is writing to this folder"
            advice = f"If no process is writing to it, {remove}."
        elif not owner.is_here:
            what = f"process {owner.pid} on host {owner.host} is writing to this folder"
            advice = f"Wait until it ends. If it has already ended on that host, {remove}."
        elif owner.pid == os.getpid():
            what = f"this process ({owner.pid} on host {owner.host}) is already writing to this folder"
            advice = "Close the first writer before you open the second, or choose another folder."
        else:
            what = f"process {owner.pid} on host {owner.host} is writing to this folder"
            advice = "Wait until it ends, or choose another folder."
            if not owner.is_running:
                what = (
                    f"process {owner.pid} on host {owner.host}, or a child of it, is writing to this folder"
                )
                advice = f"If no process is writing to it, {remove}."
        return BusyError(what, path=self.folder, advice=advice)


def _exists(pid: int) -> bool:
    if pid <= 0:  # those are groups of processes
        return False
    try:
        os.kill(pid, 0)  # no signal is sent
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _find_start(pid: int) -> str | None:
    """Return the start of a process: boot ID of the machine and clock ticks; None if it has ended.

    Without `/proc`, as on macOS, the start is not known, and "" for every process that runs.
    """
    try:
        boot = Path(_BOOT_ID).read_text().strip()
    except OSError:
        return "" if _exists(pid) else None
    try:
        # The name of the program precedes these columns in parentheses, and may contain any character.
        columns = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    has_ended = columns[0] in (b"Z", b"X")  # its parent has not yet read its exit status
    return None if has_ended else f"{boot}:{columns[19].decode()}"
