"""The process of one writer: pins itself, makes the input ready, then times passes on request.

In: the writer, raw and cores as JSON on the command line, then one line on stdin for each turn. Out: one
line of JSON for each. Every pass writes into a fresh folder, and starts with nothing left for the disk to do.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from worker import TURN_SECONDS, Job, load_class, run_worker

if TYPE_CHECKING:
    from writers import Entry
    from writers.task import Competitor, Task


def name_scratch(process: int) -> str:
    """Return how the folders of a run begin; the number is the id of the main process."""
    return f"write-{process}-"


def make_folder() -> Path:
    """Make a folder on the disk that is written to."""
    from datasets import STORE  # noqa: PLC0415 - after pinning

    folder = STORE / "data"
    folder.mkdir(exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=name_scratch(os.getppid()), dir=folder))


def make_task(job: Job) -> tuple[Entry, Task]:
    """Look up the writer to import, and the task to give it."""
    from datasets import list_datasets  # noqa: PLC0415 - after pinning
    from sources import list_raw_sources  # noqa: PLC0415
    from writers import ENTRIES  # noqa: PLC0415
    from writers.task import Task  # noqa: PLC0415

    entry = next(entry for entry in ENTRIES if entry.name == job.entry)
    raw = list_raw_sources(job.is_quick)[job.dataset]
    spec = list_datasets(job.is_quick)[raw.dataset] if raw.dataset else None
    return entry, Task(raw, spec, job.num_cores, entry.limit(raw), entry.variant, make_folder())


def time_pass(competitor: Competitor, task: Task, expected_sum: int | None = None) -> dict[str, Any]:
    """Write everything once; the clock stops when the writer returns, and again when the disk has it."""
    from writers.copies import measure_folder  # noqa: PLC0415 - after pinning

    folder = make_folder()
    out = folder / "out"
    try:
        # What was written and removed before would otherwise be on the account of this pass.
        os.sync()
        start = time.perf_counter()
        competitor.write(out)
        stop = time.perf_counter()
        os.sync()
        synced = time.perf_counter()
        check_pass(competitor, task, out, expected_sum)
        num_bytes = measure_folder(out)
    finally:
        shutil.rmtree(folder)
    return {
        "num_records": task.num_records,
        "num_bytes": num_bytes,
        "seconds": stop - start,
        "sync_seconds": synced - stop,
    }


def check_pass(competitor: Competitor, task: Task, out: Path, expected_sum: int | None) -> None:
    """Raise an error if a writer did not write all records."""
    num_records = competitor.count(out)
    if num_records != task.num_records:
        raise ValueError(f"expected {task.num_records} records, got {num_records}")
    if expected_sum is not None:
        from writers.frames import sum_labels  # noqa: PLC0415 - after pinning

        label_sum = sum_labels(out)
        if label_sum != expected_sum:
            raise ValueError(f"expected {expected_sum} as the sum of labels, got {label_sum}")


def find_label_sum(task: Task) -> int | None:
    """Return what the labels add up to; None if there are none that can be added."""
    import numpy as np  # noqa: PLC0415 - after pinning

    from writers.rows import draw_columns  # noqa: PLC0415

    if task.spec is None:
        return None
    if task.raw.labels:
        return int(np.load(task.raw.labels)[: task.num_records].sum())
    return int(np.sum(draw_columns(task)["label"]))


def time_turn(competitor: Competitor, task: Task) -> dict[str, Any]:
    """Time passes until they fill a turn: the load of other programs changes from second to second."""
    total: dict[str, Any] = {"num_records": 0, "num_bytes": 0, "seconds": 0.0, "sync_seconds": 0.0}
    cpu_start = read_cpu_seconds()
    turn_seconds = 0.0 if task.raw.is_quick else TURN_SECONDS
    while not total["num_records"] or total["seconds"] < turn_seconds:
        figures = time_pass(competitor, task)
        total = {name: total[name] + figures[name] for name in total}
    # Including untimed work: it separates this process's share of the machine from other shares.
    return total | {"cpu_seconds": read_cpu_seconds() - cpu_start}


def read_cpu_seconds() -> float:
    """Return what this process and the programs it started have used."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def serve(job: Job, commands: TextIO, answers: TextIO) -> None:
    """Make the writer ready, warm up with an untimed pass, then answer each line with a turn's figures."""
    entry, task = make_task(job)
    try:
        start = time.perf_counter()
        make = load_class("writers", entry.path)
        competitor: Competitor = make(task)
        opened = time.perf_counter()
        time_pass(competitor, task, find_label_sum(task) if entry.has_labels else None)
        answers.write(json.dumps({"open_seconds": opened - start}) + "\n")
        for _ in commands:
            answers.write(json.dumps(time_turn(competitor, task)) + "\n")
    finally:
        shutil.rmtree(task.scratch, ignore_errors=True)


if __name__ == "__main__":
    run_worker(serve)
