"""Threads that make things ahead and hand them out in order, within a bounded window.

In: a stream of tickets and a function that makes something of one. Out: what it makes, in the order of
tickets, or its error in the place of what it could not make.
"""

from __future__ import annotations

import _thread
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from penstock.batch.window import Made, Window
from penstock.errors import ForkedError

_T = TypeVar("_T")
_K = TypeVar("_K")

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
                "this iteration was begun in another process, whose threads are not here",
                advice="Begin one in this process: for batch in loader.",
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
