"""Sorted runs in an object store, for workers that share no disk. Loaded when needed: it needs `obstore`.

In: encoded blocks of consecutive rows, in any process. Out: one object per run, and all runs of a folder as
one file, which any process with access to the store can read, by many requests at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.shards.row_work import WorkedRows
from penstock.shards.run_files import Run, RunFiles, write_run
from penstock.storage.object_store import delete, fetch, list_objects, put_file
from penstock.storage.request_threads import RANGE_BYTES, call_all
from penstock.storage.store_path import StorePath


def upload_run(
    folder: StorePath, blocks: Sequence[WorkedRows], deferred_names: Sequence[str], seed: int | None
) -> Run:
    """Write consecutive blocks as one run under a new name; see `write_run`.

    Raises:
        WriteError: The local disk is full or fails.
        StoreError: The store does not answer, or refuses.
    """
    with TemporaryDirectory(prefix="penstock-run-") as temporary:
        run = write_run(Path(temporary), blocks, deferred_names, seed)
        if run.name:
            put_file(folder / run.name, Path(temporary) / run.name)
    return run


class StoredRunFiles(RunFiles):
    """The runs of a folder in a store. What is appended is uploaded when the files are closed."""

    def __init__(self, folder: StorePath, local: Path) -> None:
        """Begin without runs.

        Args:
            folder: Folder of the runs.
            local: Local folder for what is appended, until it is uploaded.
        """
        super().__init__(local)
        self._remote = folder

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_remote": self._remote}

    def read(self, begin: int, array: NDArray[Any]) -> None:
        """Fill a contiguous array with the bytes from an offset on, which are all in one object."""
        self.read_parts([(begin, array)])

    def read_parts(self, parts: Sequence[tuple[int, NDArray[Any]]]) -> None:
        """Fill each contiguous array with the bytes from its offset on.

        Raises:
            NoSuchPathError: A run was removed.
            StoreError: The store does not answer, or refuses.
        """
        calls: list[Callable[[], None]] = []
        for begin, array in parts:
            name, offset = self.locate(begin)
            data = array.reshape(-1).view(np.uint8)
            calls += [
                partial(self._fetch, name, offset + start, data[start : start + RANGE_BYTES])
                for start in range(0, len(data), RANGE_BYTES)
            ]
        for _ in call_all(calls):
            pass

    def _fetch(self, name: str, start: int, into: NDArray[np.uint8]) -> None:
        into[:] = np.frombuffer(
            memoryview(fetch(self._remote / name, start, start + len(into)).data), np.uint8
        )

    def close(self) -> None:
        """Upload what was appended.

        Raises:
            StoreError: The store does not answer, or refuses.
        """
        appended = self._appended
        super().close()
        if appended is not None:
            name = self._names[-1]
            put_file(self._remote / name, self._folder / name)
            self._appended = None


def remove_runs(folder: StorePath) -> None:
    """Remove all objects of a folder.

    Raises:
        StoreError: The store does not answer, or refuses.
    """
    if paths := [each.path for each in list_objects(folder)]:
        delete(paths)
