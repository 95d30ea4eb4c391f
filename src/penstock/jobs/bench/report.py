"""Report of a loader benchmark.

In: statistics of the first epoch and of later epochs. Out: `BenchReport`, with the bottleneck.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

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
# Statistics that include batches that were made but not consumed.
_MADE: Final = ("bytes_read", "read_seconds", "decode_seconds", "transform_seconds", "finish_seconds")
_SUMS: Final = ("batches", "records", "seconds", "cpu_seconds", "wait_seconds", *_MADE)
ADVICE: Final[Mapping[str, str]] = {
    "consumer": "Nothing to change: the loader is as fast as its consumer.",
    "threads": "Use more threads, up to one per core.",
    "storage": 'Read neighboring records together with shuffle="block", or use more threads.',
    "python": "Use larger batches and fewer fields, and NumPy operations in functions of Pipeline.map.",
    "programs": "Measure again when the other programs have finished.",
    "finish": "Use larger batches, and NumPy operations in functions of Pipeline.map.",
    "memory": "Use smaller batches, or increase prefetch_bytes.",
    "epochs": "Use repeat=None, which iterates over many epochs without a restart.",
    "rows": "Use larger batches, which take less time per record.",
    # Busy threads, one per core: what their slowest stage could do without.
    "read": 'Read less: uncompressed shards, smaller records, or cache="memory".',
    "decode": 'Decode less: fewer fields, or cache="memory".',
    "transform": 'Transform less: fewer fields, shorter texts and sequences; for images, cache="memory".',
}


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


@dataclass(frozen=True, kw_only=True)
class BenchReport:
    """Result of a benchmark.

    Attributes:
        split: Name of the split.
        num_bytes: Size of its files on disk.
        compression: Compression of the files: "none", "gzip", "zlib" or "mixed".
        fields: Names of the fields that were read.
        not_fed: Reason why each other field is not read, by name.
        fit_seconds: Time to fit the pipeline; None if no pipeline was fitted.
        first: Statistics of the first epoch, or of the measured part of it.
        later: Statistics of all later epochs; None if there were none.
        disk_bytes: Bytes that the kernel read from disk (not from its cache) in the first epoch; None if the
            system does not report them.
        peak_bytes: Peak memory of the process, including mapped files.
        measured: Measurements that the limit and the bottleneck are based on.
    """

    split: str
    num_bytes: int
    compression: str
    fields: tuple[str, ...]
    not_fed: Mapping[str, str]
    fit_seconds: float | None
    first: LoaderStats
    later: LoaderStats | None
    disk_bytes: int | None
    peak_bytes: int
    measured: Measured

    @property
    def judged(self) -> LoaderStats:
        """Statistics to judge by: later epochs if there are enough, otherwise the first."""
        return self.measured.stats

    @property
    def bottleneck(self) -> str:
        """Slowest stage: "read", "decode", "transform" or "consumer"."""
        return self.measured.bottleneck

    @property
    def limit(self) -> Limit:
        """What keeps the loader from using more cores."""
        return self.measured.limit

    @property
    def advice(self) -> str:
        """One sentence on what to change."""
        return ADVICE[self.bottleneck if self.limit == "none" else self.limit]

    def count_epochs(self, stats: LoaderStats) -> float:
        """Return the number of epochs that the batches amount to."""
        return stats.batches / self.measured.steps_per_epoch

    def to_json(self) -> dict[str, object]:
        """Return the report for `json.dumps`."""
        measured = self.measured
        return {
            "split": self.split,
            "records": measured.num_records,
            "bytes": self.num_bytes,
            "compression": self.compression,
            "fields": list(self.fields),
            "not_fed": dict(self.not_fed),
            "fit_seconds": self.fit_seconds,
            "batch_size": measured.batch_size,
            "shuffle": measured.shuffle,
            "threads": self.judged.num_threads,
            "cores": measured.num_cores,
            "slices_per_batch": measured.num_slices,
            "consumer_seconds": measured.consumer_seconds,
            "steps_per_epoch": measured.steps_per_epoch,
            "first_epoch": self._describe(self.first),
            "later_epochs": None if self.later is None else self._describe(self.later),
            "first_epoch_disk_bytes": self.disk_bytes,
            "peak_memory_bytes": self.peak_bytes,
            "crowded": measured.is_crowded,
            "bottleneck": self.bottleneck,
            "limit": self.limit,
            "advice": self.advice,
        }

    def _describe(self, stats: LoaderStats) -> dict[str, Any]:
        return {
            "epochs": self.count_epochs(stats),
            **{name: getattr(stats, name) for name in _SUMS},
            "records_per_second": stats.records_per_second,
            "megabytes_per_second": stats.megabytes_per_second,
            "cores_used": stats.cores_used,
            "busy_share": share_busy(stats),
            "wait_share": stats.wait_share,
        }


def subtract(later: LoaderStats, earlier: LoaderStats) -> LoaderStats:
    """Return the difference between two statistics of a loader."""
    sums = {name: getattr(later, name) - getattr(earlier, name) for name in _SUMS}
    return dataclasses.replace(later, **sums)


def leave_out_ahead(stats: LoaderStats) -> LoaderStats:
    """Return the statistics without the batches that are ready but were not consumed.

    Batches take about the same time each. Without this correction, a consumer that takes 5 of 35 batches
    would make the loader appear seven times as busy as it needs to be.
    """
    if not stats.num_ready or not stats.batches:
        return stats
    share = stats.batches / (stats.batches + stats.num_ready)
    scaled: dict[str, Any] = {name: getattr(stats, name) * share for name in _MADE}
    scaled["bytes_read"] = round(scaled["bytes_read"])
    return dataclasses.replace(stats, **scaled)
