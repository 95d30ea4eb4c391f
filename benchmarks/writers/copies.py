"""`write` and `fsync` of as many bytes as Penstock writes, into one file: the disk alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from writers.frames import count_records
from writers.penstock_convert import Writer as ConversionWriter
from writers.task import Task


def make_shards(task: Task) -> Path:
    """Convert once, into the scratch folder."""
    out = task.scratch / "shards"
    ConversionWriter(task).write(out)
    return out


def measure_folder(folder: Path) -> int:
    """Return how many bytes the files in a folder have."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


class CopyWriter:
    """Makes the files to copy."""

    def __init__(self, task: Task) -> None:
        self._is_images = task.spec is None
        self._source = task.source if self._is_images else make_shards(task)

    def write(self, out: Path) -> None:
        """Copy, without waiting for the disk."""
        subprocess.run(["cp", "-r", str(self._source), str(out)], check=True)

    def count(self, out: Path) -> int:
        """Count files, or frames."""
        return sum(1 for _ in out.rglob("*.jpg")) if self._is_images else count_records(out)


CHUNK_BYTES = 4 << 20


class StreamWriter:
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
