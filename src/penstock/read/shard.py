"""One file of a split, readable in any order.

In: a path and its index. Out: segments for the core: the locations of given records in an open file, or in
decompressed bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Compression
from penstock.errors import ChangedFileError, CorruptRecordError, PathError
from penstock.foundation.process import ProcessLock
from penstock.read.index import Index
from penstock.read.range_buffers import RangeFile
from penstock.storage.cache import cache_path, make_room, write_cached
from penstock.storage.compression import inflate
from penstock.storage.open_file import KeptFile, KeptFiles, OpenFile, Readable
from penstock.storage.store_path import AnyPath


def _inflate_soundly(file: Readable, compression: Compression) -> Iterator[bytes]:
    """Yield all bytes that can be decompressed, without an error: the index already records the damage."""
    try:
        yield from inflate(file, compression)
    except CorruptRecordError:
        return


class InflatedWindow:
    """The decompressed bytes from `start` to `stop`; reading moves both forward."""

    def __init__(self, file: Readable, compression: Compression) -> None:
        self._chunks = _inflate_soundly(file, compression)
        self._bytes = bytearray()
        self._held_from = 0
        self.start = 0
        self.stop = 0

    def read(self, start: int, stop: int) -> bytes:
        """Return the bytes from `start`, not before `self.start`, to `stop`; fewer if the stream ends."""
        while self._held_from + len(self._bytes) < stop:
            if self._held_from + len(self._bytes) <= start:  # nothing of this is wanted
                self._held_from += len(self._bytes)
                self._bytes.clear()
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._bytes += chunk
        if start > self._held_from:
            del self._bytes[: start - self._held_from]
            self._held_from = start
        self.start, self.stop = start, stop
        return bytes(memoryview(self._bytes)[: stop - start])

    def is_at_end(self) -> bool:
        """Return whether the stream ends where the last read stopped."""
        while self._held_from + len(self._bytes) <= self.stop:
            chunk = next(self._chunks, None)
            if chunk is None:
                return True
            self._bytes += chunk
        return False


Selection: TypeAlias = slice | NDArray[np.int64]  # of record numbers in the file
Access: TypeAlias = Literal["read", "map", "load"]


class Shard:
    """A plain file; safe to use from several threads.

    The shards of a data set share `files`, as they may be more than a process can have open.

    Attributes:
        path: Path of the file.
        index: Index of the file.
        ranges: The file in an object store, which is read by ranges; None if it has a descriptor.
    """

    ranges: RangeFile | None = None

    def __init__(self, path: AnyPath, index: Index, files: KeptFiles | None = None) -> None:
        self.path = path
        self.index = index
        self._files = files or KeptFiles()
        # An object of a store has other ways to be read.
        self._file = KeptFile(Path(path), index.identity, self._files)

    def __len__(self) -> int:
        return len(self.index)

    def segment(self, selection: Selection, access: Access = "read") -> _native.Segment:
        """Return the locations of the frames of the selected records.

        `access`: how the core gets the records: "read" from the open file, or through a "map" of it into
        memory; "load" reads them now, so that no file stays open.
        """
        begins, sizes = self._frames(selection)
        file = self._file.open()
        if access != "load" or len(begins) == 0:
            return file.fd, file.map() if access == "map" else None, 0, begins, sizes, file
        first, last = int(begins.min()), int((begins + sizes).max())
        return -1, file.read(first, last - first), first, begins, sizes, None

    def in_order(self) -> Shard:
        """Return a shard to read once from its first record to its last."""
        return self

    def file(self) -> OpenFile | None:
        """Return an open file with the frames at the offsets of the index; None if there is no such file."""
        return self._file.open()

    def check(self) -> None:
        """Check that the file still exists and has not changed since it was indexed."""
        self._file.check()

    def _frames(self, selection: Selection) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        offsets = self.index.offsets
        if isinstance(selection, slice):
            begins = offsets[selection.start : selection.stop]
            return begins, offsets[selection.start + 1 : selection.stop + 1] - begins
        begins = offsets[selection]
        return begins, offsets[selection + 1] - begins


class CompressedShard(Shard):
    """A gzip or zlib file: decompressed on the fly when read in order, into the cache for other orders."""

    def __init__(
        self, path: AnyPath, index: Index, files: KeptFiles | None = None, *, goes_forward: bool = False
    ) -> None:
        super().__init__(path, index, files)
        self._goes_forward = goes_forward  # skipped bytes are inflated and dropped
        self._lock = ProcessLock()
        self._window = self._new_window()
        self._copy = cache_path("inflated", path, *index.identity)
        self._uses_copy = False

    def segment(self, selection: Selection, access: Access = "read") -> _native.Segment:
        """Return the locations of the frames of the selected records, in decompressed bytes."""
        begins, sizes = self._frames(selection)
        if len(begins) == 0:
            return -1, b"", 0, begins, sizes, None
        first, last = int(begins.min()), int((begins + sizes).max())
        with self._lock:
            is_ahead = self._goes_forward or first <= self._window.stop
            if self._uses_copy or first < self._window.start or not is_ahead:
                copy = self._open_copy()
                if copy is not None:
                    self._uses_copy = True
                    self._window = self._new_window()
                    return copy.fd, copy.map() if access == "map" else None, 0, begins, sizes, copy
            if first < self._window.start:  # no room for a copy: go through the file again
                self._window = self._new_window()
            inflated = self._window.read(first, last)
            if last == int(self.index.offsets[-1]):  # the end: its bytes are released
                self._check_end()
                self._window = self._new_window()
            return -1, inflated, first, begins, sizes, None

    def _check_end(self) -> None:
        """Check that the stream ends where the index ends; the index may belong to another file."""
        if self.index.is_scanned or self._window.is_at_end():
            return
        self.index.distrust()
        raise ChangedFileError(
            "the file is longer than its index",
            path=self.path,
            expected=f"{int(self.index.offsets[-1])} inflated bytes",
            got="more",
            advice="Open it again to rebuild the index.",
        )

    def file(self) -> OpenFile | None:
        """Return the decompressed copy in the cache; None if there is no room for it."""
        with self._lock:
            copy = self._open_copy()
            if copy is not None:
                self._uses_copy = True
            return copy

    def in_order(self) -> Shard:
        """Return a shard with its own stream."""
        return CompressedShard(self.path, self.index, self._files, goes_forward=True)

    def _new_window(self) -> InflatedWindow:
        return InflatedWindow(self._source(), self.index.compression)

    def _source(self) -> Readable:
        """Return the compressed bytes, to be read from their beginning."""
        return self._file

    def _open_copy(self) -> OpenFile | None:
        """Return the decompressed copy in the cache, made now if needed; None if there is no room for it."""
        size = int(self.index.offsets[-1])
        copy = self._find_copy(size)
        if copy is None:
            chunks = _inflate_soundly(self._source(), self.index.compression)
            if make_room(self._copy.parent, size) and write_cached(self._copy, chunks):
                self._files.forget(self._copy)
                copy = self._find_copy(size)
        return copy

    def _find_copy(self, size: int) -> OpenFile | None:
        try:
            copy = self._files.open(self._copy)
        except PathError:
            return None
        return copy if copy.size == size else None
