"""What a writer is given, and what it has to be able to do.

In: one raw, one number of cores. Out: an object whose passes the desk times.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from datasets import DatasetSpec
from sources import RawSource


@dataclass(frozen=True)
class Task:
    """Write so many records of a raw on so many cores.

    Attributes:
        raw: Where they come from.
        spec: The fields of the records; None for images.
        num_cores: How many cores there are to use.
        num_records: How many records, from the first on.
        variant: Which form the columns in memory have; see `columns.py`.
        scratch: A folder for what a writer prepares, on the disk that is written to.
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
            raise ValueError(f"{self.raw.name} lies in memory")
        return self.raw.source


class Competitor(Protocol):
    """A writer that is ready; making it is not part of the timed pass."""

    def write(self, out: Path) -> None:
        """Write all records; `out` is a folder that is not there yet, in one that is empty."""
        ...

    def count(self, out: Path) -> int:
        """Return how many records have been written."""
        ...
