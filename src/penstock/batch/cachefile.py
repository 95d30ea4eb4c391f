"""Columns in a file instead of memory.

In: columns, and a folder. Out: the same columns, whose arrays lie in a file that nobody else can open.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import OptionError, WriteError
from penstock.types import Bytes, CodedColumn, CodedColumns, Dense, Dictionary, Pictures, Ragged

_ALIGNMENT = 64
_PREFIX = ".penstock-cache-"


def check_folder(folder: Path) -> None:
    """Make a folder for a cache, unless it is there, and see that files can be written to it.

    Raises:
        OptionError: They cannot.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, prefix=_PREFIX):
            pass
    except OSError as error:
        raise OptionError(
            "cache",
            expected="'memory', or a folder that can be written to",
            got=f"{str(folder)!r} ({error.strerror})",
        ) from error


def move_to_file(columns: CodedColumns, folder: Path) -> dict[str, CodedColumn]:
    """Return columns whose arrays lie in a file.

    The file has no name: nobody else can open it, so nobody can cut it off under our mapping. Its blocks are
    reserved before they are written, so that a full disk is an error and not a signal.
    """
    arrays: list[NDArray[Any]] = []
    for column in columns.values():
        _collect(column, arrays)
    sizes = [-(-array.nbytes // _ALIGNMENT) * _ALIGNMENT for array in arrays]
    total = max(mmap.PAGESIZE, sum(sizes))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, prefix=_PREFIX) as file:
            os.posix_fallocate(file.fileno(), 0, total)
            mapping = mmap.mmap(file.fileno(), total)
    except OSError as error:
        raise WriteError(
            f"the cache cannot be written ({error.strerror})",
            path=folder,
            expected=f"room for {total} bytes",
            advice="Name another folder, or lower cache_bytes.",
        ) from error
    moved: dict[int, NDArray[Any]] = {}
    at = 0
    for array, size in zip(arrays, sizes, strict=True):
        flat = np.frombuffer(mapping, array.dtype, array.size, at) if array.size else array.ravel()
        target = flat.reshape(array.shape)
        if array.size:
            np.copyto(target, array)
        moved[id(array)] = target
        at += size
    return {name: _replace(column, moved) for name, column in columns.items()}


def _collect(column: CodedColumn, into: list[NDArray[Any]]) -> None:
    if column.present is not None:
        into.append(column.present)
    if isinstance(column, Dense):
        into.append(column.values)
    elif isinstance(column, Dictionary):
        into.append(column.codes)
    elif isinstance(column, Bytes):
        into += [column.arena, column.starts, column.stops]
    elif isinstance(column, Pictures):
        into += [image for image in column.images if image is not None]
    else:
        into.append(column.offsets)
        if isinstance(column.values, np.ndarray):
            into.append(column.values)
        else:
            _collect(column.values, into)


def _replace(column: CodedColumn, moved: dict[int, NDArray[Any]]) -> CodedColumn:
    present = None if column.present is None else moved[id(column.present)]
    if isinstance(column, Dense):
        return Dense(moved[id(column.values)], present)
    if isinstance(column, Dictionary):
        return Dictionary(moved[id(column.codes)], column.values, present)
    if isinstance(column, Bytes):
        arena, starts, stops = (moved[id(each)] for each in (column.arena, column.starts, column.stops))
        return Bytes(arena, starts, stops, present)
    if isinstance(column, Pictures):
        images = [None if image is None else moved[id(image)] for image in column.images]
        return Pictures(images, present)
    values: Any = column.values
    values = moved[id(values)] if isinstance(values, np.ndarray) else _replace(values, moved)
    return Ragged(values, moved[id(column.offsets)], present)
