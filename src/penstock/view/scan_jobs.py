"""Work that takes long or needs much memory, in separate threads.

In: a key and a function. Out: its result, or how much of the work is done. Scans run in the background: one
that no request has asked for in a while is given up, and results are kept up to a number of bytes. Records
and pictures are read and drawn one at a time.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from penstock import _native

WAIT_SECONDS: Final = 1.8
"""How long a request waits for a result before it shows the progress."""

GIVE_UP_SECONDS: Final = 30.0
"""Work is given up if no request has asked for it for this long: the page was closed."""

MAX_RESULT_BYTES: Final = 48 << 20
"""Results beyond this many bytes in all are forgotten, the oldest first."""

_MOST_RESULTS: Final = 256
_MOST_WORKERS: Final = 2
_KEPT_BYTES: Final = 8 << 20  # of buffers of the core, for the next request
_MOST_JOBS: Final = 8  # waiting or running; a new one then stops the oldest
_R = TypeVar("_R")


class KeptResult(Protocol):
    """A result that knows how much memory it takes."""

    @property
    def nbytes(self) -> int:
        """Number of bytes."""


_T = TypeVar("_T", bound=KeptResult)


class GivenUpError(Exception):
    """The work was given up, because no request waits for it, or the viewer ends."""


@dataclass(frozen=True)
class Progress:
    """Part of the work that is done, as a number of records."""

    done: int
    total: int

    @property
    def share(self) -> float:
        """Part that is done, from 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0


class Watch:
    """Given to the work, to report its progress and to find out whether to stop."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.progress = Progress(0, 0)
        self.is_closed = False
        self.asked = clock()

    def report(self, done: int, total: int) -> None:
        """Report progress."""
        self.progress = Progress(done, total)
        if self.is_closed or self._clock() - self.asked > GIVE_UP_SECONDS:
            raise GivenUpError


@dataclass
class _Job(Generic[_T]):
    watch: Watch
    future: Future[_T]


class SerialWork:
    """Runs work that needs much memory in one thread: one piece at a time, for any number of requests."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "penstock-view-serial")

    def run(self, work: Callable[[], _R]) -> _R:
        """Return the result of some work, once all work before it is done."""
        return self._pool.submit(_release_after, work).result()

    def close(self) -> None:
        """Wait for the work that is running, and drop the rest."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def _release_after(work: Callable[[], _R]) -> _R:
    """Do some work, then return its memory to the system: buffers of the core are otherwise kept."""
    try:
        return work()
    finally:
        if _native.pooled_bytes() > _KEPT_BYTES:
            _native.empty_pool()
        _native.trim_memory()


class ScanJobs:
    """Runs work in two background threads, each kind of it once, and keeps the results."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pool = ThreadPoolExecutor(_MOST_WORKERS, "penstock-view")
        self._jobs: dict[Hashable, _Job[Any]] = {}
        self._results: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = threading.Lock()

    def ask(
        self, key: Hashable, work: Callable[[Watch], _T], wait_seconds: float = WAIT_SECONDS
    ) -> _T | Progress:
        """Return the result of some work, or its progress if it takes longer than `wait_seconds`.

        `work`: does the work; called at most once while its result is kept.
        """
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
                kept: _T = self._results[key]
                return kept
            self._tidy()
            known: _Job[_T] | None = self._jobs.get(key)
            if known is None or known.watch.is_closed:
                watch = Watch(self._clock)
                known = self._jobs[key] = _Job(watch, self._pool.submit(_release_after, partial(work, watch)))
            job = known
            job.watch.asked = self._clock()
        if not wait([job.future], wait_seconds).done:
            return job.watch.progress
        with self._lock:
            if self._jobs.get(key) is job:
                del self._jobs[key]
        try:
            result = job.future.result()
        except (GivenUpError, CancelledError):
            return job.watch.progress  # the next request begins again
        self._keep(key, result)
        return result

    def close(self) -> None:
        """Stop all work."""
        with self._lock:
            for job in self._jobs.values():
                job.watch.is_closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _tidy(self) -> None:
        """Drop work that has ended without a request to take it, and stop the oldest of too much work."""
        for key, job in list(self._jobs.items()):
            if job.future.done() and self._clock() - job.watch.asked > GIVE_UP_SECONDS:
                del self._jobs[key]
        running = [job for job in self._jobs.values() if not job.future.done() and not job.watch.is_closed]
        if len(running) >= _MOST_JOBS:
            oldest = min(running, key=lambda job: job.watch.asked)
            oldest.watch.is_closed = True
            oldest.future.cancel()

    def _keep(self, key: Hashable, result: KeptResult) -> None:
        with self._lock:
            self._results[key] = result
            self._results.move_to_end(key)
            while len(self._results) > 1 and (
                len(self._results) > _MOST_RESULTS
                or sum(each.nbytes for each in self._results.values()) > MAX_RESULT_BYTES
            ):
                self._results.popitem(last=False)
