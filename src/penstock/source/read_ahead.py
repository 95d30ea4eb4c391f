"""A thread that reads the next items of an iterator while the caller uses the current one.

In: an iterator, and how many items may wait. Out: the same items and errors, in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Final, TypeVar

from penstock.foundation.thread_pool import Feed, as_jobs

_T = TypeVar("_T")
_END: Final = object()


def read_ahead(items: Iterator[_T], num_items: int) -> Iterator[_T]:
    """Yield the items of an iterator, which a thread reads; it ends with this iterator.

    `num_items`: number of items that may wait, at least two.
    """

    def read(_: bool) -> tuple[object, int]:
        return next(items, _END), 1

    feed = Feed(repeat(True), as_jobs(read), 1, num_items)
    try:
        while (item := feed.take()) is not _END:
            yield item  # type: ignore[misc]  # an item of `items`
    finally:
        feed.close()
