"""The task of a writer, and the methods that a writer has.

In: one raw source, one number of cores. Out: an object whose passes are timed by `write_worker.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from datasets import DatasetSpec
from sources import RawSource


@dataclass(frozen=True)
class Task:
    """Write the first records of a raw source on a number of cores.

    Attributes:
        raw: Source of the records.
        spec: Fields of the records; None for images.
        num_cores: Number of cores to use.
        num_records: Number of records, from the first on.
        variant: Representation of columns in memory: "arrays", or "lists" of Python values; see `rows.py`.
        scratch: Folder for temporary files of the writer, on the disk that is written to.
    """

    raw: RawSource
    spec: DatasetSpec | None
    num_cores: int
    num_records: int
    variant: str
    scratch: Path

    @property
    def source(self) -> Path:
        if self.raw.source is None:
            raise ValueError(f"{self.raw.name} is in memory")
        return self.raw.source


class Competitor(Protocol):
    """A writer that is ready; making it is not part of the timed pass."""

    def write(self, out: Path) -> None:
        """Write all records; `out` is a folder that does not exist yet, in an empty one."""
        ...

    def count(self, out: Path) -> int:
        """Return the number of records that were written."""
        ...
