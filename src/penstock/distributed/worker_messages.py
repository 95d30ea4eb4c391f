"""What the processes that train a model together are given, and what they report, as JSON.

In: a `WorkerTask`. Out: events, which `relay_event` passes on to a watcher, and errors as they were raised.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, TypeAlias

from penstock import errors
from penstock.errors import PenstockError, WorkerError
from penstock.training.progress import SilentWatcher, TrainingProgress, Watcher

Event: TypeAlias = dict[str, Any]
"""A message of a worker; "stage", "note", "step", "epoch", "done", "error", "lost" or "exit" as kind."""

_CONNECTION_ERRORS: Final = ("XlaRuntimeError", "JaxRuntimeError")
"""Errors of JAX, also in a worker whose peer has ended."""


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
