"""The shards that Penstock makes of a task: what is copied, and as many bytes as the disk has to take."""

from __future__ import annotations

from pathlib import Path

from writers.conversion import Writer
from writers.task import Task


def make_shards(task: Task) -> Path:
    """Convert once, into the scratch folder."""
    out = task.scratch / "shards"
    Writer(task).write(out)
    return out


def measure_folder(folder: Path) -> int:
    """Return how many bytes the files in a folder have."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
