"""The `tfrecord` package from PyPI: `TFRecordWriter.write` with a dict of values and their types."""

from __future__ import annotations

from pathlib import Path

from tfrecord import TFRecordWriter

from writers.frames import count_records
from writers.rows import open_rows
from writers.task import Task

TYPE_NAMES = {"float": "float", "int64": "int", "bytes": "byte", "text": "byte"}


class Writer:
    """Makes the rows ready; a pass is one file."""

    def __init__(self, task: Task) -> None:
        self._rows = open_rows(task, "tolist")

    def write(self, out: Path) -> None:
        """Hand over record by record."""
        out.mkdir()
        types = [(name, TYPE_NAMES[kind]) for name, kind, _ in self._rows.fields]
        writer = TFRecordWriter(str(out / "records.tfrecord"))
        for row in self._rows.take():
            writer.write({name: (value, type) for (name, type), value in zip(types, row, strict=True)})
        writer.close()

    def count(self, out: Path) -> int:
        """Count frames."""
        return count_records(out)
