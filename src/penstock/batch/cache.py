"""Decoded columns that are kept from one epoch to the next, in memory or in a file.

In: a split, and how much may be kept. Out: a `RowStore`. It is filled by one pass in stored order, which is
the fastest; rows that do not fit are read anew each time.
"""

from __future__ import annotations

import logging
import mmap
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.batch.supply import DiskStore, SplitSource
from penstock.decode.gather import column_bytes, join_columns, take_columns
from penstock.decode.scattered import read_scattered
from penstock.errors import WriteError
from penstock.storage.fork import ProcessLock
from penstock.types import Bytes, CodedColumn, CodedColumns, Dense, Dictionary, Mask, Ragged

_log = logging.getLogger("penstock")

_BLOCK_ROWS = 4096
_BLOCK_BYTES = 16 << 20
_ALIGNMENT = 64


def usual_cache_bytes() -> int:
    """Return a quarter of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4


class CachedStore:
    """Rows that were decoded once.

    Args:
        source: The split.
        most_bytes: How much may be kept.
        folder: Where to keep it in a file, which has no name there and goes with the process; None is memory.
        num_threads: How many threads fill it.
    """

    def __init__(self, source: SplitSource, most_bytes: int, folder: Path | None, num_threads: int) -> None:
        self._source = source
        self._most_bytes = most_bytes
        self._folder = folder
        self._num_threads = max(1, num_threads)
        self._rest = DiskStore(source)
        self._lock = ProcessLock()
        self._columns: CodedColumns | None = None
        self._num_cached = 0  # rows 0 … n−1 are kept
        self._places: NDArray[np.int64] | None = (
            None  # of each of those rows; −1 for a bad one; None: its number
        )

    def columns(self, rows: NDArray[np.int64]) -> tuple[CodedColumns, Mask | None]:
        """Return the columns of some rows, and which of them are in it; None if all."""
        with self._lock:
            if self._columns is None:
                self._fill()
            kept_columns = self._columns or {}
        is_kept = rows < self._num_cached
        if not is_kept.all() or not kept_columns:
            return self._columns_of_both(rows, is_kept, kept_columns)
        places = rows if self._places is None else self._places[rows]
        if self._places is None or (places >= 0).all():
            return take_columns(kept_columns, places), None
        return take_columns(kept_columns, places[places >= 0]), places >= 0

    @property
    def is_slow(self) -> bool:
        """Whether it pays to say ahead which rows are wanted."""
        return self._rest.is_slow

    def announce(self, rows: NDArray[np.int64]) -> None:
        """Say that these rows are wanted soon."""
        if self._columns is not None:
            self._rest.announce(rows[rows >= self._num_cached])

    def _columns_of_both(
        self, rows: NDArray[np.int64], is_kept: Mask, kept_columns: CodedColumns
    ) -> tuple[CodedColumns, Mask | None]:
        fresh, fresh_kept = self._rest.columns(rows[~is_kept])
        ours, theirs = np.flatnonzero(is_kept), np.flatnonzero(~is_kept)
        if len(ours) == 0:
            return fresh, fresh_kept
        places = rows[ours] if self._places is None else self._places[rows[ours]]
        kept = np.ones(len(rows), np.bool_)
        kept[ours[places < 0]] = False
        if fresh_kept is not None:
            kept[theirs[~fresh_kept]] = False
            theirs = theirs[fresh_kept]
        ours = ours[places >= 0]
        pieces = [take_columns(kept_columns, places[places >= 0]), fresh]
        order = np.argsort(np.concatenate([ours, theirs]), kind="stable")
        return take_columns(join_columns(pieces), order), None if kept.all() else kept

    def _fill(self) -> None:
        rows = self._source.scatter.rows
        pieces: list[CodedColumns] = []
        masks: list[tuple[int, Mask | None]] = []
        num_bytes = num_cached = 0
        blocks = rows.blocks(_BLOCK_ROWS, _BLOCK_BYTES)
        with ThreadPoolExecutor(self._num_threads, thread_name_prefix="penstock-cache") as pool:
            while wave := [block for _, block in zip(range(2 * self._num_threads), blocks, strict=False)]:
                for (start, stop), (columns, kept) in zip(wave, pool.map(self._read, wave), strict=True):
                    num_bytes += sum(map(column_bytes, columns.values()))
                    if num_bytes > self._most_bytes:
                        break
                    pieces.append(columns)
                    masks.append((stop - start, kept))
                    num_cached = stop
                if num_bytes > self._most_bytes:
                    break
        if num_cached < len(rows):
            _log.warning(
                "cache: %d of %d records of split %r fit into %d bytes; the others are read in each epoch",
                num_cached,
                len(rows),
                self._source.name,
                self._most_bytes,
            )
        self._places = _find_places(masks)
        # Joined in memory, then moved: for a moment the pieces are there twice.
        joined = join_columns(pieces) if pieces else {}
        pieces.clear()
        self._columns = joined if self._folder is None else _move_to_file(joined, self._folder)
        self._num_cached = num_cached

    def _read(self, block: tuple[int, int]) -> tuple[CodedColumns, Mask | None]:
        wanted = np.arange(*block, dtype=np.int64)
        return read_scattered(self._source.scatter, self._source.plan, self._source.losses, wanted)


def _find_places(masks: Sequence[tuple[int, Mask | None]]) -> NDArray[np.int64] | None:
    if all(mask is None for _, mask in masks):
        return None
    kept = np.concatenate([np.ones(count, np.bool_) if mask is None else mask for count, mask in masks])
    return np.where(kept, np.cumsum(kept) - 1, -1)


def _move_to_file(columns: CodedColumns, folder: Path) -> CodedColumns:
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
        with tempfile.TemporaryFile(dir=folder, prefix=".penstock-cache-") as file:
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
    values: Any = column.values
    values = moved[id(values)] if isinstance(values, np.ndarray) else _replace(values, moved)
    return Ragged(values, moved[id(column.offsets)], present)
