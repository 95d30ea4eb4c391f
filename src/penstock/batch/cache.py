"""Decoded columns that are kept from one epoch to the next, in memory or in a file.

In: a split, and the maximum size of the cache. Out: a `CachedStore`, filled by one pass in stored order,
which is the fastest; rows that do not fit are read again in each epoch.
"""

from __future__ import annotations

import logging
import mmap
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.batch.supply import DiskStore, SplitSource, StoreColumns
from penstock.columns import (
    Bytes,
    CodedColumn,
    CodedColumns,
    Dense,
    Dictionary,
    Mask,
    concat_rows,
    make_offsets,
    take_rows,
)
from penstock.decode.losses import Losses
from penstock.decode.reader import read_scattered
from penstock.decode.row_columns import NativeRows, PlainColumns, RowColumns
from penstock.errors import FieldError, OptionError, WriteError
from penstock.foundation.job_window import give_up_if_stopped
from penstock.foundation.process import ProcessLock, usable_memory
from penstock.read.order import Order
from penstock.storage.atomic import reserve_blocks

_ALIGNMENT = 64
_LARGEST_ROW = 64  # bytes of a value that is stored next to the others of its row: a cache line
_PREFIX = ".penstock-cache-"


def check_folder(folder: Path) -> None:
    """Create the folder of a cache if it does not exist, and check that files can be written to it."""
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

    The file has no name: no other process can open it, or truncate it under the mapping. Its blocks are
    reserved before they are written, so that a full disk is an error and not a signal.
    """
    arrays = [array for column in columns.values() for array in column.arrays()]
    sizes = [-(-array.nbytes // _ALIGNMENT) * _ALIGNMENT for array in arrays]
    total = max(mmap.PAGESIZE, sum(sizes))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder, prefix=_PREFIX) as file:
            reserve_blocks(file.fileno(), total)
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
    return {name: column.map_arrays(lambda array: moved[id(array)]) for name, column in columns.items()}


def interleave(columns: CodedColumns) -> dict[str, CodedColumn]:
    """Return the same columns with the values of each row next to each other in memory.

    Rows are read in random order: a row of 40 numbers and short strings is then in a few cache lines, instead
    of one line for each value, which would take longer than decoding the record again. Lists and long strings
    stay as they are.
    """
    texts = {
        name: each
        for name, each in columns.items()
        if type(each) is Bytes and int(each.sizes.sum()) <= _LARGEST_ROW * len(each)
    }
    moved: dict[int, NDArray[Any]] = {}
    arrays = []
    for column in columns.values():
        if isinstance(column, Dense | Dictionary):
            arrays += [each for each in column.arrays() if each.nbytes <= _LARGEST_ROW * len(each)]
    num_rows = len(next(iter(columns.values()))) if columns else 0
    arrays.sort(key=lambda each: -each.itemsize)  # larger ones first: all lie at multiples of their size
    row_bytes = sum(each.nbytes for each in arrays) // max(1, num_rows)
    matrix = _native.empty((num_rows, -(-row_bytes // 8) * 8), "uint8")
    at = 0
    for each in arrays:
        size = each.nbytes // max(1, num_rows)
        target = matrix[:, at : at + size].view(each.dtype).reshape(each.shape)
        target[...] = each
        moved[id(each)] = target
        at += size
    placed = {
        name: column.map_arrays(lambda array: moved.get(id(array), array)) for name, column in columns.items()
    }
    return {**placed, **_interleave_texts(texts, num_rows)}


def _interleave_texts(texts: Mapping[str, Bytes], num_rows: int) -> dict[str, CodedColumn]:
    """Return strings with the strings of each row contiguous."""
    if not texts:
        return {}
    packed = [column.pack() for column in texts.values()]
    bases = make_offsets(np.array([len(each.arena) for each in packed], np.int64))
    starts = np.stack([each.starts + base for each, base in zip(packed, bases, strict=False)], axis=1)
    stops = np.stack([each.stops + base for each, base in zip(packed, bases, strict=False)], axis=1)
    arena = np.concatenate([each.arena for each in packed])
    everything = np.arange(starts.size)
    arena, offsets = _native.take_strings(arena, starts.reshape(-1), stops.reshape(-1), everything)
    begins, ends = (each.reshape(num_rows, len(packed)) for each in (offsets[:-1], offsets[1:]))
    return {
        name: Bytes(arena, begins[:, i], ends[:, i], column.present)
        for i, (name, column) in enumerate(texts.items())
    }


_log = logging.getLogger("penstock")

_BLOCK_ROWS = 4096
_BLOCK_BYTES = 16 << 20


def usual_cache_bytes() -> int:
    """Return a quarter of the memory."""
    return usable_memory() // 4


def warn_of_size(split: str, num_kept: int, num_rows: int, most_bytes: int) -> None:
    """Warn that a cache is too small for all records of a split."""
    _log.warning(
        "cache: %d of %d records of split %r fit into %d bytes; the others are read in each epoch",
        num_kept,
        num_rows,
        split,
        most_bytes,
    )


def merge_rows(held: CodedColumns, is_held: Mask, fresh: StoreColumns) -> StoreColumns:
    """Return requested rows in order: those that a cache holds, and the others, which were read now."""
    ours, theirs = np.flatnonzero(is_held), np.flatnonzero(~is_held)
    if fresh.kept is not None:
        theirs = theirs[fresh.kept]
    order = np.argsort(np.concatenate([ours, theirs]), kind="stable")
    columns = take_rows(concat_rows([held, fresh.columns]), order)
    faults: dict[int, FieldError] = {}
    if fresh.faults:
        index = np.argsort(order)[len(ours) :]  # of each fresh row in the merged columns
        faults = {int(index[row]): error for row, error in fresh.faults.items()}
    if fresh.kept is None:
        return StoreColumns(columns, None, faults)
    kept = is_held.copy()
    kept[theirs] = True
    return StoreColumns(columns, kept, faults)


class _KeptRows(NamedTuple):
    """The rows that a cache holds.

    Attributes:
        storage: Columns of the rows.
        rows: Numbers of the rows in the split, in increasing order.
        is_whole: Whether these are all rows of the split.
    """

    storage: PlainColumns
    rows: NDArray[np.int64]
    is_whole: bool

    def find(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], Mask]:
        """Return the index of each row among those that are held, and which of the rows are held."""
        indexes = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return indexes, self.rows[indexes] == rows


class CachedStore:
    """Rows that were decoded once.

    Args:
        source: The split.
        chosen: Rows of an epoch, in stored order.
        most_bytes: Maximum size of the cache.
        folder: Folder of the file of the cache, which has no name and ends with the process; None for memory.
    """

    def __init__(self, source: SplitSource, chosen: Order, most_bytes: int, folder: Path | None) -> None:
        self._source = source
        self._chosen = chosen
        self._most_bytes = most_bytes
        self._folder = folder
        self._rest = DiskStore(source)
        self._lock = ProcessLock()
        self._kept: _KeptRows | None = None

    def columns(self, rows: NDArray[np.int64]) -> StoreColumns:
        """Return the columns of some rows."""
        kept = self._kept
        if kept is None:
            with self._lock:
                if self._kept is None:
                    self._kept = self._fill()
                kept = self._kept
        if kept.is_whole:
            return StoreColumns(RowColumns(kept.storage, rows))
        if not len(kept.rows):
            return self._rest.columns(rows)
        indexes, is_kept = kept.find(rows)
        if is_kept.all():
            return StoreColumns(RowColumns(kept.storage, indexes))
        fresh = self._rest.columns(rows[~is_kept])
        return merge_rows(RowColumns(kept.storage, indexes[is_kept]), is_kept, fresh)

    def native_rows(self, rows: NDArray[np.int64]) -> NativeRows | None:
        """Return some rows as the core reads them, if all rows of the split are held."""
        kept = self._kept
        if kept is None or not kept.is_whole:
            return None
        return NativeRows(kept.storage.names, kept.storage.native, rows)

    @property
    def is_slow(self) -> bool:
        """Whether to announce rows before they are read."""
        return self._rest.is_slow

    def announce(self, rows: NDArray[np.int64]) -> None:
        """Announce rows that are read soon."""
        kept = self._kept
        if kept is None or not len(kept.rows):
            self._rest.announce(rows)
        elif not kept.is_whole:
            self._rest.announce(rows[~kept.find(rows)[1]])

    def _fill(self) -> _KeptRows:
        """Read rows until the cache is full; return the rows with their columns."""
        pieces: list[CodedColumns] = []
        rows: list[NDArray[np.int64]] = []
        num_bytes = num_read = 0
        for wanted in self._blocks():
            give_up_if_stopped()
            # Bad rows are not kept. Their error is raised when they are requested again.
            losses = Losses("collect", len(wanted))
            columns, sound = read_scattered(self._source.scatter, self._source.plan, losses, wanted)
            num_bytes += sum(column.nbytes for column in columns.values())
            if num_bytes > self._most_bytes:
                break
            pieces.append(columns)
            rows.append(wanted if sound is None else wanted[sound])
            num_read += len(wanted)
        if num_read < len(self._chosen):
            warn_of_size(self._source.name, num_read, len(self._chosen), self._most_bytes)
        if not pieces:
            return _KeptRows(PlainColumns({}, 0), np.empty(0, np.int64), is_whole=False)
        # Joined in memory, then moved: for a moment, memory holds the pieces twice.
        joined = concat_rows(pieces)
        pieces.clear()
        kept = np.concatenate(rows)
        columns = interleave(joined) if self._folder is None else move_to_file(joined, self._folder)
        is_whole = len(kept) == len(self._source.scatter.rows)
        return _KeptRows(PlainColumns(columns, len(kept)), kept, is_whole=is_whole)

    def _blocks(self) -> Iterator[NDArray[np.int64]]:
        split = self._source.scatter.rows
        mean_bytes = max(1, sum(shard.index.identity.size for shard in split.shards) // max(1, len(split)))
        size = max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // mean_bytes))
        for start in range(0, len(self._chosen), size):
            yield self._chosen.pick(0, start, min(start + size, len(self._chosen))).rows
