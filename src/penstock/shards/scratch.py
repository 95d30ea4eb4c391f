"""A file without a name, for what does not fit into memory; it is gone once it is closed or the process ends.

In: arrays. Out: the same arrays, read back from where they lie.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import WriteError

RESIDENT_BYTES = 1 << 24
"""An array with one item per row lies in memory up to this size, and on disk above it."""


class Scratch:
    """An unnamed file in a folder: one thread appends, any number read what was appended.

    Attributes:
        num_bytes: How many were appended.
    """

    def __init__(self, folder: Path) -> None:
        """Begin a file.

        Raises:
            WriteError: None can be made in the folder.
        """
        self.folder = folder
        self.num_bytes = 0
        try:
            self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise self._failure(error) from error

    def append(self, array: NDArray[Any]) -> int:
        """Write a contiguous array behind what is there; return the place where it begins.

        Raises:
            WriteError: The disk is full, or fails.
        """
        begin = self.num_bytes
        rest = _as_bytes(array)
        try:
            while rest:
                num_written = os.pwrite(self._file.fileno(), rest, self.num_bytes)
                self.num_bytes += num_written
                rest = rest[num_written:]
        except OSError as error:
            raise self._failure(error, f"; {len(rest)} of {array.nbytes} bytes are left to write") from error
        return begin

    def read(self, begin: int, array: NDArray[Any]) -> None:
        """Fill a contiguous array with the bytes from a place on.

        Raises:
            WriteError: They are not all there, or the disk fails.
        """
        rest = _as_bytes(array)
        while rest:
            try:
                num_read = os.preadv(self._file.fileno(), [rest], begin)
            except OSError as error:
                raise self._failure(error) from error
            if not num_read:
                raise WriteError("a temporary file is shorter than what was written", path=self.folder)
            begin += num_read
            rest = rest[num_read:]

    def map(self, count: int) -> NDArray[np.uint8]:
        """Return the first `count` bytes as an array that is the file, zero where nothing was appended.

        It may be written to, and holds the file open by itself.

        Raises:
            WriteError: There is no room for them.
        """
        try:
            os.posix_fallocate(self._file.fileno(), 0, count)
        except OSError as error:
            raise self._failure(error, f"; {count} bytes are needed") from error
        return np.memmap(self._file, np.uint8, "r+", shape=(count,))

    def close(self) -> None:
        """Give the file back to the disk."""
        self._file.close()

    def _failure(self, error: OSError, more: str = "") -> WriteError:
        reason = error.strerror or str(error)
        return WriteError(
            f"a temporary file cannot be written ({reason}{more})",
            path=self.folder,
            advice="Make room there, or choose another place.",
        )

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def make_row_array(folder: Path, num_rows: int, dtype: type[np.generic]) -> NDArray[Any]:
    """Return an array of zeros, one per row, which lies on disk where there are many rows.

    Raises:
        WriteError: There is no room for it.
    """
    num_bytes = num_rows * np.dtype(dtype).itemsize
    if num_bytes <= RESIDENT_BYTES:
        return np.zeros(num_rows, dtype)
    with Scratch(folder) as scratch:
        return scratch.map(num_bytes).view(dtype)


def release_pages(array: NDArray[Any]) -> None:
    """Release what is in memory of an array by `make_row_array` that lies on disk; its items stay."""
    mapping = getattr(array, "_mmap", None)  # the attribute by which a memmap and its views hold the file
    if isinstance(mapping, mmap.mmap):
        mapping.madvise(mmap.MADV_DONTNEED)


def _as_bytes(array: NDArray[Any]) -> memoryview:
    return array.data.cast("B") if array.size else memoryview(b"")  # a view of nothing cannot be cast
