"""The process of one contestant: pins itself, opens the reader, then times passes when told to go.

In: the contestant, data set and cores as JSON on the command line, then a line on stdin for each turn.
Out: one line of JSON for each on a pipe of its own; whatever the libraries print goes to stderr.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TextIO

TURN_SECONDS = 1.5

if TYPE_CHECKING:
    from contestants.task import Contestant, Task


@dataclass(frozen=True)
class Order:
    """What the arena asks a booth to run."""

    entry: str
    dataset: str
    num_cores: int
    is_quick: bool

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def pin_process(num_cores: int) -> None:
    """Stay on the last cores there are and tell the thread pools; before anything heavy is imported."""
    available = sorted(os.sched_getaffinity(0))
    if num_cores > len(available):
        raise ValueError(f"{num_cores} cores asked for, {len(available)} there")
    # The last ones: the first core serves the interrupts and the process that keeps the score.
    os.sched_setaffinity(0, available[-num_cores:])
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(num_cores)
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"


def make_task(order: Order) -> tuple[str, Task]:
    """Look up what the order means: the module to import, and the task to give it."""
    from contestants import ENTRIES  # noqa: PLC0415 - after pinning
    from contestants.task import Task  # noqa: PLC0415
    from datasets import list_datasets  # noqa: PLC0415

    entry = next(entry for entry in ENTRIES if entry.name == order.entry)
    spec = list_datasets(order.is_quick)[entry.reads[order.dataset]]
    names = entry.field_names or tuple(field.name for field in spec.fields)
    fields = tuple(field for field in spec.fields if field.name in names)
    num_records = min(spec.num_records, entry.most_records.get(order.dataset, spec.num_records))
    return entry.module, Task(spec, fields, order.num_cores, num_records)


def time_pass(contestant: Contestant) -> dict[str, Any]:
    """Consume one pass; the clock stops when the last batch has been looked at.

    What comes after is not reading: a tf.data iterator with AUTOTUNE blocks when it ends until its tuning
    thread wakes up, up to 2.5 s later.
    """
    num_records = label_sum = 0
    start, cpu_start = time.perf_counter(), time.process_time()
    stop = start
    for batch in contestant.batches():
        tally = contestant.touch(batch)
        num_records += tally.num_records
        label_sum += tally.label_sum
        stop = time.perf_counter()
    # With the clearing up: it is what tells this process's share of the machine's work from that of others.
    cpu_seconds = time.process_time() - cpu_start
    return {
        "num_records": num_records,
        "label_sum": label_sum,
        "seconds": stop - start,
        "cpu_seconds": cpu_seconds,
    }


def time_turn(contestant: Contestant, task: Task) -> dict[str, Any]:
    """Time passes until they fill a turn: what neighbours take comes and goes by the second."""
    total: dict[str, Any] = {"num_records": 0, "label_sum": 0, "seconds": 0.0, "cpu_seconds": 0.0}
    while total["seconds"] < TURN_SECONDS:
        figures = time_pass(contestant)
        check_pass(figures, task)
        total = {name: total[name] + figures[name] for name in total}
    return total


def check_pass(figures: dict[str, Any], task: Task) -> None:
    """Refuse the figures of a reader that did not read what it was given."""
    import numpy as np  # noqa: PLC0415 - after pinning

    expected = (task.num_records, int(np.load(task.spec.labels)[: task.num_records].sum()))
    got = (figures["num_records"], figures["label_sum"])
    if got != expected:
        raise ValueError(f"expected (records, sum of labels) {expected}, got {got}")


def serve(order: Order, commands: TextIO, answers: TextIO) -> None:
    """Open the contestant, warm up with an untimed pass, then answer each line with the figures of a turn."""
    module_name, task = make_task(order)
    start = time.perf_counter()
    module = __import__(f"contestants.{module_name}", fromlist=["Reader"])
    imported = time.perf_counter()
    contestant: Contestant = module.Reader(task)
    opened = time.perf_counter()
    check_pass(time_pass(contestant), task)
    figures = {"import_seconds": imported - start, "open_seconds": opened - imported}
    answers.write(json.dumps(figures) + "\n")
    for _ in commands:
        answers.write(json.dumps(time_turn(contestant, task)) + "\n")


def attend(serve: Callable[[Order, TextIO, TextIO], None]) -> None:
    """Run a booth; every failure is an answer too."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    try:
        order = Order(**json.loads(sys.argv[1]))
        pin_process(order.num_cores)
        serve(order, sys.stdin, answers)
    except Exception as error:
        traceback.print_exc()
        answers.write(json.dumps({"error": f"{type(error).__name__}: {error}"}) + "\n")
        sys.exit(1)


if __name__ == "__main__":
    attend(serve)
