"""Making one batch: rows from a source, turned into arrays by a pipeline.

In: a ticket. Out: the arrays that a consumer gets. Several threads may make batches at the same time.
"""

from __future__ import annotations

import time
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.batch.batch_plan import Ticket, cut_picks
from penstock.batch.stats import LoaderMeter
from penstock.batch.supply import RowSource
from penstock.columns import CodedColumns, pad_array, take_rows
from penstock.errors import FieldError
from penstock.read.order import Picks
from penstock.schema.schema import Schema
from penstock.transform.assembly import Faults
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

    def prepare(self, columns: CodedColumns, draws: Draws | None) -> tuple[CodedColumns, Faults]:
        """Do the expensive part of `apply`; return the columns, and errors by row number."""

    def apply(
        self, columns: CodedColumns, num_rows: int, draws: Draws | None
    ) -> tuple[Arrays, Arrays, Arrays]:
        """Return inputs, targets and weights of some records."""


class Transforming(ArrayMaker, Protocol):
    """The part of a pipeline that a loader uses."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields that the pipeline reads."""

    @property
    def inputs(self) -> dict[str, Output]:
        """Specifications of the inputs by name."""

    def dictionaries(self) -> dict[str, _native.Vocabulary]:
        """Return the vocabularies with which the core codes strings while it decodes."""

    def fingerprint(self) -> str:
        """Return the fingerprint of the pipeline."""

    def check_schema(self, schema: Schema) -> None:
        """Raise an error if the fields of the data differ from those of the pipeline."""

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

    Attributes:
        ticket: Ticket of the batch.
        batch: Arrays for the consumer.
        num_records: Number of records, without padding.
        rows: Row numbers in the source, in order.
    """

    ticket: _K
    batch: Batch
    num_records: int
    rows: NDArray[np.int64]


MadeBatch: TypeAlias = MadeRows[Ticket]


class Maker(Generic[_K]):
    """Makes batches.

    Args:
        source: Source of the rows of each batch, with the policy for rows that do not fit.
        pipeline: Pipeline that turns columns into arrays.
        seed: Seed of the pipeline's random draws; None for no draws.
        meter: Meter that sums the time of each part.
        augments: Whether the batches are for training.
        pads: Whether a batch that is not full is padded with records of weight 0.
        slots: Number of records that it is padded to.
    """

    def __init__(
        self,
        source: RowSource[_K],
        pipeline: ArrayMaker,
        seed: int | None,
        meter: LoaderMeter,
        *,
        augments: bool = False,
        pads: bool = False,
        slots: int | None = None,
    ) -> None:
        self._source = source
        self._pipeline = pipeline
        self._seed = seed
        self._slots = slots if pads else None
        self._augments = augments
        self._meter = meter
        self.has_weights = bool(pipeline.weights) or pads
        self._targets = tuple(pipeline.targets)

    def make(self, ticket: _K) -> tuple[MadeRows[_K], int]:
        """Return a batch, and the size of its arrays in bytes."""
        begin = time.perf_counter()
        picks: Picks | None = None
        try:
            columns, picks, faults = self._source.fetch(ticket)
            middle = time.perf_counter()
            parts, picks = self._transform(columns, picks, faults, ticket)
        except Exception as error:
            named = self._source.name_error(error, ticket, picks)
            if named is error:
                raise
            raise named from error.__cause__
        batch = self._assemble(parts, len(picks.rows))
        self._meter.made(middle - begin, time.perf_counter() - middle)
        return MadeRows(ticket, batch, len(picks.rows), picks.rows), _count_bytes(batch)

    def _transform(
        self, columns: CodedColumns, picks: Picks, faults: Faults, ticket: _K
    ) -> tuple[tuple[Arrays, Arrays, Arrays], Picks]:
        """Return the arrays of records without those that a transform rejects, and the remaining picks."""
        num_rows = len(picks.rows)

        def leave_out(faults: Faults) -> None:
            nonlocal columns, picks
            if faults:
                self._source.refuse(ticket, picks, faults, num_rows)
                rest = np.delete(np.arange(len(picks.rows), dtype=np.int64), sorted(faults))
                columns, picks = take_rows(columns, rest), cut_picks(picks, rest)

        leave_out(faults)
        columns, faults = self._pipeline.prepare(columns, self._draws(picks, ticket))
        leave_out(faults)
        while True:
            try:
                return self._pipeline.apply(columns, len(picks.rows), self._draws(picks, ticket)), picks
            except FieldError as error:
                if error.path is not None or error.record is None or not 0 <= error.record < len(picks.rows):
                    raise
                leave_out({error.record: error})

    def _draws(self, picks: Picks, ticket: _K) -> Draws | None:
        if self._seed is None:
            return None
        return Draws(self._seed, ticket.epoch, record_keys(picks), augments=self._augments)

    def _assemble(self, parts: tuple[Arrays, Arrays, Arrays], num_rows: int) -> Batch:
        inputs, targets, weights = parts
        if not self.has_weights:
            return inputs, targets
        weight: NDArray[Any] | None = next(iter(weights.values()), None)
        if weight is None or weight.dtype != np.float32:  # stored weights may have any type
            stored, weight = weight, _native.empty((num_rows,), "float32")
            weight[:] = 1 if stored is None else stored
        if self._slots is not None and num_rows < self._slots:
            inputs = {name: _pad(value, self._slots) for name, value in inputs.items()}
            targets = {name: _pad(value, self._slots) for name, value in targets.items()}
            weight = _pad(weight, self._slots)
        # By target, as Keras expects them; a batch without targets has one weight array.
        return inputs, targets, dict.fromkeys(self._targets or ("weight",), weight)


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
            total += _value_bytes(value)
    return max(1, total)


def _value_bytes(value: Any) -> int:
    # The memory in use, including gaps between the strings of a column.
    return sum(array.nbytes for array in ([value] if isinstance(value, np.ndarray) else value.arrays()))
