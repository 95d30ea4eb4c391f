"""A worker as a process of this machine: start it, read its events, end it.

In: a `WorkerTask`. Out: its events; the last one, "exit", has the exit status and the end of what the process
wrote to stderr.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import IO, Final

from penstock.foundation.keras_backend import VARIABLE
from penstock.jobs.train.worker_messages import Event, WorkerTask

_PROGRAM: Final = "penstock.jobs.train.worker"
_LOG_BYTES: Final = 4096
_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"

MEMORY_VARIABLE: Final = "XLA_PYTHON_CLIENT_PREALLOCATE"
"""Variable that keeps JAX from taking most of the memory of a GPU; not for workers."""


class WorkerProcess:
    """A process that runs a task; it ends when this process does.

    Args:
        task: The task.
        variables: Environment variables that differ from those of this process.

    Attributes:
        pid: Its process id.
    """

    def __init__(self, task: WorkerTask, variables: Mapping[str, str] | None = None) -> None:
        environment = {
            **{name: each for name, each in os.environ.items() if name != MEMORY_VARIABLE},
            **(variables or {}),
            VARIABLE: "jax",
            # TensorFlow writes the features of the processor to stderr, where it is installed.
            "TF_CPP_MIN_LOG_LEVEL": os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"),
        }
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
        if self._process.stdin is not None:
            # It stays open: its end means that this process has ended.
            self._process.stdin.write(json.dumps(task.to_json()).encode() + b"\n")
            self._process.stdin.flush()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def take_events(self) -> list[Event]:
        """Return the events since the last call."""
        with self._lock:
            taken, self._events = self._events, []
        return taken

    def stop(self) -> None:
        """End the process at once, and wait for its end.

        It is killed: JAX takes a polite signal for a notice, and waits for the other workers.
        """
        self._process.kill()
        self._process.wait()
        self._reader.join(timeout=5)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._log.close()

    def _read(self) -> None:
        if self._process.stdout is None:
            return
        for line in self._process.stdout:
            with self._lock:
                self._events.append(json.loads(line))
        status = self._process.wait()
        with self._lock:
            self._events.append({"kind": "exit", "status": status, "log": self._read_log()})

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


class LocalWorkers:
    """Workers as processes of this machine.

    Attributes:
        processes: The processes, by rank.
    """

    def __init__(self) -> None:
        self.processes: list[WorkerProcess] = []

    def find_address(self) -> str:
        """Return an address at which the first worker can listen."""
        return f"127.0.0.1:{find_port()}"

    def start(self, tasks: list[WorkerTask]) -> None:
        """Start one process per task."""
        for task in tasks:
            variables = {} if len(tasks) == 1 else {_VISIBLE: _choose_devices(task)}
            self.processes.append(WorkerProcess(task, variables))

    def take_events(self) -> list[tuple[int, Event]]:
        """Return the events since the last call, with the rank of each."""
        return [(rank, event) for rank, each in enumerate(self.processes) for event in each.take_events()]

    def stop(self) -> None:
        """End the processes that have not ended."""
        for each in self.processes:
            each.stop()


def _choose_devices(task: WorkerTask) -> str:
    """Return the GPUs of a worker, of which no other worker of this machine has one."""
    number = task.num_devices or 1
    mine = range(task.rank * number, (task.rank + 1) * number)
    visible = [each for each in os.environ.get(_VISIBLE, "").split(",") if each]
    return ",".join(visible[at] if visible else str(at) for at in mine if not visible or at < len(visible))
