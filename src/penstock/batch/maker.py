"""One batch from its ticket: records, columns, arrays.

In: a ticket. Out: the arrays that a consumer gets. Any number of threads may make batches at once.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.batch.batch_plan import BatchPlan, Ticket, cut_picks
from penstock.batch.stats import Meter
from penstock.batch.supply import Supplied, Supply
from penstock.columns import Bytes, CodedColumns, Dictionary, Ragged
from penstock.decode.gather import take_columns
from penstock.errors import FieldError, PenstockError
from penstock.read.order import Picks
from penstock.schema.schema import Schema
from penstock.transform.assembly import Faults
from penstock.transform.draws import Draws
from penstock.transform.output import Output

Arrays: TypeAlias = dict[str, Any]
Batch: TypeAlias = tuple[Arrays, Arrays] | tuple[Arrays, Arrays, Arrays]

_E = TypeVar("_E", bound=Exception)

# So many records can hardly all be bad by chance.
_MANY_ROWS = 8


class Transforming(Protocol):
    """What a loader needs of a pipeline."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields that it reads."""

    @property
    def inputs(self) -> dict[str, Output]:
        """What the inputs will be."""

    @property
    def targets(self) -> dict[str, Output]:
        """What the targets will be."""

    @property
    def weights(self) -> dict[str, Output]:
        """What the weights will be."""

    def dictionaries(self) -> dict[str, _native.Vocabulary]:
        """Return the tables against which the core codes strings while it decodes."""

    def fingerprint(self) -> str:
        """Return what tells this pipeline from others."""

    def check_schema(self, schema: Schema) -> None:
        """Refuse data whose fields are not those that it takes."""

    @property
    def augments(self) -> bool:
        """Whether training batches differ from others."""

    @property
    def prepares(self) -> bool:
        """Whether `prepare` does anything."""

    def prepare(self, columns: CodedColumns, draws: Draws | None) -> tuple[CodedColumns, Faults]:
        """Do the dear part of `apply`; return the columns, and what is wrong with rows."""

    def prepare_to_keep(
        self, columns: CodedColumns, *, augments: bool, room_bytes: int
    ) -> tuple[CodedColumns, Faults]:
        """Do of it what is the same in every epoch."""

    def apply(
        self, columns: CodedColumns, num_rows: int, draws: Draws | None
    ) -> tuple[Arrays, Arrays, Arrays]:
        """Return inputs, targets and weights of some records."""


class MadeBatch(NamedTuple):
    """A batch that is ready.

    Attributes:
        ticket: Which one it is.
        batch: What the consumer gets.
        num_records: How many records are in it, without padding.
    """

    ticket: Ticket
    batch: Batch
    num_records: int


class Maker:
    """Makes batches.

    Args:
        plan: Which records each batch holds.
        supply: Gets their columns.
        pipeline: Turns them into arrays.
        seed: Of the pipeline's random draws.
        pads: Whether a batch that is not full is padded with records of weight 0.
        augments: Whether the batches are for training.
        meter: Is told what each part takes.
    """

    def __init__(
        self,
        plan: BatchPlan,
        supply: Supply,
        pipeline: Transforming,
        seed: int,
        *,
        pads: bool,
        augments: bool,
        meter: Meter,
    ) -> None:
        self._plan = plan
        self._supply = supply
        self._pipeline = pipeline
        self._seed = seed
        self._slots = plan.slots if pads else None
        self._augments = augments
        self._meter = meter
        self.has_weights = bool(pipeline.weights) or pads
        self._targets = tuple(pipeline.targets)

    def make(self, ticket: Ticket) -> tuple[MadeBatch, int]:
        """Return a batch, and how many bytes its arrays have."""
        begin = time.perf_counter()
        picks = self._plan.picks(ticket)
        self._announce(ticket)
        try:
            supplied = self._supply.columns(picks)
            middle = time.perf_counter()
            if supplied.kept is not None:
                picks = cut_picks(picks, supplied.kept)
            parts, picks = self._transform(supplied, picks, ticket.epoch)
        except Exception as error:
            named = self._name_record(error, picks)
            if not isinstance(named, PenstockError) or named.path is None:
                named.add_note(f"in batch {ticket.step} of epoch {ticket.epoch}: {self._name_records(picks)}")
            if named is error:
                raise
            raise named from error.__cause__
        batch = self._assemble(parts, len(picks.rows))
        self._meter.made(middle - begin, time.perf_counter() - middle)
        return MadeBatch(ticket, batch, len(picks.rows)), _count_bytes(batch)

    def _transform(
        self, supplied: Supplied, picks: Picks, epoch: int
    ) -> tuple[tuple[Arrays, Arrays, Arrays], Picks]:
        """Return the arrays of some records but those that a transform refuses, and which are in them."""
        num_rows = len(picks.rows)
        columns, picks = self._leave_out(supplied.columns, picks, supplied.faults, num_rows)
        columns, faults = self._pipeline.prepare(columns, self._draws(picks, epoch))
        columns, picks = self._leave_out(columns, picks, faults, num_rows)
        while True:
            try:
                return self._pipeline.apply(columns, len(picks.rows), self._draws(picks, epoch)), picks
            except FieldError as error:
                if error.path is not None or error.record is None or not 0 <= error.record < len(picks.rows):
                    raise
                columns, picks = self._leave_out(columns, picks, {error.record: error}, num_rows)

    def _draws(self, picks: Picks, epoch: int) -> Draws:
        return Draws(self._seed, epoch, record_keys(picks), augments=self._augments)

    def _leave_out(
        self, columns: CodedColumns, picks: Picks, faults: Faults, num_rows: int
    ) -> tuple[CodedColumns, Picks]:
        """Count bad rows and return the others, or raise the first one's error: as the policy says."""
        if not faults:
            return columns, picks
        for at in sorted(faults):
            source = self._supply.sources[0 if picks.sources is None else int(picks.sources[at])]
            row = int(picks.rows[at])
            error = source.locate(row, faults[at])
            source.losses.add(row, error)
        if len(faults) == len(picks.rows) and num_rows >= _MANY_ROWS:
            # No record of many: what is wrong is the pipeline.
            raise error from faults[at].__cause__
        rest = np.delete(np.arange(len(picks.rows), dtype=np.int64), sorted(faults))
        return take_columns(columns, rest), cut_picks(picks, rest)

    def _announce(self, ticket: Ticket) -> None:
        """Tell the kernel what is read soon, where that is not in memory anyway."""
        if self._plan.reads_stretches or self._supply.is_slow:
            ahead = self._plan.ahead(ticket)
            if ahead is not None:
                # What is wrong there shows in its own batch.
                with suppress(PenstockError):
                    self._supply.announce(ahead)

    def _assemble(self, parts: tuple[Arrays, Arrays, Arrays], num_rows: int) -> Batch:
        inputs, targets, weights = parts
        if not self.has_weights:
            return inputs, targets
        weight: NDArray[Any] | None = next(iter(weights.values()), None)
        if weight is None or weight.dtype != np.float32:  # stored ones may be of any type
            stored, weight = weight, _native.empty((num_rows,), "float32")
            weight[:] = 1 if stored is None else stored
        if self._slots is not None and num_rows < self._slots:
            inputs = {name: _pad(value, self._slots) for name, value in inputs.items()}
            targets = {name: _pad(value, self._slots) for name, value in targets.items()}
            weight = _pad(weight, self._slots)
        # By target, as Keras wants them; a batch without targets has but one weight.
        return inputs, targets, dict.fromkeys(self._targets or ("weight",), weight)

    def _name_record(self, error: _E, picks: Picks) -> _E:
        """Say which record of which file it was, where a transform knows only the row of the batch."""
        if not isinstance(error, FieldError) or error.path is not None or error.record is None:
            return error
        if not 0 <= error.record < len(picks.rows):
            return error
        number = 0 if picks.sources is None else int(picks.sources[error.record])
        return self._supply.sources[number].locate(int(picks.rows[error.record]), error)

    def _name_records(self, picks: Picks) -> str:
        if not len(picks.rows):
            return "no records"
        path, record = self._locate(picks, 0)
        return f"{len(picks.rows)} records, the first of them record {record} of {path}"

    def _locate(self, picks: Picks, at: int) -> tuple[str, int]:
        number = 0 if picks.sources is None else int(picks.sources[at])
        shard, record = self._supply.sources[number].scatter.rows.locate(int(picks.rows[at]))
        return str(shard.path), record


def record_keys(picks: Picks) -> NDArray[np.int64]:
    """Return what names each record in random draws: its row, its split, and which time it comes."""
    keys = picks.rows
    if picks.sources is not None:
        keys = keys | (picks.sources.astype(np.int64) << 40)
    if picks.turns is not None:
        keys = keys | ((picks.turns & 0x7FFF) << 48)
    return keys


def _pad(value: Any, count: int) -> Any:
    """Return an array, or lists, with empty rows behind, `count` in all."""
    if not isinstance(value, np.ndarray):
        present = None if value.present is None else _pad(value.present, count)
    if isinstance(value, Ragged):
        offsets = np.full(count + 1, value.offsets[-1], np.int64)
        offsets[: len(value.offsets)] = value.offsets
        return Ragged(value.values, offsets, present)
    if isinstance(value, Bytes):
        starts, stops = np.zeros(count, np.int64), np.zeros(count, np.int64)
        starts[: len(value)], stops[: len(value)] = value.starts, value.stops
        return Bytes(value.arena, starts, stops, present)
    if isinstance(value, Dictionary):
        codes = np.full(count, -1, np.int32)
        codes[: len(value)] = value.codes
        return Dictionary(codes, value.values, present)
    if value.dtype.char in "SUO":
        out = np.zeros((count, *value.shape[1:]), value.dtype)
    else:
        out = _native.empty((count, *value.shape[1:]), value.dtype.name)
        out[len(value) :] = 0
    out[: len(value)] = value
    return out


def _count_bytes(batch: Batch) -> int:
    total = 0
    for part in batch:
        for value in part.values():
            total += _value_bytes(value)
    return max(1, total)


def _value_bytes(value: Any) -> int:
    if isinstance(value, Bytes):
        return value.arena.nbytes + value.starts.nbytes + value.stops.nbytes
    if isinstance(value, Ragged):
        return value.offsets.nbytes + _value_bytes(value.values)
    if isinstance(value, Dictionary):
        return value.codes.nbytes
    return int(value.nbytes)
