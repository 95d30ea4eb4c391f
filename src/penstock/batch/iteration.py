"""`Iteration`: one pass over the batches of a loader.

In: the feed whose threads make the batches. Out: the batches, which advance the state of the loader.
"""

from __future__ import annotations

import weakref
from types import TracebackType
from typing import TYPE_CHECKING, Self

from penstock.batch.batch_plan import Ticket
from penstock.batch.maker import Batch, MadeBatch
from penstock.batch.supply import PlannedRows
from penstock.foundation.thread_pool import Feed

if TYPE_CHECKING:
    from penstock.batch.loader import Loader


def _release_rows(rows: weakref.ref[PlannedRows]) -> None:
    if (found := rows()) is not None:
        found.release()


class Iteration:
    """One pass over batches; its threads stop when it ends, is closed or is deleted."""

    def __init__(self, loader: Loader, feed: Feed[Ticket, MadeBatch], rows: PlannedRows) -> None:
        self._loader = loader
        self._feed = feed
        # Weakly: `finalize` is global, and errors that the rows keep may refer to this iteration.
        self._release = weakref.finalize(self, _release_rows, weakref.ref(rows))
        self._release.atexit = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        made = self.fetch()
        if made is None:
            raise StopIteration
        self.count(made)
        return made.batch

    def fetch(self) -> MadeBatch | None:
        """Return the next batch, None at the end; call `count` when the consumer takes it."""
        made = self._feed.take()
        if made is None:
            self._release()
        return made

    def count(self, made: MadeBatch) -> None:
        """Advance the state of the loader past a fetched batch, because the consumer took it."""
        self._loader.took(self._feed, made)

    def close(self) -> None:
        """Stop the threads; further calls do nothing."""
        self._feed.close()
        self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
