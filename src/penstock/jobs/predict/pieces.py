"""Rows of new data on their way into a model: columns, what is carried past it, and what does not fit.

In: nothing. Out: `Piece`, some rows of the data; `Rows`, where pieces come from; the batches they are cut to.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.columns import CodedColumn, concat_rows, take_rows
from penstock.errors import FieldError, PenstockError, TooManySkippedError
from penstock.foundation.option_checks import OnError

_log = logging.getLogger("penstock")

Locate: TypeAlias = Callable[[int, FieldError], PenstockError]
"""Returns the error for a row of the data, with its place in words, from that of a row of a batch."""


class Refusal(NamedTuple):
    """A row that does not fit: its number, and what makes its error; lines are counted when asked for."""

    row: int
    make: Callable[[], PenstockError]


@dataclass
class RefusalLog:
    """What becomes of rows that do not fit, by the policy that a caller chose.

    Attributes:
        on_error: "raise" the error of a row, "skip" it with a line in the log, or "collect" it.
        max_rejects: How many rows may be left out.
        num_skipped: How many were.
        rejected: The errors that were collected.
    """

    on_error: OnError
    max_rejects: int
    num_skipped: int = 0
    rejected: list[PenstockError] = field(default_factory=list)

    def add(self, refusal: Refusal) -> None:
        """Account for a row.

        Raises:
            PenstockError: The error of the row, if the policy is "raise".
            TooManySkippedError: More rows do not fit than may be left out.
        """
        error = refusal.make()
        if self.on_error == "raise":
            if not error.advice:
                error.advice = "Fix the row, or leave such rows out: on_error='skip' (--on-error skip)."
                error.args = (str(error),)
            raise error
        self.num_skipped += 1
        if self.num_skipped > self.max_rejects:
            raise TooManySkippedError(
                "rows left out",
                path=error.path,
                field=error.field,
                expected=f"at most {self.max_rejects}",
                got=f"{self.num_skipped} and more, the last because: {str(error).rstrip('.')}",
                advice="Fix the data, or raise max_rejects (--max-rejects).",
            )
        if self.on_error == "skip":
            _log.warning("row left out: %s", error)
        else:
            self.rejected.append(error)


@dataclass(frozen=True)
class Piece:
    """Some rows, in order.

    Attributes:
        columns: By field, a row each.
        rows: The number of each in the data, from 0.
        carried: What goes into the output as it is, a row each.
        refusals: The rows among them that are left out, in order.
        locate: Names the place of one.
        num_bytes: How much of the data it stands for.
    """

    columns: Mapping[str, CodedColumn]
    rows: NDArray[np.int64]
    carried: pa.RecordBatch
    refusals: tuple[Refusal, ...]
    locate: Locate
    num_bytes: int = 0


class NewRows(Protocol):
    """Data that predictions are wanted of.

    Attributes:
        carried: The columns that go into the output as they are.
        cautions: What predictions depend on, such as a column that is not there, sentence by sentence.
        notes: What else a person should hear about the data.
        num_bytes: How much there is to read, or None where nobody knows.
    """

    carried: pa.Schema
    num_bytes: int | None

    @property
    def cautions(self) -> tuple[str, ...]:
        """See above."""

    @property
    def notes(self) -> tuple[str, ...]:
        """See above."""

    def makers(self) -> Iterator[Callable[[], Piece]]:
        """Yield what makes each piece, from the first rows to the last.

        Whoever iterates reads the data, in one thread: code of users may be bound to theirs. Any thread may
        make a piece.
        """


@dataclass
class _Rest:
    """What is left of a piece."""

    piece: Piece
    start: int = 0
    refusals: list[Refusal] = field(default_factory=list)

    @property
    def num_rows(self) -> int:
        return len(self.piece.rows) - self.start

    def take(self, num_rows: int) -> Piece:
        """Cut some rows off, with the refusals between them; at the end, with all that remain."""
        whole, start = self.piece, self.start
        stop = self.start = start + num_rows
        rows = whole.rows[start:stop]
        is_end = stop == len(whole.rows)
        due = [each for each in self.refusals if is_end or (num_rows and each.row < rows[-1])]
        self.refusals = self.refusals[len(due) :]
        return Piece(
            take_rows(whole.columns, np.arange(start, stop, dtype=np.int64)),
            rows,
            whole.carried.slice(start, num_rows),
            tuple(due),
            whole.locate,
            whole.num_bytes if is_end else 0,
        )


def cut_batches(pieces: Iterator[Piece], batch_size: int) -> Iterator[Piece]:
    """Yield the same rows in pieces of `batch_size`; the last may be smaller."""
    held: list[_Rest] = []
    num_rows = 0
    for piece in pieces:
        held.append(_Rest(piece, refusals=list(piece.refusals)))
        num_rows += len(piece.rows)
        while num_rows >= batch_size:
            yield _cut(held, batch_size)
            num_rows -= batch_size
    if held:
        yield _cut(held, num_rows)


def _cut(held: list[_Rest], num_rows: int) -> Piece:
    parts = []
    while held and (num_rows or not held[0].num_rows):
        part = held[0].take(min(num_rows, held[0].num_rows))
        parts.append(part)
        num_rows -= len(part.rows)
        if not held[0].num_rows:
            held.pop(0)
    return parts[0] if len(parts) == 1 else _join(parts)


def _join(parts: list[Piece]) -> Piece:
    filled = [part for part in parts if len(part.rows)] or parts[:1]
    ends = np.cumsum([len(part.rows) for part in filled])
    rows = np.concatenate([part.rows for part in filled])

    def locate(row: int, error: FieldError) -> PenstockError:
        at = int(np.searchsorted(ends, np.searchsorted(rows, row), side="right"))
        return filled[at].locate(row, error)

    table = pa.Table.from_batches([part.carried for part in filled]).combine_chunks()
    carried = table.to_batches()[0] if table.num_rows else filled[0].carried
    return Piece(
        concat_rows([part.columns for part in filled]),
        rows,
        carried,
        tuple(refusal for part in parts for refusal in part.refusals),
        locate,
        sum(part.num_bytes for part in parts),
    )
