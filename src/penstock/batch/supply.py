"""The columns of any records, from disk or from a cache.

In: which records. Out: their columns in that order, without those that could not be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock.columns import CodedColumns, Mask
from penstock.decode.gather import join_columns, take_columns
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.decode.reader import read_scattered
from penstock.errors import FieldError
from penstock.read.order import Picks
from penstock.read.scatter import Scatter
from penstock.schema.schema import Schema
from penstock.transform.assembly import Faults

_E = TypeVar("_E", bound=FieldError)

_NO_FAULTS: Final[Faults] = MappingProxyType({})

# A record that takes longer than this to read was not in memory: the kernel is then told what comes next.
_SLOW_SECONDS = 20e-6
_FAST_SECONDS = 5e-6


class Supplied(NamedTuple):
    """The columns of some records.

    Attributes:
        columns: In the order asked for.
        num_rows: How many rows they have.
        kept: Which of the records asked for are in them; None if all.
        faults: What is wrong with rows of them, by number, where a store has prepared them.
    """

    columns: CodedColumns
    num_rows: int
    kept: Mask | None
    faults: Faults = _NO_FAULTS


class Found(NamedTuple):
    """The columns of some rows of a split.

    Attributes:
        columns: In the order asked for.
        kept: Which of the rows asked for are in them; None if all.
        faults: What is wrong with rows of them, by number; their values mean nothing.
    """

    columns: CodedColumns
    kept: Mask | None = None
    faults: Faults = _NO_FAULTS


class RowStore(Protocol):
    """Whatever has the columns of a split's rows."""

    def columns(self, rows: NDArray[np.int64]) -> Found:
        """Return the columns of some rows."""

    @property
    def is_slow(self) -> bool:
        """Whether it pays to say ahead which rows are wanted."""

    def announce(self, rows: NDArray[np.int64]) -> None:
        """Say that these rows are wanted soon."""


@dataclass(frozen=True)
class SplitSource:
    """A split as a loader reads it.

    Attributes:
        scatter: Finds its rows.
        plan: Decodes them.
        schema: Of the fields that are read.
        losses: What becomes of bad records.
        name: What messages call it.
    """

    scatter: Scatter
    plan: DecodePlan
    schema: Schema
    losses: Losses
    name: str

    def locate(self, row: int, error: _E) -> _E:
        """Say which record of which file it was, where only the row is known."""
        shard, record = self.scatter.rows.locate(row)
        facts = {name: getattr(error, name) for name in ("field", "expected", "got", "advice")}
        offset = int(shard.index.offsets[record])
        named = type(error)(error.what, path=str(shard.path), record=record, offset=offset, **facts)
        return named.with_traceback(error.__traceback__)


class DiskStore:
    """Rows as they are read and decoded each time."""

    def __init__(self, source: SplitSource) -> None:
        self._source = source
        self.is_slow = False
        self._seen = (0.0, 0)

    def columns(self, rows: NDArray[np.int64]) -> Found:
        """Return the columns of some rows."""
        source = self._source
        found = read_scattered(source.scatter, source.plan, source.losses, rows)
        self._notice(len(rows))
        return Found(*found)

    def announce(self, rows: NDArray[np.int64]) -> None:
        """Say that these rows are wanted soon."""
        if len(rows):
            self._source.scatter.announce(rows)

    def _notice(self, num_rows: int) -> None:
        # Roughly: other threads read at the same time. It decides about advice to the kernel, nothing else.
        seconds, count = self._seen
        now = self._source.plan.read_seconds
        count += num_rows
        if count >= 256:
            per_row = (now - seconds) / count
            self.is_slow = per_row > (_FAST_SECONDS if self.is_slow else _SLOW_SECONDS)
            seconds, count = now, 0
        self._seen = (seconds, count)


class Supply:
    """The columns of records of one split, or of a mixture of several."""

    def __init__(self, sources: Sequence[SplitSource], stores: Sequence[RowStore]) -> None:
        self.sources = tuple(sources)
        self._stores = tuple(stores)

    @property
    def read_seconds(self) -> float:
        """How long reading took so far, of all threads together."""
        return sum(source.plan.read_seconds for source in self.sources)

    @property
    def bytes_read(self) -> int:
        """How much was read so far."""
        return sum(source.plan.bytes_read for source in self.sources)

    def columns(self, picks: Picks) -> Supplied:
        """Return the columns of records, in order; bad ones are raised or left out."""
        if picks.sources is None:
            columns, kept, faults = self._stores[0].columns(picks.rows)
            return Supplied(columns, len(picks.rows) if kept is None else int(kept.sum()), kept, faults)
        pieces, places, lost = [], [], False
        bad: dict[int, FieldError] = {}  # by place among the records asked for
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
            places.append(mine)
        if not pieces:
            return Supplied(self._stores[0].columns(picks.rows).columns, 0, None)
        asked = np.concatenate(places)
        order = np.argsort(asked, kind="stable")
        columns = take_columns(join_columns(pieces), order)
        rows = {int(place): row for row, place in enumerate(asked[order])} if bad else {}
        faults = {rows[place]: error for place, error in bad.items()}
        return Supplied(columns, len(order), keeps if lost else None, faults)

    @property
    def is_slow(self) -> bool:
        """Whether it pays to say ahead which records are wanted."""
        return any(store.is_slow for store in self._stores)

    def announce(self, picks: Picks) -> None:
        """Say that these records are wanted soon."""
        for number, store in enumerate(self._stores):
            store.announce(picks.rows if picks.sources is None else picks.rows[picks.sources == number])
            if picks.sources is None:
                return

    def check(self) -> None:
        """Look whether the files are still what was opened.

        Raises:
            MissingShardError: One is gone.
            ChangedFileError: One is another.
        """
        for source in self.sources:
            source.scatter.check(is_strict=source.losses.on_error == "raise")
