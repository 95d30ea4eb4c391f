"""How fast a data set is loaded, and what holds it up.

In: paths, and how to load them. Out: `BenchReport`, the first epoch apart from later ones.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable
from math import prod
from typing import Final, NamedTuple

import numpy as np

from penstock.batch.cache import usual_cache_bytes
from penstock.batch.loader import Loader
from penstock.batch.maker import Batch
from penstock.batch.options import LoadOptions
from penstock.batch.stats import LoaderStats
from penstock.batch.stored import StoredValues
from penstock.dataset import Dataset, Split
from penstock.errors import OptionError
from penstock.foundation.process import count_disk_bytes, find_peak_bytes, is_crowded
from penstock.foundation.wording import list_choices
from penstock.jobs.bench.advice import Measured
from penstock.jobs.bench.options import BenchOptions
from penstock.jobs.bench.report import BenchReport, leave_out_ahead, subtract
from penstock.jobs.stored_data import open_declared
from penstock.storage.paths import PathLike
from penstock.transform.pipeline import Pipeline

_ENOUGH: Final = 0.25  # of the first epoch: so much of later ones is worth judging by


class Look(NamedTuple):
    """What a loader is at.

    Attributes:
        stats: What it has done.
        epoch: The epoch at hand, counted from 0.
        step: The batch of it that comes next.
        num_steps: How many batches it has.
    """

    stats: LoaderStats
    epoch: int
    step: int
    num_steps: int


def prepare_bench(
    paths: PathLike | Iterable[PathLike],
    options: BenchOptions | None = None,
    on_stage: Callable[[str], None] | None = None,
) -> Bench:
    """Open a data set, get its pipeline, and return what measures it.

    Args:
        paths: As for `penstock.open`.
        options: What to load, and for how long.
        on_stage: Is told what is done, in a few words.

    Raises:
        NoSuchPathError: A path leads to no file.
        UnknownNameError: There is no such split.
        OptionError: It is not clear which split is meant, or no field of it can be fed.
        PenstockError: The files cannot be opened, or the pipeline is not theirs.

    Example:
        >>> report = prepare_bench("pets/", BenchOptions(batches=20, is_stored=True)).run()
        >>> report.split, report.first.records, report.measured.steps_per_epoch
        ('train', 2, 1)
    """
    options = options or BenchOptions()
    tell = on_stage or (lambda _: None)
    tell("opening the files")
    dataset = open_declared(paths, options.declaration, read=options.read)
    split = dataset[_choose_split(dataset)] if options.split is None else dataset[options.split]
    if options.is_stored:
        return Bench(split, None, options)
    if options.pipeline is not None:
        return Bench(split, Pipeline.load(options.pipeline), options)
    tell("fitting the pipeline")
    began = time.perf_counter()
    pipeline = Pipeline.fit(dataset if "train" in dataset else split)
    if not pipeline.fields:
        raise OptionError(
            f"the fields of split {split.name!r}",
            expected="one at least that is fed by default",
            got=", ".join(split.schema) or "none",
            advice="Say --no-pipeline to load them as they are stored.",
        )
    return Bench(split, pipeline, options, fit_seconds=time.perf_counter() - began)


class Bench:
    """A loader that is ready to be measured.

    Args:
        split: What it loads.
        pipeline: Turns stored values into arrays, or None.
        options: How it loads, and for how long.
        fit_seconds: How long the pipeline took to fit, if it was fitted for this.
    """

    def __init__(
        self,
        split: Split,
        pipeline: Pipeline | None,
        options: BenchOptions,
        *,
        fit_seconds: float | None = None,
    ) -> None:
        self.split = split
        self.options = options
        self._pipeline = pipeline
        self._fit_seconds = fit_seconds
        self._loader: Loader = split.loader(
            pipeline,
            options.batch_size,
            options.shuffle,
            options.seed,
            num_threads=options.num_threads,
            cache=options.cache,
        )
        self._batch_bytes = 0
        self._is_crowded = False
        self._shards = split.as_source().rows.shards
        found = {shard.index.compression for shard in self._shards}
        self._compression = found.pop() if len(found) == 1 else "mixed"
        self._fields = StoredValues(split.schema).fields if pipeline is None else pipeline.fields

    def look(self) -> Look:
        """Return what the loader is at; from any thread, while `run` is in another."""
        return Look(self._loader.stats(), *self._loader.position, self._loader.steps_per_epoch)

    def run(self) -> BenchReport:
        """Load for as long as was asked, epoch after epoch, and return what was measured."""
        self._is_crowded = is_crowded()
        disk_bytes = count_disk_bytes()
        began = time.perf_counter()
        first: LoaderStats | None = None
        while True:
            is_over, stats = self._run_epoch(began)
            if first is None:
                first = stats
                disk_bytes = None if disk_bytes is None else (count_disk_bytes() or 0) - disk_bytes
            if is_over:
                later = leave_out_ahead(subtract(stats, first)) if stats.batches > first.batches else None
                # A cache is filled by a pass of its own, whatever batches were made of it.
                is_filling = self.options.cache is not None
                return self._report(first if is_filling else leave_out_ahead(first), later, disk_bytes)

    def _run_epoch(self, began: float) -> tuple[bool, LoaderStats]:
        """Take batches; return whether that was the last of them, and all that was done so far."""
        pause, most = self.options.consumer_seconds, self.options.batches
        loader = self._loader
        num_taken = loader.stats().batches
        seconds, is_over = 0.0, False
        with iter(loader) as batches:
            for batch in batches:
                seconds = time.perf_counter() - began
                num_taken += 1
                self._batch_bytes = self._batch_bytes or _count_bytes(batch)
                is_over = num_taken == most or seconds >= self.options.most_seconds
                if is_over:
                    break
                if pause:
                    time.sleep(pause)
            # Within the iteration: what is ready is still there to be counted. The time is our own: threads
            # are at work before the loader begins to count, and a short epoch would seem to take none.
            return is_over, dataclasses.replace(loader.stats(), seconds=seconds)

    def _report(self, first: LoaderStats, later: LoaderStats | None, disk_bytes: int | None) -> BenchReport:
        pipeline = self._pipeline
        notes = {} if pipeline is None else pipeline.notes
        other = "it identifies records" if pipeline is None else "the pipeline does not read it"
        unread = [name for name in self.split.schema if name not in self._fields]
        return BenchReport(
            split=self.split.name,
            num_bytes=sum(shard.index.identity.size for shard in self._shards),
            compression=self._compression,
            fields=self._fields,
            not_fed={name: notes.get(name, other) for name in unread},
            fit_seconds=self._fit_seconds,
            first=first,
            later=later,
            disk_bytes=disk_bytes,
            peak_bytes=find_peak_bytes(),
            measured=self._measured(first, later),
        )

    def _measured(self, first: LoaderStats, later: LoaderStats | None) -> Measured:
        options, loader = self.options, self._loader
        is_first = later is None or later.batches < _ENOUGH * first.batches
        slowdown = None
        if later is not None and first.records_per_second:
            slowdown = later.records_per_second / first.records_per_second
        return Measured(
            stats=first if later is None or is_first else later,
            batch_size=options.batch_size,
            batch_bytes=self._batch_bytes,
            prefetch_bytes=loader.options.prefetch_bytes,
            steps_per_epoch=loader.steps_per_epoch,
            num_fields=len(self._fields),
            num_records=len(self.split),
            num_cores=LoadOptions().threads,
            cache_bytes=usual_cache_bytes(),
            pixel_bytes=_count_pixels(loader),
            shuffle=options.shuffle,
            is_cached=options.cache is not None,
            is_compressed=self._compression != "none",
            is_first=is_first,
            is_crowded=self._is_crowded,
            slowdown=slowdown,
            consumer_seconds=options.consumer_seconds,
        )


def _count_pixels(loader: Loader) -> int:
    """Return what a cache holds of the images of a record, where it holds them in their size."""
    pipeline = loader.pipeline
    if not isinstance(pipeline, Pipeline):
        return 0
    images = [each.outputs(name) for name, each in pipeline.transforms.items() if each.prepares]
    return sum(prod(dim or 0 for dim in output.shape) for outputs in images for output in outputs)


def _choose_split(dataset: Dataset) -> str:
    if "train" in dataset:
        return "train"
    if len(dataset) == 1:
        return dataset.splits[0]
    raise OptionError(
        "split",
        expected=f"{list_choices(dataset.splits)}, as none is called 'train'",
        got="none",
        advice="Say which with --split.",
    )


def _count_bytes(batch: Batch) -> int:
    return sum(value.nbytes for part in batch for value in part.values() if isinstance(value, np.ndarray))
