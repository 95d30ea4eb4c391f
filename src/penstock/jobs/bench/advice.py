"""One sentence on what would make a loader faster.

In: what was measured, and under which choices. Out: the sentence. The same figures give the same advice.
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
# What is in memory is read in less than this a record, and at more than this a second by each thread.
_SLOW_SECONDS: Final = 20e-6
_SLOW_BYTES_PER_SECOND: Final = 1e9
# Calls of Python cost a batch some 10 µs a field, however many records it has: within this they show.
_SHORT_SECONDS: Final = 1e-3
_FEW_STEPS: Final = 8  # starting threads takes as long as some of them
_GROWTH: Final = 2  # of records when they are decoded: a small number is one byte, then eight


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What advice rests on.

    Attributes:
        stats: Of the epochs to judge by; what was made and not taken is not in it.
        batch_size: Records of a batch.
        batch_bytes: What the arrays of a batch take.
        prefetch_bytes: What the batches that wait may take together.
        steps_per_epoch: Batches of an epoch.
        num_fields: How many fields are read.
        num_records: How many records the split has.
        num_cores: How many threads can work at once.
        cache_bytes: How much a cache in memory may hold.
        pixel_bytes: What the images of a record take once they are decoded; 0 if none are.
        shuffle: How the records were shuffled.
        is_cached: Whether there was a cache.
        is_compressed: Whether a file is compressed.
        is_first: Whether the first epoch is what there is to judge by.
        is_crowded: Whether other programs wanted the cores, too.
        slowdown: How many times as long as a later one the first epoch took; None if there was no later one.
        consumer_seconds: How long the consumer took for a batch.
    """

    stats: LoaderStats
    batch_size: int
    batch_bytes: int
    prefetch_bytes: int
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
        """Which part of their time the threads worked."""
        return share_busy(self.stats)

    @property
    def consumer_share(self) -> float:
        """Which part of the time the consumer worked."""
        spent = self.stats.batches * self.consumer_seconds
        return min(1.0, spent / self.stats.seconds) if self.stats.seconds else 0.0

    @property
    def bottleneck(self) -> str:
        """What to make faster first: "read", "decode", "transform" or "consumer".

        A consumer that does nothing is none, even if it hardly waits: then it is epochs that begin and end.
        """
        if self.stats.wait_share < _LITTLE and self.consumer_share >= _MUCH:
            return "consumer"
        spent = (self.stats.read_seconds, self.stats.decode_seconds, self.stats.transform_seconds)
        return STAGES[spent.index(max(spent))]

    @property
    def bytes_per_record(self) -> float:
        """What was read for a record."""
        return self.stats.bytes_read / max(1, self.stats.records)

    @property
    def read_seconds(self) -> float:
        """How long reading a record took."""
        return self.stats.read_seconds / max(1, self.stats.records)

    @property
    def fits_cache(self) -> bool:
        """Whether a cache that is not there yet would hold the whole split."""
        # Of records with images, it is the pixels that count.
        per_record = self.pixel_bytes or _GROWTH * self.bytes_per_record
        return not self.is_cached and per_record * self.num_records <= self.cache_bytes

    @property
    def is_slow_storage(self) -> bool:
        """Whether reading waits for storage: what is in memory is read faster."""
        return self.read_seconds > _SLOW_SECONDS + self.bytes_per_record / _SLOW_BYTES_PER_SECOND


def share_busy(stats: LoaderStats) -> float:
    """Return which part of their time the threads worked."""
    spent = stats.read_seconds + stats.decode_seconds + stats.transform_seconds
    there = stats.seconds * max(1, stats.num_threads)
    return min(1.0, spent / there) if there else 0.0


def advise(found: Measured) -> str:
    """Return one sentence on what to change: by the first rule that has something to say."""
    return next(said for rule in _RULES if (said := rule(found)))


def _advise_more_time(found: Measured) -> str | None:
    if found.stats.batches >= _FEWEST_BATCHES:
        return None
    return "Too few batches were measured to say more: give it more time with --seconds."


def _advise_later_epochs(found: Measured) -> str | None:
    if not found.is_cached or not found.is_first:
        return None
    return "The first epoch filled the cache: measure those that use it with more --seconds."


def _advise_consumer(found: Measured) -> str | None:
    if found.bottleneck != "consumer":
        return None
    times = 1 / max(found.busy_share, 1e-3)
    if times < 2:
        return "Your consumer is the slow part, but only just: the loader has little to spare."
    return f"Your consumer is the slow part: the loader could feed one that is {times:.0f} times as fast."


def _advise_threads(found: Measured) -> str | None:
    threads, cores = found.stats.num_threads, found.num_cores
    if threads >= cores or found.busy_share < _MUCH:
        return None
    if threads == 0:
        return f"Let threads make the batches ahead: num_threads={cores}, one for each core."
    return (
        f"Use more threads: num_threads={cores}, one for each core; {count(threads, 'thread')} made the "
        f"batches, and worked {found.busy_share:.0%} of the time."
    )


def _advise_handing(found: Measured) -> str | None:
    if found.busy_share >= _MUCH or found.consumer_share >= _MUCH:
        return None
    threads = found.stats.num_threads
    fitting = max(2, found.prefetch_bytes // max(1, found.batch_bytes))
    if fitting < threads:
        return (
            f"Let more batches wait: prefetch_bytes={2 * threads * found.batch_bytes} keeps all {threads} "
            f"threads at work, where now no more than {fitting} batches fit."
        )
    if found.steps_per_epoch < _FEW_STEPS:
        steps = count(found.steps_per_epoch, "step")
        return f"Epochs of {steps} end before they pay: repeat=None makes one iteration of many of them."
    if found.is_crowded:  # a thread that waits for a core is neither at work nor waiting for batches
        return "Other programs keep the cores busy: measure again when they are done."
    return (
        "Handing batches over takes most of the time, not making them: a larger one, such as batch_size="
        f"{4 * found.batch_size}, costs less a record."
    )


def _advise_compressed(found: Measured) -> str | None:
    if not found.is_compressed or (found.slowdown is not None and found.slowdown < 2):
        return None
    how = "" if found.slowdown is None else f": the first epoch took {found.slowdown:.1f} times as long"
    return f"Write the shards uncompressed, with 'penstock convert', so that nothing is inflated{how}."


def _advise_block(found: Measured) -> str | None:
    is_scattered = found.shuffle is True or found.shuffle == "global"
    if found.bottleneck != "read" or not (found.is_slow_storage and is_scattered):
        return None
    return (
        'Read neighbours together: shuffle="block"; a record read alone takes '
        f"{1e6 * found.read_seconds:.0f} µs."
    )


def _advise_cache(found: Measured) -> str | None:
    if not found.fits_cache:
        return None
    if found.pixel_bytes:
        return 'Keep the decoded images: cache="memory"; they fit, and later epochs then decode none.'
    if found.bottleneck == "transform":
        return None
    return 'Keep the decoded columns: cache="memory"; they fit, and later epochs then read no file.'


def _advise_read(found: Measured) -> str | None:
    if found.bottleneck != "read":
        return None
    if found.is_slow_storage:
        return (
            f"Let more threads wait for the storage, which takes {1e6 * found.read_seconds:.0f} µs a record: "
            f"num_threads={2 * max(1, found.stats.num_threads)}."
        )
    return (
        f"Reading and checking {found.bytes_per_record:.0f} bytes a record is most of the work: shorter "
        "records, or more cores, would help."
    )


def _advise_cached_images(found: Measured) -> str | None:
    if found.bottleneck != "decode" or not (found.is_cached and found.pixel_bytes):
        return None
    needed = found.pixel_bytes * found.num_records
    if needed > found.cache_bytes:
        return (
            f"The cache holds a part of the images: let it hold all of them, cache_bytes={needed}, or store "
            "smaller ones, with 'penstock convert --resize'."
        )
    return "Nothing to change: images come from the cache, and copying them into batches is most of the work."


def _advise_decode(found: Measured) -> str | None:
    if found.bottleneck != "decode":
        return None
    return (
        f"Read fewer fields: {found.num_fields} are decoded; leave out what the model does not need, as in "
        "Pipeline.fit(data, name=None)."
    )


def _advise_transform(found: Measured) -> str:
    seconds = found.stats.transform_seconds / found.stats.batches
    if seconds < _SHORT_SECONDS:
        return (
            f"Take a larger batch, such as batch_size={4 * found.batch_size}: the pipeline needs "
            f"{1e6 * seconds:.0f} µs for one, much of it the same for any size."
        )
    return (
        "Lighten the pipeline, which takes most of the time: leave fields out, shorten texts and sequences, "
        "or store what it makes."
    )


# The first that says something is right: a rule can rely on all before it having been silent.
_RULES: Final[tuple[Callable[[Measured], str | None], ...]] = (
    _advise_more_time,
    _advise_consumer,
    _advise_later_epochs,
    _advise_threads,
    _advise_handing,
    _advise_compressed,
    _advise_block,
    _advise_cache,
    _advise_read,
    _advise_cached_images,
    _advise_decode,
    _advise_transform,
)
