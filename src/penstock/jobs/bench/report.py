"""Report of a loader benchmark.

In: statistics of the first epoch and of later epochs. Out: `BenchReport`, with the bottleneck.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.batch.stats import LoaderStats
from penstock.jobs.bench.measured import Limit, Measured, share_busy

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
