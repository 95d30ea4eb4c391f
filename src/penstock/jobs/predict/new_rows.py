"""New rows as a row source of the batch engine: blocks of columns, kept columns, and rows that are not valid.

`NewRows` is the protocol of the data, `DataBlock` some of its rows, `RefusalLog` the account of skipped rows.
In: blocks of rows. Out: batches for the model, in order.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.batch.stream import StreamBatch, stream_batches
from penstock.columns import CodedColumn, CodedColumns, take_rows
from penstock.decode.row_columns import NativeRows
from penstock.errors import FieldError, PenstockError, TooManySkippedError
from penstock.foundation.process import count_cores
from penstock.model.usable_records import find_faults
from penstock.settings.groups import OnError
from penstock.transform.assembly import Faults
from penstock.transform.builder import BatchBuilder
from penstock.transform.draws import Draws
from penstock.transform.pipeline import Pipeline

_log = logging.getLogger("penstock")

_TARGET_BYTES: Final = 4 << 20
_FEWEST, _MOST = 32, 1024
_MOST_THREADS: Final = 8  # with more of them, the model is slower than they are
_USUAL_LENGTH: Final = 256  # assumed length of texts and lists

ADVICE: Final = "Fix the row, or leave such rows out: `on_error='skip'`."

Locate: TypeAlias = Callable[[int, FieldError], PenstockError]
"""Returns the error of a row with its file and line, from the number of the row and the error of a batch."""


class Refusal(NamedTuple):
    """A row that is not valid: its number, and a function that makes its error.

    The error is made only when needed, because finding the line of a row takes time.
    """

    row: int
    make: Callable[[], PenstockError]


@dataclass
class RefusalLog:
    """Handles rows that are not valid according to `on_error`.

    Attributes:
        on_error: "raise" the error of a row, "skip" the row and log a line, or "collect" its error.
        max_skipped: Maximum number of rows that may be left out.
        num_skipped: Number of rows left out so far.
        rejected: Errors of the rows left out.
    """

    on_error: OnError
    max_skipped: int
    num_skipped: int = 0
    rejected: list[PenstockError] = field(default_factory=list)

    def add(self, refusal: Refusal) -> None:
        """Handle a row."""
        error = refusal.make()
        if self.on_error == "raise":
            if not error.advice:
                error.advice = ADVICE
                error.args = (str(error),)
            raise error
        self.num_skipped += 1
        if self.num_skipped > self.max_skipped:
            raise TooManySkippedError(
                "rows left out",
                path=error.path,
                field=error.field,
                expected=f"at most {self.max_skipped}",
                got=f"{self.num_skipped} and more, the last because: {str(error).rstrip('.')}",
                advice="Fix the data, or allow more: `max_skipped=N`.",
            )
        if self.on_error == "skip":
            _log.warning("row left out: %s", error)
        self.rejected.append(error)


@dataclass(frozen=True)
class DataBlock:
    """Some rows of the data, in order.

    Attributes:
        columns: Columns by field, one value per row.
        rows: Number of each row in the data, from 0.
        kept: Columns that are copied into the output, one value per row.
        refusals: Rows of the block that are left out, in order.
        locate: Finds the file and line of a row.
        num_bytes: Number of bytes of the data that the block was read from.
    """

    columns: Mapping[str, CodedColumn]
    rows: NDArray[np.int64]
    kept: pa.RecordBatch
    refusals: tuple[Refusal, ...]
    locate: Locate
    num_bytes: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    def refuse(self, at: int, error: FieldError) -> Refusal:
        """Return the refusal of a row, by its number in the block."""
        row = int(self.rows[at])
        return Refusal(row, partial(self.locate, row, error))

    def without(self, faults: Faults) -> DataBlock:
        """Return the block without the rows that have a fault, which become refusals."""
        if not faults:
            return self
        found = [self.refuse(at, faults[at]) for at in sorted(faults)]
        rest = np.delete(np.arange(len(self), dtype=np.int64), sorted(faults))
        return replace(
            self,
            columns=take_rows(self.columns, rest),
            rows=self.rows[rest],
            kept=self.kept.take(rest),
            refusals=tuple(sorted([*self.refusals, *found], key=lambda each: each.row)),
        )

    def refusals_within(self, start: int, stop: int) -> tuple[Refusal, ...]:
        """Return the refusals within some rows: each belongs to the next row, at the end to the last row."""
        rows = [each.row for each in self.refusals]
        first = 0 if start == 0 else bisect_left(rows, self.rows[start - 1])
        last = len(rows) if stop == len(self) else bisect_left(rows, self.rows[stop - 1])
        return self.refusals[first:last]


class NewRows(Protocol):
    """Data to predict on.

    Attributes:
        kept: Columns that are copied into the output.
        absent: Names of inputs that the data does not have; they count as missing in all rows.
        cautions: Notes that may change predictions, such as a column that does not exist.
        notes: Other notes about the data.
        num_bytes: Size of the data in bytes, or None if it is unknown.
    """

    kept: pa.Schema
    num_bytes: int | None

    @property
    def absent(self) -> tuple[str, ...]:
        """See above."""

    @property
    def cautions(self) -> tuple[str, ...]:
        """See above."""

    @property
    def notes(self) -> tuple[str, ...]:
        """See above."""

    def blocks(self) -> Iterator[Callable[[], DataBlock]]:
        """Yield functions that make the blocks, in the order of the rows.

        The iterating thread reads the data, because code of users may be bound to their thread. Any thread
        may call the functions.
        """


@dataclass(frozen=True)
class ModelBatch:
    """Some rows, ready for the model.

    `inputs` is None if no row is left; `num_bytes` are the bytes of the data read since the previous batch.
    """

    inputs: dict[str, NDArray[Any]] | None
    num_rows: int
    kept: pa.RecordBatch
    refusals: tuple[Refusal, ...]
    num_bytes: int


def choose_batch_size(inputs: Pipeline) -> int:
    """Return the number of rows whose inputs take about 4 MiB: a power of two from 32 to 1,024."""
    row_bytes = sum(
        np.dtype(output.dtype).itemsize * int(np.prod([dim or _USUAL_LENGTH for dim in output.shape]))
        for output in inputs.inputs.values()
        if output.dtype not in ("string", "bytes")
    )
    size = _FEWEST
    while size < _MOST and 2 * size * row_bytes <= _TARGET_BYTES:
        size *= 2
    return size


def choose_num_threads(given: int | None) -> int:
    """Return the number of threads that make batches: the one given, or the number of cores, at most 8."""
    return given or min(_MOST_THREADS, count_cores())


def make_batches(
    rows: NewRows, inputs: Pipeline, batch_size: int, num_threads: int, most_refusals: int
) -> Generator[ModelBatch]:
    """Yield the batches of new data in order; close the generator to end its threads.

    `rows`: the data. The thread of the caller reads it; other threads encode and transform it. `batch_size`:
    number of rows per batch; rows that a transform refuses are not replaced. `most_refusals`: maximum number
    of refused rows of a batch; a batch with more has no inputs.
    """
    batches = stream_batches(rows.blocks(), _FiniteInputs(inputs), batch_size, num_threads, most_refusals)
    with closing(batches):
        for batch in batches:
            yield _finish(batch)


class _FiniteInputs:
    """A pipeline that also refuses NaN and infinity.

    For NaN, a model returns NaN or a meaningless number: some kernels turn NaN into 0.
    """

    def __init__(self, inputs: Pipeline) -> None:
        self._inputs = inputs
        self.targets = inputs.targets
        self.weights = inputs.weights

    def begin(self, num_rows: int, num_parts: int) -> BatchBuilder:
        """Return a batch in the making, whose rows come in parts."""
        return _FiniteBatch(self._inputs, self._inputs.assembly.begin(num_rows, num_parts))


class _FiniteBatch:
    """A batch in the making whose rows must be finite."""

    def __init__(self, inputs: Pipeline, builder: BatchBuilder) -> None:
        self._inputs = inputs
        self._builder = builder
        self.fill = builder.fill
        self.finish = builder.finish

    def begin_native(self, source: NativeRows, num_parts: int) -> None:
        """Return None: rows that are not finite are found while they are prepared."""

    def prepare(self, first: int, columns: CodedColumns, draws: Draws | None) -> tuple[CodedColumns, Faults]:
        """Run the expensive part of the transforms; also report rows that are not finite."""
        prepared, faults = self._builder.prepare(first, columns, draws)
        return prepared, {**find_faults(prepared, self._inputs), **faults}


def _finish(batch: StreamBatch[DataBlock]) -> ModelBatch:
    kept = []
    num_bytes = 0
    for (block, start, stop), chosen, _ in batch.by_block():
        is_whole = len(chosen) == stop - start
        kept.append(block.kept.slice(start, stop - start) if is_whole else block.kept.take(chosen))
        num_bytes += block.num_bytes if stop == len(block) else 0
    kept = [part for part in kept if part.num_rows] or kept[:1]
    joined = kept[0] if len(kept) == 1 else pa.Table.from_batches(kept).combine_chunks().to_batches()[0]
    return ModelBatch(batch.inputs, len(batch.chosen), joined, list_refusals(batch), num_bytes)


def list_refusals(batch: StreamBatch[Any]) -> tuple[Refusal, ...]:
    """Return the rows of data blocks that were left out of a batch, in order."""
    refusals: list[Refusal] = []
    for (block, start, stop), _, faults in batch.by_block():
        refusals += block.refusals_within(start, stop)
        refusals += [block.refuse(at, error) for at, error in faults.items()]
    return tuple(sorted(refusals, key=lambda each: each.row))
