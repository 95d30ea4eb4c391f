"""Encodes columns with one string per row: text and named categories in UTF-8, byte strings, and files.

Out: `Bytes`; or `Deferred` for files and large values of a table in memory, which are not copied before their
record is written. Numbers are written with the fewest digits that represent them exactly, whole numbers
without a point, so that a code is the same for 7, 7.0 and "7"; bools are `true` and `false`, times ISO 8601.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Bytes, Mask
from penstock.encode.file_check import FileThreads, check_files
from penstock.encode.plain import (
    Report,
    as_objects,
    group_objects,
    normalize_column,
    present_cells,
    present_objects,
    refuse_all,
    report_rows,
    view_buffer,
)
from penstock.foundation.wording import show
from penstock.schema.declaration import Representation
from penstock.source.block import LARGE_BYTES, Block, RawColumn
from penstock.storage.deferred import Deferred
from penstock.storage.named_files import RefusedNameError, explain, read_files


def is_bytes(kind: pa.DataType) -> bool:
    """Return whether a normalized type contains byte strings."""
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def is_string(kind: pa.DataType) -> bool:
    """Return whether a normalized type contains text."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def as_bytes(array: pa.Array[Any]) -> Bytes:
    """Return an array of strings or bytes as a column that shares its memory; missing rows have no bytes."""
    present = present_cells(array)
    if not len(array):
        return make_empty_bytes(0, present)
    _, offset_buffer, value_buffer = array.buffers()
    is_large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    dtype = np.int64 if is_large else np.int32
    offsets = view_buffer(offset_buffer, dtype, len(array) + 1, array.offset).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    if first == last or value_buffer is None:
        return make_empty_bytes(len(array), present)
    arena = view_buffer(value_buffer, np.uint8, last - first, first)
    offsets -= first
    starts, stops = offsets[:-1], offsets[1:]
    if present is not None:
        # The buffer may contain bytes for a null.
        stops = np.where(present, stops, starts)
    return Bytes(arena, starts, stops, present)


def trim(text: pa.Array[Any]) -> pa.Array[Any]:
    """Return strings without leading and trailing whitespace."""
    # All bytes of whitespace beyond ASCII are 0x80 or above.
    is_clean = ((as_bytes(text).arena - 33) < 127 - 33).all()
    return text if is_clean else pc.utf8_trim_whitespace(text)


def make_empty_bytes(num_rows: int, present: NDArray[np.bool_] | None) -> Bytes:
    """Return a column of empty values."""
    return Bytes.from_offsets(np.zeros(0, np.uint8), np.zeros(num_rows + 1, np.int64), present)


def join_bytes(values: Iterable[bytes | memoryview | None]) -> Bytes:
    """Return a column of separate values, which are copied into one arena; None is missing."""
    cells = list(values)
    offsets = np.zeros(len(cells) + 1, np.int64)
    np.cumsum(
        np.fromiter((0 if cell is None else len(cell) for cell in cells), np.int64, len(cells)),
        out=offsets[1:],
    )
    arena = np.frombuffer(b"".join(cell for cell in cells if cell is not None), np.uint8)
    present = np.fromiter((cell is not None for cell in cells), np.bool_, len(cells))
    return Bytes.from_offsets(arena, offsets, None if present.all() else present)


def find_invalid(column: Bytes) -> list[int]:
    """Return the rows that are not UTF-8."""
    if not len(column.arena) or (_is_valid(column.arena) and _has_clean_edges(column)):
        return []
    return [row for row, value in enumerate(column) if not _is_text(value)]


def _is_valid(arena: NDArray[np.uint8]) -> bool:
    # All values as a single one: Arrow checks many bytes per step, but makes one call per value.
    offsets = np.array([0, len(arena)], np.int64)
    buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(arena.data)]
    whole: pa.Array[Any] = pa.Array.from_buffers(pa.large_string(), 1, buffers)
    try:
        whole.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _has_clean_edges(column: Bytes) -> bool:
    """Return whether no value begins or ends inside a character, given that all bytes together are UTF-8."""
    for edges in (column.starts, column.stops):
        inside = edges[edges < len(column.arena)]
        if ((column.arena[inside] & 0xC0) == 0x80).any():
            return False
    return True


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


_EXPECTED_TEXT = "text in UTF-8"


def convert_text(raw: RawColumn, report: Report) -> Bytes:
    """Return text, or numbers and times as text."""
    column = normalize_column(raw)
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "O" and column.ndim == 1:
            return _convert_objects(column, report)
        if column.ndim > 1 or column.dtype.kind not in "biufM":
            return make_empty_bytes(len(column), refuse_all(column, _EXPECTED_TEXT, report))
        column = _as_arrow(column)
    if not is_string(column.type) and not is_bytes(column.type):
        text = _write(column)
        if text is None:
            return make_empty_bytes(len(column), refuse_all(column, _EXPECTED_TEXT, report))
        column = text
    return _check(as_bytes(column), report)


def decode_cells(array: pa.Array[Any], report: Report) -> pa.Array[Any]:
    """Return strings, or bytes, as strings; cells that are not UTF-8 are reported, and null."""
    # Strings of a file are not validated: Arrow's kernels raise for all cells if one of them is not UTF-8.
    column = as_bytes(array)
    invalid = find_invalid(column)
    if invalid:
        keep = np.ones(len(array), np.bool_)
        keep[invalid] = False
        _report_invalid(column, invalid, report)
        array = pc.if_else(pa.array(keep), array, pa.scalar(None, array.type))
    if is_string(array.type):
        return array
    return pc.cast(array, pa.large_string() if pa.types.is_large_binary(array.type) else pa.string())


def _report_invalid(column: Bytes, rows: list[int], report: Report) -> None:
    for row in rows:
        advice = "Declare the field as Bytes, or convert the text to UTF-8."
        report(row, _EXPECTED_TEXT, show(column[row]), advice)


def rewrite_texts(
    raw: RawColumn, rewrite: Callable[[pa.Array[Any], Report], pa.Array[Any]], report: Report
) -> RawColumn:
    """Return a column with its texts rewritten; other columns and objects are returned as they are."""
    column = normalize_column(raw)
    if isinstance(column, np.ndarray):
        if column.dtype != object or column.ndim != 1:
            return raw
        rows = [row for row, value in enumerate(column) if isinstance(value, str)]
        found: Any = pa.array([column[row] for row in rows], pa.large_string())
        column = column.copy()
        column[rows] = rewrite(found, report_rows(report, np.array(rows, np.int64))).to_pylist()
        return column
    return rewrite(column, report) if is_string(column.type) else raw


def _check(column: Bytes, report: Report) -> Bytes:
    invalid = find_invalid(column)
    if not invalid:
        return column
    _report_invalid(column, invalid, report)
    stops = column.stops.copy()
    stops[invalid] = column.starts[invalid]
    return Bytes(column.arena, column.starts, stops, column.present)


def _convert_objects(objects: NDArray[Any], report: Report) -> Bytes:
    cells: list[bytes | None] = [None] * len(objects)
    for rows, column in group_objects(objects):
        if column is None:
            report(int(rows[0]), _EXPECTED_TEXT, show(objects[rows[0]]))
            cells[rows[0]] = b""
            continue
        part = convert_text(column, report_rows(report, rows))
        is_there = np.ones(len(part), np.bool_) if part.present is None else part.present
        for row, value, there in zip(rows.tolist(), part, is_there, strict=True):
            cells[row] = value if there else None
    return join_bytes(cells)


def _as_arrow(values: NDArray[Any]) -> pa.Array[Any]:
    if values.dtype.kind == "M":
        unit, step = np.datetime_data(values.dtype)
        if unit in ("Y", "M", "W", "h", "m") or step != 1:  # Arrow has no such units
            values = values.astype("M8[D]" if unit in ("Y", "M", "W") else "M8[s]")
    array: pa.Array[Any] = pa.array(values.astype(values.dtype.newbyteorder("="), copy=False))
    return array


def _write(array: pa.Array[Any]) -> pa.Array[Any] | None:
    """Return values as strings; None if their type cannot be written as strings. NaN becomes null."""
    if pa.types.is_float16(array.type):
        array = pc.cast(array, pa.float32())
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    try:
        return pc.cast(array, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


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
    resolve = block.files.make_resolver()
    paths, refused = [], []
    for row, value in enumerate(column):
        try:
            paths.append(resolve(os.fsdecode(value)))
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


def encode_bytes(
    form: Representation, raw: RawColumn, block: Block, report: Report, threads: FileThreads | None = None
) -> Bytes | Deferred:
    """Return byte strings, or references to them.

    `threads`: threads that help to read the files that the column names.
    """
    if form == "path":
        return _defer_files(raw, block, report, threads)
    if block.is_resident and isinstance(raw, np.ndarray) and (deferred := _defer_objects(raw)) is not None:
        return deferred
    return defer_large(convert_bytes(raw, report), raw, block)


def convert_bytes(raw: RawColumn, report: Report) -> Bytes:
    """Return byte strings; text as UTF-8."""
    column = normalize_column(raw)
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "O" and column.ndim == 1:
            return _convert_byte_objects(column, report)
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


def _convert_byte_objects(objects: NDArray[Any], report: Report) -> Bytes:
    cells: list[bytes | None] = [None] * len(objects)
    for rows, column in group_objects(objects):
        if column is None:
            report(int(rows[0]), "bytes", show(objects[rows[0]]))
            cells[rows[0]] = b""
            continue
        for row, value in zip(rows.tolist(), convert_bytes(column, report_rows(report, rows)), strict=True):
            cells[row] = value
    return join_bytes(cells)


def _defer_files(raw: RawColumn, block: Block, report: Report, threads: FileThreads | None) -> Deferred:
    paths, present = read_paths(raw, block, report)
    files = check_files(paths, present, threads, reads_headers=False)
    is_read = np.zeros(len(paths), np.bool_)
    is_read[files.others] = True
    for row, data in read_rows(paths, is_read):
        if isinstance(data, OSError):
            report(row, "a file", f"{show(paths[row])}, {explain(data)}")
            continue
        files.sizes[row] = len(data)
        files.hashes[row : row + 1], files.digests[row : row + 1] = fingerprint([data])
    return Deferred(files.sizes, files.hashes, files.digests, paths=paths, present=present)
