"""The process of one feed: pins itself, opens it, then times passes or training steps on request.

In: feed, part and cores as JSON on the command line, then one line on stdin for each turn. Out: one line of
JSON for each. What it delivers is checked record by record before anything is timed.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TextIO

from worker import TURN_SECONDS, Job, load_class, run_worker

if TYPE_CHECKING:
    from feeds import Entry
    from feeds.task import Batch, Competitor, Task

# Of training: long turns, because tf.data tunes itself for the first minute and in ticks of up to 2.5 s.
STEPS_SECONDS = 30.0
WARMING_SECONDS = 10.0
QUICK_SECONDS = 1.0


def make_task(job: Job) -> tuple[Entry, Task]:
    """Look up the feed to import, and the task to give it."""
    from datasets import NUM_SHARDS, list_datasets  # noqa: PLC0415 - after pinning
    from feeds import PARTS, find_entry  # noqa: PLC0415
    from feeds.task import Task  # noqa: PLC0415
    from fitted import load_fitted  # noqa: PLC0415

    entry = find_entry(job.entry, job.dataset)
    spec = list_datasets(job.is_quick)[PARTS[job.dataset].dataset]
    num_shards = entry.num_shards or NUM_SHARDS
    return entry, Task(spec, load_fitted(spec), job.num_cores, num_shards, entry.variant)


def check_epoch(competitor: Competitor, task: Task) -> list[Batch]:
    """Refuse a feed that delivers something else than the others: codes exactly, numbers closely.

    Returns:
        A batch of each length that there is.
    """
    import numpy as np  # noqa: PLC0415 - after pinning

    from fitted import Digest  # noqa: PLC0415

    got = Digest()
    samples: dict[int, Batch] = {}
    for inputs, targets in competitor.batches():
        arrays = {name: np.asarray(values) for name, values in inputs.items()}
        labels = np.asarray(targets["label"])
        codes = [arrays.pop(name).reshape(len(labels), -1) for name in task.fitted.vocabularies]
        numbers = {name: values.reshape(len(labels)) for name, values in arrays.items()}
        got.add(np.concatenate(codes, axis=1), numbers, labels)
        samples.setdefault(len(labels), (inputs, targets))
    task.fitted.expect(task.num_shards).check(got)
    return list(samples.values())


def touch(batch: Batch) -> tuple[int, int]:
    """Read one element of each array without a copy, and all labels; return their number and sum."""
    inputs, targets = batch
    for values in inputs.values():
        memoryview(values)[(0,) * values.ndim]
    labels = targets["label"]
    plain = labels.numpy() if hasattr(labels, "numpy") else labels
    return len(plain), int(plain.sum())


def time_pass(competitor: Competitor) -> dict[str, Any]:
    """Consume one epoch; the clock stops when the last batch has been read."""
    num_records = label_sum = 0
    start, cpu_start = time.perf_counter(), time.process_time()
    stop = start
    for batch in competitor.batches():
        count, total = touch(batch)
        num_records += count
        label_sum += total
        stop = time.perf_counter()
    cpu_seconds = time.process_time() - cpu_start
    return {
        "num_records": num_records,
        "label_sum": label_sum,
        "seconds": stop - start,
        "cpu_seconds": cpu_seconds,
    }


def time_turn(competitor: Competitor, expected: tuple[int, int], least_seconds: float) -> dict[str, Any]:
    """Time epochs until they fill a turn: the load of other programs changes from second to second."""
    total: dict[str, Any] = {"num_records": 0, "label_sum": 0, "seconds": 0.0, "cpu_seconds": 0.0}
    while not total["num_records"] or total["seconds"] < least_seconds:
        figures = time_pass(competitor)
        got = (figures["num_records"], figures["label_sum"])
        if got != expected:
            raise ValueError(f"expected (records, sum of labels) {expected}, got {got}")
        total = {name: total[name] + figures[name] for name in total}
    return total


def time_steps(competitor: Competitor, step: Callable[[Batch], Any], is_quick: bool) -> dict[str, Any]:
    """Train for a while on one iteration, and note for each step how long it waited, converted and trained.

    Waiting is what `next` takes. Nothing is recorded until the feed runs at a steady rate.
    """
    cpu_start = time.process_time()
    batches = competitor.epochs()
    warming, lasting = (QUICK_SECONDS,) * 2 if is_quick else (WARMING_SECONDS, STEPS_SECONDS)
    run_steps(competitor, batches, step, warming)
    start = time.perf_counter()
    steps, num_records = run_steps(competitor, batches, step, lasting)
    seconds = time.perf_counter() - start
    if hasattr(batches, "close"):
        batches.close()
    del batches
    # Including untimed work: it separates this process's share of the machine's work from other shares.
    cpu_seconds = time.process_time() - cpu_start
    return {"num_records": num_records, "seconds": seconds, "cpu_seconds": cpu_seconds, "steps": steps}


def run_steps(
    competitor: Competitor, batches: Iterator[Batch], step: Callable[[Batch], Any], seconds: float
) -> tuple[list[tuple[int, int, int]], int]:
    """Train for so long; return the nanoseconds of each step, and how many records there were."""
    steps = []
    num_records = 0
    begin = time.perf_counter_ns()
    end = begin + int(seconds * 1e9)
    while begin < end:
        batch = next(batches)
        got = time.perf_counter_ns()
        tensors = competitor.to_tensors(batch)
        ready = time.perf_counter_ns()
        loss = step(tensors)
        trained = time.perf_counter_ns()
        steps.append((got - begin, ready - got, trained - ready))
        num_records += len(tensors[1]["label"])
        begin = time.perf_counter_ns()
    if not math.isfinite(float(loss)):
        raise ValueError(f"expected a finite loss, got {float(loss)}")
    return steps, num_records


def serve(job: Job, commands: TextIO, answers: TextIO) -> None:
    """Open the feed, check an epoch of it, then answer each line with the figures of a turn."""
    entry, task = make_task(job)
    start = time.perf_counter()
    make = load_class("feeds", entry.path)
    imported = time.perf_counter()
    competitor: Competitor = make(task)
    opened = time.perf_counter()
    run = make_turn(competitor, job, task)
    figures = {"import_seconds": imported - start, "open_seconds": opened - imported}
    answers.write(json.dumps(figures) + "\n")
    for _ in commands:
        answers.write(json.dumps(run()) + "\n")


def make_turn(competitor: Competitor, job: Job, task: Task) -> Callable[[], dict[str, Any]]:
    """Check what the feed delivers, and return what a turn of this part is."""
    if job.dataset == "wait":
        from feeds.network import make_step  # noqa: PLC0415
        from readers.tfdata import limit_threads  # noqa: PLC0415 - after pinning

        limit_threads(task.num_cores)
        step = make_step(task)
        # Traced for every shape before the clock starts.
        for batch in check_epoch(competitor, task):
            step(competitor.to_tensors(batch))
        return lambda: time_steps(competitor, step, job.is_quick)
    import numpy as np  # noqa: PLC0415 - after pinning

    check_epoch(competitor, task)
    labels = np.load(task.spec.labels)[: task.num_records]
    expected = (task.num_records, int(labels.sum()))
    return lambda: time_turn(competitor, expected, 0.0 if job.is_quick else TURN_SECONDS)


if __name__ == "__main__":
    run_worker(serve)
