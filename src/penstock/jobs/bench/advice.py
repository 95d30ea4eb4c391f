"""Advice on how to make a loader faster, in one sentence.

In: measurements of a loader and its options. Out: the sentence. The same measurements give the same advice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from penstock.foundation.wording import count
from penstock.jobs.bench.measured import MUCH, Measured

_FEWEST_BATCHES: Final = 5
# Python calls cost about 10 µs per field and slice, whatever its size: they matter up to this time.
_SHORT_SECONDS: Final = 1e-3


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
    if found.limit != "threads":
        return None
    threads, cores = found.stats.num_threads, found.num_cores
    if threads == 0:
        return f"Load batches in background threads: num_threads={cores}, one per core."
    return (
        f"Use more threads: num_threads={cores}, one per core; {count(threads, 'thread')} loaded the "
        f"batches and worked {found.busy_share:.0%} of the time."
    )


def _advise_programs(found: Measured) -> str | None:
    if found.limit != "programs":
        return None
    return "Other programs are using the cores: measure again when they have finished."


def _advise_maps(found: Measured) -> str | None:
    is_python = found.limit in ("finish", "python") and found.has_maps
    if not is_python or found.stats.finish_seconds < MUCH * found.stats.transform_seconds:
        return None
    seconds = found.stats.finish_seconds / found.stats.batches
    return (
        f"The functions of Pipeline.map take {1e3 * seconds:.1f} ms per batch, and Python runs them in one "
        "thread at a time: write them with NumPy operations on whole columns, or store their results with "
        "'penstock convert'."
    )


def _advise_python(found: Measured) -> str | None:
    if found.limit != "python":
        return None
    return (
        "Threads wait for each other, because Python code runs in one thread at a time: larger batches, such "
        f"as batch_size={4 * found.batch_size}, and fewer fields need less of it per record."
    )


def _advise_window(found: Measured) -> str | None:
    if found.limit != "memory":
        return None
    return (
        f"Use smaller batches, such as batch_size={max(1, found.batch_size // 2)}, or increase "
        f"prefetch_bytes: only {found.num_fitting} batches of {found.batch_bytes / 1e6:.1f} MB fit, too few "
        f"to keep {count(found.stats.num_threads, 'thread')} busy."
    )


def _advise_epochs(found: Measured) -> str | None:
    if found.limit != "epochs":
        return None
    steps = count(found.steps_per_epoch, "step")
    return f"Epochs of {steps} are too short: repeat=None iterates over many epochs without a restart."


def _advise_rows(found: Measured) -> str | None:
    if found.limit not in ("finish", "rows"):
        return None
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
    if seconds < _SHORT_SECONDS and found.num_slices == 1:
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
    _advise_programs,
    _advise_maps,
    _advise_python,
    _advise_window,
    _advise_epochs,
    _advise_rows,
    _advise_compressed,
    _advise_block,
    _advise_cache,
    _advise_read,
    _advise_cached_images,
    _advise_decode,
    _advise_transform,
)
