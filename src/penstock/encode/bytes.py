"""Encodes columns with one byte string per row, and reads the files that paths refer to.

In: raw columns of bytes, of text, or of paths of files. Out: `Bytes`, or `Deferred` for files and for large
values of a table in memory, which are not copied before their record is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
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
from penstock.storage.named_files import RefusedNameError, explain, read_files

_NO_PATHS = "the bytes of a file, as bytes or {'b64': '…'}"
_NO_PATHS_ADVICE = (
    "A text would be the path of a file to read. If all callers may read files here: read_files=True."
)
_IN_ARCHIVE = "A text in an archive is never read as the path of a file."


def read_paths(
    raw: RawColumn, block: Block, report: Report, expected: str = "a file"
) -> tuple[list[str], Mask | None]:
    """Return absolute paths and URLs, "" for rows without one, and a mask of the rows that have one.

    Relative paths are relative to the folder of the block, or to the working directory for a table in memory.
    If the block does not allow paths, all rows are reported, and none has a path. Rows that name a file that
    cells may not name are reported, and have none either.
    """
    if not block.reads_files:
        if block.path is None:
            refuse_all(raw, _NO_PATHS, report, _NO_PATHS_ADVICE)
        else:
            refuse_all(raw, expected, report, _IN_ARCHIVE)
        return [""] * len(raw), np.zeros(len(raw), np.bool_)
    if isinstance(raw, np.ndarray) and raw.dtype.kind == "O" and raw.ndim == 1:
        raw = as_objects([os.fspath(cell) if isinstance(cell, os.PathLike) else cell for cell in raw])
    column = convert_text(raw, report)
    files = block.files
    paths, refused = [], []
    for row, value in enumerate(column):
        try:
            paths.append(files.resolve(os.fsdecode(value)))
        except RefusedNameError as error:
            report(row, expected, f"{show(os.fsdecode(value))}, {explain(error)}", error.advice)
            paths.append("")
            refused.append(row)
    if not refused:
        return paths, column.present
    present = np.ones(len(paths), np.bool_) if column.present is None else column.present.copy()
    present[refused] = False
    return paths, present


def read_rows(paths: Sequence[str], present: Mask | None) -> Iterator[tuple[int, bytes | OSError]]:
    """Yield the rows that have a path, each with the content of the file, or why it cannot be read."""
    rows = range(len(paths)) if present is None else np.flatnonzero(present).tolist()
    for row, found in zip(rows, read_files(paths[row] for row in rows), strict=True):
        if found is not None:
            yield row, found


def fingerprint(values: Sequence[bytes | memoryview]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the hash and the digest of each value, as `penstock.storage.deferred.Deferred` stores them."""
    hashes, digests = _native.fingerprint(values)
    return hashes, digests.reshape(-1, 2)


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
    for row, data in read_rows(paths, present):
        if isinstance(data, OSError):
            report(row, "a file", f"{show(paths[row])}, {explain(data)}")
            continue
        sizes[row] = len(data)
        hashes[row : row + 1], digests[row : row + 1] = fingerprint([data])
    return Deferred(sizes, hashes, digests, paths=paths, present=present)
