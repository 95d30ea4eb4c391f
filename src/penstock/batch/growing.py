"""Rows that are kept as they are first asked for, with their images as pixels.

In: a split, what prepares its columns, and how much may be kept. Out: a `RowStore`. Decoding images takes
long, so no pass comes before the first batch: the first epoch fills the cache, the next ones take from it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.batch.cachefile import move_to_file
from penstock.batch.held import Held, HeldImages, is_of_images
from penstock.batch.supply import DiskStore, Found, SplitSource
from penstock.decode.gather import column_bytes, join_columns, take_columns
from penstock.storage.fork import ProcessLock
from penstock.transform.assembly import Faults
from penstock.types import CodedColumn, CodedColumns, Dense, Pictures

_log = logging.getLogger("penstock")

Prepare: TypeAlias = Callable[[CodedColumns], tuple[CodedColumns, Faults]]

_FILE_BYTES = 64 << 20  # a mapping each, of which a process has but some ten thousands
_DEAR = 64  # how many rows are joined in less time than it takes to decode one


class GrowingStore:
    """Rows that were prepared once.

    Args:
        source: The split.
        num_rows: How many of its rows an epoch holds.
        prepare: Does to columns what is the same in every epoch, and dear.
        most_bytes: How much may be kept.
        folder: Where to keep images in files, which have no names there and go with the process; None is
            memory.
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
        self._is_open = True

    def columns(self, rows: NDArray[np.int64]) -> Found:
        """Return the columns of some rows."""
        held = self._settle(rows)
        if held is None:
            return self._read(rows)
        places, is_held = held.find(rows)
        if is_held.all():
            return Found(held.take(places))
        ours, theirs = np.flatnonzero(is_held), np.flatnonzero(~is_held)
        fresh = self._read(rows[theirs])
        if not len(ours):
            return fresh
        if fresh.kept is not None:
            theirs = theirs[fresh.kept]
        order = np.argsort(np.concatenate([ours, theirs]), kind="stable")
        columns = take_columns(join_columns([held.take(places[ours]), fresh.columns]), order)
        placed = np.argsort(order)[len(ours) :]  # where each of theirs stands now
        faults = {int(placed[row]): error for row, error in fresh.faults.items()}
        is_held[theirs] = True
        return Found(columns, None if fresh.kept is None else is_held, faults)

    @property
    def is_slow(self) -> bool:
        """Whether it pays to say ahead which rows are wanted."""
        return self._rest.is_slow

    def announce(self, rows: NDArray[np.int64]) -> None:
        """Say that these rows are wanted soon."""
        held = self._held
        self._rest.announce(rows if held is None else rows[~held.find(rows)[1]])

    def _settle(self, rows: NDArray[np.int64]) -> Held | None:
        """Return what is held, with what is pending where enough of that was asked for in vain."""
        with self._lock:
            if self._pending:
                self._num_missed += int(self._is_known[rows].sum())
                if self._held is not None:
                    self._num_missed -= int(self._held.find(rows)[1].sum())
                is_full = not self._is_open or self._num_known >= self._num_rows
                if is_full or self._num_missed * _DEAR >= self._num_known:
                    self._join()
            return self._held

    def _join(self) -> None:
        held = [] if self._held is None else [(self._held.rows, self._held.columns)]
        parts = [*held, *self._pending]
        rows = np.concatenate([part[0] for part in parts])
        self._held = Held(rows, join_columns([part[1] for part in parts]), self._images)
        self._pending, self._num_missed = [], 0

    def _read(self, rows: NDArray[np.int64]) -> Found:
        """Read, prepare and keep some rows; whoever asked judges the faults of all together."""
        stored, sound, _ = self._rest.columns(rows)
        columns, faults = self._prepare(stored)
        left = rows if sound is None else rows[sound]
        good = np.delete(np.arange(len(left), dtype=np.int64), sorted(faults))
        self._keep(rows, left, good, columns)
        return Found(columns, sound, faults)

    def _keep(
        self,
        asked: NDArray[np.int64],
        rows: NDArray[np.int64],
        good: NDArray[np.int64],
        columns: CodedColumns,
    ) -> None:
        """Keep the good ones of some rows, which were asked for beside others that could not be read."""
        with self._lock:
            if not self._is_open:
                return
            new = good[~self._is_known[rows[good]]]
            new = new[np.unique(rows[new], return_index=True)[1]]  # weights draw a record twice
            self._num_known += len(np.unique(asked[~self._is_known[asked]]))
            self._is_known[asked] = True
        copied = _copy(columns, new)
        num_bytes = sum(map(column_bytes, copied.values()))
        with self._lock:
            if self._is_open and self._num_bytes + num_bytes > self._most_bytes:
                self._is_open = False
                self._warn()
            if self._is_open and len(new):
                self._num_bytes += num_bytes
                self._pending.append((rows[new], self._put(copied)))

    def _warn(self) -> None:
        num_held = sum(len(rows) for rows, _ in self._pending)
        num_held += 0 if self._held is None else len(self._held.rows)
        _log.warning(
            "cache: %d of %d records of split %r fit into %d bytes; the others are read in each epoch",
            num_held,
            self._num_rows,
            self._source.name,
            self._most_bytes,
        )

    def _put(self, columns: CodedColumns) -> CodedColumns:
        """Return columns with references in the place of images, which are put by themselves."""
        images = {name: column for name, column in columns.items() if is_of_images(column)}
        references = self._images.add(images)
        if self._folder is not None and self._images.num_loose_bytes >= _FILE_BYTES:
            self._images.settle(self._move)
        return {name: references.get(name, column) for name, column in columns.items()}

    def _move(self, columns: dict[str, CodedColumn]) -> dict[str, CodedColumn]:
        return columns if self._folder is None else move_to_file(columns, self._folder)


def _copy(columns: CodedColumns, rows: NDArray[np.int64]) -> CodedColumns:
    """Return some rows for keeping: what the batch gets is its own, to change.

    Images in memory of their size: blocks of the pool are up to twice as large.
    """
    small = {name: column for name, column in columns.items() if not is_of_images(column)}
    copied = take_columns(small, rows)
    for name, column in columns.items():
        present = None if column.present is None else column.present[rows]
        if isinstance(column, Pictures):
            held = [column.images[row] for row in rows.tolist()]
            copied[name] = Pictures([None if image is None else image.copy() for image in held], present)
        elif isinstance(column, Dense) and name not in small:
            copied[name] = Dense(column.values[rows], present)
    return {name: copied[name] for name in columns}
