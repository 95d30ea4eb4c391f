"""Threads that send requests to object stores: as many as there are requests, up to a limit.

In: functions to call. Out: futures. The threads are daemons, so that a slow store cannot keep a process from
ending, and end by themselves when there is nothing to do.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from penstock.foundation.job_window import give_up_if_stopped

_T = TypeVar("_T")

# One connection of S3 gives 50 to 100 MB per second; these fill a link of 25 Gbit per second.
MAX_REQUESTS: Final = 32
RANGE_BYTES: Final = 8 << 20
"""Largest range of one request, unless a single record is larger."""
_IDLE_SECONDS: Final = 2.0
_POLL_SECONDS: Final = 0.1


class RequestThreads:
    """Threads that call functions. Any thread may add calls."""

    def __init__(self, most: int = MAX_REQUESTS) -> None:
        self._most = most
        self._wake = threading.Condition()
        self._calls: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._num_threads = 0
        self._num_idle = 0

    def submit(self, call: Callable[[], _T], *, is_urgent: bool = False) -> Future[_T]:
        """Call a function on a thread; urgent calls come before all that wait."""
        future: Future[_T] = Future()
        with self._wake:
            if is_urgent:
                self._calls.appendleft((future, call))
            else:
                self._calls.append((future, call))
            # A thread that was woken counts as idle until it runs: each idle one takes one of these calls.
            if len(self._calls) <= self._num_idle:
                self._wake.notify()
            elif self._num_threads < self._most:
                self._num_threads += 1
                threading.Thread(target=self._work, name="penstock-store", daemon=True).start()
        return future

    def call_here(self, future: Future[Any]) -> None:
        """Call the function of a future on this thread, if it still waits for its turn."""
        with self._wake:
            found = next((each for each in self._calls if each[0] is future), None)
            if found is None:
                return
            self._calls.remove(found)
        _call(*found)

    def _work(self) -> None:
        _current.threads = self
        while True:
            with self._wake:
                while not self._calls:
                    self._num_idle += 1
                    is_woken = self._wake.wait(_IDLE_SECONDS)
                    self._num_idle -= 1
                    if not is_woken and not self._calls:
                        self._num_threads -= 1
                        return
                future, call = self._calls.popleft()
            _call(future, call)
            del future, call  # a thread that waits must not keep the bytes of the last answer


def _call(future: Future[Any], call: Callable[[], Any]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)


_current = threading.local()  # the threads that the current one belongs to, if any
_threads: tuple[int, RequestThreads] | None = None


def request_threads() -> RequestThreads:
    """Return the threads of this process."""
    global _threads  # noqa: PLW0603 - one per process, and a forked one has none
    if _threads is None or _threads[0] != os.getpid():
        _threads = (os.getpid(), RequestThreads())
    return _threads[1]


def wait(future: Future[_T]) -> _T:
    """Return the result of a future; ends early if the loader that waits for it was closed.

    A call that waits for another one makes it itself, unless it was begun: otherwise all threads could wait
    for calls that no thread is left to make.
    """
    threads: RequestThreads | None = getattr(_current, "threads", None)
    if threads is not None:
        threads.call_here(future)
    while True:
        try:
            return future.result(_POLL_SECONDS)
        except TimeoutError:
            if future.done():  # just now, or the call itself raised it
                return future.result()
            give_up_if_stopped()


def call_all(calls: Sequence[Callable[[], _T]]) -> Iterator[_T]:
    """Yield the results of functions in order; all are called at the same time, as far as threads allow."""
    futures = [request_threads().submit(call) for call in calls]
    try:
        for future in futures:
            yield wait(future)
    finally:
        for future in futures:
            future.cancel()


def call_ahead(
    calls: Iterable[Callable[[], _T]], most: int, is_remote: Callable[[Any], bool] = lambda _: True
) -> Iterator[_T]:
    """Yield the results of functions in order, with up to `most` of them called ahead of the caller.

    `calls`: the functions; taken when their turn comes. `most`: maximum number of results that are pending,
    or wait for the caller. `is_remote`: returns whether a function waits for a store. Others are called by
    this thread.
    """
    ahead: deque[Future[_T] | Callable[[], _T]] = deque()
    try:
        for call in calls:
            ahead.append(request_threads().submit(call) if is_remote(call) else call)
            if len(ahead) >= most or (len(ahead) == 1 and not isinstance(ahead[0], Future)):
                yield _result_of(ahead.popleft())
        while ahead:
            yield _result_of(ahead.popleft())
    finally:
        for each in ahead:
            if isinstance(each, Future):
                each.cancel()


def _result_of(pending: Future[_T] | Callable[[], _T]) -> _T:
    return wait(pending) if isinstance(pending, Future) else pending()
