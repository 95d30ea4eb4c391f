"""One folder in the place of another, in one step.

In: a complete folder, and the folder whose name it shall have, on one file system. Out: the two have changed
places, and whoever opens that name at any moment finds the one or the other.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
# The C library, the kernel or the file system (NFS, some overlays) does not offer it.
_NOT_OFFERED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


def exchange(new: Path, old: Path, aside: Path) -> None:
    """Make `new` take the name of `old`, which lies at `new` or at `aside` afterwards.

    `aside` is used only where two names cannot be exchanged in one step. Then there is a moment in which
    nothing has the name of `old`; after a crash in it, `put_back` restores it.

    Raises:
        OSError: They cannot be renamed; both are where they were.
    """
    if _exchange_names(new, old):
        return
    old.rename(aside)
    try:
        new.rename(old)
    except BaseException:
        aside.rename(old)
        raise


def put_back(aside: Path, old: Path) -> None:
    """Give a folder that a crash has left aside its name again, unless something else has it now."""
    with contextlib.suppress(OSError):
        aside.rename(old)  # an empty folder is replaced, anything else is not


def _exchange_names(one: Path, other: Path) -> bool:
    """Exchange two names; False, with nothing done, if that is not offered here."""
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
    if number in _NOT_OFFERED:
        return False
    raise OSError(number, os.strerror(number), os.fspath(other))
