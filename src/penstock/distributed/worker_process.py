"""A worker as a process of this machine: start it, give it a task, read its events, end it.

In: a `WorkerTask` as JSON. Out: its events, which `relay_event` passes on to a watcher, and errors as they
were raised; the last event, "exit", has the exit status, the end of what the process wrote to stderr, and
whether the machine ran out of memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

from penstock import errors
from penstock.errors import OptionError, PenstockError, WorkerError
from penstock.foundation.keras_backend import VARIABLE
from penstock.training.progress import SilentWatcher, TrainingProgress, Watcher

Event: TypeAlias = dict[str, Any]
"""A message of a worker; "stage", "note", "step", "epoch", "done", "error", "lost" or "exit" as kind."""

_CONNECTION_ERRORS: Final = ("XlaRuntimeError", "JaxRuntimeError")
"""Errors of JAX, also in a worker whose peer has ended."""

_PROGRAM: Final = "penstock.distributed.worker"
_LOG_BYTES: Final = 4096
_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"

MEMORY_VARIABLE: Final = "XLA_PYTHON_CLIENT_PREALLOCATE"
"""Variable that keeps JAX from taking most of the memory of a GPU; not for workers."""


_COUNTERS: Final = (
    "/sys/fs/cgroup/memory.events",
    "/sys/fs/cgroup/memory/memory.oom_control",
    "/proc/vmstat",
)
"""Files of Linux with the number of processes that were killed for memory: of this container, or of all."""


@dataclass(frozen=True, kw_only=True)
class WorkerTask:
    """What one worker is given.

    Attributes:
        folder: Folder of the run, with its first checkpoint.
        data: Paths of the data set.
        rank: Number of this worker, from 0.
        num_workers: Number of workers.
        num_devices: Number of devices of each worker; None takes all.
        address: Host and port at which rank 0 listens.
        function: Module and name of the function that returns the user's own model, then its arguments; empty
            for a model that is built.
        search_path: Folders in which modules are searched.
        compiled: Folder in which compiled functions are kept for a restart.
    """

    folder: str
    data: Sequence[str]
    rank: int
    num_workers: int
    num_devices: int | None = None
    address: str = ""
    function: Sequence[str] = ()
    search_path: Sequence[str] = ()
    compiled: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


class EventWatcher(SilentWatcher):
    """A watcher that reports progress as events; workers read no raw data, and do not end a run.

    Each of `num_workers` workers loads as many records as this one.
    """

    def __init__(self, emit: Callable[[Event], None], num_workers: int) -> None:
        self._emit = emit
        self._num_workers = num_workers

    def note(self, text: str) -> None:
        """Report a note."""
        self._emit({"kind": "note", "text": text})

    def step(self, progress: TrainingProgress) -> None:
        """Report a step."""
        self._emit({"kind": "step", "progress": self._dump(progress)})

    def epoch(self, progress: TrainingProgress, *, is_best: bool) -> None:
        """Report an epoch."""
        self._emit({"kind": "epoch", "progress": self._dump(progress), "is_best": is_best})

    def _dump(self, progress: TrainingProgress) -> dict[str, object]:
        logs = {name: float(each) for name, each in progress.logs.items()}
        speed = progress.records_per_second * self._num_workers
        return asdict(replace(progress, logs=logs, records_per_second=speed))


class LostWorkerError(Exception):
    """A worker was lost before it could report anything; the message says how."""


def relay_event(event: Mapping[str, Any], watcher: Watcher) -> None:
    """Pass an event of a worker on to a watcher."""
    if event["kind"] == "note":
        watcher.note(event["text"])
    elif event["kind"] == "step":
        watcher.step(TrainingProgress(**event["progress"]))
    elif event["kind"] == "epoch":
        watcher.epoch(TrainingProgress(**event["progress"]), is_best=event["is_best"])


def dump_error(error: Exception) -> Event:
    """Return an error as an event."""
    if isinstance(error, PenstockError):
        found = {name: _as_json(value) for name, value in {**vars(error), "path": error.path}.items()}
        return {"kind": "error", "name": type(error).__name__, "attributes": found}
    lines = "".join(traceback.format_exception(error))
    kind = "lost" if type(error).__name__ in _CONNECTION_ERRORS else "error"
    return {"kind": kind, "name": type(error).__name__, "text": str(error), "traceback": lines}


def load_error(event: Mapping[str, Any], rank: int) -> PenstockError:
    """Return the error of an event; errors that are not Penstock's as a `WorkerError`.

    `rank`: number of the worker, which the error has as a note.
    """
    kind = getattr(errors, event["name"], None)
    if "attributes" not in event or not isinstance(kind, type) or not issubclass(kind, PenstockError):
        error: PenstockError = WorkerError(
            f"worker {rank}",
            expected="a training without errors",
            got=f"{event['name']}: {event.get('text', '')}",
        )
        error.add_note(event.get("traceback", ""))
        return error
    attributes = dict(event["attributes"])
    error = kind(attributes.pop("what"))
    for name, value in attributes.items():
        pairs = name == "records" and isinstance(value, list)
        setattr(error, name, tuple(map(tuple, value)) if pairs else value)
    error.args = (str(error),)
    error.add_note(f"Worker {rank} raised it.")
    return error


def _as_json(value: Any) -> Any:
    """Return a value of an error as JSON has it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return [_as_json(each) for each in value] if isinstance(value, list | tuple) else str(value)


class WorkerProcess:
    """A process that imports its packages, and waits for a task; it ends when this process does.

    `variables` are environment variables that differ from this process.
    """

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        environment = {
            **{name: each for name, each in os.environ.items() if name != MEMORY_VARIABLE},
            **(variables or {}),
            VARIABLE: "jax",
            # TensorFlow writes the features of the processor to stderr, where it is installed.
            "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"),
        }
        self._num_killed = count_memory_kills()
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            start_new_session=True,  # an interrupt of the terminal is for the process that started it
        )
        self.pid = self._process.pid
        self._events: list[Event] = []
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def give(self, task: WorkerTask) -> None:
        """Give the process its only task."""
        if self._process.stdin is not None:
            # A process that has ended reports it by an event. The pipe stays open: its end means that this
            # process has ended.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(json.dumps(task.to_json()).encode() + b"\n")
                self._process.stdin.flush()

    def take_events(self) -> list[Event]:
        """Return the events since the last call."""
        with self._lock:
            taken, self._events = self._events, []
        return taken

    def stop(self) -> None:
        """End the process at once, and wait for its end.

        It is killed: JAX treats SIGTERM as a preemption notice, and waits for the other workers.
        """
        self._process.kill()
        self._process.wait()
        self._reader.join(timeout=5)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._log.close()

    def _read(self) -> None:
        if self._process.stdout is None:
            return
        try:
            for line in self._process.stdout:
                event = json.loads(line)
                with self._lock:
                    self._events.append(event)
        except ValueError:
            # A kill may cut the last line. After any other line that is not JSON, nothing can be read.
            self._process.kill()
        finally:
            status = self._process.wait()
            is_memory = status == -signal.SIGKILL and count_memory_kills() > self._num_killed
            with self._lock:
                self._events.append(
                    {"kind": "exit", "status": status, "log": self._read_log(), "is_memory": is_memory}
                )

    def _read_log(self) -> str:
        try:
            size = self._log.seek(0, os.SEEK_END)
            self._log.seek(max(0, size - _LOG_BYTES))
            return self._log.read().decode(errors="replace")
        except ValueError:  # closed by `stop`
            return ""


def find_port(host: str = "127.0.0.1") -> int:
    """Return a TCP port that no process listens at."""
    with socket.socket() as server:
        server.bind((host, 0))
        return int(server.getsockname()[1])


def count_memory_kills() -> int:
    """Return how many processes were killed because the memory was exhausted; 0 where this is not known."""
    found = 0
    for name in _COUNTERS:
        with contextlib.suppress(OSError, ValueError):
            counts = dict(line.split() for line in Path(name).read_text().splitlines())
            found += int(counts.get("oom_kill", 0))
    return found


class RankProcesses:
    """The processes of one rank: the one that trains, and one that waits to replace it.

    A process that waits has imported its packages, which takes most of the time of a start on a busy machine.
    """

    def __init__(self) -> None:
        self._process: WorkerProcess | None = None
        self._spare: WorkerProcess | None = None

    def start(self, task: WorkerTask, variables: Mapping[str, str] | None = None) -> int:
        """Give a task to the process that waits, or to a new one; return its process id."""
        process, self._spare = self._spare, None
        if process is not None and not process.is_running:
            process.stop()
            process = None
        self._process = WorkerProcess(variables) if process is None else process
        self._process.give(task)
        return self._process.pid

    def start_spare(self, variables: Mapping[str, str] | None = None) -> None:
        """Start a process that waits, if there is none."""
        if self._spare is None:
            self._spare = WorkerProcess(variables)

    def take_events(self) -> list[Event]:
        """Return the events of the process since the last call."""
        return [] if self._process is None else self._process.take_events()

    def stop(self) -> None:
        """End the process; the one that waits is kept."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def close(self) -> None:
        """End both processes."""
        self.stop()
        if self._spare is not None:
            self._spare.stop()
            self._spare = None


class LocalWorkers:
    """Workers as processes of this machine, which has `num_gpus` GPUs for them; 0 trains on CPUs."""

    def __init__(self, num_gpus: int = 0) -> None:
        self._num_gpus = num_gpus
        self._ranks: list[RankProcesses] = []
        self._variables: list[dict[str, str]] = []

    def find_address(self) -> str:
        """Return an address at which the first worker can listen."""
        return f"127.0.0.1:{find_port()}"

    def start(self, tasks: list[WorkerTask]) -> None:
        """Start one process per task."""
        if not self._ranks:
            self._ranks = [RankProcesses() for _ in tasks]
            self._variables = [self._choose_variables(task) for task in tasks]
        for each, task, variables in zip(self._ranks, tasks, self._variables, strict=True):
            each.start(task, variables)

    def start_spares(self) -> None:
        """Start one process per worker that waits to replace it."""
        for each, variables in zip(self._ranks, self._variables, strict=True):
            each.start_spare(variables)

    def take_events(self) -> list[tuple[int, Event]]:
        """Return the events since the last call, with the rank of each."""
        return [(rank, event) for rank, each in enumerate(self._ranks) for event in each.take_events()]

    def stop(self) -> None:
        """End the processes; those that wait are kept."""
        for each in self._ranks:
            each.stop()

    def close(self) -> None:
        """End all processes."""
        for each in self._ranks:
            each.close()

    def _choose_variables(self, task: WorkerTask) -> dict[str, str]:
        if not self._num_gpus or task.num_workers == 1:
            return {}
        return {_VISIBLE: choose_devices(task.rank, task.num_devices or 1, os.environ.get(_VISIBLE))}


def choose_devices(rank: int, number: int, visible: str | None) -> str:
    """Return the GPUs of a worker, which it shares with no other worker of this machine.

    `visible`: GPUs that this process can use, as `CUDA_VISIBLE_DEVICES` names them; None for all.
    """
    mine = range(rank * number, (rank + 1) * number)
    if visible is None:
        return ",".join(map(str, mine))
    return ",".join([each for each in visible.split(",") if each][mine.start : mine.stop])


def check_gpus(num_workers: int, num_devices: int | None, num_gpus: int) -> None:
    """Refuse workers of this machine that would have to share a GPU.

    `num_devices`: number of GPUs of each worker; one by default. `num_gpus`: number of GPUs that this process
    can use; 0 trains on CPUs.
    """
    number = num_devices or 1
    if num_gpus and num_workers > 1 and num_workers * number > num_gpus:
        raise OptionError(
            "num_workers",
            field="num_workers",
            expected=f"at most {num_gpus // number} with {number} GPUs each: {num_gpus} GPUs can be used",
            got=num_workers,
            advice=f"Use fewer workers, or more GPUs in {_VISIBLE}; JAX_PLATFORMS=cpu trains on CPUs.",
        )
