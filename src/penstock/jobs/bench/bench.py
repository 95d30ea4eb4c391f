"""Benchmark of a loader: how fast a data set is loaded, and which stage limits it.

In: paths and options. Out: `BenchReport`, with the first epoch and later epochs separately.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import numpy as np

from penstock.batch.loader import Loader
from penstock.batch.maker import Batch
from penstock.batch.stats import LoaderStats
from penstock.batch.stored import StoredValues
from penstock.dataset import Dataset, Split
from penstock.errors import OptionError
from penstock.foundation.process import count_cores, count_disk_bytes, find_peak_bytes, is_crowded
from penstock.foundation.wording import list_choices
from penstock.jobs.bench.report import BenchReport, Measured, leave_out_ahead, subtract
from penstock.jobs.given_dataset import Declaration, open_declared
from penstock.settings.groups import ReadOptions
from penstock.settings.loading import BenchOptions
from penstock.storage.paths import PathLike
from penstock.transform.pipeline import Pipeline

_ENOUGH: Final = 0.25  # minimum length of later epochs, as a share of the first, to judge by them


class LoaderProgress(NamedTuple):
    """Statistics of a loader, its epoch and next batch, both from 0, and the number of batches per epoch."""

    stats: LoaderStats
    epoch: int
    step: int
    num_steps: int


def prepare_bench(
    paths: PathLike | Iterable[PathLike],
    options: BenchOptions | None = None,
    read: ReadOptions | None = None,
    declaration: Declaration | None = None,
    on_stage: Callable[[str], None] | None = None,
) -> Bench:
    """Open a data set, load or fit its pipeline, and return the benchmark.

    Example:
        >>> report = prepare_bench("pets/", BenchOptions(batches=20, is_stored=True)).run()
        >>> report.split, report.first.records, report.measured.steps_per_epoch
        ('train', 2, 1)
    """
    options = options or BenchOptions()
    report = on_stage or (lambda _: None)
    report("opening the files")
    dataset = open_declared(paths, declaration or Declaration(), read=read)
    split = dataset[_choose_split(dataset)] if options.split is None else dataset[options.split]
    if options.is_stored:
        return Bench(split, None, options)
    if options.pipeline is not None:
        return Bench(split, Pipeline.load(options.pipeline), options)
    report("fitting the pipeline")
    began = time.perf_counter()
    pipeline = Pipeline.fit(dataset if "train" in dataset else split)
    if not pipeline.fields:
        raise OptionError(
            f"the fields of split {split.name!r}",
            expected="at least one that a model uses by default",
            got=", ".join(split.schema) or "none",
            advice="Load them as they are stored: `is_stored=True`.",
        )
    return Bench(split, pipeline, options, fit_seconds=time.perf_counter() - began)


class Bench:
    """Benchmark of one loader, of stored values if there is no pipeline.

    `fit_seconds` is the time to fit the pipeline, if it was fitted for this benchmark.
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
            batch_size=options.batch_size,
            shuffle=options.shuffle,
            seed=options.seed,
            num_threads=options.num_threads,
            cache=options.cache,
        )
        self._batch_bytes = 0
        self._is_crowded = False
        self._shards = split.as_source().rows.shards
        found = {shard.index.compression for shard in self._shards}
        self._compression = found.pop() if len(found) == 1 else "mixed"
        self._fields = StoredValues(split.schema).fields if pipeline is None else pipeline.fields

    def progress(self) -> LoaderProgress:
        """Return the state of the loader; may be called from any thread while `run` runs in another."""
        return LoaderProgress(self._loader.stats(), *self._loader.position, self._loader.steps_per_epoch)

    def run(self) -> BenchReport:
        """Load epochs until the requested time or number of batches is reached, and return the report."""
        self._is_crowded = is_crowded()
        disk_bytes = count_disk_bytes()
        began = time.perf_counter(), time.process_time()
        first: LoaderStats | None = None
        while True:
            is_over, stats = self._run_epoch(*began)
            if first is None:
                first = stats
                disk_bytes = None if disk_bytes is None else (count_disk_bytes() or 0) - disk_bytes
            if is_over:
                later = leave_out_ahead(subtract(stats, first)) if stats.batches > first.batches else None
                # A cache is filled in a separate pass, independent of the batches made from it.
                is_filling = self.options.cache is not None
                return self._report(first if is_filling else leave_out_ahead(first), later, disk_bytes)

    def _run_epoch(self, began: float, cpu_began: float) -> tuple[bool, LoaderStats]:
        """Load one epoch; return whether the measurement is over, and the statistics so far."""
        pause, most = self.options.consumer_seconds, self.options.batches
        loader = self._loader
        num_taken = loader.stats().batches
        seconds, cpu_seconds, is_over = 0.0, 0.0, False
        with iter(loader) as batches:
            for batch in batches:
                seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
                num_taken += 1
                self._batch_bytes = self._batch_bytes or _count_bytes(batch)
                is_over = num_taken == most or seconds >= self.options.most_seconds
                if is_over:
                    break
                if pause:
                    time.sleep(pause)
            # Inside the `with` block the batches that are ready can still be counted. The time is measured
            # here, because threads work before the loader starts its clock: a short epoch would seem to take
            # no time.
            return is_over, dataclasses.replace(loader.stats(), seconds=seconds, cpu_seconds=cpu_seconds)

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
        is_enough = later is not None and later.batches >= _ENOUGH * first.batches
        return Measured(
            stats=later if later is not None and is_enough else first,
            batch_size=options.batch_size,
            num_slices=loader.num_slices,
            num_fitting=max(2, loader.window_bytes // max(1, self._batch_bytes)),
            steps_per_epoch=loader.steps_per_epoch,
            num_records=len(self.split),
            num_cores=count_cores(),
            shuffle=options.shuffle,
            is_crowded=self._is_crowded,
            consumer_seconds=options.consumer_seconds,
        )


def _choose_split(dataset: Dataset) -> str:
    if "train" in dataset:
        return "train"
    if len(dataset) == 1:
        return dataset.splits[0]
    raise OptionError(
        "split",
        expected=f"{list_choices(dataset.splits)}, because no split is named 'train'",
        got="none",
        advice="Choose a split: `split=NAME`.",
    )


def _count_bytes(batch: Batch) -> int:
    return sum(value.nbytes for part in batch for value in part.values() if isinstance(value, np.ndarray))
