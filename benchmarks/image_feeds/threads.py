"""A plain loop of threads: each makes whole batches and puts them into a bounded queue.

In: a function that makes the batch of a number. Out: batches, in the order in which they get done.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import Empty, Queue

from image_feeds.task import Batch

BATCHES_AHEAD = 4


def run_threads(make: Callable[[int], Batch], num_threads: int) -> Iterator[Batch]:
    """Make batch 0, 1, and so on indefinitely; an exception of a thread is raised here."""
    ready: Queue[Batch | Exception] = Queue(BATCHES_AHEAD)
    numbers = itertools.count()
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            try:
                ready.put(make(next(numbers)))
            except Exception as error:
                ready.put(error)
                return

    threads = [threading.Thread(target=work, daemon=True) for _ in range(num_threads)]
    for thread in threads:
        thread.start()
    try:
        while True:
            batch = ready.get()
            if isinstance(batch, Exception):
                raise batch
            yield batch
    finally:
        is_over.set()
        while any(thread.is_alive() for thread in threads):
            with suppress(Empty):  # one that waits for room has to get it
                ready.get(timeout=0.01)
