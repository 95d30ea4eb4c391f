"""What the measuring of a loader found.

In: the figures of the first epoch and of later ones. Out: `BenchReport`, with the bottleneck and an advice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.batch.stats import LoaderStats
from penstock.jobs.bench.advice import Measured, advise, share_busy

# What counts batches that were made, and not only those that were taken.
_MADE: Final = ("bytes_read", "read_seconds", "decode_seconds", "transform_seconds")
_SUMS: Final = ("batches", "records", "seconds", "wait_seconds", *_MADE)


@dataclass(frozen=True, kw_only=True)
class BenchReport:
    """What was measured.

    Attributes:
        split: The name of the split.
        num_bytes: What its files take on disk.
        compression: How they are compressed: "none", "gzip", "zlib" or "mixed".
        fields: The fields that were read.
        not_fed: Why other fields are not fed, by name.
        fit_seconds: How long the pipeline took to fit; None if none was fitted.
        first: What the first epoch took, or as much of it as there was time for.
        later: What all that came after took; None if nothing did.
        disk_bytes: What the kernel got from a disk for the first epoch, and not from its cache; None where it
            does not tell.
        peak_bytes: The most memory that the process had, mapped files included.
        measured: What the advice rests on.
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
        """What the advice rests on: later epochs, where there are enough of them, or the first."""
        return self.measured.stats

    @property
    def bottleneck(self) -> str:
        """What to make faster first: "read", "decode", "transform" or "consumer"."""
        return self.measured.bottleneck

    @property
    def advice(self) -> str:
        """One sentence on what to change."""
        return advise(self.measured)

    def count_epochs(self, stats: LoaderStats) -> float:
        """Return how many epochs some batches are."""
        return stats.batches / self.measured.steps_per_epoch

    def to_json(self) -> dict[str, Any]:
        """Return the figures for `json.dumps`."""
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
            "consumer_seconds": measured.consumer_seconds,
            "steps_per_epoch": measured.steps_per_epoch,
            "first_epoch": self._describe(self.first),
            "later_epochs": None if self.later is None else self._describe(self.later),
            "first_epoch_disk_bytes": self.disk_bytes,
            "peak_memory_bytes": self.peak_bytes,
            "crowded": measured.is_crowded,
            "bottleneck": self.bottleneck,
            "advice": self.advice,
        }

    def _describe(self, stats: LoaderStats) -> dict[str, Any]:
        return {
            "epochs": self.count_epochs(stats),
            **{name: getattr(stats, name) for name in _SUMS},
            "records_per_second": stats.records_per_second,
            "megabytes_per_second": stats.megabytes_per_second,
            "busy_share": share_busy(stats),
            "wait_share": stats.wait_share,
        }


def subtract(later: LoaderStats, earlier: LoaderStats) -> LoaderStats:
    """Return what was done between two looks at a loader."""
    sums = {name: getattr(later, name) - getattr(earlier, name) for name in _SUMS}
    return dataclasses.replace(later, **sums)


def leave_out_ahead(stats: LoaderStats) -> LoaderStats:
    """Return the figures without the batches that wait for the consumer: it took no time that they fill.

    Batches are about equally dear. Without this, a consumer that takes five and leaves thirty would make the
    loader look seven times as busy as it needs to be.
    """
    if not stats.num_ready or not stats.batches:
        return stats
    share = stats.batches / (stats.batches + stats.num_ready)
    scaled: dict[str, Any] = {name: getattr(stats, name) * share for name in _MADE}
    scaled["bytes_read"] = round(scaled["bytes_read"])
    return dataclasses.replace(stats, **scaled)
