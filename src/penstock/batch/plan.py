"""Which records each batch of an epoch holds.

In: an order, and how batches are cut from it. Out: `Ticket`s, one a batch, and the records of each. All of it
is a pure function of the order: nothing depends on threads, or on what was read before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock.read.order import Order, Picks, shard_slice

# How many batches ahead reads are announced: enough to keep a disk busy, not so many that pages go again.
_AHEAD = 8


class Ticket(NamedTuple):
    """A batch that is to be made.

    Attributes:
        epoch: Of the loader.
        step: Number of the batch in its epoch.
        picks: Its records, where the plan knows them already.
        ahead: What is read soon, where the plan knows that already.
    """

    epoch: int
    step: int
    picks: Picks | None = None
    ahead: Picks | None = None


class BatchPlan(Protocol):
    """How an epoch is cut into batches."""

    @property
    def slots(self) -> int | None:
        """How many records every batch has for this rank, if all have as many."""

    def num_steps(self, epoch: int) -> int:
        """Return how many batches an epoch has."""

    def tickets(self, epoch: int, start: int) -> Iterator[Ticket]:
        """Yield the batches of an epoch from one on."""

    def picks(self, ticket: Ticket) -> Picks:
        """Return the records of a batch that are this rank's."""

    @property
    def reads_stretches(self) -> bool:
        """Whether what is read ahead lies together, so that announcing it is never in vain."""

    def ahead(self, ticket: Ticket) -> Picks | None:
        """Return what is worth announcing while a batch is made; None if nothing."""


class FixedPlan:
    """Batches of one size, but perhaps the last.

    Rank r of n takes places r·b//n to (r+1)·b//n of each global batch of b records, so that no record is
    taken twice or left out, and no rank has more than one record more than another.
    """

    def __init__(self, order: Order, batch_size: int, last: str, shard: tuple[int, int] = (0, 1)) -> None:
        self._order = order
        self._batch_size = batch_size
        self._last = last
        self._shard = shard

    @property
    def slots(self) -> int | None:
        """How many records every batch has for this rank, if all have as many."""
        if self._last == "short":
            return None
        return len(shard_slice(range(self._batch_size), *self._shard))

    def num_steps(self, epoch: int) -> int:  # noqa: ARG002 - all epochs have as many
        """Return how many batches an epoch has."""
        whole, rest = divmod(len(self._order), self._batch_size)
        return whole + (rest > 0 and self._last != "drop")

    def tickets(self, epoch: int, start: int) -> Iterator[Ticket]:
        """Yield the batches of an epoch from one on."""
        for step in range(start, self.num_steps(epoch)):
            yield Ticket(epoch, step)

    def picks(self, ticket: Ticket) -> Picks:
        """Return the records of a batch that are this rank's."""
        start = ticket.step * self._batch_size
        size = min(self._batch_size, len(self._order) - start)
        # A padded batch is cut as if it were full: every rank then has as many slots as always.
        mine = shard_slice(range(self._batch_size if self._last == "pad" else size), *self._shard)
        return self._order.pick(ticket.epoch, start + min(mine.start, size), start + min(mine.stop, size))

    @property
    def reads_stretches(self) -> bool:
        """Whether what is read ahead lies together, so that announcing it is never in vain."""
        return self._order.window_records is not None

    def ahead(self, ticket: Ticket) -> Picks | None:
        """Return a batch some steps on; of blocks, the next window with the first batch of each."""
        window, start = self._order.window_records, ticket.step * self._batch_size
        if window is None:
            later = Ticket(ticket.epoch, ticket.step + _AHEAD)
            return self.picks(later) if later.step < self.num_steps(later.epoch) else None
        number = start // window
        if start and number == (start - self._batch_size) // window:
            return None
        begin = min((number + (start > 0)) * window, len(self._order))
        picks = self._order.pick(ticket.epoch, begin, min((number + 2) * window, len(self._order)))
        return Picks(np.sort(picks.rows))


def cut_picks(picks: Picks, chosen: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Picks:
    """Return some of the records."""
    return Picks(
        picks.rows[chosen],
        None if picks.sources is None else picks.sources[chosen],
        None if picks.turns is None else picks.turns[chosen],
    )
