"""Measurements of a loader, and what they say: the slowest stage, and what keeps it from using more cores.

In: statistics of a loader, its options, and the machine. Out: `Measured`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from penstock.batch.stats import STAGES, LoaderStats
from penstock.settings.loading import Shuffling

Limit: TypeAlias = Literal[
    "consumer", "none", "threads", "storage", "python", "programs", "finish", "memory", "epochs", "rows"
]
"""What keeps a loader from using more cores.

- "consumer": it takes as much time as the loader, or more.
- "none": the threads are busy, and there is one for each core.
- "threads": the threads are busy, and there are fewer of them than cores.
- "storage": the threads wait for files.
- "python": the threads wait for each other, because Python code runs in one thread at a time.
- "programs": other programs use the cores.
- "finish": the end of each batch, which one thread makes, with the functions of `Pipeline.map`.
- "memory": only few batches may be in memory, and their slices are fewer than the threads.
- "epochs": starting and ending short epochs.
- "rows": work per batch that does not depend on its size, because batches have few rows.
"""

_MUCH: Final = 0.5  # of the time
_LITTLE: Final = 0.1
_FEW_STEPS: Final = 8  # starting the threads takes as long as several steps
# From this share of their time on, threads count as busy; below, they often have nothing to do.
_BUSY: Final = 0.7
# A thread that has work and runs for less than this share of the time waits: for files, a lock or a core.
_RUNNING: Final = 0.7
# Data in memory is read in less than this time per record, and by each thread faster than this rate.
_SLOW_SECONDS: Final = 20e-6
_SLOW_BYTES_PER_SECOND: Final = 1e9


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Measurements that the limit and the bottleneck are based on.

    Attributes:
        stats: Statistics of the measured epochs, without batches that were made but not consumed.
        batch_size: Number of records per batch.
        num_slices: Number of slices per batch, which threads make at the same time.
        num_fitting: Number of batches for which there is memory ahead of the consumer.
        steps_per_epoch: Number of batches per epoch.
        num_records: Number of records of the split.
        num_cores: Number of threads that can run at the same time.
        shuffle: How the records were shuffled.
        is_crowded: Whether other programs were using the cores.
        consumer_seconds: Time that the consumer took per batch.
    """

    stats: LoaderStats
    batch_size: int
    num_slices: int
    num_fitting: int
    steps_per_epoch: int
    num_records: int
    num_cores: int
    shuffle: bool | Shuffling = False
    is_crowded: bool = False
    consumer_seconds: float = 0.0

    @property
    def busy_share(self) -> float:
        """Share of the time in which the threads were working."""
        return share_busy(self.stats)

    @property
    def consumer_share(self) -> float:
        """Share of the time in which the consumer was working."""
        spent = self.stats.batches * self.consumer_seconds
        return min(1.0, spent / self.stats.seconds) if self.stats.seconds else 0.0

    @property
    def bottleneck(self) -> str:
        """Slowest stage: "read", "decode", "transform" or "consumer".

        A consumer that does no work is never the bottleneck, even if it hardly waits: in that case the time
        is spent on starting and ending epochs.
        """
        if self.stats.wait_share < _LITTLE and self.consumer_share >= _MUCH:
            return "consumer"
        spent = (self.stats.read_seconds, self.stats.decode_seconds, self.stats.transform_seconds)
        return STAGES[spent.index(max(spent))]

    @property
    def limit(self) -> Limit:
        """What keeps the loader from using more cores."""
        if self.consumer_share >= _MUCH:
            return "consumer"
        threads = max(1, self.stats.num_threads)
        if self.busy_share >= _BUSY:
            if self.stats.cores_used < _RUNNING * self.busy_share * threads:
                if self.is_crowded:
                    return "programs"
                return "storage" if self.bottleneck == "read" and self.is_slow_storage else "python"
            return "threads" if threads < self.num_cores else "none"
        return self._limit_of_idle_threads(threads)

    def _limit_of_idle_threads(self, threads: int) -> Limit:
        if self.stats.finish_seconds >= _MUCH * self.stats.seconds:
            return "finish"
        # One of the batches is ready, or being consumed; the slices of the others are work for the threads.
        if (self.num_fitting - 1) * self.num_slices < threads:
            return "memory"
        if self.steps_per_epoch < _FEW_STEPS:
            return "epochs"
        # A thread that waits for a core is neither working nor waiting for batches.
        return "programs" if self.is_crowded else "rows"

    @property
    def is_slow_storage(self) -> bool:
        """Whether reading waits for storage, that is, is slower than reading from memory."""
        spent, num_bytes = self.stats.read_seconds, self.stats.bytes_read
        return spent > _SLOW_SECONDS * max(1, self.stats.records) + num_bytes / _SLOW_BYTES_PER_SECOND


def share_busy(stats: LoaderStats) -> float:
    """Return the share of the time in which the threads were working."""
    spent = stats.read_seconds + stats.decode_seconds + stats.transform_seconds
    there = stats.seconds * max(1, stats.num_threads)
    return min(1.0, spent / there) if there else 0.0
