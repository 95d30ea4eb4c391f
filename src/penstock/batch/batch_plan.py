"""The records of each batch of an epoch.

In: an order, and options of its batches. Out: a `Ticket` per batch, and the records of each. Both are pure
functions of the order: nothing depends on threads, or on earlier reads.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.errors import OptionError
from penstock.foundation.process import ProcessLock
from penstock.read.order import Order, Picks, shard_slice

# Positions whose records are found in one call, for small batches: finding the records of one batch is not
# worth the wait for Python's lock after it.
_CHUNK = 4_096

# Reads are announced this many batches ahead: enough to keep a disk busy, and few enough for pages to stay.
_AHEAD = 8


class Ticket(NamedTuple):
    """A batch to make.

    Attributes:
        epoch: Epoch of the loader.
        step: Number of the batch in its epoch.
        picks: Records of the batch, if the plan knows them already.
        ahead: Records that are read soon, if the plan knows them already.
        continues: Whether the next epoch follows in the same iteration, so that it can be read ahead.
    """

    epoch: int
    step: int
    picks: Picks | None = None
    ahead: Picks | None = None
    continues: bool = False


class BatchPlan(Protocol):
    """Division of an epoch into batches."""

    @property
    def slots(self) -> int | None:
        """Number of records of each batch for this rank; None if it varies."""

    def num_steps(self, epoch: int) -> int:
        """Return the number of batches in an epoch."""

    def tickets(self, epoch: int, start: int) -> Iterator[Ticket]:
        """Yield the batches of an epoch, beginning with batch `start`."""

    def picks(self, ticket: Ticket) -> Picks:
        """Return the records of a batch for this rank."""

    @property
    def reads_stretches(self) -> bool:
        """Whether rows that are read ahead are contiguous, so that announcing them always helps."""

    def ahead(self, ticket: Ticket, *, is_first: bool = False) -> list[Picks]:
        """Return records worth announcing while a batch is made, in the order in which they are needed.

        Args:
            ticket: The batch.
            is_first: Whether it is the first batch of an iteration, so that nothing was announced before.
        """


class FixedPlan:
    """Batches of one size, except perhaps the last.

    Rank r of n takes positions r·b//n to (r+1)·b//n of each global batch of b records, so that no record is
    taken twice or left out, and the shares of two ranks differ by at most one record.
    """

    def __init__(
        self,
        order: Order,
        batch_size: int,
        last: str,
        shard: tuple[int, int] = (0, 1),
        stretch_records: int | None = None,
    ) -> None:
        """Cut an order into batches.

        `last`: what to do with a last batch that is not full. `stretch_records`: number of consecutive
        records to announce at a time where the order has no windows; None announces single batches.
        """
        self._order = order
        self._stretch = stretch_records
        self._batch_size = batch_size
        self._last = last
        self._shard = shard
        self._chunk_size = max(1, _CHUNK // batch_size) * batch_size
        self._chunk: tuple[int, int, Picks] | None = None  # epoch, first position, records

    @property
    def slots(self) -> int | None:
        """Number of records of each batch for this rank; None if it varies."""
        if self._last == "short":
            return None
        return len(shard_slice(range(self._batch_size), *self._shard))

    def num_steps(self, epoch: int) -> int:  # noqa: ARG002 - all epochs are alike
        """Return the number of batches in an epoch."""
        whole, rest = divmod(len(self._order), self._batch_size)
        return whole + (rest > 0 and self._last != "drop")

    def tickets(self, epoch: int, start: int) -> Iterator[Ticket]:
        """Yield the batches of an epoch, beginning with batch `start`."""
        for step in range(start, self.num_steps(epoch)):
            yield Ticket(epoch, step)

    def picks(self, ticket: Ticket) -> Picks:
        """Return the records of a batch for this rank."""
        return self._pick(ticket.epoch, *self._positions(ticket))

    def _positions(self, ticket: Ticket) -> tuple[int, int]:
        """Return the first position of a batch for this rank, and the exclusive end."""
        start = ticket.step * self._batch_size
        size = min(self._batch_size, len(self._order) - start)
        # A padded batch is cut as if it were full: every rank then has its usual number of slots.
        mine = shard_slice(range(self._batch_size if self._last == "pad" else size), *self._shard)
        return start + min(mine.start, size), start + min(mine.stop, size)

    def _pick(self, epoch: int, start: int, stop: int) -> Picks:
        """Return the records at some positions of one batch."""
        if self._shard[1] > 1:  # most of a chunk would be records of other ranks
            return self._order.pick(epoch, start, stop)
        first = start - start % self._chunk_size
        chunk = self._chunk  # threads may replace it at any time
        if chunk is None or chunk[:2] != (epoch, first):
            last = min(first + self._chunk_size, len(self._order))
            chunk = self._chunk = (epoch, first, self._order.pick(epoch, first, last))
        return cut_picks(chunk[2], slice(start - first, stop - first))

    @property
    def reads_stretches(self) -> bool:
        """Whether records that are read ahead are contiguous, so that announcing them always saves time."""
        return self._window is not None

    @property
    def _window(self) -> int | None:
        """Number of positions that are announced together; None if each batch is announced alone."""
        return self._order.window_records or self._stretch

    def ahead(self, ticket: Ticket, *, is_first: bool = False) -> list[Picks]:
        """Return a batch some steps later; for blocks, the next window with the first batch of each."""
        window, start = self._window, ticket.step * self._batch_size
        if window is None:
            return self._find_later(ticket)
        stop = min(start + self._batch_size, len(self._order))
        last = self._find_window(stop - 1, window)
        found = []
        if is_first:
            before = self._find_window(start, window) - 1
            found = [self._pick_sorted(ticket.epoch, start, self._end_window(before + 1, window))]
        else:
            before = self._find_window(start - 1, window) if start else -1
        # Announced before: the window after the last window of the previous batch, or the first of the epoch.
        return found + [picks for i in range(before + 2, last + 2) for picks in self._pick_window(ticket, i)]

    def _find_later(self, ticket: Ticket) -> list[Picks]:
        """Return the records of a batch some steps later, if there is one."""
        later = Ticket(ticket.epoch, ticket.step + _AHEAD)
        num_steps = self.num_steps(ticket.epoch)
        if later.step >= num_steps:
            later = Ticket(ticket.epoch + 1, later.step - num_steps)
            if not ticket.continues or later.step >= self.num_steps(later.epoch):
                return []
        return [self._order.pick(later.epoch, *self._positions(later))]

    def _find_window(self, position: int, window: int) -> int:
        """Return the number of the window of a position."""
        return min(position // window, self._count_windows(window) - 1)

    def _end_window(self, number: int, window: int) -> int:
        """Return the exclusive end of a window."""
        is_last = number == self._count_windows(window) - 1
        return len(self._order) if is_last else (number + 1) * window

    def _count_windows(self, window: int) -> int:
        # In an order of blocks, records that do not fill a window belong to the last one.
        num_full, rest = divmod(len(self._order), window)
        return max(1, num_full + (rest > 0 and self._order.window_records is None))

    def _pick_window(self, ticket: Ticket, number: int) -> list[Picks]:
        """Return the records of a window; the last window is followed by the first one of the next epoch."""
        window, epoch = self._window or 1, ticket.epoch
        # A window may consist only of a last batch that is left out.
        num_used = min(len(self._order), self.num_steps(epoch) * self._batch_size)
        if number > self._find_window(num_used - 1, window):
            if not ticket.continues:
                return []
            epoch, number = epoch + 1, 0
        return [self._pick_sorted(epoch, number * window, self._end_window(number, window))]

    def _pick_sorted(self, epoch: int, start: int, stop: int) -> Picks:
        """Return the records of this rank at some positions, in stored order."""
        # A last batch that is left out is not read.
        stop = max(start, min(stop, self.num_steps(epoch) * self._batch_size))
        picks = self._order.pick(epoch, start, stop)
        return Picks(np.sort(picks.rows[self._find_mine(start, stop)]))

    def _find_mine(self, start: int, stop: int) -> NDArray[np.bool_] | slice:
        """Return which of the records at some positions belong to this rank."""
        rank, world = self._shard
        if world == 1:
            return slice(None)
        mine = shard_slice(range(self._batch_size), rank, world)
        within = np.arange(start, stop) % self._batch_size
        return (within >= mine.start) & (within < mine.stop)


def cut_picks(picks: Picks, chosen: NDArray[np.int64] | NDArray[np.bool_] | slice) -> Picks:
    """Return some of the records."""
    return Picks(
        picks.rows[chosen],
        None if picks.sources is None else picks.sources[chosen],
        None if picks.turns is None else picks.turns[chosen],
    )


def join_picks(parts: Sequence[Picks]) -> Picks:
    """Return the records of several parts of a batch, in order."""
    if len(parts) == 1:
        return parts[0]
    sources = [part.sources for part in parts if part.sources is not None]
    turns = [part.turns for part in parts if part.turns is not None]
    return Picks(
        np.concatenate([part.rows for part in parts]),
        np.concatenate(sources) if sources else None,
        np.concatenate(turns) if turns else None,
    )


_PURPOSE = 0x6275  # of the draws for the order of batches in a window, separate from all other draws


class BucketPlan:
    """Batches of at most `batch_size` records, and of at most `max_tokens` values with their padding.

    A record that alone is longer than `max_tokens` is a batch by itself. Shuffled, the batches of a window
    come in a random order; otherwise short ones come first.

    Args:
        order: Order of the records.
        lengths: Lengths of all rows, for each source of the order.
        batch_size: Maximum number of records of a batch.
        max_tokens: Maximum number of values of a batch; None for any number.
        window: Number of positions of the order that are put into buckets together.
        seed: Seed of the order of batches in a window; None sorts them by length.
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
        self._firsts: dict[int, list[int]] = {}  # by epoch: the first step of each window that is known

    def num_steps(self, epoch: int) -> int:
        """Return the number of batches in an epoch, for which all its windows are cut once."""
        return self._first_steps(epoch)[-1]

    def tickets(self, epoch: int, start: int) -> Iterator[Ticket]:
        """Yield the batches of an epoch, beginning with batch `start`."""
        firsts = self._first_steps(epoch, until=start)
        window = bisect_right(firsts, start) - 1
        step = firsts[window]
        for number in range(window, self._num_windows):
            picks, batches = self._cut(epoch, number)
            ahead: Picks | None = picks
            for batch in batches:
                if step >= start:
                    mine = shard_slice(range(len(batch)), *self._shard)
                    yield Ticket(epoch, step, cut_picks(picks, batch[mine.start : mine.stop]), ahead)
                    ahead = None
                step += 1

    def picks(self, ticket: Ticket) -> Picks:
        """Return the records of a batch for this rank."""
        if ticket.picks is not None:
            return ticket.picks
        found = next(self.tickets(ticket.epoch, ticket.step), None)
        if found is None or found.picks is None:
            raise IndexError(f"epoch {ticket.epoch} has no batch {ticket.step}")
        return found.picks

    def ahead(self, ticket: Ticket, *, is_first: bool = False) -> list[Picks]:  # noqa: ARG002
        """Return the records of a window with its first batch."""
        return [] if ticket.ahead is None else [ticket.ahead]

    def _first_steps(self, epoch: int, until: float = math.inf) -> list[int]:
        """Return the first step of each window, up to one after `until`; at the end, the number of steps."""
        with self._lock:
            if epoch not in self._firsts:
                if len(self._firsts) > 2:  # epochs that ended long ago
                    del self._firsts[min(self._firsts)]
                self._firsts[epoch] = [0]
            firsts = self._firsts[epoch]
            while firsts[-1] <= until and len(firsts) <= self._num_windows:
                firsts.append(firsts[-1] + len(self._cut(epoch, len(firsts) - 1)[1]))
            return firsts  # only grows at its end

    def _cut(self, epoch: int, window: int) -> tuple[Picks, list[NDArray[np.int64]]]:
        """Return the records of a window, and its batches as indices into the records."""
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
        """Return the boundaries of batches among ascending lengths."""
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


def check_shares(batch_size: int, number: int, sharers: str) -> None:
    """Refuse batches that cannot be shared equally.

    `sharers`: name of the parties that share, for the error: "workers" or "devices".
    """
    if batch_size % number:
        above = -(-batch_size // number) * number
        raise OptionError(
            "batch_size",
            field="batch_size",
            expected=f"a multiple of {number}, the number of {sharers} that share a batch",
            got=batch_size,
            advice=f"For example: `batch_size={above}`.",
        )
