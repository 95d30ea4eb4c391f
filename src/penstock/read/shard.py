"""One file of a split, readable in any order.

In: a path and its index. Out: segments for the core, which say where in an open file, or in inflated bytes, the frames
of given records are.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.read.index import FileIndex
from penstock.read.stream import InflatedWindow, inflate_soundly
from penstock.storage.cache import cache_path, make_room, write_cached
from penstock.storage.file import OpenFile

Selection: TypeAlias = slice | NDArray[np.int64]  # of record numbers in the file


class Shard:
    """A plain file: any number of threads may ask for segments."""

    def __init__(self, path: Path, index: FileIndex) -> None:
        self.path = path
        self.index = index
        self._file: OpenFile | None = None

    def __len__(self) -> int:
        return len(self.index)

    def segment(self, selection: Selection) -> _native.Segment:
        """Return where the frames of the selected records are.

        Raises:
            ChangedFileError: The file is no longer what was indexed.
        """
        begins, sizes = self._frames(selection)
        file = self._open()
        return file.fd, None, 0, begins, sizes

    def in_order(self) -> Shard:
        """Return a shard to read once from its first record to its last."""
        return self

    def close(self) -> None:
        """Let go of the open file; it is opened again when needed."""
        self._file = None

    def _open(self) -> OpenFile:
        file = self._file
        if file is None:
            file = self._file = OpenFile(self.path)
        file.check_unchanged(self.index.identity)
        return file

    def _frames(self, selection: Selection) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        offsets = self.index.offsets
        if isinstance(selection, slice):
            begins = offsets[selection.start : selection.stop]
            return begins, offsets[selection.start + 1 : selection.stop + 1] - begins
        begins = offsets[selection]
        return begins, offsets[selection + 1] - begins


class CompressedShard(Shard):
    """A gzip or zlib file: read in order it is inflated as it goes, in any other order it is inflated once into the cache."""

    def __init__(self, path: Path, index: FileIndex) -> None:
        super().__init__(path, index)
        self._lock = threading.Lock()
        self._window: InflatedWindow | None = None
        self._inflated: OpenFile | None = None

    def segment(self, selection: Selection) -> _native.Segment:
        """Return where the frames of the selected records are, in inflated bytes."""
        begins, sizes = self._frames(selection)
        if len(begins) == 0:
            return -1, b"", 0, begins, sizes
        first, last = int(begins.min()), int((begins + sizes).max())
        with self._lock:
            if self._inflated is None and not self._follows(first) and not self._inflate():
                self._window = self._new_window()  # no room to inflate: go through the file again
            if self._inflated is not None:
                return self._inflated.fd, None, 0, begins, sizes
            if self._window is None:
                self._window = self._new_window()
            if first < self._window.start:
                self._window = self._new_window()
            return -1, self._window.read(first, last), first, begins, sizes

    def in_order(self) -> Shard:
        """Return a shard with a stream of its own."""
        return CompressedShard(self.path, self.index)

    def close(self) -> None:
        """Let go of the open files."""
        with self._lock:
            self._window = self._inflated = None
        super().close()

    def _follows(self, first: int) -> bool:
        """Whether reading goes on where it stopped, or begins at the beginning."""
        if self._window is None:
            return first == 0
        return first == self._window.stop

    def _new_window(self) -> InflatedWindow:
        file = OpenFile(self.path)
        file.check_unchanged(self.index.identity)
        return InflatedWindow(file, self.index.compression)

    def _inflate(self) -> bool:
        """Inflate the file into the cache, if it is not there and there is room."""
        path = cache_path("inflated", self.path, *self.index.identity)
        size = int(self.index.offsets[-1])
        if not (path.is_file() and path.stat().st_size == size):
            source = OpenFile(self.path)
            source.check_unchanged(self.index.identity)
            chunks = inflate_soundly(source, self.index.compression)
            if not make_room(path.parent, size) or not write_cached(path, chunks):
                return False
        self._inflated = OpenFile(path)
        self._window = None
        return True
