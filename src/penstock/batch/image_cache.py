"""A cache of prepared rows that grows during the first epoch; images are stored apart from other columns.

In: a split, a function that prepares its columns, and the maximum size of the cache. Out: a `ColumnStore`:
rows are decoded when they are first requested, and taken from the cache from then on.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from penstock.batch.cache import merge_rows, move_to_file, warn_of_size
from penstock.batch.supply import DiskStore, SplitSource, StoreColumns
from penstock.columns import CodedColumn, CodedColumns, Dense, Mask, Pictures, concat_rows, take_rows
from penstock.errors import WriteError
from penstock.foundation.process import ProcessLock
from penstock.transform.assembly import Faults


class HeldImages:
    """Images in the order in which they were added, by field.

    Attributes:
        num_loose_bytes: Total size of the images that no `replace` has moved elsewhere.
    """

    def __init__(self) -> None:
        self._images: dict[str, list[NDArray[np.uint8] | None]] = {}
        self._num_moved = 0
        self.num_loose_bytes = 0

    def add(self, columns: Mapping[str, Pictures]) -> dict[str, CodedColumn]:
        """Add the images of some rows; return columns that refer to them."""
        references: dict[str, CodedColumn] = {}
        for name, column in columns.items():
            images = self._images.setdefault(name, [])
            first = len(images)
            images += column.images
            self.num_loose_bytes += column.nbytes
            references[name] = Dense(np.arange(first, len(images), dtype=np.int64), column.present)
        return references

    def loose(self) -> dict[str, CodedColumn]:
        """Return all images that were added after the last `replace`."""
        return {name: Pictures(images[self._num_moved :]) for name, images in self._images.items()}

    def replace(self, moved: Mapping[str, CodedColumn]) -> None:
        """Replace the images that `loose` returned by copies; further images may have been added since."""
        count = 0
        for name, column in moved.items():
            count = len(column)
            self._images[name][self._num_moved : self._num_moved + count] = cast("Pictures", column).images
        self._num_moved += count
        self.num_loose_bytes = sum(column.nbytes for column in self.loose().values())

    def has(self, name: str) -> bool:
        """Whether a field has images."""
        return name in self._images

    def take(self, name: str, references: Dense) -> Pictures:
        """Return the referenced images as they are held; callers must not change them."""
        images = self._images[name]
        return Pictures([images[at] for at in references.values.tolist()], references.present)


class Held:
    """Content of a cache at one moment.

    Attributes:
        rows: Numbers of the rows, in the order in which they were added.
        columns: Columns of these rows, with references instead of images.
    """

    def __init__(self, rows: NDArray[np.int64], columns: CodedColumns, images: HeldImages) -> None:
        self.rows = rows
        self.columns = columns
        self._images = images
        self._order = np.argsort(rows)
        self._rising = rows[self._order]

    def find(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], Mask]:
        """Return the index of each row in the cache, and which of the rows it holds."""
        indexes = np.minimum(np.searchsorted(self._rising, rows), len(self._rising) - 1)
        return self._order[indexes], self._rising[indexes] == rows

    def take(self, indexes: NDArray[np.int64]) -> CodedColumns:
        """Return the columns of rows by their index in the cache."""
        taken = take_rows(self.columns, indexes)
        return {
            name: self._images.take(name, cast("Dense", column)) if self._images.has(name) else column
            for name, column in taken.items()
        }


_log = logging.getLogger("penstock")

_FILE_BYTES = 64 << 20  # each file is a mapping, and a process has at most some ten thousand
_JOINED_ROWS = 64  # joining this many rows takes less time than decoding one


class Prepare(Protocol):
    """Runs the expensive part of a pipeline that is the same in every epoch."""

    def __call__(self, columns: CodedColumns, *, room_bytes: int) -> tuple[CodedColumns, Faults]:
        """Return the columns, with images as `Pictures`, limited to `room_bytes`."""


class GrowingStore:
    """Rows that were prepared once.

    Args:
        source: The split.
        num_rows: Number of rows of an epoch.
        prepare: Function that prepares columns.
        most_bytes: Maximum size of the cache.
        folder: Folder of files of images, which have no names and end with the process; None for memory.
    """

    def __init__(
        self, source: SplitSource, num_rows: int, prepare: Prepare, most_bytes: int, folder: Path | None
    ) -> None:
        self._source = source
        self._num_rows = num_rows
        self._prepare = prepare
        self._most_bytes = most_bytes
        self._folder = folder
        self._rest = DiskStore(source)
        self._lock = ProcessLock()
        self._images = HeldImages()
        self._held: Held | None = None
        self._pending: list[tuple[NDArray[np.int64], CodedColumns]] = []
        self._is_known = np.zeros(len(source.scatter.rows), np.bool_)  # held, pending, or bad
        self._num_known = self._num_bytes = self._num_missed = 0
        self._is_open, self._is_moving = True, False

    def columns(self, rows: NDArray[np.int64]) -> StoreColumns:
        """Return the columns of some rows; images of the cache are decoded, others may be encoded."""
        held = self._settle(rows)
        if held is None:
            return self._read(rows)
        indexes, is_held = held.find(rows)
        if is_held.all():
            return StoreColumns(held.take(indexes))
        fresh = self._read(rows[~is_held])
        return merge_rows(held.take(indexes[is_held]), is_held, fresh) if is_held.any() else fresh

    def native_rows(self, rows: NDArray[np.int64]) -> None:
        """Return None: images are prepared by Python."""

    @property
    def is_slow(self) -> bool:
        """Whether to announce rows before they are read."""
        return self._rest.is_slow

    def announce(self, rows: NDArray[np.int64]) -> None:
        """Announce rows that are read soon."""
        held = self._held
        self._rest.announce(rows if held is None else rows[~held.find(rows)[1]])

    def _settle(self, rows: NDArray[np.int64]) -> Held | None:
        """Return the held rows; pending images are added first if many of them were requested."""
        with self._lock:
            if self._pending:
                self._num_missed += int(self._is_known[rows].sum())
                if self._held is not None:
                    self._num_missed -= int(self._held.find(rows)[1].sum())
                is_full = not self._is_open or self._num_known >= self._num_rows
                if is_full or self._num_missed * _JOINED_ROWS >= self._num_known:
                    self._join()
            return self._held

    def _join(self) -> None:
        held = [] if self._held is None else [(self._held.rows, self._held.columns)]
        parts = [*held, *self._pending]
        rows = np.concatenate([part[0] for part in parts])
        self._held = Held(rows, concat_rows([part[1] for part in parts]), self._images)
        self._pending, self._num_missed = [], 0

    def _read(self, rows: NDArray[np.int64]) -> StoreColumns:
        """Read some rows, and keep as many as fit; the caller handles all faults."""
        stored, sound, _ = self._rest.columns(rows)
        if not self._is_open:
            return StoreColumns(stored, sound)
        room_bytes = max(0, self._most_bytes - self._num_bytes)
        columns, faults = self._prepare(stored, room_bytes=room_bytes)
        self._keep(rows, rows if sound is None else rows[sound], columns, faults)
        self._move()
        return StoreColumns(columns, sound, faults)

    def _keep(
        self, asked: NDArray[np.int64], rows: NDArray[np.int64], columns: CodedColumns, faults: Faults
    ) -> None:
        """Keep the complete and new images among some rows, as many as fit."""
        images = {name: column for name, column in columns.items() if isinstance(column, Pictures)}
        others = {name: column for name, column in columns.items() if name not in images}
        each = sum(column.nbytes for column in others.values()) / max(1, len(rows))
        sizes = np.array([_size_of(images, row) for row in range(len(rows))]) + each
        sizes[sorted(faults)] = np.inf
        with self._lock:
            if not self._is_open:
                return
            new = np.flatnonzero(~self._is_known[rows])
            new = new[np.unique(rows[new], return_index=True)[1]]  # weights draw a record twice
            fits = (
                self._num_bytes + np.cumsum(np.where(np.isinf(sizes[new]), 0, sizes[new])) <= self._most_bytes
            )
            is_whole = all(column.encoded is None for column in images.values())
            self._is_open = bool(fits.all()) and is_whole
            new = new[fits & np.isfinite(sizes[new])]
            known = asked if self._is_open else rows[new]
            self._num_known += len(np.unique(known[~self._is_known[known]]))
            self._is_known[known] = True
            self._num_bytes += int(sizes[new].sum())
            if len(new):
                # Small columns are copied: the consumer may change the arrays of the batch.
                kept = {
                    name: Pictures(
                        [column.images[row] for row in new.tolist()],
                        None if column.present is None else column.present[new],
                    )
                    for name, column in images.items()
                }
                put = {**take_rows(others, new), **self._images.add(kept)}
                self._pending.append((rows[new], {name: put[name] for name in columns}))
            if not self._is_open:
                warn_of_size(self._source.name, self._num_known, self._num_rows, self._most_bytes)

    def _move(self) -> None:
        """Move images in memory to a file, once there are enough of them."""
        with self._lock:
            if self._folder is None or self._is_moving or self._images.num_loose_bytes < _FILE_BYTES:
                return
            loose, folder, self._is_moving = self._images.loose(), self._folder, True
        try:
            moved = move_to_file(loose, folder)
        except WriteError as error:
            # Held images stay where they are. Training continues without the rest of the cache.
            _log.warning("cache: nothing more is kept: %s", error)
            with self._lock:
                self._is_open, self._folder = False, None
            return
        with self._lock:
            self._images.replace(moved)
            self._is_moving = False


def _size_of(images: Mapping[str, Pictures], row: int) -> float:
    """Return the size of the images of a row in bytes; infinity if one of them is not decoded."""
    total = 0.0
    for column in images.values():
        image = column.images[row]
        if image is not None:
            total += image.nbytes
        elif column.encoded is not None:
            return np.inf
    return total
