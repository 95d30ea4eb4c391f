"""Values that are fetched when their record is written: image files, and large objects that are in memory.

In: deferred columns. Out: a reference a row, small enough to be sorted with the rows, and later the bytes. A
file that is no longer what it was when the row was read is an error.
"""

from __future__ import annotations

import os
import struct
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.errors import ChangedFileError, PathError
from penstock.types import Bytes, Deferred

_HEAD: Final = struct.Struct("<qQ")  # size, digest; the path follows, for what lies in a file


class References(NamedTuple):
    """A reference a row, one behind the other; one of no bytes is to nothing."""

    arena: NDArray[np.uint8]
    offsets: NDArray[np.int64]


def make_references(column: Deferred | None, num_rows: int) -> References:
    """Return the references of a column; None has nothing to refer to."""
    if column is None:
        return References(np.empty(0, np.uint8), np.zeros(num_rows + 1, np.int64))
    present = [True] * num_rows if column.present is None else column.present.tolist()
    heads = zip(column.sizes.tolist(), column.digests.tolist(), strict=True)
    paths = [b""] * num_rows if column.paths is None else map(os.fsencode, column.paths)
    pieces = [
        _HEAD.pack(*head) + path if is_there else b""
        for head, path, is_there in zip(heads, paths, present, strict=True)
    ]
    offsets = np.zeros(num_rows + 1, np.int64)
    np.cumsum([len(piece) for piece in pieces], out=offsets[1:])
    return References(np.frombuffer(b"".join(pieces), np.uint8), offsets)


def referred_bytes(reference: bytes) -> int:
    """Return how many bytes a reference leads to."""
    return int(_HEAD.unpack_from(reference)[0]) if reference else 0


def fetch(reference: bytes, resident: bytes | memoryview | None = None) -> bytes | memoryview | None:
    """Return the value that a reference leads to, or None for one to nothing.

    Args:
        reference: One that `make_references` made.
        resident: The value itself, where it is in memory.

    Raises:
        ChangedFileError: The file is not what it was.
        PathError: It is gone.
    """
    if not reference:
        return None
    size, digest = _HEAD.unpack_from(reference)
    if resident is not None:
        return resident
    path = os.fsdecode(reference[_HEAD.size :])
    value = read_file(path, size)
    if len(value) != size or _native.hash_bytes(value) != digest:
        raise ChangedFileError(
            "the file has changed since its row was read",
            path=path,
            expected=f"{size} bytes with digest {digest:016x}",
            got=f"{len(value)} bytes",
            advice="Convert again when nothing writes there.",
        )
    return value


def read_file(path: str, size_hint: int) -> bytes:
    """Return what is in a file.

    Raises:
        PathError: It cannot be read.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.read(fd, size_hint + 1)
            if len(data) == size_hint:
                return data
            pieces = [data]
            while pieces[-1]:
                pieces.append(os.read(fd, 1 << 20))
            return b"".join(pieces)
        finally:
            os.close(fd)
    except OSError as error:
        raise PathError(f"cannot be read ({error.strerror})", path=path) from error


def materialize(column: Deferred) -> Bytes:
    """Return the column with its values in memory: records with feature lists take them there."""
    references = make_references(column, len(column))
    view = references.arena.tobytes()
    bounds = references.offsets.tolist()
    values = []
    for row in range(len(column)):
        resident = None if column.values is None else column.values[row]
        values.append(fetch(view[bounds[row] : bounds[row + 1]], resident) or b"")
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(value) for value in values], out=offsets[1:])
    return Bytes.from_offsets(np.frombuffer(b"".join(values), np.uint8), offsets, column.present)
