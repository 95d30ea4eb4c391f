"""Advice on how to make a loader faster, in one sentence.

In: measurements of a loader and its options. Out: the sentence. The same measurements give the same advice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from penstock.batch.options import Shuffling
from penstock.batch.stats import STAGES, LoaderStats
from penstock.foundation.wording import count

_FEWEST_BATCHES: Final = 5
_MUCH: Final = 0.5  # of the time
_LITTLE: Final = 0.1
# Data in memory is read in less than this time per record, and by each thread faster than this rate.
_SLOW_SECONDS: Final = 20e-6
_SLOW_BYTES_PER_SECOND: Final = 1e9
# Python calls cost about 10 µs per field and batch, whatever the batch size: they matter up to this time.
_SHORT_SECONDS: Final = 1e-3
_FEW_STEPS: Final = 8  # starting the threads takes as long as several steps
_GROWTH: Final = 2  # decoded records are larger: a small number takes one byte stored and eight decoded


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Measurements that the advice is based on.

    Attributes:
        stats: Statistics of the measured epochs, without batches that were made but not consumed.
        batch_size: Number of records per batch.
        batch_bytes: Size of the arrays of one batch.
        prefetch_bytes: Maximum total size of the batches that are ready.
        steps_per_epoch: Number of batches per epoch.
        num_fields: Number of fields that are read.
        num_records: Number of records of the split.
        num_cores: Number of threads that can run at the same time.
        cache_bytes: Maximum size of a cache in memory.
        pixel_bytes: Size of the decoded images of one record; 0 without images.
        shuffle: How the records were shuffled.
        is_cached: Whether a cache was used.
        is_compressed: Whether any file is compressed.
        is_first: Whether `stats` describes the first epoch.
        is_crowded: Whether other programs were using the cores.
        slowdown: Time of the first epoch divided by that of a later epoch; None without a later epoch.
        consumer_seconds: Time that the consumer took per batch.
    """

    stats: LoaderStats
    batch_size: int
    batch_bytes: int
    prefetch_bytes: int | None
    steps_per_epoch: int
    num_fields: int
    num_records: int
    num_cores: int
    cache_bytes: int
    pixel_bytes: int = 0
    shuffle: bool | Shuffling = False
    is_cached: bool = False
    is_compressed: bool = False
    is_first: bool = False
    is_crowded: bool = False
    slowdown: float | None = None
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
    def bytes_per_record(self) -> float:
        """Number of bytes read per record."""
        return self.stats.bytes_read / max(1, self.stats.records)

    @property
    def read_seconds(self) -> float:
        """Time to read one record."""
        return self.stats.read_seconds / max(1, self.stats.records)

    @property
    def fits_cache(self) -> bool:
        """Whether no cache is used, and one would hold the whole split."""
        # Pixels dominate the size of records with images.
        per_record = self.pixel_bytes or _GROWTH * self.bytes_per_record
        return not self.is_cached and per_record * self.num_records <= self.cache_bytes

    @property
    def is_slow_storage(self) -> bool:
        """Whether reading waits for storage, that is, is slower than reading from memory."""
        return self.read_seconds > _SLOW_SECONDS + self.bytes_per_record / _SLOW_BYTES_PER_SECOND


def share_busy(stats: LoaderStats) -> float:
    """Return the share of the time in which the threads were working."""
    spent = stats.read_seconds + stats.decode_seconds + stats.transform_seconds
    there = stats.seconds * max(1, stats.num_threads)
    return min(1.0, spent / there) if there else 0.0


def advise(found: Measured) -> str:
    """Return one sentence on what to change, from the first rule that applies."""
    return next(advice for rule in _RULES if (advice := rule(found)))


def _advise_more_time(found: Measured) -> str | None:
    if found.stats.batches >= _FEWEST_BATCHES:
        return None
    return "Too few batches were measured for advice: measure longer with --seconds."


def _advise_later_epochs(found: Measured) -> str | None:
    if not found.is_cached or not found.is_first:
        return None
    return "The first epoch filled the cache: measure longer with --seconds to include epochs that use it."


def _advise_consumer(found: Measured) -> str | None:
    if found.bottleneck != "consumer":
        return None
    times = 1 / max(found.busy_share, 1e-3)
    if times < 2:
        return "Your consumer is the bottleneck, but the loader is only slightly faster."
    return f"Your consumer is the bottleneck: the loader could feed one that is {times:.0f} times as fast."


def _advise_threads(found: Measured) -> str | None:
    threads, cores = found.stats.num_threads, found.num_cores
    if threads >= cores or found.busy_share < _MUCH:
        return None
    if threads == 0:
        return f"Load batches in background threads: num_threads={cores}, one per core."
    return (
        f"Use more threads: num_threads={cores}, one per core; {count(threads, 'thread')} loaded the "
        f"batches and worked {found.busy_share:.0%} of the time."
    )


def _advise_handover(found: Measured) -> str | None:
    if found.busy_share >= _MUCH or found.consumer_share >= _MUCH:
        return None
    threads = found.stats.num_threads
    fitting = 2 if found.prefetch_bytes is None else max(2, found.prefetch_bytes // max(1, found.batch_bytes))
    if found.prefetch_bytes is not None and fitting < threads:
        return (
            f"Prefetch more batches: prefetch_bytes={2 * threads * found.batch_bytes} keeps all {threads} "
            f"threads busy; now only {fitting} batches fit."
        )
    if found.steps_per_epoch < _FEW_STEPS:
        steps = count(found.steps_per_epoch, "step")
        return f"Epochs of {steps} are too short: repeat=None iterates over many epochs without a restart."
    if found.is_crowded:  # a thread that waits for a core is neither working nor waiting for batches
        return "Other programs are using the cores: measure again when they have finished."
    return (
        "Most of the time is overhead per batch: larger batches, such as batch_size="
        f"{4 * found.batch_size}, take less time per record."
    )


def _advise_compressed(found: Measured) -> str | None:
    if not found.is_compressed or (found.slowdown is not None and found.slowdown < 2):
        return None
    how = "" if found.slowdown is None else f": the first epoch took {found.slowdown:.1f} times as long"
    return f"Write the shards uncompressed with 'penstock convert' to avoid decompression{how}."


def _advise_block(found: Measured) -> str | None:
    is_scattered = found.shuffle is True or found.shuffle == "global"
    if found.bottleneck != "read" or not (found.is_slow_storage and is_scattered):
        return None
    return (
        'Read neighboring records together with shuffle="block"; reading a single record takes '
        f"{1e6 * found.read_seconds:.0f} µs."
    )


def _advise_cache(found: Measured) -> str | None:
    if not found.fits_cache:
        return None
    if found.pixel_bytes:
        return (
            'Cache the decoded images with cache="memory": they fit, and later epochs need not decode them.'
        )
    if found.bottleneck == "transform":
        return None
    return 'Cache the decoded columns with cache="memory": they fit, and later epochs need not read files.'


def _advise_read(found: Measured) -> str | None:
    if found.bottleneck != "read":
        return None
    if found.is_slow_storage:
        return (
            f"Storage is slow ({1e6 * found.read_seconds:.0f} µs per record): read with more threads, "
            f"num_threads={2 * max(1, found.stats.num_threads)}."
        )
    return (
        f"Reading and checking {found.bytes_per_record:.0f} bytes per record takes most of the time: smaller "
        "records or more cores would help."
    )


def _advise_cached_images(found: Measured) -> str | None:
    if found.bottleneck != "decode" or not (found.is_cached and found.pixel_bytes):
        return None
    needed = found.pixel_bytes * found.num_records
    if needed > found.cache_bytes:
        return (
            f"The cache holds only some of the images: increase it with cache_bytes={needed}, or store "
            "smaller images with 'penstock convert --resize'."
        )
    return "Nothing to change: images come from the cache, and most of the time is copying them into batches."


def _advise_decode(found: Measured) -> str | None:
    if found.bottleneck != "decode":
        return None
    return (
        f"Read fewer fields: {found.num_fields} are decoded. Drop those that the model does not need, as in "
        "Pipeline.fit(data, name=None)."
    )


def _advise_transform(found: Measured) -> str:
    seconds = found.stats.transform_seconds / found.stats.batches
    if seconds < _SHORT_SECONDS:
        return (
            f"Use larger batches, such as batch_size={4 * found.batch_size}: the pipeline takes "
            f"{1e6 * seconds:.0f} µs per batch, much of it independent of the batch size."
        )
    return (
        "The pipeline takes most of the time: drop fields, shorten texts and sequences, or store "
        "preprocessed data."
    )


# The first rule that applies wins: each rule can rely on the ones before it not applying.
_RULES: Final[tuple[Callable[[Measured], str | None], ...]] = (
    _advise_more_time,
    _advise_consumer,
    _advise_later_epochs,
    _advise_threads,
    _advise_handover,
    _advise_compressed,
    _advise_block,
    _advise_cache,
    _advise_read,
    _advise_cached_images,
    _advise_decode,
    _advise_transform,
)
