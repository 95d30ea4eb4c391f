"""Penstock: `ps.convert(source, out)` with its defaults: splits, shuffling, statistics, checksums, fsync."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import penstock as ps
from writers.frames import count_records
from writers.rows import as_columns
from writers.task import Task


class Writer:
    """Holds the columns, or the path of the source."""

    def __init__(self, task: Task) -> None:
        # Otherwise Arrow would start as many threads as the machine has cores, on the few it is pinned to.
        pa.set_cpu_count(task.num_cores)
        pa.set_io_thread_count(task.num_cores)
        self._source: Any = as_columns(task) if task.raw.source is None else str(task.source)
        self._num_workers = task.num_cores

    def write(self, out: Path) -> None:
        """Convert, inference included."""
        ps.convert(self._source, out, num_threads=self._num_workers)

    def count(self, out: Path) -> int:
        """Count frames."""
        return count_records(out)
