"""Making one batch: rows from a source, turned into arrays by a pipeline, slice by slice.

In: a ticket. Out: a job whose parts are slices of the rows; at the end, the arrays that a consumer gets. Any
number of threads can work on one batch. How a batch is cut depends on its rows only, never on threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.batch.batch_plan import Ticket, cut_picks, join_picks
from penstock.batch.stats import LoaderMeter
from penstock.batch.supply import FetchedRows, RowSource
from penstock.columns import CodedColumns, pad_array, take_rows
from penstock.errors import FieldError
from penstock.read.order import Picks
from penstock.schema.schema import Schema
from penstock.transform.assembly import Faults
from penstock.transform.base import MeasureLengths
from penstock.transform.builder import BatchBuilder
from penstock.transform.draws import Draws
from penstock.transform.output import Output

Arrays: TypeAlias = dict[str, Any]
Batch: TypeAlias = tuple[Arrays, Arrays] | tuple[Arrays, Arrays, Arrays]


class AnyTicket(Protocol):
    """A batch to make, from any source of rows."""

    @property
    def epoch(self) -> int:
        """Number of the epoch."""


_K = TypeVar("_K", bound=AnyTicket)


class ArrayMaker(Protocol):
    """The part of a pipeline that makes batches."""

    @property
    def targets(self) -> dict[str, Output]:
        """Specifications of the targets by name."""

    @property
    def weights(self) -> dict[str, Output]:
        """Specifications of the weights by name."""

    def begin(self, num_rows: int, num_parts: int) -> BatchBuilder:
        """Return a batch in the making, whose rows come in parts."""


class Transforming(ArrayMaker, Protocol):
    """The steps of a loader: the assembly of a pipeline, or stored values."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields that the pipeline reads."""

    @property
    def inputs(self) -> dict[str, Output]:
        """Specifications of the inputs by name."""

    @property
    def dictionaries(self) -> dict[str, _native.Vocabulary]:
        """Vocabularies by field name, with which the core codes strings while it decodes."""

    def fingerprint(self) -> str:
        """Return the fingerprint of the pipeline."""

    def measure(self, name: str) -> MeasureLengths | None:
        """Return a function for the lengths of a field's rows in the output; None for the stored lengths."""

    def check_schema(self, schema: Schema) -> None:
        """Raise an error if the fields of the data differ from the fields of the pipeline."""

    @property
    def augments(self) -> bool:
        """Whether training batches are augmented."""

    @property
    def prepares(self) -> bool:
        """Whether `prepare` does anything."""

    def prepare_to_keep(
        self, columns: CodedColumns, *, augments: bool, room_bytes: int
    ) -> tuple[CodedColumns, Faults]:
        """Run the part of `prepare` that is the same in every epoch; its result can be cached."""


class MadeRows(NamedTuple, Generic[_K]):
    """A finished batch.

    `num_records` excludes padding. `rows` are the numbers of its rows in the source, in order.
    """

    ticket: _K
    batch: Batch
    num_records: int
    rows: NDArray[np.int64]


MadeBatch: TypeAlias = MadeRows[Ticket]
Converter: TypeAlias = Callable[[MadeBatch], Any]

MAX_SLICE_ROWS: Final = 512
_SLICE_BYTES: Final = 1 << 20  # of stored records
# Where much work is done for each byte, mostly without Python's lock: about forty photos. With half as many,
# 16 threads made 7 to 16 % fewer photos per second; with twice as many, no more.
_PREPARED_SLICE_BYTES: Final = 1 << 21


def fit_slice(record_bytes: int, *, prepares: bool) -> int:
    """Return the number of rows in a slice of a batch: small enough that all threads share a batch.

    `prepares`: whether the pipeline has an expensive part, such as decoding images.
    """
    most_bytes = _PREPARED_SLICE_BYTES if prepares else _SLICE_BYTES
    return min(MAX_SLICE_ROWS, max(1, most_bytes // max(1, record_bytes)))


class Maker(Generic[_K]):
    """Makes batches.

    Args:
        source: Source of the rows of each batch, with the policy for rows that do not fit.
        pipeline: Pipeline that turns columns into arrays.
        seed: Seed of the pipeline's random draws; None for no draws.
        meter: Meter that sums the time of each part.
        slice_rows: Maximum number of rows in a slice, which one thread turns into arrays at a time.
            Defaults to `MAX_SLICE_ROWS`.
        augments: Whether the batches are for training.
        pad_to: Number of records that a batch which is not full is padded to, with records of weight 0.
    """

    def __init__(
        self,
        source: RowSource[_K],
        pipeline: ArrayMaker,
        seed: int | None,
        meter: LoaderMeter,
        *,
        slice_rows: int | None = None,
        augments: bool = False,
        pad_to: int | None = None,
    ) -> None:
        self.source = source
        self.pipeline = pipeline
        self.meter = meter
        self.slice_rows = MAX_SLICE_ROWS if slice_rows is None else slice_rows
        self._seed = seed
        self._pad_to = pad_to
        self._augments = augments
        self.has_weights = bool(pipeline.weights) or pad_to is not None
        self._targets = tuple(pipeline.targets)

    def begin(self, ticket: _K) -> BatchJob[_K]:
        """Begin a batch."""
        return BatchJob(self, ticket)

    def draws(self, picks: Picks, ticket: _K) -> Draws | None:
        """Return the random draws of some rows of a batch."""
        if self._seed is None:
            return None
        return Draws(self._seed, ticket.epoch, record_keys(picks), augments=self._augments)

    def assemble(self, parts: tuple[Arrays, Arrays, Arrays], num_rows: int) -> Batch:
        """Return the arrays of a batch as a consumer gets them: with weights, and padded, as required."""
        inputs, targets, weights = parts
        if not self.has_weights:
            return inputs, targets
        weight: NDArray[Any] | None = next(iter(weights.values()), None)
        if weight is None or weight.dtype != np.float32:  # stored weights may have any type
            stored, weight = weight, _native.empty((num_rows,), "float32")
            weight[:] = 1 if stored is None else stored
        if self._pad_to is not None and num_rows < self._pad_to:
            inputs = {name: _pad(value, self._pad_to) for name, value in inputs.items()}
            targets = {name: _pad(value, self._pad_to) for name, value in targets.items()}
            weight = _pad(weight, self._pad_to)
        # By target, as Keras expects them; a batch without targets has one weight array.
        return inputs, targets, dict.fromkeys(self._targets or ("weight",), weight)


_Found: TypeAlias = tuple[Picks, Faults]
"""Rows of a slice, and errors by their number among these."""


class _Slice:
    """Result of the work on a slice of a batch.

    Attributes:
        picks: Rows that are in the arrays.
        prepared: Rows that were read, and the errors of rows that could not be prepared, by a cache or here.
        refused: Rows that a transform refused, each with its error, in the order in which they were found.
        error: Error that ended the work on the slice, or None.
        is_read: Whether its rows could be read, so that the error comes from a transform.
        is_whole: Whether all its rows were transformed or refused.
    """

    __slots__ = ("error", "is_read", "is_whole", "picks", "prepared", "refused")

    def __init__(self, picks: Picks) -> None:
        self.picks = picks
        self.prepared: _Found = (picks, {})
        self.refused: list[tuple[Picks, FieldError]] = []
        self.error: Exception | None = None
        self.is_read = False
        self.is_whole = True


class _EnoughFaults(Exception):  # noqa: N818 - not an error: it ends the work on a slice
    """A slice has more faults than its batch may have."""


class BatchJob(Generic[_K]):
    """The making of one batch; its parts are slices of its rows, of nearly equal size."""

    def __init__(self, maker: Maker[_K], ticket: _K) -> None:
        self._maker = maker
        self._ticket = ticket
        self._picks = maker.source.pick(ticket)
        num_rows = len(self._picks.rows)
        self.num_parts = num_parts = max(1, -(-num_rows // maker.slice_rows))
        self._bounds = [part * num_rows // num_parts for part in range(num_parts + 1)]
        self._builder = maker.pipeline.begin(num_rows, num_parts)
        rows = maker.source.native_rows(self._picks)
        self.native = None if rows is None else self._builder.begin_native(rows, num_parts)
        self._read_taken = None if rows is None else rows.read
        self.is_long_to_finish = self.native is not None and self.native.has_pieces  # which are joined
        self._slices: list[_Slice | None] = [None] * num_parts  # None: made by the core, or not yet

    def run(self, part: int) -> None:
        """Read and transform the rows of a slice."""
        begin = middle = time.perf_counter()
        first, stop = self._bounds[part : part + 2]
        whole = self.num_parts == 1
        made = _Slice(self._picks if whole else cut_picks(self._picks, slice(first, stop)))
        self._slices[part] = made
        try:
            columns, made.picks, faults = self._fetch(made.picks, first, stop)
            middle = time.perf_counter()
            made.is_read = True
            self._transform(part, made, columns, faults)
        except _EnoughFaults:
            pass
        except Exception as error:
            made.error = error
        self._maker.meter.made(middle - begin, time.perf_counter() - middle)

    def _fetch(self, picks: Picks, first: int, stop: int) -> FetchedRows:
        """Return the columns of the rows of a slice, without rows that cannot be read."""
        columns = None if self._read_taken is None else self._read_taken(first, stop)
        if columns is not None:
            return FetchedRows(columns, picks, {})
        return self._maker.source.fetch(self._ticket, picks)

    def _transform(self, part: int, made: _Slice, columns: CodedColumns, faults: Faults) -> None:
        """Write the arrays of the rows of a slice without those that a transform rejects."""
        first = self._bounds[part]
        whole = made.picks
        made.prepared = (whole, faults)
        rows, columns = _leave_out(made, columns, faults)
        draws = self._maker.draws(made.picks, self._ticket)
        columns, more = self._builder.prepare(first, columns, draws)
        # How much a cache prepares depends on the threads; the first error of a batch must not.
        added = {at if rows is None else int(rows[at]): error for at, error in more.items()}
        made.prepared = (whole, {**faults, **added})
        self._check_faults(made)
        if more:
            _, columns = _leave_out(made, columns, more)
            draws = self._maker.draws(made.picks, self._ticket)
        while True:
            try:
                self._builder.fill(part, first, columns, len(made.picks.rows), draws)
            except FieldError as error:
                if not _is_of_row(error, made.picks):
                    raise
                made.refused.append((made.picks, error))
                self._check_faults(made)
                _, columns = _leave_out(made, columns, {error.record: error})  # type: ignore[dict-item]
                draws = self._maker.draws(made.picks, self._ticket)
            else:
                return

    def _check_faults(self, made: _Slice) -> None:
        """End the work on a slice that has more faults than its batch may have."""
        if not self._maker.source.tolerates(len(made.prepared[1]) + len(made.refused)):
            made.is_whole = False  # the batch is lost: the faults that were found say why
            raise _EnoughFaults

    def finish(self) -> tuple[MadeRows[_K], int]:
        """Return the batch, and the size of its arrays in bytes."""
        if self.native is not None:
            self._maker.meter.made(self.native.read_seconds, self.native.transform_seconds)
            if not any(self._slices):
                return self._make_batch(self._picks, len(self._picks.rows))
        slices = [made or self._describe_native(part) for part, made in enumerate(self._slices)]
        try:
            return self._finish_slices(slices)
        finally:
            # The traceback of an error holds its slice: a ring, which only the garbage collector would undo.
            for each in slices:
                each.error = None
                each.refused.clear()

    def _finish_slices(self, slices: Sequence[_Slice]) -> tuple[MadeRows[_K], int]:
        self._raise_first(slices, is_read=False)
        num_rows = sum(len(each.prepared[0].rows) for each in slices)
        self._refuse([each.prepared for each in slices], num_rows)
        self._raise_first(slices, is_read=True)
        self._refuse([_join_refused(each) for each in slices], num_rows)
        if not all(each.is_whole for each in slices):
            raise RuntimeError("a batch with more faults than it may have was not refused")
        return self._make_batch(join_picks([each.picks for each in slices]), num_rows)

    def _describe_native(self, part: int) -> _Slice:
        """Return the result of a slice that the core made: all its rows are in the arrays."""
        made = _Slice(cut_picks(self._picks, slice(*self._bounds[part : part + 2])))
        made.is_read = True
        return made

    def _make_batch(self, picks: Picks, num_rows: int) -> tuple[MadeRows[_K], int]:
        parts, picks = self._finish_rows(picks, num_rows)
        batch = self._maker.assemble(parts, len(picks.rows))
        return MadeRows(self._ticket, batch, len(picks.rows), picks.rows), _count_bytes(batch)

    def _finish_rows(self, picks: Picks, num_rows: int) -> tuple[tuple[Arrays, Arrays, Arrays], Picks]:
        """Return the arrays of the batch without the rows that a function over whole batches rejects."""
        begin = time.perf_counter()
        chosen: NDArray[np.int64] | None = None
        whole = picks
        while True:
            try:
                parts = self._builder.finish(self._maker.draws(picks, self._ticket), chosen)
            except FieldError as error:
                if not _is_of_row(error, picks):
                    raise self._name(error, picks) from error.__cause__
                self._call_refuse(picks, {error.record: error}, num_rows)  # type: ignore[dict-item]
                rest = np.arange(len(whole.rows), dtype=np.int64) if chosen is None else chosen
                chosen = np.delete(rest, error.record)  # type: ignore[arg-type]
                picks = cut_picks(whole, chosen)
            except Exception as error:
                raise self._name(error, picks) from error.__cause__
            else:
                self._maker.meter.finished(time.perf_counter() - begin)
                return parts, picks

    def _raise_first(self, slices: Sequence[_Slice], *, is_read: bool) -> None:
        """Raise the error of the first slice that has one: of reading, or of transforms."""
        for each in slices:
            if each.error is not None and each.is_read == is_read:
                error, each.error = each.error, None
                raise self._name(error, each.picks if is_read else None) from error.__cause__

    def _refuse(self, found: Sequence[_Found], num_rows: int) -> None:
        """Count the rows of all slices that do not fit, or raise an error, depending on the policy."""
        if any(faults for _, faults in found):
            faults: dict[int, FieldError] = {}
            first = 0
            for picks, of_slice in found:
                faults |= {first + at: of_slice[at] for at in sorted(of_slice)}
                first += len(picks.rows)
            self._call_refuse(join_picks([picks for picks, _ in found]), faults, num_rows)

    def _call_refuse(self, picks: Picks, faults: Faults, num_rows: int) -> None:
        try:
            self._maker.source.refuse(self._ticket, picks, faults, num_rows)
        except Exception as error:
            raise self._name(error, picks) from error.__cause__

    def _name(self, error: Exception, picks: Picks | None) -> Exception:
        return self._maker.source.name_error(error, self._ticket, picks, self._picks)


def _leave_out(
    made: _Slice, columns: CodedColumns, faults: Faults
) -> tuple[NDArray[np.int64] | None, CodedColumns]:
    """Remove rows from a slice; return those that are left, by number (None: all), and their columns."""
    if not faults:
        return None, columns
    rest = np.delete(np.arange(len(made.picks.rows), dtype=np.int64), sorted(faults))
    made.picks = cut_picks(made.picks, rest)
    return rest, take_rows(columns, rest)


def _join_refused(made: _Slice) -> _Found:
    """Return the rows that a transform refused one after the other, by their numbers before the first."""
    if not made.refused:
        return made.picks, {}
    picks = made.refused[0][0]
    rows = np.arange(len(picks.rows))
    faults: dict[int, FieldError] = {}
    for _, error in made.refused:
        at = int(error.record)  # type: ignore[arg-type]  # errors without a record are raised
        faults[int(rows[at])] = error
        rows = np.delete(rows, at)
    return picks, faults


def _is_of_row(error: FieldError, picks: Picks) -> bool:
    """Return whether an error names a row by its number, and not yet by its file."""
    return error.path is None and error.record is not None and 0 <= error.record < len(picks.rows)


class ConvertedJob:
    """The making of a batch that is converted at the end, by the thread that finishes it."""

    def __init__(self, maker: Maker[Ticket], convert: Converter, ticket: Ticket) -> None:
        job = maker.begin(ticket)
        self.num_parts = job.num_parts
        self.native = job.native
        self.is_long_to_finish = True
        self.run = job.run
        self._finish = job.finish
        self._convert = convert

    def finish(self) -> tuple[MadeBatch, int]:
        """Return the converted batch, and the size of its arrays in bytes."""
        made, num_bytes = self._finish()
        return made._replace(batch=self._convert(made)), num_bytes


def record_keys(picks: Picks) -> NDArray[np.int64]:
    """Return the key of each record for random draws, made of its row, split and turn."""
    keys = picks.rows
    if picks.sources is not None:
        keys = keys | (picks.sources.astype(np.int64) << 40)
    if picks.turns is not None:
        keys = keys | ((picks.turns & 0x7FFF) << 48)
    return keys


def _pad(value: Any, count: int) -> Any:
    """Return an array, or a column, with empty rows after its own, `count` in all."""
    return pad_array(value, count) if isinstance(value, np.ndarray) else value.pad(count)


def _count_bytes(batch: Batch) -> int:
    total = 0
    for part in batch:
        for value in part.values():
            if isinstance(value, np.ndarray):
                total += value.nbytes
            else:  # the memory in use, including gaps between the strings of a column
                total += sum(array.nbytes for array in value.arrays())
    return max(1, total)
