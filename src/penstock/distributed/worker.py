"""The program of one of several processes that train a model together.

In: a `WorkerTask` as JSON on stdin of `python -m penstock.distributed.worker`. Out: events on stdout, one per
line, and the files of the run, which rank 0 writes.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from penstock.bridge.jax_workers import join_workers, keep_compiled, leave_workers
from penstock.distributed.worker_process import Event, EventWatcher, WorkerTask, dump_error
from penstock.errors import NoSuchPathError
from penstock.jobs.train.job import TrainJob
from penstock.jobs.train.train import plan_training
from penstock.settings.training import TrainCall
from penstock.training.distribution import Worker
from penstock.training.fit import Fit
from penstock.training.progress import SilentWatcher, Watcher
from penstock.training.run_files import CONFIG_NAME

_LOST_PARENT: Final = 3  # exit status of a worker whose parent has ended


def run_worker(task: WorkerTask, emit: Callable[[Event], None]) -> None:
    """Train as one of several workers; the last event is "done", or has the error."""
    sys.path += [each for each in task.search_path if each not in sys.path]
    try:
        _train(task, emit)
    except Exception as error:  # all are reported, and end the process
        emit(dump_error(error))
    else:
        emit({"kind": "done"})


def _train(task: WorkerTask, emit: Callable[[Event], None]) -> None:
    config = Path(task.folder) / CONFIG_NAME
    if not config.is_file():
        raise NoSuchPathError(
            f"worker {task.rank} finds no run",
            path=config,
            advice="The folders of the run and of the data must have the same path on all machines, such "
            "as on a network file system.",
        )
    worker = Worker(task.rank, task.num_workers, task.num_devices)
    if task.compiled:
        keep_compiled(Path(task.compiled))
    if task.num_workers > 1:
        join_workers(task.address, task.rank, task.num_workers)
    emit({"kind": "stage", "name": "connect"})
    watcher: Watcher = EventWatcher(emit, task.num_workers) if worker.is_first else SilentWatcher()
    with worker.distributing():
        model = find_function(*task.function) if task.function else None
        paths = list(task.data)
        options = TrainCall(out=task.folder, model=model, resume=True)
        job = TrainJob(data=paths[0] if len(paths) == 1 else paths, options=options)
        plan = plan_training(job, Path(task.folder))
        emit({"kind": "stage", "name": "open"})
        Fit(plan, Path(task.folder), watcher, worker=worker).run_share(
            lambda: emit({"kind": "stage", "name": "build"})
        )
    if task.num_workers > 1:
        leave_workers()


def find_function(module: str, name: str, *arguments: str) -> Callable[[], Any]:
    """Return a function of a module, with its arguments, as one without arguments."""
    function = getattr(importlib.import_module(module), name)
    return lambda: function(*arguments)


def _end_with_parent() -> None:
    """End this process when its parent does: nothing else would end one that waits for other workers."""
    while os.read(0, 4096):
        pass
    os._exit(_LOST_PARENT)


def _read_line() -> bytes:
    """Return the first line of stdin; nothing after it is buffered."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(0, 1)):
        line += byte
    return line


def main() -> None:
    """Run the task on stdin, and write events to stdout, one per line."""
    line = _read_line()
    if not line:  # a process that waits for a task, and is not needed
        return
    task = WorkerTask(**json.loads(line))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Libraries write to stdout, gloo among them.
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def emit(event: Event) -> None:
        events.write(json.dumps(event) + "\n")
        events.flush()

    emit({"kind": "stage", "name": "start"})
    run_worker(task, emit)
    sys.stderr.flush()
    os._exit(0)  # the threads of JAX may wait for workers that have already ended


if __name__ == "__main__":
    main()
