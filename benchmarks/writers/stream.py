"""`write` and `fsync` of as many bytes as Penstock writes, into one file: the disk alone."""

from __future__ import annotations

import os
from pathlib import Path

from writers.shards import make_shards, measure_folder
from writers.task import Task

CHUNK_BYTES = 4 << 20


class Writer:
    """Knows the number of bytes."""

    def __init__(self, task: Task) -> None:
        self._num_bytes = measure_folder(make_shards(task))
        self._num_records = task.num_records
        # Noise, in case the disk would make less of something else.
        self._chunk = os.urandom(CHUNK_BYTES)

    def write(self, out: Path) -> None:
        """Write chunk after chunk, then wait for the disk."""
        out.mkdir()
        with (out / "bytes").open("wb", buffering=0) as file:
            for start in range(0, self._num_bytes, CHUNK_BYTES):
                file.write(memoryview(self._chunk)[: self._num_bytes - start])
            os.fsync(file.fileno())

    def count(self, out: Path) -> int:
        """Count the bytes as the records they stand for."""
        size = (out / "bytes").stat().st_size
        return self._num_records if size == self._num_bytes else 0
