"""Threads that work ahead, with results in order: one engine for loaders, predictions, scans and conversions.

In: tickets and a function that makes an item of each (`Feed`, within a window that is bounded by bytes), or
calls one by one (`OrderedResults`, bounded by their number). Out: items and results in the order of tickets
and calls.
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
from typing import Any, Generic, NamedTuple, TypeVar

from penstock.errors import ForkedError

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
        """Add a call, and yield the results that are due, each with a wait for it.

        The call is added at once; a result that the caller does not take stays pending.
        """
        self._pending.append(self._pool.submit(function, *args))
        return self._take(self._most_pending)

    def drain(self) -> Iterator[_T]:
        """Yield all results that are pending."""
        return self._take(0)

    def _take(self, most: int) -> Iterator[_T]:
        while len(self._pending) > most:
            yield self._pending.popleft().result()


_K = TypeVar("_K")

# Enough to bridge a consumer's uneven steps; more only makes old work of what is thrown away.
_MOST_AHEAD = 32


class Made(NamedTuple, Generic[_T]):
    """What became of a ticket.

    Attributes:
        item: What was made, or None.
        num_bytes: How large it is.
        error: Why there is none, or None.
    """

    item: _T | None
    num_bytes: int
    error: BaseException | None


class StoppedError(Exception):
    """What a thread is at is wanted no more."""


_here = threading.local()


def give_up_if_stopped() -> None:
    """Leave work that takes long, if the feed that it is for was closed.

    Raises:
        StoppedError: It was.
    """
    window: Window[Any, Any] | None = getattr(_here, "window", None)
    if window is not None and window.is_stopped:
        raise StoppedError


class Window(Generic[_K, _T]):
    """What the threads of a `Feed` share. They hold this and not the feed: dropping that one ends them."""

    def __init__(
        self,
        tickets: Iterator[_K],
        make: Callable[[_K], tuple[_T, int]],
        num_threads: int,
        most_bytes: int,
        callers_ahead: int | None = None,
    ) -> None:
        self.make = make
        self.pid = os.getpid()
        self._tickets = tickets
        self._num_threads = num_threads
        self._most_bytes = most_bytes
        # One that its holder may take again: a thread that gets a ticket may, by way of the garbage
        # collector, be the one that ends its own feed.
        self._lock = threading.RLock()
        self._ready = threading.Condition(self._lock)
        self._space = threading.Condition(self._lock)
        self._most_ahead = _MOST_AHEAD if callers_ahead is None else callers_ahead
        # Tickets that the consumer has read and no thread has begun; None where the threads read them.
        self._queue: deque[tuple[int, _K]] | None = None if callers_ahead is None else deque()
        self._made: dict[int, Made[_T]] = {}
        self._num_taken = 0
        self._num_started = 0
        self._end: int | None = None  # how many tickets there are, once that is known
        self._ready_bytes = 0
        self._usual_bytes = 0  # of a large one, as they are just now; 0 until one is made
        self._failure: BaseException | None = None
        self._is_stopped = False

    def start(self) -> tuple[int, _K] | None:
        """Wait for room, and return the next ticket with its number; None if there is none to come."""
        with self._lock:
            if self._queue is not None:
                return self._next_in_queue(self._queue)
            while not self._is_stopped and self._end is None and not self._has_room():
                self._space.wait()
            if self._is_stopped or self._end is not None:
                return None
            number = self._num_started
            try:
                ticket = next(self._tickets)
            except StopIteration:
                self._finish(number)
                return None
            except BaseException as error:
                self._made[number] = Made(None, 0, error)
                self._finish(number + 1)
                return None
            self._num_started += 1
            return number, ticket

    def fill(self) -> None:
        """Read tickets in this thread as long as there is room, if the consumer reads them.

        The lock is not held meanwhile: an iterator may take long, and threads must be able to deliver.
        """
        if self._queue is None:
            return
        while True:
            with self._lock:
                if self._is_stopped or self._end is not None or not self._has_room():
                    return
                number = self._num_started
            try:
                ticket = next(self._tickets)
            except StopIteration:
                with self._lock:
                    self._finish(number)
                return
            except Exception as error:  # comes after what goes wrong in tickets before it
                with self._lock:
                    self._made[number] = Made(None, 0, error)
                    self._finish(number + 1)
                return
            with self._lock:
                self._num_started += 1
                self._queue.append((number, ticket))
                self._space.notify()

    def _next_in_queue(self, queue: deque[tuple[int, _K]]) -> tuple[int, _K] | None:
        while not self._is_stopped:
            if queue and (self._end is None or queue[0][0] < self._end):
                return queue.popleft()
            if self._end is not None:
                return None
            self._space.wait()
        return None

    def deliver(self, number: int, made: Made[_T]) -> None:
        """Put down what became of a ticket."""
        with self._lock:
            if self._is_stopped:
                return
            self._made[number] = made
            self._ready_bytes += made.num_bytes
            # The largest of late: sizes may vary, and one that is huge must not count for ever.
            self._usual_bytes = max(made.num_bytes, self._usual_bytes * 7 // 8)
            if made.error is not None:
                self._finish(number + 1)
            if number == self._num_taken:
                self._ready.notify()
            if self._has_room():
                self._space.notify()

    def take(self) -> Made[_T] | None:
        """Wait for the next in order; None at the end."""
        with self._lock:
            while self._num_taken not in self._made:
                if self._is_stopped or (self._end is not None and self._num_taken >= self._end):
                    return None
                if self._failure is not None:
                    return Made(None, 0, self._failure)
                self._ready.wait()
            made = self._made.pop(self._num_taken)
            self._num_taken += 1
            self._ready_bytes -= made.num_bytes
            self._space.notify()
            self._ready.notify()  # another consumer, for whom what comes next may be there already
            return made

    def fail(self, error: BaseException) -> None:
        """Note that a thread has died of something that no ticket is to blame for."""
        with self._lock:
            self._failure = error
            self._ready.notify_all()

    def enter(self) -> None:
        """Note that this thread works for this window."""
        _here.window = self

    @property
    def is_stopped(self) -> bool:
        """Whether nobody wants more."""
        return self._is_stopped

    @property
    def num_ready(self) -> int:
        """How many wait for the consumer."""
        return len(self._made)

    def stop(self) -> None:
        """Let the threads end after what they are at."""
        with self._lock:
            self._is_stopped = True
            self._made.clear()
            if self._queue is not None:
                self._queue.clear()
            self._ready_bytes = 0
            self._ready.notify_all()
            self._space.notify_all()

    def _has_room(self) -> bool:
        num_ahead = self._num_started - self._num_taken
        if num_ahead < 2 or self._usual_bytes == 0:
            most = self._num_threads if self._queue is None else min(self._num_threads, self._most_ahead - 1)
            return num_ahead <= most
        num_bytes = self._ready_bytes + (num_ahead - len(self._made) + 1) * self._usual_bytes
        return num_ahead < self._most_ahead and num_bytes <= self._most_bytes

    def _finish(self, end: int) -> None:
        self._end = end if self._end is None else min(self._end, end)
        self._ready.notify_all()
        self._space.notify_all()


# For all threads of a feed together: whoever presses Ctrl-C is gone within five seconds, whatever a map does.
_JOIN_SECONDS = 3.0


def _work(window: Window[Any, Any]) -> None:
    window.enter()
    try:
        _make_all(window)
    except BaseException as error:  # of the feed itself, or sent to this thread: nobody must wait for ever
        window.fail(error)


def _make_all(window: Window[Any, Any]) -> None:
    while (started := window.start()) is not None:
        number, ticket = started
        try:
            item, num_bytes = window.make(ticket)
            made = Made(item, num_bytes, None)
        except BaseException as error:
            made = Made(None, 0, error)
        window.deliver(number, made)
        del started, ticket, made  # what the consumer lets go of must not be held here
        item = None


class Feed(Generic[_K, _T]):
    """Makes things by threads and hands them out in order; ends its threads when closed, or dropped.

    Args:
        tickets: What to make, in order; asked under a lock, by one thread at a time.
        make: Makes something of a ticket; returns it and how many bytes it has.
        num_threads: How many threads; 0 makes things in the caller's thread when they are asked for.
        most_bytes: How large all that waits may be together, about.
        on_wait: Called with the seconds that the consumer waited for each item.
        callers_ahead: If given, tickets are read in the thread that calls `take`, so many ahead at most: an
            iterator of a user may be bound to the user's thread.
    """

    def __init__(
        self,
        tickets: Iterator[_K],
        make: Callable[[_K], tuple[_T, int]],
        num_threads: int,
        most_bytes: int,
        on_wait: Callable[[float], None] | None = None,
        callers_ahead: int | None = None,
    ) -> None:
        self._tickets = tickets
        self._make = make
        self._on_wait = on_wait
        self._pid = os.getpid()
        self._is_done = False
        self._window: Window[_K, _T] | None = None
        self._threads: list[threading.Thread] = []
        if num_threads == 0:
            return
        self._window = window = Window(tickets, make, num_threads, most_bytes, callers_ahead)
        self._threads = [
            threading.Thread(target=_work, args=(window,), name=f"penstock-{i}", daemon=True)
            for i in range(num_threads)
        ]
        # Also when the interpreter ends: a thread that is left behind in the core would bring it down badly.
        self._ending = weakref.finalize(self, _drop, window, self._threads)
        for thread in self._threads:
            thread.start()

    def take(self) -> _T | None:
        """Return the next thing; None at the end.

        Raises:
            BaseException: Whatever was raised in the making of it, with the traceback of the thread.
            ForkedError: This is another process than the one that made the feed.
        """
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
            return None if ticket is None else Made(*self._make(ticket), None)
        except BaseException:  # Ctrl-C while waiting; or the error of a ticket, where there are no threads
            self.close()
            raise

    @property
    def num_ready(self) -> int:
        """How many things wait to be taken."""
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


def _drop(window: Window[Any, Any], threads: list[threading.Thread]) -> None:
    """End the threads of a feed that nobody holds any more."""
    try:
        _end(window, threads)
    except KeyboardInterrupt:
        # Python loses what is raised while an object goes: the interrupt must come once more, a little later.
        again = threading.Timer(0.01, _thread.interrupt_main)
        again.daemon = True
        again.start()
