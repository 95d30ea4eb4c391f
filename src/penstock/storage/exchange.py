"""The exchange of the names of two folders, for folders that are replaced in one step.

In: a new and an old folder. Out: the new one under the name of the old one.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
# The C library, the kernel or the file system (NFS, some overlays) does not support it.
_NOT_SUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


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
