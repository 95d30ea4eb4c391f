"""The current process: locks that survive a fork, its cores and memory, and what it has read from disk.

In: the state that the kernel reports, on Linux or macOS. Out: `ProcessLock`, and numbers of cores, bytes and
files.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

_UNLIMITED_FILES = 1 << 20
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class ProcessLock:
    """A lock that is free in a forked process, whichever thread held it in the parent.

    Example:
        >>> with ProcessLock():
        ...     print("alone")
        alone
    """

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _locks.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce__(self) -> NoReturn:
        # Whatever holds one holds open files as well, whose descriptors mean nothing elsewhere.
        raise TypeError(
            "an open data set has files of this process and cannot be sent to another one: send its path, "
            "and open it there"
        )

    def renew(self) -> None:
        """Release the lock, whichever thread holds it."""
        self._lock = threading.Lock()


_locks: weakref.WeakSet[ProcessLock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in list(_locks):
        lock.renew()


os.register_at_fork(after_in_child=_renew_all)


@contextmanager
def paused_collection() -> Iterator[None]:
    """Pause Python's search for unreachable cycles while many objects are made that stay.

    Each search visits all of them: it takes a quarter of the time to open a data set of 100,000 shards.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def count_cores() -> int:
    """Return the number of cores that this process may use; of the machine, if that is unknown."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def find_most_files() -> int:
    """Return the number of files that this process may have open at the same time."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _UNLIMITED_FILES if limit == resource.RLIM_INFINITY else limit


def usable_memory() -> int:
    """Return the machine's memory, or what a container may use of it."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _LIMITS:
        try:
            text = Path(path).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text.isdigit():
            memory = min(memory, int(text))
    return memory


def count_disk_bytes() -> int | None:
    """Return the bytes that the kernel read from disks for this process so far; None if unknown."""
    return _read_number(Path("/proc/self/io"), "read_bytes")


def find_peak_bytes() -> int:
    """Return the most memory that this process had, mapped files included."""
    # `ru_maxrss` is the peak of the process that started this one, if that was larger: it comes second.
    kilobytes = _read_number(Path("/proc/self/status"), "VmHWM")
    if kilobytes:
        return 1024 * kilobytes
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak  # macOS counts in bytes


def is_crowded() -> bool:
    """Return whether programs beside this one kept the machine's cores busy in the last minute."""
    # A run before this one may have kept each core busy by itself.
    cores = os.cpu_count() or 1
    return os.getloadavg()[0] > 1.5 * cores + 1


def _read_number(path: Path, name: str) -> int | None:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    found = next((line for line in lines if line.startswith(f"{name}:")), None)
    return None if found is None else int(found.split()[1])
