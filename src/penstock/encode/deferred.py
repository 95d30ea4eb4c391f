"""Values that are read when their record is written: image files, and large objects in memory.

In: deferred columns. Out: one reference per row, small enough to sort with the rows, and later the bytes. A
file that changed since its row was read is an error.
"""

from __future__ import annotations

import os
import struct
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Bytes, Column
from penstock.errors import ChangedFileError, PathError, PenstockError
from penstock.storage.deferred import Deferred
from penstock.storage.named_files import read_file, read_files

_HEAD: Final = struct.Struct("<q16s")  # size, digest; for a file, its path follows
_HEADS: Final = np.dtype([("size", "<i8"), ("digest", "<u8", 2)])  # the same, for many rows


class References(NamedTuple):
    """One reference per row, concatenated; a missing value has an empty reference."""

    arena: NDArray[np.uint8]
    offsets: NDArray[np.int64]


def make_references(column: Deferred | None, num_rows: int) -> References:
    """Return the references of a column; for None, all references are empty."""
    if column is None:
        return References(np.empty(0, np.uint8), np.zeros(num_rows + 1, np.int64))
    heads = np.empty(num_rows, _HEADS)
    heads["size"], heads["digest"] = column.sizes, column.digests
    present = np.ones(num_rows, np.bool_) if column.present is None else column.present
    offsets = np.zeros(num_rows + 1, np.int64)
    if column.paths is None:
        np.cumsum(present * _HEAD.size, out=offsets[1:])
        return References(heads[present].view(np.uint8), offsets)
    pieces = [
        head.tobytes() + os.fsencode(path) if is_there else b""
        for head, path, is_there in zip(heads, column.paths, present.tolist(), strict=True)
    ]
    np.cumsum([len(piece) for piece in pieces], out=offsets[1:])
    return References(np.frombuffer(b"".join(pieces), np.uint8), offsets)


class ReferredValues(NamedTuple):
    """What references refer to.

    Attributes:
        sizes: Number of bytes of each value.
        kinds: `NOTHING`, `IN_MEMORY`, `IN_FILE` or `IN_STORE`.
    """

    sizes: NDArray[np.int64]
    kinds: NDArray[np.uint8]


NOTHING, IN_MEMORY, IN_FILE, IN_STORE = range(4)


def find_value(reference: bytes, resident: bytes | memoryview | None = None) -> _native.LateValue:
    """Return the value of a reference as the core expects it, or `resident`; None for an empty reference."""
    if not reference:
        return None
    if resident is not None:
        return resident
    size, digest = _HEAD.unpack_from(reference)
    return reference[_HEAD.size :], size, digest


def fetch_value(reference: bytes) -> bytes:
    """Return the value of a reference that is in an object store."""
    size, digest = _HEAD.unpack_from(reference)
    value = reference[_HEAD.size :], size, digest
    try:
        data = read_file(os.fsdecode(value[0]))
    except OSError as error:
        if isinstance(error, PenstockError):
            raise
        raise refuse_file(value, error.errno or 0) from error
    return _verify(value, data)


def refuse_file(value: _native.LateValue, error: int) -> PenstockError:
    """Return the error for a file that the core could not read (an errno), or that has changed (0)."""
    path = os.fsdecode(value[0]) if isinstance(value, tuple) else None
    if error:
        return PathError(f"cannot be read ({os.strerror(error)})", path=path)
    return ChangedFileError(
        "the file has changed since its row was read",
        path=path,
        advice="Convert again when no other program writes to the file.",
    )


def materialize(column: Column | Deferred) -> Column:
    """Return a column with its values in memory, such as records with feature lists need."""
    if not isinstance(column, Deferred):
        return column
    references = make_references(column, len(column))
    arena = references.arena.tobytes()
    values = [
        find_value(arena[start:stop], None if column.values is None else column.values[row])
        for row, (start, stop) in enumerate(pairwise(references.offsets.tolist()))
    ]
    files = read_files(os.fsdecode(value[0]) if isinstance(value, tuple) else None for value in values)
    found = zip(values, files, strict=True)
    return Bytes.from_values(
        [
            _verify(value, data) if isinstance(value, tuple) else memoryview(value or b"")
            for value, data in found
        ],
        column.present,
    )


def _verify(value: tuple[bytes, int, bytes], data: bytes | OSError | None) -> bytes:
    """Return the content of a file, if it is still the one that its row was made of."""
    _, size, digest = value
    if isinstance(data, OSError):
        raise refuse_file(value, data.errno or 0) from data
    if data is None or len(data) != size or _native.digest_bytes(data) != digest:
        raise refuse_file(value, 0)
    return data
