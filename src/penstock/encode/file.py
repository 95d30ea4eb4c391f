"""Files that hold the values of a column, given by their paths.

In: columns of paths. Out: absolute paths, the bytes of one file at a time, and hashes of such bytes.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.encode.fault import Report
from penstock.encode.plain import as_objects
from penstock.encode.text import convert_text
from penstock.source.block import Block, RawColumn
from penstock.types import Mask

MAX_FILE_BYTES = 2**31 - 1
"""A protobuf message, and so a record, ends at 2 GiB."""

_REASONS = {
    errno.ENOENT: "no such file",
    errno.ENOTDIR: "no such file",
    errno.EISDIR: "a folder",
    errno.EACCES: "a file that may not be read",
    errno.EPERM: "a file that may not be read",
    errno.ENAMETOOLONG: "a name that is too long",
    errno.ELOOP: "links that lead in a circle",
    errno.EINVAL: "no regular file",
    errno.EFBIG: "a file of 2 GiB or more",
}


def read_paths(raw: RawColumn, block: Block, report: Report) -> tuple[list[str], Mask | None]:
    """Return absolute paths, "" for rows that have none, and which rows have one.

    Relative ones are relative to the block's folder; those of a table in memory, to the working directory.
    """
    if isinstance(raw, np.ndarray) and raw.dtype.kind == "O" and raw.ndim == 1:
        raw = as_objects([os.fspath(cell) if isinstance(cell, os.PathLike) else cell for cell in raw])
    column = convert_text(raw, report)
    folder = str(Path(block.folder or "").absolute())
    paths = [_join(folder, os.fsdecode(value)) for value in column]
    return paths, column.present


def read_file(path: str) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        OSError: It cannot be read; `explain` says why.
    """
    if "\0" in path:
        raise OSError(errno.ENOENT, "no path has a NUL", path)
    # Not blocking: opening a pipe would wait for somebody to write into it.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL, "no file", path)
        if status.st_size > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, "too large", path)
        data = os.read(descriptor, status.st_size + 1)
        if len(data) >= status.st_size:
            return data
        pieces = [data]  # a signal, or a kernel that reads at most so much at once
        while piece := os.read(descriptor, status.st_size + 1):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def fingerprint(values: Iterable[bytes | memoryview]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the hash and the digest of each value, as `penstock.types.Deferred` takes them."""
    pairs = [(_native.hash_bytes(value), _native.digest_bytes(value)) for value in values]
    hashes = np.array([each for each, _ in pairs], np.uint64)
    digests = np.frombuffer(b"".join(each for _, each in pairs), np.uint64)
    return hashes, digests.reshape(len(pairs), 2)


def explain(error: OSError) -> str:
    """Say in words what stands where a file should be."""
    return _REASONS.get(error.errno or 0) or f"a file that cannot be read ({error.strerror or error})"


def _join(folder: str, path: str) -> str:
    if not path or path.startswith("/"):
        return path
    return f"{folder}/{path}"
