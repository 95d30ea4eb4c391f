"""Work that several threads do ahead, with results in the order of the calls.

In: calls, one by one. Out: their results in the same order, at most so many of them pending.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import Any, Generic, TypeVar

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
