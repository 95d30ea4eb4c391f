"""What is made ahead, by number, within a bounded window: threads put it down, a consumer takes it in order.

In: a stream of tickets, what became of each. Out: the same in the order of tickets.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

_T = TypeVar("_T")
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
