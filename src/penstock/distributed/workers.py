"""Training by several processes: start them, pass on their progress, start them again when one is lost.

In: the folder of a run with a checkpoint, and its data. Out: the last checkpoint of the run, written by the
workers. What runs the processes is an engine: this machine, or Ray.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from penstock.batch.batch_plan import check_shares
from penstock.dataset import Dataset
from penstock.distributed.worker_process import (
    MEMORY_VARIABLE,
    Event,
    LocalWorkers,
    LostWorkerError,
    WorkerTask,
    check_gpus,
    load_error,
    relay_event,
)
from penstock.errors import OptionError, WorkerError, importing
from penstock.foundation.wording import show
from penstock.settings.groups import Engine
from penstock.settings.training import Workers as WorkerOptions
from penstock.storage.store_path import make_absolute
from penstock.training.distribution import check_backend
from penstock.training.progress import Watcher
from penstock.training.run_files import list_data_paths
from penstock.training.run_state import read_step

_MOST_LOSSES: Final = 3  # of workers, without a new checkpoint
_COMPILED_NAME: Final = ".compiled"
_POLL_SECONDS: Final = 0.1
# A worker that fails because another has ended reports it before the end or the error of that one is known.
_GRACE_SECONDS: Final = 3.0
_SPARE_SECONDS: Final = 5.0  # after the first step: short runs need no spare processes
_MOST_LOG_LINES: Final = 5
_STAGES: Final = {
    "end": "to end all workers",
    "start": "to start them",
    "connect": "to connect them",
    "open": "to open the data",
    "build": "to build the model",
    "step": "to restore it and make a step",
}
"""Parts of a restart, in their order."""


@dataclass(frozen=True, kw_only=True)
class Launcher:
    """Starts the workers of a training: how many there are, and where.

    Attributes:
        num_workers: Number of workers.
        engine: "local" for processes of this machine, "ray" for a Ray cluster.
        address: Address of the Ray cluster; None for the one in `RAY_ADDRESS`, or a new one on this machine.
        num_devices: Number of devices of each worker; None takes all.
        function: Function that returns the user's own model, if there is one.
    """

    num_workers: int
    engine: Engine = "local"
    address: str | None = None
    num_devices: int | None = None
    function: Callable[[], Any] | None = field(default=None, repr=False)

    def launch(self, folder: Path, data: Dataset, batch_size: int, watcher: Watcher) -> None:
        """Train in other processes, from the checkpoint in the folder to the end.

        If a worker is lost, all are started again from the last checkpoint.

        `batch_size`: number of records of a batch, which the workers share.
        """
        check_shares(batch_size, self.num_workers, "workers")
        num_losses, step = 0, read_step(folder)
        times: RestartTimes | None = None
        with self.connect() as make_workers, _closing(make_workers(), folder) as workers:
            while True:
                try:
                    workers.start(self._make_tasks(folder, data, workers.find_address()))
                    reason = watch_workers(workers, self.num_workers, watcher, times)
                except LostWorkerError as error:
                    reason = str(error)
                if reason is None:
                    return
                times = RestartTimes()
                workers.stop()
                times.mark("end")
                before, step = step, read_step(folder)
                num_losses = 1 if step > before else num_losses + 1
                if num_losses > _MOST_LOSSES:
                    raise WorkerError(
                        "workers",
                        path=folder,
                        expected="a new checkpoint between two losses of workers",
                        got=f"{num_losses} losses at step {step}, the last: {reason}",
                        advice="Continue once the cause is fixed: `resume=True`.",
                    )
                watcher.note(f"{reason}: all workers start again from step {step}.")

    def check(self) -> None:
        """Check what can be checked before data is read."""
        check_backend("num_devices" if self.num_workers == 1 else "num_workers")
        if self.engine == "local":
            check_gpus(self.num_workers, self.num_devices, count_gpus())

    def connect(self) -> contextlib.AbstractContextManager[Callable[[], Workers]]:
        """Connect to the cluster, if there is one; inside, a function makes the workers of a run."""
        if self.engine == "local":
            return contextlib.nullcontext(lambda: LocalWorkers(count_gpus()))
        with importing("engine='ray'", "ray"):
            from penstock.distributed.ray_workers import connected  # noqa: PLC0415 - Ray, when asked for

        return connected(self.address, self.num_workers, self.num_devices)

    def _make_tasks(self, folder: Path, data: Dataset, address: str) -> list[WorkerTask]:
        return [
            WorkerTask(
                folder=make_absolute(folder),
                data=[make_absolute(path) for path in list_data_paths(data)],
                rank=rank,
                num_workers=self.num_workers,
                num_devices=self.num_devices,
                address=address,
                function=() if self.function is None else name_function(self.function),
                search_path=[os.path.abspath(each) for each in sys.path],  # noqa: PTH100
                compiled=make_absolute(folder / _COMPILED_NAME),
            )
            for rank in range(self.num_workers)
        ]


@contextlib.contextmanager
def _closing(workers: Workers, folder: Path) -> Iterator[Workers]:
    """End all processes at the end, and remove what they have compiled."""
    try:
        yield workers
    finally:
        workers.close()
        shutil.rmtree(folder / _COMPILED_NAME, ignore_errors=True)


def count_gpus() -> int:
    """Return how many GPUs this process can use; 0 where it computes on CPUs."""
    from penstock.bridge import jax_workers  # noqa: PLC0415 - JAX, once its backend of Keras was chosen

    return jax_workers.count_gpus()


def name_function(function: Callable[[], Any]) -> tuple[str, ...]:
    """Return the module and the name of a function, and its arguments, so that another process finds it."""
    arguments: tuple[Any, ...] = ()
    found: Any = function
    if isinstance(function, functools.partial) and not function.keywords:
        found, arguments = function.func, function.args
    module, name = getattr(found, "__module__", None), getattr(found, "__qualname__", "")
    is_found = module not in (None, "__main__") and name.isidentifier() and module in sys.modules
    if is_found and getattr(sys.modules[str(module)], name, None) is found:
        with contextlib.suppress(ImportError, ValueError):
            if importlib.util.find_spec(str(module)) and all(isinstance(each, str) for each in arguments):
                return (str(module), name, *arguments)
    raise OptionError(
        "model",
        field="model",
        expected="a function of a module that other processes can import",
        got=show(function),
        advice="Move it to a file of its own and import it from there, or use the command: "
        "penstock train … --model FILE.py:FUNCTION.",
    )


def connecting(launcher: Launcher | None) -> contextlib.AbstractContextManager[object]:
    """Connect to the cluster of a launcher, if there is one, for a whole job.

    It must come before JAX computes in this process: Ray starts a cluster on this machine by forks, which are
    not safe beside the threads of JAX.
    """
    return contextlib.nullcontext() if launcher is None else launcher.connect()


def make_launcher(options: WorkerOptions) -> Launcher | None:
    """Return what starts the workers; None if this process alone trains, on one device."""
    number, num_devices = options.num_workers or 1, options.num_devices
    if options.engine == "local" and number == 1 and num_devices in (None, 1):
        return None
    # JAX would take most of the memory of a GPU for this process, which only prepares and finishes the run.
    os.environ.setdefault(MEMORY_VARIABLE, "false")
    engine, address = options.engine, options.address
    return Launcher(num_workers=number, engine=engine, address=address, num_devices=num_devices)


class Workers(Protocol):
    """The processes of a run, which are started again when one is lost."""

    def find_address(self) -> str:
        """Return an address at which the first worker can listen; a `LostWorkerError` if one was lost."""

    def start(self, tasks: list[WorkerTask]) -> None:
        """Start one process per task; a `LostWorkerError` if one was lost."""

    def take_events(self) -> list[tuple[int, Event]]:
        """Return the events since the last call, with the rank of each."""

    def start_spares(self) -> None:
        """Start processes that import their packages, and wait to replace those that train."""

    def stop(self) -> None:
        """End the processes that train."""

    def close(self) -> None:
        """End all processes."""


class RestartTimes:
    """How long each part of a restart takes, from the loss of a worker to the next step."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun = clock()
        self._reached: dict[str, float] = {}

    def mark(self, stage: str) -> None:
        """Note the end of a stage; of several workers, the last one counts."""
        self._reached[stage] = self._clock()

    def describe(self) -> str:
        """Return the duration of the restart and of its parts."""
        begun, parts = self._begun, []
        for stage, name in _STAGES.items():
            if stage in self._reached:
                parts.append(f"{max(0.0, self._reached[stage] - begun):.1f} s {name}")
                begun = max(begun, self._reached[stage])
        return f"{begun - self._begun:.1f} s after the loss ({', '.join(parts)})"


class _Progress:
    """What a group of workers has reported."""

    def __init__(self, watcher: Watcher, times: RestartTimes | None) -> None:
        self.done: set[int] = set()
        self.stepped: float | None = None
        self._failed: dict[int, Event] = {}
        self._lost: dict[int, str] = {}
        self._ended: str | None = None
        self._deadline = math.inf
        self._watcher = watcher
        self._times = times

    def take(self, rank: int, event: Event) -> None:
        """Take an event."""
        kind = event["kind"]
        if kind == "exit":
            if self._ended is None and not (rank in self.done or rank in self._failed or rank in self._lost):
                self._ended = _describe_exit(rank, event)
        elif kind == "lost":
            self._lost.setdefault(rank, f"Worker {rank} lost the others ({_shorten(event['text'])})")
        elif kind == "done":
            self.done.add(rank)
        elif kind == "error":
            self._failed[rank] = event
        elif kind == "stage":
            if self._times is not None:
                self._times.mark(event["name"])
        else:
            if kind != "note" and self.stepped is None:
                self._note_step()
            relay_event(event, self._watcher)

    def find_loss(self, number: int) -> str | None:
        """Return how a worker was lost, once it is known that no error of another one is the cause."""
        # A worker that raises an error of Penstock ends, and so breaks the connections of the others: what
        # they report then is no loss, whether it arrives before the error or after it.
        is_caused = any("attributes" in each for each in self._failed.values())
        if self._ended is not None and not is_caused:
            return self._ended
        if not self._failed and not self._lost:
            return None
        self._deadline = min(self._deadline, time.monotonic() + _GRACE_SECONDS)
        known = self.done | self._failed.keys() | self._lost.keys()
        if time.monotonic() < self._deadline and len(known) < number:
            return None
        if self._lost and not is_caused:
            return next(iter(self._lost.values()))
        # An error of Penstock says more than what it caused in other workers.
        rank, event = min(self._failed.items(), key=lambda each: ("attributes" not in each[1], each[0]))
        raise load_error(event, rank)

    def _note_step(self) -> None:
        self.stepped = time.monotonic()
        if self._times is not None:
            self._times.mark("step")
            self._watcher.note(f"Training continues {self._times.describe()}.")


def watch_workers(
    workers: Workers, number: int, watcher: Watcher, times: RestartTimes | None = None
) -> str | None:
    """Pass on the progress of workers until all are done, or one is lost; return how it was lost.

    `times`: times of the restart that these workers continue, for a note; None without one.
    """
    progress = _Progress(watcher, times)
    has_spares = False
    while len(progress.done) < number:
        for rank, event in workers.take_events():
            progress.take(rank, event)
        if (reason := progress.find_loss(number)) is not None:
            return reason
        stepped = progress.stepped
        if not has_spares and stepped is not None and time.monotonic() - stepped >= _SPARE_SECONDS:
            workers.start_spares()
            has_spares = True
        time.sleep(_POLL_SECONDS)
    return None


def _describe_exit(rank: int, event: Event) -> str:
    status = event["status"]
    how = f"signal {-status}" if status < 0 else f"status {status}"
    if event.get("is_memory"):
        return f"Worker {rank} was killed ({how}), as its machine ran out of memory"
    lines = [line for line in event.get("log", "").splitlines() if line.strip()][-_MOST_LOG_LINES:]
    return f"Worker {rank} ended with {how}" + (f" ({_shorten(' | '.join(lines))})" if status > 0 else "")


def _shorten(text: str) -> str:
    most = 300
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}…"
