"""Encodes columns with one byte string per row, and reads the files that paths refer to.

In: raw columns of bytes, of text, or of paths of files. Out: `Bytes`, or `Deferred` for files and for large
values of a table in memory, which are not copied before their record is written.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Bytes, Mask
from penstock.encode.fault import Report, report_rows
from penstock.encode.plain import as_objects, group_objects, normalize_column, present_objects, refuse_all
from penstock.encode.text import as_bytes, convert_text, is_bytes, is_string, join_bytes, make_empty_bytes
from penstock.foundation.wording import show
from penstock.schema.declaration import Representation
from penstock.source.block import LARGE_BYTES, Block, RawColumn
from penstock.storage.deferred import Deferred

MAX_FILE_BYTES = 2**31 - 1
"""Maximum size of a protobuf message, and thus of a record."""

_REASONS = {
    errno.ENOENT: "no such file",
    errno.ENOTDIR: "no such file",
    errno.EISDIR: "a folder",
    errno.EACCES: "a file without read permission",
    errno.EPERM: "a file without read permission",
    errno.ENAMETOOLONG: "a name that is too long",
    errno.ELOOP: "a circular link",
    errno.EINVAL: "not a regular file",
    errno.EFBIG: "a file of 2 GiB or more",
}


_NO_PATHS = "the bytes of a file, as bytes or {'b64': '…'}"
_NO_PATHS_ADVICE = (
    "A text would be the path of a file to read. If all callers may read files here: read_files=True."
)


def read_paths(raw: RawColumn, block: Block, report: Report) -> tuple[list[str], Mask | None]:
    """Return absolute paths, "" for rows without a path, and a mask of the rows that have one.

    Relative paths are relative to the folder of the block, or to the working directory for a table in memory.
    If the block does not allow paths, all rows are reported, and none has a path.
    """
    if not block.reads_files:
        refuse_all(raw, _NO_PATHS, report, _NO_PATHS_ADVICE)
        return [""] * len(raw), np.zeros(len(raw), np.bool_)
    if isinstance(raw, np.ndarray) and raw.dtype.kind == "O" and raw.ndim == 1:
        raw = as_objects([os.fspath(cell) if isinstance(cell, os.PathLike) else cell for cell in raw])
    column = convert_text(raw, report)
    folder = str(Path(block.folder or "").absolute())
    paths = [_join(folder, os.fsdecode(value)) for value in column]
    return paths, column.present


def read_file(path: str) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        OSError: The file cannot be read; `explain` returns the reason.
    """
    if "\0" in path:
        raise OSError(errno.ENOENT, "a path cannot contain NUL", path)
    # Not blocking: opening a pipe would wait for a writer.
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
        pieces = [data]  # interrupted by a signal, or more than the kernel reads at once
        while piece := os.read(descriptor, status.st_size + 1):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def fingerprint(values: Sequence[bytes | memoryview]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the hash and the digest of each value, as `penstock.storage.deferred.Deferred` stores them."""
    hashes, digests = _native.fingerprint(values)
    return hashes, digests.reshape(-1, 2)


def explain(error: OSError) -> str:
    """Return a description of what was found instead of a readable file."""
    return _REASONS.get(error.errno or 0) or f"a file that cannot be read ({error.strerror or error})"


def _join(folder: str, path: str) -> str:
    if not path or path.startswith("/"):
        return path
    return f"{folder}/{path}"


def encode_bytes(form: Representation, raw: RawColumn, block: Block, report: Report) -> Bytes | Deferred:
    """Return byte strings, or references to them."""
    if form == "path":
        return _defer_files(raw, block, report)
    if block.is_resident and isinstance(raw, np.ndarray) and (deferred := _defer_objects(raw)) is not None:
        return deferred
    return defer_large(convert_bytes(raw, report), raw, block)


def convert_bytes(raw: RawColumn, report: Report) -> Bytes:
    """Return byte strings; text as UTF-8."""
    column = normalize_column(raw)
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "O" and column.ndim == 1:
            return _convert_objects(column, report)
        if column.dtype.kind == "V" and column.dtype.names is None and column.ndim == 1:
            return join_bytes(map(bytes, column))
    elif is_bytes(column.type) or is_string(column.type):
        return as_bytes(column)
    advice = "Declare the field as a Tensor to keep arrays." if isinstance(column, np.ndarray) else ""
    return make_empty_bytes(len(column), refuse_all(column, "bytes", report, advice))


def defer_large(
    column: Bytes,
    raw: RawColumn,
    block: Block,
    pixels: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
) -> Bytes | Deferred:
    """Return references if the values are large and stay in memory with the source, else the column."""
    sizes = column.stops - column.starts
    num_present = len(column) if column.present is None else int(column.present.sum())
    is_large = num_present and int(sizes.sum()) >= LARGE_BYTES * num_present
    if not block.is_resident or not is_large:
        return column
    view = column.arena.data
    spans = zip(column.starts.tolist(), column.stops.tolist(), strict=True)
    values: list[bytes | memoryview] = [view[start:stop] for start, stop in spans]
    if isinstance(raw, np.ndarray):
        # The column is a copy, which must not stay in memory as long as the objects do.
        values = [
            cell if isinstance(cell, bytes) else bytes(value) for cell, value in zip(raw, values, strict=True)
        ]
    return Deferred(sizes, *fingerprint(values), values=values, pixels=pixels, present=column.present)


def _defer_objects(raw: NDArray[Any]) -> Deferred | None:
    """Return references to large byte strings; None for other, smaller or mixed objects."""
    if raw.dtype != object or raw.ndim != 1 or not set(map(type, raw)) <= {bytes, type(None)}:
        return None
    present = present_objects(raw)
    values = [b"" if value is None else value for value in raw]
    sizes = np.fromiter(map(len, values), np.int64, len(values))
    if int(sizes.sum()) < LARGE_BYTES * max(1, len(raw) if present is None else int(present.sum())):
        return None
    return Deferred(sizes, *fingerprint(values), values=list(values), present=present)


def _convert_objects(objects: NDArray[Any], report: Report) -> Bytes:
    cells: list[bytes | None] = [None] * len(objects)
    for rows, column in group_objects(objects):
        if column is None:
            report(int(rows[0]), "bytes", show(objects[rows[0]]))
            cells[rows[0]] = b""
            continue
        for row, value in zip(rows.tolist(), convert_bytes(column, report_rows(report, rows)), strict=True):
            cells[row] = value
    return join_bytes(cells)


def _defer_files(raw: RawColumn, block: Block, report: Report) -> Deferred:
    paths, present = read_paths(raw, block, report)
    sizes = np.zeros(len(paths), np.int64)
    hashes, digests = np.zeros(len(paths), np.uint64), np.zeros((len(paths), 2), np.uint64)
    for row, path in enumerate(paths):
        if present is not None and not present[row]:
            continue
        try:
            data = read_file(path)
        except OSError as error:
            report(row, "a file", f"{show(path)}, {explain(error)}")
            continue
        sizes[row] = len(data)
        hashes[row : row + 1], digests[row : row + 1] = fingerprint([data])
    return Deferred(sizes, hashes, digests, paths=paths, present=present)
