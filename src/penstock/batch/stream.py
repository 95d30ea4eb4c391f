"""Batches of rows that are read once, in order, such as raw data.

In: a stream of blocks of rows, of any length. Out: batches in the order of the rows. Threads make blocks and
batches ahead, within bounded windows; the result does not depend on their number.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock.batch.maker import ArrayMaker, Arrays, BatchJob, Maker
from penstock.batch.stats import LoaderMeter
from penstock.batch.supply import FetchedRows
from penstock.columns import CodedColumns, concat_rows, take_rows
from penstock.errors import FieldError
from penstock.foundation.job_window import CallJob, Job
from penstock.foundation.thread_pool import Feed, as_jobs
from penstock.read.order import Picks
from penstock.transform.assembly import Faults

_BLOCKS_AHEAD: Final = 3
_MOST_BYTES: Final = 64 << 20  # of batches that are ready, and of blocks


class StreamBlock(Protocol):
    """Some rows of a stream, in order."""

    @property
    def columns(self) -> CodedColumns:
        """Columns of the rows by field."""

    def __len__(self) -> int:
        """Return the number of rows, which may be 0."""


_B = TypeVar("_B", bound=StreamBlock)


class BlockRange(NamedTuple, Generic[_B]):
    """Rows `start` to `stop` of a block."""

    block: _B
    start: int
    stop: int


@dataclass(eq=False)
class StreamTicket(Generic[_B]):
    """A batch of a stream to make.

    Attributes:
        ranges: Rows of the batch.
        faults: Errors by row number in the batch; filled while the batch is made.
    """

    epoch: ClassVar[int] = 0

    ranges: tuple[BlockRange[_B], ...]
    faults: dict[int, FieldError] = field(default_factory=dict)

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return sum(each.stop - each.start for each in self.ranges)


class StreamBatch(NamedTuple, Generic[_B]):
    """A batch of a stream that is ready.

    Attributes:
        ranges: Rows of the batch.
        inputs: Arrays by name; None if no row is left.
        chosen: Numbers of the rows that the arrays contain.
        faults: Errors of the other rows, by row number.
    """

    ranges: tuple[BlockRange[_B], ...]
    inputs: Arrays | None
    chosen: NDArray[np.int64]
    faults: Faults

    def by_block(self) -> Iterator[tuple[BlockRange[_B], NDArray[np.int64], Faults]]:
        """Yield each range with the rows that the arrays contain, and errors, by row number in the block."""
        first = 0
        for each in self.ranges:
            past = first + each.stop - each.start
            shift = each.start - first
            chosen = self.chosen[np.searchsorted(self.chosen, first) : np.searchsorted(self.chosen, past)]
            faults = {at + shift: error for at, error in self.faults.items() if first <= at < past}
            yield each, chosen + shift, faults
            first = past


def stream_batches(
    blocks: Iterator[Callable[[], _B]],
    pipeline: ArrayMaker,
    batch_size: int,
    num_threads: int,
    most_faults: int,
) -> Generator[StreamBatch[_B]]:
    """Yield the rows of a stream in batches, in order; close the generator to end its threads.

    `blocks`: functions that make the blocks. The iterator runs in the thread of the caller, to which code of
    users may be bound; any thread may call the functions. `pipeline`: turns columns into arrays, without
    random draws. `batch_size`: number of rows of a batch; the last batch, and batches with rows that do not
    fit, have fewer. `num_threads`: number of threads that make blocks, and of threads that make batches.
    `most_faults`: maximum number of rows of a batch that do not fit; with more, the batch has no arrays.
    """
    maker = Maker(StreamedRows[_B](most_faults), pipeline, None, LoaderMeter())

    def begin(ticket: StreamTicket[_B]) -> Job[StreamBatch[_B]]:
        if ticket.num_rows:
            return _StreamJob(maker.begin(ticket), ticket)
        return CallJob(_make_empty, ticket)

    with (
        closing(
            Feed(blocks, as_jobs(_make_block), num_threads, _MOST_BYTES, callers_ahead=_BLOCKS_AHEAD)
        ) as made,
        closing(
            Feed(
                cut_batches(_take_all(made), batch_size),
                begin,
                num_threads,
                _MOST_BYTES,
                callers_ahead=num_threads + 2,
            )
        ) as batches,
    ):
        yield from _take_all(batches)


def cut_batches(blocks: Iterator[_B], batch_size: int) -> Iterator[StreamTicket[_B]]:
    """Yield the rows of blocks in batches of one size; the last may be smaller.

    A block without rows is also part of a batch, which accounts for the rows that were left out.
    """
    held: list[BlockRange[_B]] = []
    num_rows = 0
    for block in blocks:
        start = 0
        while num_rows + len(block) - start >= batch_size:
            stop = start + batch_size - num_rows
            yield StreamTicket((*held, BlockRange(block, start, stop)))
            held, num_rows, start = [], 0, stop
        if start < len(block) or not len(block):
            held.append(BlockRange(block, start, len(block)))
            num_rows += len(block) - start
        if held and not num_rows:
            yield StreamTicket(tuple(held))  # immediately: a stream may have any number of such blocks
            held = []
    if held:
        yield StreamTicket(tuple(held))


class _AbandonedBatchError(Exception):
    """No row of a batch is left, or too many rows do not fit."""


class StreamedRows(Generic[_B]):
    """The rows of batches that are cut from a stream of blocks; rows are numbered within a batch."""

    def __init__(self, most_faults: int) -> None:
        self._most_faults = most_faults

    def pick(self, ticket: StreamTicket[_B]) -> Picks:
        """Return the rows of a batch."""
        return Picks(np.arange(ticket.num_rows, dtype=np.int64))

    def native_rows(self, picks: Picks) -> None:
        """Return None: the rows are in blocks already."""

    def fetch(self, ticket: StreamTicket[_B], picks: Picks) -> FetchedRows:
        """Return the columns of some consecutive rows of a batch."""
        begin, end = int(picks.rows[0]), int(picks.rows[-1]) + 1
        parts = []
        first = 0  # row of the batch that is the first of the range
        for block, start, stop in ticket.ranges:
            low, high = max(begin, first), min(end, first + stop - start)
            if low < high:
                shift = start - first
                parts.append(take_rows(block.columns, np.arange(low + shift, high + shift, dtype=np.int64)))
            first += stop - start
        return FetchedRows(concat_rows(parts), picks, {})

    def tolerates(self, num_faults: int) -> bool:
        """Whether a batch may have this number of rows that do not fit."""
        return num_faults <= self._most_faults

    def refuse(self, ticket: StreamTicket[_B], picks: Picks, faults: Faults, num_rows: int) -> None:
        """Record rows that do not fit; the consumer handles them in the order of the stream."""
        ticket.faults.update({int(picks.rows[at]): error for at, error in faults.items()})
        if len(ticket.faults) > self._most_faults or len(ticket.faults) == num_rows:
            raise _AbandonedBatchError

    def name_error(
        self,
        error: Exception,
        ticket: StreamTicket[_B],  # noqa: ARG002
        picks: Picks | None,  # noqa: ARG002
        batch: Picks,  # noqa: ARG002
    ) -> Exception:
        """Return an error unchanged: it belongs to no row of the stream."""
        return error


class _StreamJob(Generic[_B]):
    """The making of a batch of a stream; an abandoned batch has no arrays."""

    def __init__(self, job: BatchJob[StreamTicket[_B]], ticket: StreamTicket[_B]) -> None:
        self._job = job
        self._ticket = ticket
        self.num_parts = job.num_parts
        self.native = job.native
        self.is_long_to_finish = job.is_long_to_finish
        self.run = job.run

    def finish(self) -> tuple[StreamBatch[_B], int]:
        """Return the batch, and its size in bytes."""
        try:
            made, num_bytes = self._job.finish()
        except _AbandonedBatchError:
            return _make_empty(self._ticket)
        return StreamBatch(self._ticket.ranges, made.batch[0], made.rows, self._ticket.faults), num_bytes


def _make_empty(ticket: StreamTicket[_B]) -> tuple[StreamBatch[_B], int]:
    return StreamBatch(ticket.ranges, None, np.empty(0, np.int64), ticket.faults), 1


def _make_block(make: Callable[[], _B]) -> tuple[_B, int]:
    block = make()
    return block, max(1, sum(column.nbytes for column in block.columns.values()))


_T = TypeVar("_T")


def _take_all(feed: Feed[Any, _T]) -> Iterator[_T]:
    while (item := feed.take()) is not None:
        yield item
