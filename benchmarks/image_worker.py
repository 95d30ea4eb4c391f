"""The process of one feed of images: pins itself, opens it, checks its pixels, then times turns of it.

In: feed, part and cores as JSON on the command line, then one line on stdin for each turn. Out: one line of
JSON for each. Every turn is a fresh iteration, timed at a steady rate, and then ended.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from worker import Job, load_class, run_worker

if TYPE_CHECKING:
    from image_feeds import Entry
    from image_feeds.task import Batch, Competitor, Task

DRAIN_SECONDS = 0.7  # what was made ahead while a shuffle buffer filled is used up in it
TURN_SECONDS = 2.0
# Of training: longer, because what a step waits for changes from step to step.
WARMING_SECONDS = 5.0
STEPS_SECONDS = 15.0
QUICK_SECONDS = 0.5


def make_task(job: Job) -> tuple[Entry, Task]:
    """Look up the feed to import, and the task to give it."""
    from image_feeds import PARTS, find_entry  # noqa: PLC0415 - after pinning
    from image_feeds.task import Task  # noqa: PLC0415
    from photos import list_photos  # noqa: PLC0415

    part, entry = PARTS[job.dataset], find_entry(job.entry, job.dataset)
    photos = list_photos(job.is_quick)[part.photos]
    return entry, Task(photos, part.size, job.num_cores, entry.variant)


def touch(batch: Batch) -> int:
    """Read one value of the pixels without a copy, and all labels; return how many there are."""
    inputs, targets = batch
    memoryview(inputs["image"])[0, 0, 0, 0]
    labels = targets["label"]
    plain = labels.numpy() if hasattr(labels, "numpy") else labels
    if plain.min() < 0:
        raise ValueError("expected labels from 0 on")
    return len(plain)


@contextmanager
def iterate(competitor: Competitor) -> Iterator[Iterator[Batch]]:
    """Begin an iteration and end it, so that nothing runs while others have their turn.

    Kept open, `prefetch(AUTOTUNE)` makes hundreds of batches ahead in a minute, while others are timed.
    """
    batches = iter(competitor.epochs())
    try:
        yield batches
    finally:
        if hasattr(batches, "close"):
            batches.close()
        del batches
        gc.collect()


def consume(batches: Iterator[Batch], seconds: float, least_records: int = 1) -> int:
    """Take batches for so long; return how many pictures they had."""
    num_records = 0
    end = time.perf_counter() + seconds
    while num_records < least_records or time.perf_counter() < end:
        num_records += touch(next(batches))
    return num_records


def time_turn(competitor: Competitor, task: Task, is_quick: bool) -> dict[str, Any]:
    """Take an epoch, so that a cache is full; then time what follows, at a steady rate."""
    whole_start = time.process_time()
    with iterate(competitor) as batches:
        touch(next(batches))
        consume(batches, QUICK_SECONDS if is_quick else DRAIN_SECONDS, task.photos.num_images)
        start, cpu_start = time.perf_counter(), time.process_time()
        num_records = consume(batches, QUICK_SECONDS if is_quick else TURN_SECONDS)
        seconds, cpu_stop = time.perf_counter() - start, time.process_time()
    return {
        "num_records": num_records,
        "seconds": seconds,
        # Including untimed work: it separates this process's share of the machine from other shares.
        "cpu_seconds": time.process_time() - whole_start,
        "timed_cpu_seconds": cpu_stop - cpu_start,
    }


def time_training(competitor: Competitor, step: Callable[[Batch], Any], is_quick: bool) -> dict[str, Any]:
    """Train for a while, and note for each step how long it waited, converted and trained."""
    from load_worker import run_steps  # noqa: PLC0415 - after pinning

    feed: Any = competitor
    warming, lasting = (QUICK_SECONDS,) * 2 if is_quick else (WARMING_SECONDS, STEPS_SECONDS)
    whole_start = time.process_time()
    with iterate(competitor) as batches:
        run_steps(feed, batches, step, warming)
        start, cpu_start = time.perf_counter(), time.process_time()
        steps, num_records = run_steps(feed, batches, step, lasting)
        seconds, cpu_stop = time.perf_counter() - start, time.process_time()
    return {
        "num_records": num_records,
        "seconds": seconds,
        "cpu_seconds": time.process_time() - whole_start,
        "timed_cpu_seconds": cpu_stop - cpu_start,
        "steps": steps,
    }


def make_turn(competitor: Competitor, job: Job, entry: Entry, task: Task) -> Callable[[], dict[str, Any]]:
    """Check what the feed delivers, and return what a turn of this part is."""
    from image_check import check_batch  # noqa: PLC0415 - after pinning

    with iterate(competitor) as batches:
        batch = next(batches)
    check_batch(batch[0]["image"], batch[1]["label"], task, entry.pixels)
    if job.dataset == "wait":
        from image_feeds.network import make_step  # noqa: PLC0415 - after pinning

        step = make_step(task)
        step(competitor.to_tensors(batch))  # traced before the clock starts
        return lambda: time_training(competitor, step, job.is_quick)
    return lambda: time_turn(competitor, task, job.is_quick)


def serve(job: Job, commands: TextIO, answers: TextIO) -> None:
    """Open the feed, check a batch of it, then answer each line with the figures of a turn."""
    entry, task = make_task(job)
    if job.dataset == "wait":
        from readers.tfdata import limit_threads  # noqa: PLC0415 - after pinning

        limit_threads(task.num_cores)
    start = time.perf_counter()
    make = load_class("image_feeds", entry.path)
    imported = time.perf_counter()
    competitor: Competitor = make(task)
    opened = time.perf_counter()
    run = make_turn(competitor, job, entry, task)
    figures = {"import_seconds": imported - start, "open_seconds": opened - imported}
    answers.write(json.dumps(figures) + "\n")
    for _ in commands:
        answers.write(json.dumps(run()) + "\n")


if __name__ == "__main__":
    run_worker(serve)
