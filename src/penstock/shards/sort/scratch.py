"""An unnamed temporary file for data that does not fit into memory.

In: arrays. Out: the same arrays, read from the file. The file is removed when it is closed or the process
ends.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import WriteError
from penstock.storage.atomic import reserve_blocks

RESIDENT_BYTES = 1 << 24
"""Arrays with one item per row are in memory up to this size, and on disk above it."""
_PIECE_BYTES = 1 << 20


class Scratch:
    """A file in a folder, unnamed by default: one thread reserves space, any number write and read.

    Attributes:
        folder: Folder of the file.
        num_bytes: Number of bytes that were reserved, which is the size of the file once all are written.
    """

    def __init__(self, folder: Path, name: str | None = None) -> None:
        """Create a file.

        `name`: name of the file, if other processes read it; it stays when it is closed.
        """
        self.folder = folder
        self.num_bytes = 0
        try:
            self._file = (
                tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed by close()
                if name is None
                else (folder / name).open("x+b", buffering=0)
            )
        except OSError as error:
            raise self._failure(error) from error

    def append(self, array: NDArray[Any]) -> int:
        """Append a contiguous array; return its offset."""
        begin = self.reserve(array.nbytes)
        self.write(begin, array)
        return begin

    def reserve(self, num_bytes: int) -> int:
        """Reserve space at the end of the file, which any thread may write; return its offset."""
        begin = self.num_bytes
        self.num_bytes += num_bytes
        return begin

    def write(self, begin: int, array: NDArray[Any]) -> int:
        """Write a contiguous array at an offset of reserved space; return its exclusive end."""
        rest = _as_bytes(array)
        try:
            while rest:
                num_written = os.pwrite(self._file.fileno(), rest, begin)
                begin += num_written
                rest = rest[num_written:]
        except OSError as error:
            raise self._failure(error, f"; {len(rest)} of {array.nbytes} bytes were not written") from error
        return begin

    def read(self, begin: int, array: NDArray[Any]) -> None:
        """Fill a contiguous array with the bytes from an offset on."""
        try:
            read_all(self._file.fileno(), begin, array, self.folder)
        except OSError as error:
            if isinstance(error, WriteError):
                raise
            raise self._failure(error) from error

    def read_parts(self, parts: Sequence[tuple[int, NDArray[Any]]]) -> None:
        """Fill each contiguous array with the bytes from its offset on."""
        for begin, array in parts:
            self.read(begin, array)

    def map(self, count: int) -> NDArray[np.uint8]:
        """Return the first `count` bytes as a memory-mapped array, zero where nothing was appended.

        The array is writable, and keeps the file open.
        """
        try:
            reserve_blocks(self._file.fileno(), count)
        except OSError as error:
            raise self._failure(error, f"; {count} bytes are needed") from error
        return np.memmap(self._file, np.uint8, "r+", shape=(count,))

    def close(self) -> None:
        """Close the file; an unnamed one is removed."""
        self._file.close()

    def _failure(self, error: OSError, more: str = "") -> WriteError:
        reason = error.strerror or str(error)
        return WriteError(
            f"a temporary file cannot be written ({reason}{more})",
            path=self.folder,
            advice="Free disk space, or choose an output folder on another disk.",
        )

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def read_all(fd: int, begin: int, array: NDArray[Any], path: Path) -> None:
    """Fill a contiguous array with the bytes of an open file from an offset on."""
    rest = _as_bytes(array)
    while rest:
        num_read = _read_into(fd, rest, begin)
        if not num_read:
            raise WriteError("a temporary file is shorter than expected", path=path)
        begin += num_read
        rest = rest[num_read:]


def _read_into(fd: int, view: memoryview, begin: int) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(fd, [view], begin)
    piece = os.pread(fd, min(len(view), _PIECE_BYTES), begin)  # older versions of macOS
    view[: len(piece)] = piece
    return len(piece)


def make_row_array(folder: Path, num_rows: int, dtype: type[np.generic]) -> NDArray[Any]:
    """Return an array of zeros, one per row, which is on disk if there are many rows."""
    num_bytes = num_rows * np.dtype(dtype).itemsize
    if num_bytes <= RESIDENT_BYTES:
        return np.zeros(num_rows, dtype)
    with Scratch(folder) as scratch:
        return scratch.map(num_bytes).view(dtype)


def release_pages(array: NDArray[Any]) -> None:
    """Release the memory of an array by `make_row_array` that is on disk; its values are kept."""
    mapping = getattr(array, "_mmap", None)  # the attribute by which a memmap and its views keep the file
    if isinstance(mapping, mmap.mmap):
        mapping.madvise(mmap.MADV_DONTNEED)


def _as_bytes(array: NDArray[Any]) -> memoryview:
    return array.data.cast("B") if array.size else memoryview(b"")  # an empty view cannot be cast
