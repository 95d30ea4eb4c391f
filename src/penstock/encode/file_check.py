"""Reads, checks, hashes and digests the local files that a block of rows names, in the compiled core.

In: absolute paths. Out: `CheckedFiles`. Files that the core does not accept are left to the caller, who finds
out why: most of them are errors, which are rare.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Mask

_FILES_PER_THREAD: Final = 64  # fewer are not worth a thread


class FileThreads(NamedTuple):
    """Threads that help to check the files of a block, besides the thread that encodes it.

    Attributes:
        pool: Executor of the threads. Its tasks must not wait for the encoding of a block.
        num_threads: Maximum number of threads to use.
    """

    pool: Executor
    num_threads: int


class CheckedFiles(NamedTuple):
    """The files of a block, one per row; all values are 0 in rows without a file that was checked.

    Attributes:
        sizes: Numbers of bytes.
        hashes: Hash of each file, as in `penstock.storage.deferred.Deferred`.
        digests: Digest of each file, as two words.
        formats: Numbers of image formats, as in `penstock.schema.picture`; 0 if headers were not read.
        widths: Widths of the images.
        heights: Heights of the images.
        others: Rows with a path whose files were not checked, in ascending order.
    """

    sizes: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    digests: NDArray[np.uint64]
    formats: NDArray[np.int8]
    widths: NDArray[np.int64]
    heights: NDArray[np.int64]
    others: list[int]

    def clear(self, rows: list[int]) -> None:
        """Set the values of some rows to 0."""
        for values in (self.sizes, self.hashes, self.digests, self.formats, self.widths, self.heights):
            values[rows] = 0


def check_files(
    paths: Sequence[str], present: Mask | None, threads: FileThreads | None, *, reads_headers: bool
) -> CheckedFiles:
    """Read the files of a block.

    `paths`: absolute paths and URLs. `present`: mask of the rows that have a path; None if all do. `threads`:
    threads that help; None for the calling thread alone. `reads_headers`: whether the files must be images
    with a size in pixels.
    """
    num_rows = len(paths)
    is_local = np.fromiter((path.startswith("/") and "\0" not in path for path in paths), np.bool_, num_rows)
    if present is not None:
        is_local &= present
    rows = np.flatnonzero(is_local)
    local = paths if len(rows) == num_rows else [paths[row] for row in rows.tolist()]
    check = _native.FileCheck(b"".join(os.fsencode(path) + b"\0" for path in local), reads_headers)
    if threads is not None:
        for _ in range(min(threads.num_threads, len(local) // _FILES_PER_THREAD)):
            threads.pool.submit(_check_part, check)
    _check_part(check)
    sizes, hashes, digests, formats, widths, heights = check.finish()
    is_checked = is_local.copy()
    is_checked[rows] = sizes >= 0
    has_path = np.ones(num_rows, np.bool_) if present is None else present
    others = np.flatnonzero(has_path & ~is_checked).tolist()
    found = CheckedFiles(
        np.maximum(sizes, 0), hashes, digests.reshape(-1, 2), formats, widths, heights, others
    )
    return found if len(rows) == num_rows else _spread(found, rows, num_rows)


def _check_part(check: _native.FileCheck) -> None:
    """Check files until all have begun; several threads share them."""
    check.run()


def _spread(found: CheckedFiles, rows: NDArray[np.int64], num_rows: int) -> CheckedFiles:
    """Return the values of some rows as values of all rows."""

    def spread(values: NDArray[Any]) -> NDArray[Any]:
        out = np.zeros((num_rows, *values.shape[1:]), values.dtype)
        out[rows] = values
        return out

    return CheckedFiles(
        spread(found.sizes),
        spread(found.hashes),
        spread(found.digests),
        spread(found.formats),
        spread(found.widths),
        spread(found.heights),
        found.others,
    )
