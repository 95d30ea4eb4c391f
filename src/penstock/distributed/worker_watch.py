"""Several workers as the process that starts them sees them: their progress, their errors, and their loss.

In: the events of workers. Out: progress for a watcher, and how a worker was lost, if one was.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final, Protocol

from penstock.distributed.worker_messages import Event, WorkerTask, load_error, relay_event
from penstock.training.progress import Watcher

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


class Workers(Protocol):
    """The processes of a run, which are started again when one is lost."""

    def find_address(self) -> str:
        """Return an address at which the first worker can listen.

        Raises:
            LostWorkerError: A worker was lost.
        """

    def start(self, tasks: list[WorkerTask]) -> None:
        """Start one process per task.

        Raises:
            LostWorkerError: A worker was lost.
        """

    def take_events(self) -> list[tuple[int, Event]]:
        """Return the events since the last call, with the rank of each."""

    def start_spares(self) -> None:
        """Start processes that import their packages, and wait to replace those that train."""

    def stop(self) -> None:
        """End the processes that train."""

    def close(self) -> None:
        """End all processes."""


class RestartTimes:
    """How long each part of a restart takes, from the loss of a worker to the next step.

    Args:
        clock: Returns the time in seconds.
    """

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


class LostWorkerError(Exception):
    """A worker was lost before it could report anything; the message says how."""


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
    """Pass on the progress of workers until all are done, or one is lost.

    `times`: times of the restart that these workers continue, for a note; None without one.

    Returns:
        How a worker was lost; None if all are done.
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
