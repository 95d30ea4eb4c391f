"""What a competitor is given, and what it has to be able to do.

In: one data set, one number of cores. Out: an object whose passes the worker times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from datasets import DatasetSpec, Field


@dataclass(frozen=True)
class Task:
    """Read these fields of this data set on that many cores, at most `num_records`."""

    spec: DatasetSpec
    fields: tuple[Field, ...]
    num_cores: int
    num_records: int

    @property
    def batch_size(self) -> int:
        return self.spec.batch_size

    def shards(self, suffix: str) -> list[Path]:
        """Name as many files as hold the records asked for."""
        num_shards = -(-self.num_records // self.spec.records_per_shard)
        return self.spec.shards(suffix)[:num_shards]


class Tally(NamedTuple):
    """What was in a batch: proof that the reader read the same data as everyone else."""

    num_records: int
    label_sum: int


class Competitor(Protocol):
    """A reader that is open; making it is not part of the timed pass."""

    def batches(self) -> Iterator[Any]:
        """Start a pass over the data and yield its batches."""
        ...

    def touch(self, batch: Any) -> Tally:
        """Look at every column of a batch, as cheaply as the reader's own types allow."""
        ...
