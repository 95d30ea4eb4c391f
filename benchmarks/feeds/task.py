"""The task of a feed, and the methods that a feed has.

In: one data set, its fitted state, one number of cores. Out: an object whose passes or steps are timed by
`load_worker.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from datasets import NUM_SHARDS, DatasetSpec
from fitted import Fitted

Batch: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Any]]
"""Inputs by field name, targets by field name; arrays or tensors."""
SHUFFLE_BUFFER = 10_000
SHUFFLE_SEED = 7


@dataclass(frozen=True)
class Task:
    """Feed the first shards of a data set on a number of cores, with the categories and numbers as fitted."""

    spec: DatasetSpec
    fitted: Fitted
    num_cores: int
    num_shards: int
    variant: str

    @property
    def batch_size(self) -> int:
        return self.spec.batch_size

    @property
    def num_records(self) -> int:
        return self.spec.num_records * self.num_shards // NUM_SHARDS

    @property
    def files(self) -> list[str]:
        return [str(path) for path in self.spec.shards("tfrecord")[: self.num_shards]]


class Competitor(Protocol):
    """A feed that is open; making it and fitting it is not part of the timed pass."""

    def batches(self) -> Iterator[Batch]:
        """Start an epoch and yield its batches."""
        ...

    def epochs(self) -> Iterator[Batch]:
        """Yield the batches of one epoch after the other, indefinitely; `close` ends it if it has one."""
        ...

    def to_tensors(self, batch: Batch) -> Batch:
        """Return the batch as tensors of TensorFlow, if it is not that already."""
        ...
