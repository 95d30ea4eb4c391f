"""New raw rows as the columns that a pipeline takes, encoded as a conversion would encode them.

In: raw data of any kind, and what is asked of it. Out: pieces of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.columns import CodedColumn, Columns, take_rows
from penstock.decode.arrow import arrow_schema, make_batch
from penstock.encode.column import encode_column
from penstock.encode.fault import CellFault
from penstock.encode.options import EncodeOptions
from penstock.errors import CellError, FieldError, SourceError
from penstock.jobs.predict.feeding import make_absent, settle_column
from penstock.jobs.predict.kept_columns import as_type, plain_array
from penstock.jobs.predict.pieces import Piece, Refusal
from penstock.jobs.predict.raw_layout import IMAGE, RawLayout, Wanted
from penstock.schema.schema import Schema
from penstock.source.block import Block, Source
from penstock.source.options import SourceOptions
from penstock.source.row_location import find_line

_NO_ROWS: Final = ("at least one row", "at least one sample")
_ADVICE: Final = "Fix the row, or leave such rows out: on_error='skip' (--on-error skip)."


class RawRows:
    """Raw data on its way into a model.

    Attributes:
        carried: The columns that go into the output as they are.
        num_bytes: How much there is to read, or None where nobody knows.
    """

    def __init__(self, source: Source, wanted: Wanted, reading: SourceOptions, piece_rows: int) -> None:
        """Look at the first block.

        Args:
            source: The data.
            wanted: What is asked of it.
            reading: How it is read, to find lines again.
            piece_rows: How many rows at most are fetched at once, where they are large.

        Raises:
            SchemaError: A column is not there, and may not be missing.
            UnknownNameError: A column that is to be kept is not there.
            SourceError: The data is not sound.
        """
        self._source = source
        self._inputs = wanted.inputs
        self._encoding = EncodeOptions(resize=wanted.recipe.resize)
        self._reading = reading
        self._is_images = wanted.is_images
        self._blocks: Iterator[Block] = iter(())
        first = self._begin()
        self._layout = RawLayout(source, first, wanted)
        self._piece_rows = piece_rows if self._layout.is_heavy else None
        self.carried = self._layout.keeping.settle({} if first is None else first.columns)
        self.num_bytes = source.num_bytes

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should hear about the data."""
        return (*self._source.notes, *self._layout.notes)

    @property
    def cautions(self) -> tuple[str, ...]:
        """What predictions depend on."""
        return self._layout.cautions

    def makers(self) -> Iterator[Callable[[], Piece]]:
        """Yield what makes each piece, from the first rows to the last."""
        for block in self._blocks:
            for piece in block.cut(self._piece_rows or block.num_rows):
                yield partial(self._encode, piece)

    def _begin(self) -> Block | None:
        """Return the first block; None where there are no rows, which is no error here."""
        blocks = self._source.blocks()
        try:
            first = next(blocks, None)
        except SourceError as error:
            if error.expected not in _NO_ROWS:
                raise
            return None
        if first is not None:
            self._blocks = chain([first], blocks)
        return first

    def _encode(self, block: Block) -> Piece:
        layout = self._layout
        faults: dict[int, CellFault] = {}
        encoded = {}
        for plan in layout.plans:
            raw = block.columns[plan.column]
            encoded[plan.name], found = encode_column(plan, raw, block, self._encoding)
            for fault in found:
                faults.setdefault(fault.row, fault)
        faulty = sorted(faults)
        columns: dict[str, CodedColumn] = {
            plan.name: settle_column(plan.field, encoded[plan.name], faulty) for plan in layout.plans
        }
        rows = np.arange(block.num_rows, dtype=np.int64)
        if faulty:
            rows = np.delete(rows, faulty)
            columns = take_rows(columns, rows)
        for name in layout.absent:
            columns[name] = make_absent(self._inputs.schema[name], len(rows))
        named = {IMAGE: block.columns[IMAGE]} if self._is_images else {}
        place = _Place(replace(block, columns=named), self._reading, layout.columns)
        return Piece(
            columns,
            block.first_row + rows,
            self._carry(block, columns, rows),
            tuple(Refusal(block.first_row + row, partial(place.refuse, faults[row])) for row in faulty),
            place.locate,
            block.num_bytes,
        )

    def _carry(
        self, block: Block, columns: Mapping[str, CodedColumn], rows: NDArray[np.int64]
    ) -> pa.RecordBatch:
        arrays: list[Any] = []
        for name, kept in self._layout.keeping.entries.items():
            kind = self.carried.field(name).type
            if kept.field is not None:
                schema = Schema({name: kept.field})
                column = cast("Columns", {name: columns[kept.source]})
                arrays.append(make_batch(column, schema, arrow_schema(schema)).column(0))
            elif kept.is_row:
                arrays.append(pa.array(block.first_row + rows, kind))
            else:
                array = plain_array(block.columns[kept.source])
                taken = array if len(rows) == block.num_rows else array.take(pa.array(rows))
                arrays.append(as_type(name, taken, kind))
        return pa.RecordBatch.from_arrays(arrays, schema=self.carried)


class _Place:
    """Where the rows of a block are, in words; of images alone, the block has their paths still."""

    def __init__(self, block: Block, reading: SourceOptions, columns: Mapping[str, str]) -> None:
        self._block = block
        self._reading = reading
        self._columns = columns

    def refuse(self, fault: CellFault) -> CellError:
        """Return the error for a cell that does not fit."""
        # To declare the field anew, as a conversion would advise, is too late once a model was trained.
        advice = _ADVICE if "optional=True" in fault.advice else fault.advice
        return self._name(fault.row, fault.column, fault.expected, fault.got, advice)

    def locate(self, row: int, error: FieldError) -> CellError:
        """Return the error for a row that a transform refuses."""
        column = self._columns.get(error.field or "", error.field or "")
        return self._name(row - self._block.first_row, column, error.expected, error.got, _ADVICE)

    def _name(self, row: int, column: str, expected: object, got: object, advice: str) -> CellError:
        block = self._block
        first = block.first_row if block.path is None else block.row_in_file
        path = block.path
        if IMAGE in block.columns:
            path = str(Path(block.folder or "") / str(block.columns[IMAGE][row]))
        return CellError(
            f"column {column!r}",
            path=path,
            row=first + row + 1,
            line=find_line(block, row, self._reading),
            field=column,
            expected=expected,
            got=got,
            advice=advice,
        )
