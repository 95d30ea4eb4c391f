"""The records of a split as the columns that a pipeline takes, without those of its targets.

In: a split, and the inputs of a pipeline. Out: pieces of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.columns import CodedColumn, Columns
from penstock.dataset import Split
from penstock.decode.arrow import arrow_schema, make_batch
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.decode.reader import read_columns
from penstock.errors import FieldError, PenstockError
from penstock.foundation.wording import show, unknown_name
from penstock.jobs.predict.feeding import find_absent, make_absent
from penstock.jobs.predict.kept_columns import Keeping
from penstock.jobs.predict.options import PredictOptions
from penstock.jobs.predict.pieces import Piece, Refusal
from penstock.read.rows import Rows
from penstock.schema.schema import Schema
from penstock.transform.pipeline import Pipeline

_BLOCK_ROWS: Final = 8192
_BLOCK_BYTES: Final = 16 << 20


class StoredRows:
    """The records of a split on their way into a model."""

    def __init__(self, split: Split, inputs: Pipeline, options: PredictOptions) -> None:
        """Look for the fields.

        Raises:
            SchemaError: A field is not there, and may not be missing; or it is another than it was.
            UnknownNameError: A field that is to be kept is not there.
        """
        loaded = split.as_source()
        self._rows, self._any_order = loaded.rows.in_order(), loaded.rows
        self._inputs = inputs
        self._options = options
        schema, columns = split.schema, list(split.schema)
        name = f"split {split.name!r}"
        self._absent = find_absent(inputs, columns, columns, name) if len(split) else []
        there = Schema({**inputs.schema, **{each: schema[each] for each in inputs.fields if each in schema}})
        inputs.check_schema(there)
        self._keeping = self._find_kept(schema)
        fed = [each for each in inputs.fields if each in schema]
        self._schema = schema.select(dict.fromkeys([*fed, *self._keeping.fields]))
        self._plan = DecodePlan(self._schema, strict=loaded.strict)
        self._kept = schema.select(self._keeping.fields)
        self.carried = self._keeping.settle({})
        self.num_bytes: int | None = self._rows.frame_bytes(0, len(self._rows)) if len(split) else 0

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should hear about the data: nothing."""
        return ()

    @property
    def cautions(self) -> tuple[str, ...]:
        """What predictions depend on."""
        return tuple(f"no field {show(name)}: it counts as missing in all records" for name in self._absent)

    def makers(self) -> Iterator[Callable[[], Piece]]:
        """Yield what makes each piece, from the first records to the last."""
        for start, stop in self._rows.blocks(_BLOCK_ROWS, _BLOCK_BYTES):
            # Files that are read in order are read by one thread.
            yield partial(self._make, *self._read(start, stop), self._rows.frame_bytes(start, stop))

    def _make(
        self, columns: Columns, rows: NDArray[np.int64], refusals: tuple[Refusal, ...], num_bytes: int
    ) -> Piece:
        fed: dict[str, CodedColumn] = dict(columns)
        for name in self._absent:
            fed[name] = make_absent(self._inputs.schema[name], len(rows))
        carried = self._carry(columns, rows)
        return Piece(fed, rows, carried, refusals, partial(_locate, self._any_order), num_bytes)

    def _read(self, start: int, stop: int) -> tuple[Columns, NDArray[np.int64], tuple[Refusal, ...]]:
        lost = Losses("collect", stop - start)
        columns, _ = read_columns(self._rows, self._plan, lost, start, stop)
        rows = np.arange(start, stop, dtype=np.int64)
        if not len(lost):
            return columns, rows, ()
        refusals = []
        for row in range(start, stop):  # one by one: which records are bad is told by their errors alone
            alone = Losses("collect", 1)
            read_columns(self._any_order, self._plan, alone, row, row + 1)
            if len(alone):
                refusals.append(Refusal(row, partial(_give, alone.first()[1])))
        return columns, np.setdiff1d(rows, [each.row for each in refusals]), tuple(refusals)

    def _find_kept(self, schema: Schema) -> Keeping:
        keeping = Keeping()
        if schema.id is None:
            keeping.add_row()
        for name in dict.fromkeys([*([] if schema.id is None else [schema.id]), *self._options.keep]):
            if name not in schema:
                raise unknown_name(name, schema)
            keeping.add_field(name, name, schema[name])
        return keeping

    def _carry(self, columns: Columns, rows: NDArray[np.int64]) -> pa.RecordBatch:
        batch = make_batch({name: columns[name] for name in self._kept}, self._kept, arrow_schema(self._kept))
        arrays: list[Any] = [
            pa.array(rows) if each.is_row else batch.column(name)
            for name, each in self._keeping.entries.items()
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.carried)


def _give(error: PenstockError) -> PenstockError:
    return error


def _locate(rows: Rows, row: int, error: FieldError) -> PenstockError:
    shard, record = rows.locate(row)
    facts = {name: getattr(error, name) for name in ("field", "expected", "got", "advice")}
    offset = int(shard.index.offsets[record])
    return type(error)(error.what, path=str(shard.path), record=record, offset=offset, **facts)
