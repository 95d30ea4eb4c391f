"""The window of a feed: tickets, the parts of jobs in progress, and results that wait for the consumer.

In: tickets and a function that begins their jobs. Out: parts of jobs for threads, and results in the order of
tickets. Parts of the oldest job come first; a new job begins when there is room for one more item. Where the
core can do the parts of a job, threads stay there, without Python's lock, until the job is done.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from penstock import _native
from penstock.foundation.process import usable_memory

_T = TypeVar("_T")
_K = TypeVar("_K")
_T_co = TypeVar("_T_co", covariant=True)

# Enough for a consumer's uneven steps; more would only be dropped when the consumer stops.
_MOST_AHEAD = 32

# Limits of what waits for the consumer, where the caller sets none.
_LEAST_BYTES = 64 << 20
_MEMORY_SHARE = 8
_SPARE_ITEMS = 3


class Job(Protocol[_T_co]):
    """The making of one item, in parts that threads may do at the same time."""

    @property
    def num_parts(self) -> int:
        """Number of parts, at least 1."""

    @property
    def native(self) -> _native.BatchSlices | None:
        """The same parts for the core, or None; `run` is called for parts that the core cannot do."""

    @property
    def is_long_to_finish(self) -> bool:
        """Whether other threads begin and finish jobs while `finish` runs."""

    def run(self, part: int) -> None:
        """Do a part; any thread may call this, once for each part."""

    def finish(self) -> tuple[_T_co, int]:
        """Return the item and its size in bytes, after all parts were done."""


class CallJob(Generic[_K, _T]):
    """A job of one part: a function that makes an item of a ticket."""

    num_parts: Final = 1
    native: Final = None
    is_long_to_finish: Final = False

    def __init__(self, make: Callable[[_K], tuple[_T, int]], ticket: _K) -> None:
        self._make = make
        self._ticket = ticket
        self._made: tuple[_T, int] | None = None

    def run(self, part: int) -> None:  # noqa: ARG002 - there is one
        """Call the function."""
        self._made = self._make(self._ticket)

    def finish(self) -> tuple[_T, int]:
        """Return the result of the function."""
        if self._made is None:
            raise RuntimeError("a job was finished before its parts were done")
        return self._made


class Made(NamedTuple, Generic[_T]):
    """The result of a ticket.

    Attributes:
        item: The item, or None.
        num_bytes: Size of the item.
        error: Error, if there is no item; else None.
    """

    item: _T | None
    num_bytes: int
    error: BaseException | None


class StoppedError(Exception):
    """The result of the work of a thread is no longer wanted."""


_here = threading.local()


def give_up_if_stopped() -> None:
    """Stop work that takes long, if the feed that it is for was closed."""
    window: Window[Any, Any] | None = getattr(_here, "window", None)
    if window is not None and window.is_stopped:
        raise StoppedError


class Making(Generic[_K, _T]):
    """A ticket and, once it has begun, its job; the window guards its counts."""

    __slots__ = ("errors", "job", "next_part", "num_left", "number", "ticket")

    def __init__(self, number: int, ticket: _K) -> None:
        self.number = number
        self.ticket: _K | None = ticket
        self.job: Job[_T] | None = None
        self.next_part = 0
        self.num_left = 0
        self.errors: dict[int, BaseException] = {}


class Work(NamedTuple, Generic[_K, _T]):
    """What a thread does next.

    Attributes:
        making: Job and ticket. If there is no job yet, the thread begins it.
        part: Part of the job to do; None if all are done.
    """

    making: Making[_K, _T]
    part: int | None


class Window(Generic[_K, _T]):
    """State that the threads of a `Feed` share. They hold this and not the feed: dropping it ends them."""

    def __init__(
        self,
        tickets: Iterator[_K],
        begin: Callable[[_K], Job[_T]],
        num_threads: int,
        most_bytes: int | None,
        callers_ahead: int | None = None,
    ) -> None:
        self.begin = begin
        self.pid = os.getpid()
        self._tickets = tickets
        self._num_threads = num_threads
        self._most_bytes = most_bytes
        # Reentrant: a thread that gets a ticket may, through the garbage collector, end its own feed.
        self._lock = threading.RLock()
        self._ready = threading.Condition(self._lock)
        # Threads without work wait in the core, and do the parts of jobs there.
        self._core = _native.PartQueue()
        self._in_core: dict[int, Making[_K, _T]] = {}
        self._most_ahead = _MOST_AHEAD if callers_ahead is None else callers_ahead
        # Tickets that the consumer has read and no thread has begun; None where the threads read them.
        self._queue: deque[tuple[int, _K]] | None = None if callers_ahead is None else deque()
        self._open: deque[Making[_K, _T]] = deque()  # with parts that no thread has taken, oldest first
        self._num_beginning = 0
        self._num_parts = 0  # of the last job; 0 until one has begun
        self._made: dict[int, Made[_T]] = {}
        self._num_taken = 0
        self._num_started = 0
        self._end: int | None = None  # number of tickets, once known
        self._ready_bytes = 0
        self._usual_bytes = 0  # size of a large item at present; 0 until one is made
        self._failure: BaseException | None = None
        self._is_stopped = False

    def start(self) -> Work[_K, _T] | None:
        """Wait for work, and return it; None at the end."""
        while True:
            with self._lock:
                if self._is_stopped:
                    return None
                if (work := self._next_part()) is not None:
                    self._core.release()  # it may take long
                    return work
                if (fresh := self._next_ticket()) is not None:
                    return Work(fresh, None)
                is_ending = self._end is not None and not self._num_beginning
                if is_ending and not self._core.has_work:
                    return None
                seen = self._core.num_wake_ups
            found = self._core.work(seen, is_ending)
            if found is not None:
                number, part = found
                with self._lock:
                    return Work(
                        self._in_core[number] if part is not None else self._in_core.pop(number), part
                    )

    def _next_ticket(self) -> Making[_K, _T] | None:
        """Return the next ticket, if there is one, and room for its item."""
        if self._queue is None:
            while self._end is None and self._has_room():
                if (fresh := self._read_ticket()) is not None:
                    return fresh
        elif self._queue and not self._is_past_end(self._queue[0][0]):
            self._num_beginning += 1
            return Making(*self._queue.popleft())
        return None

    def _next_part(self) -> Work[_K, _T] | None:
        while self._open and self._is_past_end(self._open[0].number):
            self._open.popleft()  # after an error, it is not needed
        if not self._open:
            return None
        making = self._open[0]
        part = making.next_part
        making.next_part += 1
        if making.next_part == self._parts_of(making):
            self._open.popleft()
        return Work(making, part)

    def _read_ticket(self) -> Making[_K, _T] | None:
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
        self._num_beginning += 1
        return Making(number, ticket)

    def open(self, making: Making[_K, _T], job: Job[_T]) -> None:
        """Let threads take the parts of a job that has begun."""
        with self._lock:
            if self._is_stopped:
                return
            making.job = job
            making.num_left = self._num_parts = job.num_parts
            self._num_beginning -= 1
            if job.native is not None:
                self._in_core[making.number] = making
                self._core.add(making.number, job.native)
                if self._end is not None:
                    self._core.wake_all()  # those that wait may end once this is done
                return
            # Nearly always the last one; threads may begin jobs at the same time.
            index = len(self._open)
            while index and self._open[index - 1].number > making.number:
                index -= 1
            self._open.insert(index, making)
            self._core.wake_all()

    def close_part(self, making: Making[_K, _T], part: int, error: BaseException | None) -> bool:
        """Note that a part is done; return whether it was the last one of its job."""
        with self._lock:
            if error is not None:
                making.errors[part] = error
            if making.number not in self._in_core:
                making.num_left -= 1
                return making.num_left == 0
            is_last = self._core.close_part(making.number)
            if is_last:
                del self._in_core[making.number]
            return is_last

    def fail_begin(self, making: Making[_K, _T], error: BaseException) -> None:
        """Note that the job of a ticket could not begin."""
        with self._lock:
            self._num_beginning -= 1
        self.deliver(making.number, Made(None, 0, error))

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
            except Exception as error:  # comes after errors of tickets before it
                with self._lock:
                    self._made[number] = Made(None, 0, error)
                    self._finish(number + 1)
                return
            with self._lock:
                self._num_started += 1
                self._queue.append((number, ticket))
                self._core.wake()

    def deliver(self, number: int, made: Made[_T]) -> None:
        """Add the result of a ticket."""
        with self._lock:
            if self._is_stopped:
                return
            self._made[number] = made
            self._ready_bytes += made.num_bytes
            # The largest recent size: sizes vary, and one huge item must not count forever.
            self._usual_bytes = max(made.num_bytes, self._usual_bytes * 7 // 8)
            if made.error is not None:
                self._finish(number + 1)
            if number == self._num_taken:
                self._ready.notify()

    def take(self) -> Made[_T] | None:
        """Wait for the next result in order; None at the end."""
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
            if self._queue is None and self._end is None and self._has_room():
                self._core.wake()
            self._ready.notify()  # another consumer, whose next result may be ready already
            return made

    def fail(self, error: BaseException) -> None:
        """Note that a thread has ended with an error that belongs to no ticket."""
        with self._lock:
            self._failure = error
            self._ready.notify_all()

    def enter(self) -> None:
        """Note that this thread works for this window."""
        _here.window = self

    def release(self) -> None:
        """Let another thread handle the ends of jobs."""
        self._core.release()

    @property
    def is_stopped(self) -> bool:
        """Whether no more results are wanted."""
        return self._is_stopped

    @property
    def num_ready(self) -> int:
        """Number of results that wait for the consumer."""
        return len(self._made)

    def stop(self) -> None:
        """Let the threads end after their current part."""
        # First, and without the lock: an interrupt here must not leave threads behind.
        self._is_stopped = True
        self._core.stop()
        with self._lock:
            self._made.clear()
            self._open.clear()
            if self._queue is not None:
                self._queue.clear()
            self._ready_bytes = 0
            self._ready.notify_all()

    def clear(self) -> None:
        """Drop the jobs that were in progress, after the threads have ended."""
        with self._lock:
            self._in_core.clear()
            self._core.clear()

    def _has_room(self) -> bool:
        num_ahead = self._num_started - self._num_taken
        if not num_ahead:
            return True
        if num_ahead >= self._most_ahead:
            return False
        if self._queue is None and not self._num_parts:
            return False  # the first job is about to begin: its parts may be enough for all threads
        if num_ahead < 2 or not self._usual_bytes:
            # With the item that the consumer works on, three: one more is ready, and one in the making.
            return num_ahead <= max(1, -(-self._num_threads // max(1, self._num_parts)))
        num_bytes = self._ready_bytes + (num_ahead - len(self._made) + 1) * self._usual_bytes
        return num_bytes <= self._limit()

    def _limit(self) -> int:
        """Return about the maximum total size of items that wait for the consumer."""
        if self._most_bytes is not None:
            return self._most_bytes
        # Enough items that all threads have two parts each to do, while the consumer is served.
        num_items = _SPARE_ITEMS + -(-2 * self._num_threads // max(1, self._num_parts))
        return min(max(_LEAST_BYTES, num_items * self._usual_bytes), max_window_bytes())

    def _is_past_end(self, number: int) -> bool:
        return self._end is not None and number >= self._end

    @staticmethod
    def _parts_of(making: Making[_K, _T]) -> int:
        return 0 if making.job is None else making.job.num_parts

    def _finish(self, end: int) -> None:
        self._end = end if self._end is None else min(self._end, end)
        self._ready.notify_all()
        self._core.wake_all()


@cache
def max_window_bytes() -> int:
    """Return the maximum total size of items that wait, if the caller sets no limit."""
    return usable_memory() // _MEMORY_SHARE
