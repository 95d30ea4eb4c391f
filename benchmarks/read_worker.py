"""The process of one reader: pins itself, opens the reader, then times passes on request.

In: reader, data set and cores as JSON on the command line, then one line on stdin for each turn.
Out: one line of JSON for each turn.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, TextIO

from worker import TURN_SECONDS, Job, load_class, run_worker

if TYPE_CHECKING:
    from readers.task import Competitor, Task


def make_task(job: Job) -> tuple[str, Task]:
    """Look up the class to import, and the task to give it."""
    from datasets import list_datasets  # noqa: PLC0415
    from readers import ENTRIES  # noqa: PLC0415 - after pinning
    from readers.task import Task  # noqa: PLC0415

    entry = next(entry for entry in ENTRIES if entry.name == job.entry)
    spec = list_datasets(job.is_quick)[entry.reads[job.dataset]]
    names = entry.field_names or tuple(field.name for field in spec.fields)
    fields = tuple(field for field in spec.fields if field.name in names)
    num_records = min(spec.num_records, entry.most_records.get(job.dataset, spec.num_records))
    return entry.path, Task(spec, fields, job.num_cores, num_records)


def time_pass(competitor: Competitor) -> dict[str, Any]:
    """Consume one pass; the clock stops when the last batch has been read.

    What comes after is not reading: a tf.data iterator with AUTOTUNE blocks when it ends until its tuning
    thread wakes up, up to 2.5 s later.
    """
    num_records = label_sum = 0
    start, cpu_start = time.perf_counter(), time.process_time()
    stop = start
    for batch in competitor.batches():
        tally = competitor.touch(batch)
        num_records += tally.num_records
        label_sum += tally.label_sum
        stop = time.perf_counter()
    # Including the cleanup: it separates this process's share of the machine's work from other shares.
    cpu_seconds = time.process_time() - cpu_start
    return {
        "num_records": num_records,
        "label_sum": label_sum,
        "seconds": stop - start,
        "cpu_seconds": cpu_seconds,
    }


def time_turn(competitor: Competitor, task: Task, least_seconds: float) -> dict[str, Any]:
    """Time passes until they fill a turn: the load of other programs changes from second to second."""
    total: dict[str, Any] = {"num_records": 0, "label_sum": 0, "seconds": 0.0, "cpu_seconds": 0.0}
    while not total["num_records"] or total["seconds"] < least_seconds:
        figures = time_pass(competitor)
        check_pass(figures, task)
        total = {name: total[name] + figures[name] for name in total}
    return total


def check_pass(figures: dict[str, Any], task: Task) -> None:
    """Raise an error if a reader did not read all records."""
    import numpy as np  # noqa: PLC0415 - after pinning

    expected = (task.num_records, int(np.load(task.spec.labels)[: task.num_records].sum()))
    got = (figures["num_records"], figures["label_sum"])
    if got != expected:
        raise ValueError(f"expected (records, sum of labels) {expected}, got {got}")


def serve(job: Job, commands: TextIO, answers: TextIO) -> None:
    """Open the competitor, warm up with an untimed pass, then answer each line with the figures of a turn."""
    path, task = make_task(job)
    start = time.perf_counter()
    reader = load_class("readers", path)
    imported = time.perf_counter()
    competitor: Competitor = reader(task)
    opened = time.perf_counter()
    check_pass(time_pass(competitor), task)
    figures = {"import_seconds": imported - start, "open_seconds": opened - imported}
    answers.write(json.dumps(figures) + "\n")
    least_seconds = 0.0 if job.is_quick else TURN_SECONDS
    for _ in commands:
        answers.write(json.dumps(time_turn(competitor, task, least_seconds)) + "\n")


if __name__ == "__main__":
    run_worker(serve)
