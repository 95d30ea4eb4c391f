"""The rows of batches, as columns: any records of splits, from disk or from a cache.

In: which records. Out: their columns in that order, without those that could not be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock.batch.batch_plan import BatchPlan, Ticket, cut_picks
from penstock.columns import CodedColumns, Mask, concat_rows, take_rows
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.decode.reader import find_native_rows, read_scattered
from penstock.decode.row_columns import NativeRows
from penstock.errors import FieldError, PenstockError
from penstock.read.order import Picks
from penstock.read.rows import name_largest
from penstock.read.scatter import Scatter
from penstock.schema.schema import Schema
from penstock.transform.assembly import Faults

_E = TypeVar("_E", bound=FieldError)
_K_contra = TypeVar("_K_contra", contravariant=True)

_NO_FAULTS: Final[Faults] = MappingProxyType({})

# If at least this many records are all bad, the cause is the pipeline rather than the data.
_MANY_ROWS = 8

# A record that takes longer than this to read was not in memory: the kernel is then asked to prefetch.
_SLOW_SECONDS = 20e-6
_FAST_SECONDS = 5e-6


class RecordLocation(NamedTuple):
    """Location of a record of a batch.

    Attributes:
        path: Path of the file.
        record: Number of the record in the file.
        row: Number of the record in the split.
    """

    path: str
    record: int
    row: int


class FetchedRows(NamedTuple):
    """The columns of the rows of a batch, and errors by row number."""

    columns: CodedColumns
    picks: Picks
    faults: Faults


class RowSource(Protocol[_K_contra]):
    """Source of the rows of batches: records of splits, or a stream of rows that is read once.

    Several threads may call it.
    """

    def pick(self, ticket: _K_contra) -> Picks:
        """Return the rows of a batch."""

    def native_rows(self, picks: Picks) -> NativeRows | None:
        """Return rows of a batch as the core reads them; None if it cannot."""

    def fetch(self, ticket: _K_contra, picks: Picks) -> FetchedRows:
        """Return the columns of some consecutive rows of a batch, without rows that cannot be read."""

    def tolerates(self, num_faults: int) -> bool:
        """Whether a batch can have so many rows that do not fit; if not, `refuse` raises an error."""

    def refuse(self, ticket: _K_contra, picks: Picks, faults: Faults, num_rows: int) -> None:
        """Count rows of a batch that do not fit, or raise an error, depending on the policy.

        Args:
            ticket: Ticket of the batch.
            picks: Rows of the batch.
            faults: Errors by row number.
            num_rows: Number of rows fetched for the batch.
        """

    def name_error(self, error: Exception, ticket: _K_contra, picks: Picks | None, batch: Picks) -> Exception:
        """Return an error with its path and record, as far as they are known.

        Args:
            error: Original error, which may have only a row number among the rows.
            ticket: Ticket of the batch.
            picks: Rows that the number refers to; None if reading raised the error.
            batch: Rows of the batch.
        """


class Supplied(NamedTuple):
    """The columns of some records.

    Attributes:
        columns: Columns, in the requested order.
        num_rows: Number of rows.
        kept: Mask of the requested records that the columns contain; None for all.
        faults: Errors by row number, if a store has prepared the rows.
    """

    columns: CodedColumns
    num_rows: int
    kept: Mask | None
    faults: Faults = _NO_FAULTS


class StoreColumns(NamedTuple):
    """The columns of some rows of a split.

    Attributes:
        columns: Columns, in the requested order.
        kept: Mask of the requested rows that the columns contain; None for all.
        faults: Errors by row number; the values of these rows are undefined.
    """

    columns: CodedColumns
    kept: Mask | None = None
    faults: Faults = _NO_FAULTS


class ColumnStore(Protocol):
    """A store of the columns of a split: the files, or a cache."""

    def columns(self, rows: NDArray[np.int64]) -> StoreColumns:
        """Return the columns of some rows."""

    def native_rows(self, rows: NDArray[np.int64]) -> NativeRows | None:
        """Return some rows as the core reads them; None if it cannot."""

    @property
    def is_slow(self) -> bool:
        """Whether to announce rows before they are read."""

    def announce(self, rows: NDArray[np.int64]) -> None:
        """Announce rows that are read soon."""


@dataclass(frozen=True)
class SplitSource:
    """A split as a source for a loader: a reader of rows in any order, and how they are decoded."""

    scatter: Scatter
    plan: DecodePlan
    schema: Schema
    losses: Losses
    name: str

    def locate(self, row: int, error: _E) -> _E:
        """Return an error with the path and record of a row."""
        shard, record = self.scatter.rows.locate(row)
        attributes = {name: getattr(error, name) for name in ("field", "expected", "got", "advice")}
        offset = int(shard.index.offsets[record])
        named = type(error)(error.what, path=str(shard.path), record=record, offset=offset, **attributes)
        return named.with_traceback(error.__traceback__)


class DiskStore:
    """A store that reads and decodes the rows each time."""

    def __init__(self, source: SplitSource) -> None:
        self._source = source
        self.is_slow = self._is_remote = source.scatter.rows.is_remote
        self._seen = (0.0, 0)

    def columns(self, rows: NDArray[np.int64]) -> StoreColumns:
        """Return the columns of some rows."""
        source = self._source
        found = read_scattered(source.scatter, source.plan, source.losses, rows)
        self._measure(len(rows))
        return StoreColumns(*found)

    def native_rows(self, rows: NDArray[np.int64]) -> NativeRows | None:
        """Return some rows as the core reads them; None if it cannot."""
        found = find_native_rows(self._source.scatter, self._source.plan, rows)
        if found is not None:
            self._measure(len(rows))
        return found

    def announce(self, rows: NDArray[np.int64]) -> None:
        """Announce rows that are read soon."""
        if len(rows):
            self._source.scatter.announce(rows)

    def _measure(self, num_rows: int) -> None:
        # Approximate, as other threads read at the same time; it only decides about prefetching.
        seconds, count = self._seen
        now = self._source.plan.read_seconds
        count += num_rows
        if count >= 256:
            per_row = (now - seconds) / count
            is_slow = per_row > (_FAST_SECONDS if self.is_slow else _SLOW_SECONDS)
            self.is_slow = is_slow or self._is_remote
            seconds, count = now, 0
        self._seen = (seconds, count)


class Supply:
    """The columns of records of one split, or of a mixture of several."""

    def __init__(self, sources: Sequence[SplitSource], stores: Sequence[ColumnStore]) -> None:
        self.sources = tuple(sources)
        self._stores = tuple(stores)

    @property
    def read_seconds(self) -> float:
        """Time for reading so far, summed over all threads."""
        return sum(source.plan.read_seconds for source in self.sources)

    @property
    def bytes_read(self) -> int:
        """Number of bytes read so far."""
        return sum(source.plan.bytes_read for source in self.sources)

    @property
    def record_bytes(self) -> int:
        """Mean size of a stored record."""
        splits = [source.scatter.rows for source in self.sources]
        num_bytes = sum(rows.shards.num_bytes for rows in splits)
        return num_bytes // max(1, sum(map(len, splits)))

    def columns(self, picks: Picks) -> Supplied:
        """Return the columns of records, in order; bad records are raised or left out."""
        if picks.sources is None:
            columns, kept, faults = self._stores[0].columns(picks.rows)
            return Supplied(columns, len(picks.rows) if kept is None else int(kept.sum()), kept, faults)
        pieces, indexes, lost = [], [], False
        bad: dict[int, FieldError] = {}  # by index among the requested records
        keeps = np.ones(len(picks.rows), np.bool_)
        for number, store in enumerate(self._stores):
            mine = np.flatnonzero(picks.sources == number)
            if len(mine) == 0:
                continue
            columns, kept, faults = store.columns(picks.rows[mine])
            if kept is not None:
                lost = True
                keeps[mine[~kept]] = False
                mine = mine[kept]
            bad |= {int(mine[row]): error for row, error in faults.items()}
            pieces.append(columns)
            indexes.append(mine)
        if not pieces:
            return Supplied(self._stores[0].columns(picks.rows).columns, 0, None)
        requested = np.concatenate(indexes)
        order = np.argsort(requested, kind="stable")
        columns = take_rows(concat_rows(pieces), order)
        rows = {int(index): row for row, index in enumerate(requested[order])} if bad else {}
        faults = {rows[index]: error for index, error in bad.items()}
        return Supplied(columns, len(order), keeps if lost else None, faults)

    def native_rows(self, picks: Picks) -> NativeRows | None:
        """Return records as the core reads them; None if it cannot."""
        return self._stores[0].native_rows(picks.rows) if picks.sources is None else None

    @property
    def is_slow(self) -> bool:
        """Whether to announce records before they are read."""
        return any(store.is_slow for store in self._stores)

    def announce(self, picks: Picks) -> None:
        """Announce records that are read soon."""
        for number, store in enumerate(self._stores):
            store.announce(picks.rows if picks.sources is None else picks.rows[picks.sources == number])
            if picks.sources is None:
                return

    def release(self) -> None:
        """Release bytes that were read ahead."""
        for source in self.sources:
            source.scatter.release()

    def check(self) -> None:
        """Check that the files have not changed since they were opened."""
        for source in self.sources:
            source.scatter.check(is_strict=source.losses.on_error == "raise")


class PlannedRows:
    """The rows of batches, by a plan over the records of splits."""

    def __init__(self, plan: BatchPlan, supply: Supply) -> None:
        self._plan = plan
        self._supply = supply
        self._has_announced = False

    def release(self) -> None:
        """Release bytes that were read ahead; an iteration has ended."""
        self._supply.release()
        self._has_announced = False

    def pick(self, ticket: Ticket) -> Picks:
        """Return the rows of a batch."""
        self._announce(ticket)
        return self._plan.picks(ticket)

    def native_rows(self, picks: Picks) -> NativeRows | None:
        """Return records as the core reads them; None if it cannot."""
        return self._supply.native_rows(picks)

    def fetch(self, ticket: Ticket, picks: Picks) -> FetchedRows:  # noqa: ARG002
        """Return the columns of some rows of a batch, without records that cannot be read."""
        supplied = self._supply.columns(picks)
        if supplied.kept is not None:
            picks = cut_picks(picks, supplied.kept)
        return FetchedRows(supplied.columns, picks, supplied.faults)

    def tolerates(self, num_faults: int) -> bool:
        """Whether a batch can have so many bad records."""
        return not num_faults or any(each.losses.on_error != "raise" for each in self._supply.sources)

    def refuse(self, ticket: Ticket, picks: Picks, faults: Faults, num_rows: int) -> None:  # noqa: ARG002
        """Count records that do not fit, or raise the first error, depending on the policy."""
        for at in sorted(faults):
            source = self._source(picks, at)
            row = int(picks.rows[at])
            error = source.locate(row, faults[at])
            source.losses.add(row, error)
        if len(faults) == len(picks.rows) and num_rows >= _MANY_ROWS:
            # All of many records are bad: the cause is the pipeline.
            raise error.with_traceback(faults[at].__traceback__) from faults[at].__cause__

    def name_error(self, error: Exception, ticket: Ticket, picks: Picks | None, batch: Picks) -> Exception:
        """Return an error that names its record; a note names the batch, if no file is known."""
        if picks is None:
            picks = batch
        named = error
        if isinstance(error, FieldError) and error.path is None and error.record is not None:
            at = error.record
            if 0 <= at < len(picks.rows):
                named = self._source(picks, at).locate(int(picks.rows[at]), error)
        elif _is_of_records(error) and len(batch.rows):
            chosen = batch.rows if batch.sources is None else batch.rows[batch.sources == batch.sources[0]]
            named = name_largest(self._source(batch, 0).scatter.rows, chosen)
        if not isinstance(named, PenstockError) or named.path is None:
            named.add_note(f"in batch {ticket.step} of epoch {ticket.epoch}: {self._describe(batch)}")
        return named

    def _source(self, picks: Picks, at: int) -> SplitSource:
        return self._supply.sources[0 if picks.sources is None else int(picks.sources[at])]

    def _describe(self, picks: Picks) -> str:
        if not len(picks.rows):
            return "no records"
        shard, record = self._source(picks, 0).scatter.rows.locate(int(picks.rows[0]))
        return f"{len(picks.rows)} records, the first of them record {record} of {shard.path}"

    def _announce(self, ticket: Ticket) -> None:
        """Ask the kernel to prefetch the next records, unless they are in memory anyway."""
        if self._plan.reads_stretches or self._supply.is_slow:
            # Two threads may both take theirs for the first: then rows are announced twice.
            is_first, self._has_announced = not self._has_announced, True
            for ahead in self._plan.ahead(ticket, is_first=is_first):
                # An error there is raised with its own batch.
                with suppress(PenstockError):
                    self._supply.announce(ahead)


def _is_of_records(error: Exception) -> bool:
    """Return whether memory was exhausted by records, rather than by a map, whose error has a note."""
    is_named = isinstance(error, PenstockError) or hasattr(error, "__notes__")
    return isinstance(error, MemoryError) and not is_named
