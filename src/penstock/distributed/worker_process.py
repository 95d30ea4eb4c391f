"""A worker as a process of this machine: start it, give it a task, read its events, end it.

In: a `WorkerTask`. Out: its events; the last one, "exit", has the exit status, the end of what the process
wrote to stderr, and whether the machine ran out of memory.
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
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Final

from penstock.distributed.worker_messages import Event, WorkerTask
from penstock.errors import OptionError
from penstock.foundation.keras_backend import VARIABLE

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
