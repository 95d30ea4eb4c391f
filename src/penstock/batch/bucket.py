"""Batches of records of like length, so that little is padded.

In: an order, and the length of every row. Out: a `BatchPlan`. Buckets are formed inside fixed windows of the
order, so that what stands in a window alone decides its batches.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.batch.plan import Ticket, cut_picks
from penstock.foundation.process import ProcessLock
from penstock.read.order import Order, Picks, shard_slice

_PURPOSE = 0x6275  # of the order of batches in a window, apart from all other draws


class BucketPlan:
    """Batches of at most `batch_size` records, and of at most `max_tokens` values with their padding.

    A record that alone is longer than `max_tokens` is a batch of its own. Shuffled, the batches of a window
    come in a random order; otherwise short ones come first.

    Args:
        order: Of the records.
        lengths: Of every row, for each source of the order.
        batch_size: How many records a batch has at most.
        max_tokens: How many values; None for any number.
        window: How many positions of the order are put into buckets together.
        seed: Of the order of batches in a window; None leaves it.
        shard: (rank, world).
    """

    slots = None
    reads_stretches = False

    def __init__(
        self,
        order: Order,
        lengths: Sequence[NDArray[np.int32]],
        batch_size: int,
        max_tokens: int | None,
        window: int,
        *,
        seed: int | None,
        shard: tuple[int, int] = (0, 1),
    ) -> None:
        self._order = order
        self._lengths = lengths
        self._batch_size = batch_size
        self._max_tokens = max_tokens
        self._window = window
        self._seed = seed
        self._shard = shard
        self._num_windows = -(-len(order) // window)
        self._lock = ProcessLock()  # an epoch may be iterated by one thread and counted by another
        self._firsts: dict[int, list[int]] = {}  # of an epoch: the first step of each window that is known

    def num_steps(self, epoch: int) -> int:
        """Return how many batches an epoch has: all its windows are looked at, once."""
        return self._first_steps(epoch)[-1]

    def tickets(self, epoch: int, start: int) -> Iterator[Ticket]:
        """Yield the batches of an epoch from one on."""
        firsts = self._first_steps(epoch, until=start)
        window = bisect_right(firsts, start) - 1
        step = firsts[window]
        for number in range(window, self._num_windows):
            picks, batches = self._cut(epoch, number)
            ahead: Picks | None = picks
            for batch in batches:
                if step >= start:
                    yield Ticket(epoch, step, self._mine(picks, batch), ahead)
                    ahead = None
                step += 1

    def picks(self, ticket: Ticket) -> Picks:
        """Return the records of a batch that are this rank's."""
        if ticket.picks is not None:
            return ticket.picks
        found = next(self.tickets(ticket.epoch, ticket.step), None)
        if found is None or found.picks is None:
            raise IndexError(f"epoch {ticket.epoch} has no batch {ticket.step}")
        return found.picks

    def ahead(self, ticket: Ticket) -> Picks | None:
        """Return the records of its window with the first batch of each."""
        return ticket.ahead

    def _first_steps(self, epoch: int, until: float = math.inf) -> list[int]:
        """Return the first step of each window, up to one behind a step; in the end, the number of steps."""
        with self._lock:
            if epoch not in self._firsts:
                if len(self._firsts) > 2:  # what is long gone
                    del self._firsts[min(self._firsts)]
                self._firsts[epoch] = [0]
            firsts = self._firsts[epoch]
            while firsts[-1] <= until and len(firsts) <= self._num_windows:
                firsts.append(firsts[-1] + len(self._cut(epoch, len(firsts) - 1)[1]))
            return firsts  # grows at its end alone

    def _mine(self, picks: Picks, batch: NDArray[np.int64]) -> Picks:
        mine = shard_slice(range(len(batch)), *self._shard)
        return cut_picks(picks, batch[mine.start : mine.stop])

    def _cut(self, epoch: int, window: int) -> tuple[Picks, list[NDArray[np.int64]]]:
        """Return the records of a window, and the batches as places among them."""
        start = window * self._window
        picks = self._order.pick(epoch, start, min(start + self._window, len(self._order)))
        lengths = self._lengths_of(picks)
        by_length = np.argsort(lengths, kind="stable")
        cuts = self._cut_lengths(lengths[by_length])
        batches = [by_length[begin:end] for begin, end in pairwise(cuts)]
        if self._seed is not None and len(batches) > 1:
            key = (self._seed, epoch, _PURPOSE + (window << 16), len(batches))
            order = _native.permute(*key, np.arange(len(batches), dtype=np.int64))
            batches = [batches[i] for i in order.tolist()]
        return picks, batches

    def _lengths_of(self, picks: Picks) -> NDArray[np.int32]:
        if picks.sources is None:
            return self._lengths[0][picks.rows]
        lengths = np.zeros(len(picks.rows), np.int32)
        for number, each in enumerate(self._lengths):
            mine = picks.sources == number
            lengths[mine] = each[picks.rows[mine]]
        return lengths

    def _cut_lengths(self, lengths: NDArray[np.int32]) -> list[int]:
        """Return where batches begin and end among lengths that rise."""
        cuts = [0]
        while cuts[-1] < len(lengths):
            begin = cuts[-1]
            most = min(self._batch_size, len(lengths) - begin)
            if self._max_tokens is not None:
                # An empty row is padded to one value.
                ahead = np.maximum(lengths[begin : begin + most].astype(np.int64), 1)
                sizes = ahead * np.arange(1, most + 1)
                most = max(1, int(np.searchsorted(sizes, self._max_tokens, side="right")))
            cuts.append(begin + most)
        return cuts
