"""Rows of a split in any order.

In: row numbers. Out: one segment for the core with the frames of these rows in that order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.errors import ChangedFileError, PathError, PenstockError
from penstock.foundation.process import ProcessLock, find_most_files
from penstock.read.range_buffers import Frames, Piece, RangeBuffers
from penstock.read.rows import Rows
from penstock.read.shard import Shard
from penstock.storage.open_file import OpenFile

_Source: TypeAlias = "tuple[int, _native.Buffer | _native.Mapping | None, int]"

# A batch that is spread over more files than these copies the records of the others into memory, file by
# file. Each thread may hold as many at the same time: all together, a quarter of what the process may have
# open.
_MOST_OPEN = 512


class Scatter:
    """Locates rows of a split in any order; safe to use from several threads.

    An index takes eight bytes per record, and is loaded when a row of its file is first requested.

    Args:
        rows: Rows of the split.
        num_threads: Number of threads that use this object at the same time.
    """

    def __init__(self, rows: Rows, num_threads: int = 1) -> None:
        self.rows = rows
        self._places = _native.RowLocations(rows.starts)
        self._known: set[int] = set()
        self._lock = ProcessLock()
        self._mappings: dict[int, _native.Mapping] = {}
        self._lost: dict[int, PenstockError] = {}
        self._ranges = None
        if rows.is_remote:
            self._ranges = RangeBuffers(rows.shards.find_ranges, rows.shards.list_identities()[:, 0])
        most_files = find_most_files()
        # Files that stay open are shared by all threads; half of the descriptors are left to the rest of the
        # process.
        self._most_kept = max(1, most_files // 2)
        self._most_open = min(_MOST_OPEN, max(1, most_files // 4 // max(1, num_threads)))

    @property
    def files(self) -> _native.RowFiles | None:
        """The files as the core reads them; None in an object store, or if one is known to be unreadable."""
        return None if self._lost or self._ranges is not None else self._files

    @cached_property
    def _files(self) -> _native.RowFiles:
        shards = self.rows.shards
        return _native.RowFiles(
            self._places,
            shards.list_plain(),
            shards.list_identities(),
            self._most_kept,
            self._most_open,
            self.rows.is_mapped,
        )

    def learn(self, wanted: NDArray[np.int64]) -> None:
        """Load the indexes of the files of some rows, unless they are loaded."""
        if len(self._known) < len(self.rows.shards):
            self._learn(self._places.find_unknown(wanted))

    def segments(self, wanted: NDArray[np.int64]) -> list[_native.MixedSegment]:
        """Return the locations of the frames of rows, in the order of `wanted`."""
        if len(wanted) == 0:
            return []
        if self._ranges is None:
            return self._find_segments(wanted)
        begins, sizes, frames = self._list_frames(wanted, self._ranges)
        return [_make_segment(self._ranges, *self._ranges.take(frames), begins, sizes)]

    def _find_segments(self, wanted: NDArray[np.int64]) -> list[_native.MixedSegment]:
        """Return the locations of the frames of rows, file by file."""
        which, numbers = self._places.find_files(wanted)
        shards = [self.rows.shards[number] for number in numbers]
        if not self._known.issuperset(numbers):
            self._learn(numbers)
        begins, sizes = self._places.find_frames(wanted, which, numbers)
        sources: list[_Source] = []
        files: list[OpenFile] = []
        for i, shard in enumerate(shards):
            file = shard.file() if len(files) < self._most_open else None
            if file is not None:
                files.append(file)
                mapping = self._mapping(numbers[i], file) if self.rows.is_mapped else None
                sources.append((file.fd, mapping, 0))
                continue
            mine = np.flatnonzero(which == i)
            frames = _load(shard, wanted[mine] - self.rows.starts[numbers[i]])
            sources.append((-1, frames, 0))
            begins[mine] = np.cumsum(sizes[mine]) - sizes[mine]
        return [(sources, which, begins, sizes, files)]

    def take_arrived(self, wanted: NDArray[np.int64]) -> _native.RowBuffers | None:
        """Return rows of an object store that are in memory, for the core; None if not all are."""
        if self._ranges is None or self._lost or len(wanted) == 0:
            return None
        begins, sizes, frames = self._list_frames(wanted, self._ranges)
        found = self._ranges.take_ready(frames)
        if found is None:
            return None
        return _native.RowBuffers(_make_segment(self._ranges, *found, begins, sizes))

    def _list_frames(
        self, wanted: NDArray[np.int64], ranges: RangeBuffers
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64], Frames]:
        """Return where the frames of rows begin, their sizes, and both for all files together."""
        which, numbers = self._places.find_files(wanted)
        if not self._known.issuperset(numbers):
            self._learn(numbers)
        begins, sizes = self._places.find_frames(wanted, which, numbers)
        return begins, sizes, ranges.locate(np.array(numbers, np.int64)[which], begins, sizes)

    def release(self) -> None:
        """Release bytes that were read ahead and are not needed any more."""
        if self._ranges is not None:
            self._ranges.clear()

    def check(self, *, is_strict: bool) -> None:
        """Check that no file has changed; a changed file is an error if `is_strict`, or its rows are bad."""
        suspects = self.rows.shards.find_suspects()
        for number in self._lost.keys() - set(suspects):
            self._lost.pop(number, None)
        for number in suspects:
            try:
                self.rows.shards[number].check()
            except (PathError, ChangedFileError) as error:
                if is_strict:
                    raise
                self._lost[number] = error
            else:
                self._lost.pop(number, None)

    def lose(self, error: PathError | ChangedFileError) -> bool:
        """Mark a file as unreadable; return whether it belongs to these rows."""
        found = [number for number, path in enumerate(self.rows.shards.paths) if str(path) == error.path]
        self._lost.update(dict.fromkeys(found, error))
        return bool(found)

    def lost(self, wanted: NDArray[np.int64]) -> dict[int, PenstockError]:
        """Return the errors of rows in unreadable files, by index in `wanted`."""
        if not self._lost:
            return {}
        which, numbers = self._places.find_files(wanted)
        found = {}
        for i, number in enumerate(numbers):
            why = self._lost.get(number)  # another thread may begin an epoch, and find the file again
            if why is not None:
                for at in np.flatnonzero(which == i).tolist():
                    record = int(wanted[at]) - self.rows.starts[number]
                    found[at] = type(why)(
                        why.what,
                        path=why.path,
                        record=record,
                        expected=why.expected,
                        got=why.got,
                        advice=why.advice,
                    )
        return found

    def announce(self, wanted: NDArray[np.int64]) -> None:
        """Ask the kernel to read these rows into memory in the background."""
        if self._ranges is not None:
            self._ranges.announce(self._list_frames(wanted, self._ranges)[2])
            return
        if self.rows.is_mapped:  # then all of every file was announced when it was mapped
            return
        files = self.files
        if len(wanted) and files is not None:
            self.learn(wanted)
            if files.prefetch(wanted):
                return
        _native.prefetch(self.segments(wanted))

    def _mapping(self, number: int, file: OpenFile) -> _native.Mapping:
        mapping = self._mappings.get(number)
        if mapping is None:
            mapping = self._mappings[number] = file.map()
            mapping.read_ahead()  # all of it will be read, in some order
        return mapping

    def _learn(self, numbers: list[int]) -> None:
        if self._ranges is not None:
            self.rows.shards.load_indexes([number for number in numbers if number not in self._known])
        with self._lock:
            for number in numbers:
                if number not in self._known:
                    offsets = np.ascontiguousarray(self.rows.shards[number].index.offsets)
                    self._places.set(number, offsets)
                    self._known.add(number)


def _make_segment(
    ranges: RangeBuffers,
    pieces: Sequence[Piece],
    which: NDArray[np.int64],
    begins: NDArray[np.uint64],
    sizes: NDArray[np.uint64],
) -> _native.MixedSegment:
    """Return frames in buffers, whose bytes are waited for."""
    sources: list[_Source] = [(-1, ranges.wait_for(piece), piece.offset) for piece in pieces]
    return sources, which.astype(np.uint32), begins, sizes, []


def _load(shard: Shard, records: NDArray[np.int64]) -> bytes:
    """Return the frames of some records, concatenated."""
    pieces = [b""] * len(records)
    # From the first to the last: a compressed file without a copy is gone through once, not once a record.
    for at in np.argsort(records, kind="stable").tolist():
        record = int(records[at])
        fd, data, start, begins, sizes, *held = shard.segment(slice(record, record + 1))
        begin, size = int(begins[0]), int(sizes[0])
        if data is not None and not isinstance(data, _native.Mapping):
            pieces[at] = bytes(memoryview(data)[begin - start : begin - start + size])
        elif held and isinstance(held[0], OpenFile) and fd >= 0:
            pieces[at] = held[0].read(begin, size)
        pieces[at] = pieces[at].ljust(size, b"\0")  # a file that ends early: its CRC will not fit
    return b"".join(pieces)
