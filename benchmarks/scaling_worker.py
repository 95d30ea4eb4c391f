"""The process of one feed on one number of threads: opens it, checks a batch, then times turns of it.

In: feed, part, threads, folder and seconds as JSON on the command line, then one line on stdin for each turn.
Out: one line of JSON for each. It is not pinned: the machine has all its cores, as when a model is trained.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from worker import Job, load_class, run_worker

if TYPE_CHECKING:
    from scaling_feeds import Task

WARM_SHARE = 0.4  # of a turn, before the clock starts: what was made ahead is used up in it
FEWEST_BATCHES = 3
USER_TICKS, SYSTEM_TICKS = 11, 12


def make_task(job: Job) -> tuple[str, Task]:
    """Find the class to import, and the task to give it."""
    from scaling_data import list_data  # noqa: PLC0415 - after the environment is set
    from scaling_feeds import PARTS, Task, find_entry  # noqa: PLC0415

    part, entry = PARTS[job.dataset], find_entry(job.entry)
    data = list_data(Path(job.folder), job.is_quick)[part.data]
    task = Task(data, part.batch_size, job.num_cores, entry.variant.get(part.data, ""))
    return entry.path[part.data], task


def check_batch(batch: Any, task: Task) -> None:
    """Refuse a feed that delivers something else: other rows, other columns, other pixels."""
    import numpy as np  # noqa: PLC0415

    inputs, targets = batch
    arrays = {name: np.asarray(values) for name, values in inputs.items()}
    labels = np.asarray(targets["label"])
    if task.data.name == "images":
        (pixels,) = arrays.values()
        has_size = {task.size, task.photos.width} & {*pixels.shape[1:]}
        is_right = pixels.dtype == np.uint8 and has_size and 90 < pixels.mean() < 165
    elif task.data.name == "table":
        is_right = len(arrays) == len(task.data.fields) - 1 and all(
            values.shape[0] == task.batch_size and np.isfinite(values).all() for values in arrays.values()
        )
    else:
        is_right = arrays["text"].shape[0] == task.batch_size and int(arrays["text"].max()) > 1
    if not is_right or labels.shape[0] != task.batch_size:
        found = {name: (str(values.dtype), values.shape) for name, values in arrays.items()}
        raise ValueError(f"expected a batch of {task.batch_size} records ({task.data.name}), got {found}")


def touch(batch: Any) -> int:
    """Read one value of each array without a copy, and all labels; return the number of records."""
    inputs, targets = batch
    for values in inputs.values():
        plain = values.numpy() if hasattr(values, "numpy") else values
        plain[(0,) * plain.ndim]
    labels = targets["label"]
    plain = labels.numpy() if hasattr(labels, "numpy") else labels
    if plain.min() < 0:
        raise ValueError("expected labels from 0 on")
    return len(plain)


def read_cpu_seconds() -> float:
    """Return the CPU time of this process and of those that it has started and that still run."""
    ticks = 0
    for child in multiprocessing.active_children():
        columns = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(columns[USER_TICKS]) + int(columns[SYSTEM_TICKS])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def consume(batches: Iterator[Any], seconds: float, fewest: int) -> tuple[int, float]:
    """Take batches for so long; return the number of records, and the time until the last one came."""
    num_records = num_batches = 0
    start = stop = time.perf_counter()
    while num_batches < fewest or stop - start < seconds:
        num_records += touch(next(batches))
        num_batches += 1
        stop = time.perf_counter()
    return num_records, stop - start


def time_turn(feed: Any, seconds: float, fewest: int) -> dict[str, Any]:
    """Start an iteration, time it at a steady rate, and end it."""
    from image_worker import iterate  # noqa: PLC0415

    whole_start = time.process_time()
    with iterate(feed) as batches:
        consume(batches, WARM_SHARE * seconds, 1)
        cpu_start = read_cpu_seconds()
        num_records, spent = consume(batches, seconds, fewest)
        cpu_stop = read_cpu_seconds()
    return {
        "num_records": num_records,
        "seconds": spent,
        # Including untimed work: it separates this process's load from the load of others.
        "cpu_seconds": cpu_stop - whole_start,
        "timed_cpu_seconds": cpu_stop - cpu_start,
    }


def serve(job: Job, commands: TextIO, answers: TextIO) -> None:
    """Open the feed, check a batch of it, then answer each line with the figures of a turn."""
    from image_worker import iterate  # noqa: PLC0415

    path, task = make_task(job)
    start = time.perf_counter()
    package, _, rest = path.partition(".")
    feed = load_class(package, rest)(task)
    opened = time.perf_counter()
    with iterate(feed) as batches:
        check_batch(next(batches), task)
    answers.write(json.dumps({"open_seconds": opened - start}) + "\n")
    fewest = 1 if job.is_quick else FEWEST_BATCHES
    for _ in commands:
        answers.write(json.dumps(time_turn(feed, job.seconds, fewest)) + "\n")


if __name__ == "__main__":
    run_worker(serve, is_pinned=False)
