"""One writer a folder: who it is, and whether it still runs.

In: a folder. Out: a `WriterLock`, which is its file `owner.json`, or a `BusyError` that names the other one.
The kernel's lock on that file ends with its process, however that ends; the text in the file says who it is.
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

_PATIENCE_SECONDS = 1.0  # for a writer that has the lock, and is about to write who it is
_PAUSE_SECONDS = 0.01
_MOST_BYTES = 4096
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass(frozen=True)
class Owner:
    """A process that writes.

    Attributes:
        pid: Its number.
        host: The machine that it runs on.
        started: When it began, so that a later process of the same number is not taken for it.
        token: Of this lock alone.
    """

    pid: int
    host: str
    started: str
    token: str

    @classmethod
    def current(cls) -> Owner:
        """Return this process, with a token of its own."""
        pid = os.getpid()
        return cls(pid, socket.gethostname(), _find_start(pid) or "", secrets.token_hex(8))

    @classmethod
    def parse(cls, data: bytes) -> Owner | None:
        """Return the owner that a file names, or None for a file that names none."""
        try:
            owner = cls(**json.loads(data))
        except (ValueError, TypeError, RecursionError):
            return None
        is_whole = isinstance(owner.pid, int) and all(
            isinstance(text, str) for text in (owner.host, owner.started, owner.token)
        )
        return owner if is_whole else None

    def dump(self) -> bytes:
        """Return the text that `parse` reads."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @property
    def is_here(self) -> bool:
        """Whether it runs, or ran, on this machine."""
        return self.host == socket.gethostname()

    @property
    def is_running(self) -> bool:
        """Whether it is a process of this machine that has not ended."""
        return self.is_here and _find_start(self.pid) == self.started


class WriterLock:
    """The right to write to a folder, from now until `release` or the end of the process."""

    def __init__(self, folder: Path) -> None:
        """Take the lock of a folder, which is made if need be, unless somebody has it who still runs.

        Raises:
            BusyError: Somebody else has it, or may have it on another machine.
            OSError: The folder cannot be written.
        """
        self.folder = folder
        self.owner = Owner.current()
        self._path = folder / OWNER_NAME
        self._fd = self._acquire()

    def release(self) -> None:
        """Give the lock back; a second time does nothing."""
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        # Removed while it is locked: whoever opened it meanwhile finds that it has lost its name.
        with contextlib.suppress(OSError):
            self._path.unlink()
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_UN)  # closing would leave it to a child that was forked meanwhile
        os.close(fd)

    def _acquire(self) -> int:
        patience = time.monotonic() + _PATIENCE_SECONDS
        while True:
            fd, is_new = self._open()
            try:
                if self._claim(fd, is_new=is_new, is_final=time.monotonic() > patience):
                    return fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
            time.sleep(_PAUSE_SECONDS)

    def _open(self) -> tuple[int, bool]:
        """Open the file, and tell whether it was made now; the one before may vanish at any moment."""
        while True:
            with contextlib.suppress(FileExistsError):
                self.folder.mkdir()
            with contextlib.suppress(FileNotFoundError, FileExistsError):
                return os.open(self._path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666), True
            with contextlib.suppress(FileNotFoundError):
                return os.open(self._path, _FLAGS), False

    def _claim(self, fd: int, *, is_new: bool, is_final: bool) -> bool:
        """Try to make an open file ours; False means that it is worth another look."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = self._read(fd)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                # A file system without locks: a new file is still the first writer's alone, but of two that
                # find an old one, none may take it over.
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
            # Locked by nobody, as far as this machine knows. Not every file system passes locks on to others.
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
        return Owner.parse(os.pread(fd, _MOST_BYTES, 0))

    def _busy(self, owner: Owner | None) -> BusyError:
        remove = f"remove {os.fspath(self.folder)!r}"
        if owner is None:
            what, advice = "a process that does not say who it is is writing there", f"If none is, {remove}."
        elif not owner.is_here:
            what = f"process {owner.pid} on host {owner.host} is writing there"
            advice = f"Wait until it ends; if it has ended, which cannot be seen from here, {remove}."
        elif owner.pid == os.getpid():
            what = f"this process ({owner.pid} on host {owner.host}) is writing there already"
            advice = "End the first writer before the second begins, or choose another folder."
        else:
            what = f"process {owner.pid} on host {owner.host} is writing there"
            advice = "Wait until it ends, or choose another folder."
            if not owner.is_running:
                what, advice = f"{what}, or a child of it", f"If none is, {remove}."
        return BusyError(what, path=self.folder, advice=advice)


def _find_start(pid: int) -> str | None:
    """Return when a process began: the boot of the machine, and ticks since; None if it has ended."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        # The name of the program stands in brackets before, and may hold anything.
        facts = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    has_ended = facts[0] in (b"Z", b"X")  # nobody has asked for its exit status yet
    return None if has_ended else f"{boot}:{facts[19].decode()}"
