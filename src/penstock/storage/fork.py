"""Locks that a forked process can use.

In: nothing. Out: `ProcessLock`. A process that is forked while another thread holds a lock has, in the child,
a lock that nobody will ever let go of; such locks are made anew there.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import NoReturn


class ProcessLock:
    """A lock that is free in a process that was just forked, whoever held it in the parent.

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
        """Forget who holds it."""
        self._lock = threading.Lock()


_locks: weakref.WeakSet[ProcessLock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in list(_locks):
        lock.renew()


os.register_at_fork(after_in_child=_renew_all)
