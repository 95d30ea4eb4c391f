"""Threads that work ahead, with results in order: one engine for loaders, predictions, scans and conversions.

In: tickets and a function that begins a job for each (`Feed`, within a window that is bounded by bytes), or
calls one by one (`OrderedResults`, bounded by their number). Out: items and results in the order of tickets
and calls. Any number of threads can work on the parts of one job.
"""

from __future__ import annotations

import _thread
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, Generic, TypeVar

from penstock.errors import ForkedError
from penstock.foundation.job_window import CallJob, Job, Made, Making, Window

_T = TypeVar("_T")


class OrderedResults(Generic[_T]):
    """Results of calls in a pool of threads, in the order of the calls.

    Args:
        pool: Runs the calls; who made it ends it.
        most_pending: Number of calls that may be pending before the oldest result is waited for.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with ThreadPoolExecutor(2) as pool:
        ...     squares = OrderedResults(pool, most_pending=1)
        ...     [*squares.submit(pow, 2, 2), *squares.submit(pow, 3, 2), *squares.drain()]
        [4, 9]
    """

    def __init__(self, pool: Executor, most_pending: int) -> None:
        self._pool = pool
        self._most_pending = most_pending
        self._pending: deque[Future[_T]] = deque()

    def submit(self, function: Callable[..., _T], *args: Any) -> Iterator[_T]:
        """Add a call at once, and yield the results that are due; results that are not taken stay pending."""
        self._pending.append(self._pool.submit(function, *args))
        return self._take(self._most_pending)

    def drain(self) -> Iterator[_T]:
        """Yield all results that are pending."""
        return self._take(0)

    def _take(self, most: int) -> Iterator[_T]:
        while len(self._pending) > most:
            yield self._pending.popleft().result()


_K = TypeVar("_K")

# For all threads of a feed together: Ctrl-C ends within five seconds, whatever a user's function does.
_JOIN_SECONDS = 3.0


def _work(window: Window[Any, Any]) -> None:
    window.enter()
    try:
        _make_all(window)
    except (
        BaseException
    ) as error:  # of the feed itself, or sent to this thread: the consumer must not wait forever
        window.fail(error)
    finally:
        window.release()


def _make_all(window: Window[Any, Any]) -> None:
    while (work := window.start()) is not None:
        making, part = work
        if making.job is None:
            _begin(window, making)
        elif part is None or _run(window, making, making.job, part):
            _finish(window, making, making.job)
        del work, making  # what the consumer drops must not be held here


def _begin(window: Window[_K, _T], making: Making[_K, _T]) -> None:
    try:
        ticket, making.ticket = making.ticket, None
        job = window.begin(ticket)  # type: ignore[arg-type]  # None only once it has begun
    except BaseException as error:
        window.fail_begin(making, error)
    else:
        window.open(making, job)


def _run(window: Window[_K, _T], making: Making[_K, _T], job: Job[_T], part: int) -> bool:
    """Do a part of a job; return whether it was the last one."""
    failure: BaseException | None = None
    try:
        job.run(part)
    except BaseException as error:
        failure = error
    is_last = window.close_part(making, part, failure)
    # The traceback of an error holds this frame: a ring, which only the garbage collector would undo.
    failure = None
    return is_last


def _finish(window: Window[_K, _T], making: Making[_K, _T], job: Job[_T]) -> None:
    if job.is_long_to_finish:
        window.release()
    if making.errors:
        made: Made[_T] = Made(None, 0, making.errors[min(making.errors)])
    else:
        try:
            made = Made(*job.finish(), None)
        except BaseException as error:
            made = Made(None, 0, error)
    window.deliver(making.number, made)
    making.errors = {}
    del made


def as_jobs(make: Callable[[_K], tuple[_T, int]]) -> Callable[[_K], Job[_T]]:
    """Return a function for `Feed`: a job of one part per ticket, by a function of item and size in bytes."""
    return partial(CallJob, make)


class Feed(Generic[_K, _T]):
    """Makes items by threads and returns them in order; ends its threads when closed or deleted.

    Args:
        tickets: Tickets of the items, in order; read under a lock, by one thread at a time.
        begin: Begins the job of a ticket; `as_jobs` makes such a function of one that makes whole items.
        num_threads: Number of threads; 0 makes items in the caller's thread when they are taken.
        most_bytes: Maximum total size of the items that wait, about; two are always allowed. None chooses it
            by the size of the items, so that all threads have work, up to an eighth of the memory.
        on_wait: Called with the seconds that the consumer waited for each item.
        callers_ahead: If given, tickets are read in the thread that calls `take`, at most this many ahead: an
            iterator of a user may be bound to the user's thread.
    """

    def __init__(
        self,
        tickets: Iterator[_K],
        begin: Callable[[_K], Job[_T]],
        num_threads: int,
        most_bytes: int | None,
        on_wait: Callable[[float], None] | None = None,
        callers_ahead: int | None = None,
    ) -> None:
        self._tickets = tickets
        self._begin = begin
        self._on_wait = on_wait
        self._pid = os.getpid()
        self._is_done = False
        self._window: Window[_K, _T] | None = None
        self._threads: list[threading.Thread] = []
        if num_threads == 0:
            return
        self._window = window = Window(tickets, begin, num_threads, most_bytes, callers_ahead)
        self._threads = [
            threading.Thread(target=_work, args=(window,), name=f"penstock-{i}", daemon=True)
            for i in range(num_threads)
        ]
        # Also when the interpreter ends: a thread that is left behind in the core would bring it down badly.
        self._ending = weakref.finalize(self, _drop, window, self._threads)
        for thread in self._threads:
            thread.start()

    def take(self) -> _T | None:
        """Return the next item; None at the end."""
        if self._is_done:
            return None
        if self._pid != os.getpid():
            raise ForkedError(
                "this iteration was started in another process",
                advice="Start one in this process: for batch in loader.",
            )
        begin = time.perf_counter()
        made = self._take()
        if self._on_wait is not None:
            self._on_wait(time.perf_counter() - begin)
        if made is None:
            self.close()
            return None
        if made.error is None:
            return made.item
        self.close()
        try:
            raise made.error
        finally:
            del made  # its traceback holds this frame: a ring, which only the garbage collector would undo

    def _take(self) -> Made[_T] | None:
        try:
            if self._window is not None:
                self._window.fill()
                return self._window.take()
            ticket = next(self._tickets, None)
            if ticket is None:
                return None
            job = self._begin(ticket)
            for part in range(job.num_parts):
                if job.native is None or not job.native.run(part):
                    job.run(part)
            return Made(*job.finish(), None)
        except BaseException:  # Ctrl-C while waiting; or the error of a ticket, where there are no threads
            self.close()
            raise

    @property
    def num_ready(self) -> int:
        """Number of items that wait to be taken."""
        return 0 if self._window is None else self._window.num_ready

    def close(self) -> None:
        """End the threads; a second time does nothing."""
        self._is_done = True
        if self._window is not None and self._pid == os.getpid():
            _end(self._window, self._threads)
            self._ending.detach()  # not before: an interrupt in between must not leave threads behind


def _end(window: Window[Any, Any], threads: list[threading.Thread]) -> None:
    if window.pid != os.getpid():
        return  # forked: the threads are not here, and one of them may have held the lock
    window.stop()
    if threading.current_thread() in threads:
        return  # it may hold the lock, without which the others cannot end
    deadline = time.monotonic() + _JOIN_SECONDS
    for thread in threads:
        if thread.is_alive():
            thread.join(max(0.0, deadline - time.monotonic()))
    window.clear()


def _drop(window: Window[Any, Any], threads: list[threading.Thread]) -> None:
    """End the threads of a feed that was deleted."""
    try:
        _end(window, threads)
    except KeyboardInterrupt:
        window.stop()
        # Python drops errors that are raised while an object is deleted: interrupt again, a little later.
        again = threading.Timer(0.01, _thread.interrupt_main)
        again.daemon = True
        again.start()
