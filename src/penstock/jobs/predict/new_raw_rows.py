"""New raw rows as input columns of a pipeline, encoded as a conversion would encode them.

In: raw data of any kind, and what a prediction needs from it. Out: blocks of rows, as a row source of the
batch engine.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.columns import CodedColumn, Columns, take_rows
from penstock.decode.arrow import arrow_schema, make_batch
from penstock.encode.column import encode_column
from penstock.encode.plain import CellFault, Faults
from penstock.errors import CellError, FieldError, SourceError
from penstock.foundation.wording import show
from penstock.jobs.predict.data_columns import as_decoded, as_type, make_absent, plain_array
from penstock.jobs.predict.new_rows import ADVICE, DataBlock, Refusal
from penstock.jobs.predict.raw_layout import HEAVY, IMAGE, RawLayout, Wanted
from penstock.schema.schema import Schema
from penstock.settings.groups import TextFiles
from penstock.source.block import Block, RawColumn, Source
from penstock.source.column import as_objects
from penstock.source.row_location import locate_row

_NO_ROWS: Final = ("at least one row", "at least one sample")


@dataclass(frozen=True)
class RequestRules:
    """How the values of rows and tables in memory are read, which may come from clients of the program.

    Objects such as `{"b64": "…"}` are bytes in base64, as in requests of TensorFlow Serving.

    Attributes:
        read_files: Whether texts in columns of images and bytes are paths of files to read.
    """

    read_files: bool


def decode_base64(raw: RawColumn, column: str) -> tuple[RawColumn, list[CellFault]]:
    """Return a column with objects such as `{"b64": "…"}` as bytes, and the cells that are not base64."""
    is_struct = isinstance(raw, pa.StructArray) and "b64" in raw.type.names
    if not is_struct and not (isinstance(raw, np.ndarray) and raw.dtype.kind == "O" and raw.ndim == 1):
        return raw, []
    faults = Faults(column)
    cells: list[Any] = raw.to_pylist() if isinstance(raw, pa.Array) else list(raw)
    for row, cell in enumerate(cells):
        if not isinstance(cell, Mapping) or cell.get("b64") is None:
            continue
        try:
            cells[row] = base64.b64decode(cell["b64"], validate=True)
        except (ValueError, TypeError):
            faults.add(row, "base64 in 'b64'", show(cell["b64"]))
            cells[row] = None
    return as_objects(cells), faults.in_order()


class NewRawRows:
    """Raw data to predict on; see `NewRows` for its attributes."""

    def __init__(
        self,
        source: Source,
        wanted: Wanted,
        reading: TextFiles,
        block_rows: int,
        rules: RequestRules | None = None,
    ) -> None:
        """Read the first block.

        `block_rows`: maximum number of rows that are read at once if their values are large. `rules`: how
        values are read that may come from clients of the program; None if they do not.
        """
        self._source = source
        self._inputs = wanted.inputs
        self._encoding = wanted.recipe.format
        self._reading = reading
        self._is_images = wanted.is_images
        self._rules = rules
        self._blocks: Iterator[Block] = iter(())
        # From several threads, as one operation each.
        self._num_rows: list[int] = []
        self._filled: set[str] = set()
        first = self._begin()
        self._layout = RawLayout(source, first, wanted)
        self._most_rows = block_rows if self._layout.is_heavy else None
        self.kept = self._layout.keeping.find_types({} if first is None else first.columns)
        self.num_bytes = source.num_bytes

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the data that do not change predictions."""
        cautions = self.cautions
        return (*(note for note in self._source.notes if note not in cautions), *self._layout.notes)

    @property
    def absent(self) -> tuple[str, ...]:
        """Names of inputs that the data does not have."""
        return tuple(self._layout.absent)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Notes that may change predictions."""
        return (*getattr(self._source, "cautions", ()), *self._layout.cautions, *self._list_empty())

    def _list_empty(self) -> Iterator[str]:
        """Yield notes on inputs whose columns were empty in all rows; one row is no column."""
        if sum(self._num_rows) < 2:
            return
        for plan in self._layout.plans:
            if plan.name in self._inputs.fields and plan.name not in self._filled:
                yield f"column {show(plan.column)} is empty in all rows: it counts as missing"

    def blocks(self) -> Iterator[Callable[[], DataBlock]]:
        """Yield functions that make the blocks, in the order of the rows."""
        for block in self._blocks:
            for part in block.cut(self._most_rows or block.num_rows):
                yield partial(self._encode, part)

    def _begin(self) -> Block | None:
        """Return the first block; None if there are no rows, which is not an error here."""
        blocks = self._source.blocks()
        if self._rules is not None and not self._rules.read_files:
            blocks = (replace(block, reads_files=False) for block in blocks)
        try:
            first = next(blocks, None)
        except SourceError as error:
            if error.expected not in _NO_ROWS:
                raise
            return None
        if first is not None:
            self._blocks = chain([first], blocks)
        return first

    def _encode(self, block: Block) -> DataBlock:
        layout = self._layout
        faults: dict[int, CellFault] = {}
        encoded = {}
        for plan in layout.plans:
            raw = block.columns[plan.column]
            damaged: list[CellFault] = []
            if self._rules is not None and plan.field.type_name in HEAVY:
                raw, damaged = decode_base64(raw, plan.column)
            encoded[plan.name], found = encode_column(plan, raw, block, self._encoding)
            for fault in (*damaged, *found):
                faults.setdefault(fault.row, fault)
            present = encoded[plan.name].present
            if present is None or present.any():
                self._filled.add(plan.name)
        self._num_rows.append(block.num_rows)
        faulty = sorted(faults)
        columns: dict[str, CodedColumn] = {
            plan.name: as_decoded(plan.field, encoded[plan.name], faulty) for plan in layout.plans
        }
        rows = np.arange(block.num_rows, dtype=np.int64)
        if faulty:
            rows = np.delete(rows, faulty)
            columns = dict(take_rows(columns, rows))
        for name in layout.absent:
            columns[name] = make_absent(self._inputs.schema[name], len(rows))
        named = {IMAGE: block.columns[IMAGE]} if self._is_images else {}
        location = _RowLocation(replace(block, columns=named), self._reading, layout.columns)
        return DataBlock(
            columns,
            block.first_row + rows,
            self._keep(block, columns, rows),
            tuple(Refusal(block.first_row + row, partial(location.refuse, faults[row])) for row in faulty),
            location.locate,
            block.num_bytes,
        )

    def _keep(
        self, block: Block, columns: Mapping[str, CodedColumn], rows: NDArray[np.int64]
    ) -> pa.RecordBatch:
        arrays: list[Any] = []
        for name, kept in self._layout.keeping.entries.items():
            kind = self.kept.field(name).type
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
        return pa.RecordBatch.from_arrays(arrays, schema=self.kept)


class _RowLocation:
    """Finds the file and line of the rows of a block; if the data has only images, their paths."""

    def __init__(self, block: Block, reading: TextFiles, columns: Mapping[str, str]) -> None:
        self._block = block
        self._reading = reading
        self._columns = columns

    def refuse(self, fault: CellFault) -> CellError:
        """Return the error for a cell that is not valid."""
        # After training it is too late to declare the field otherwise, as a conversion would advise.
        advice = ADVICE if "optional=True" in fault.advice else fault.advice
        return self._name(fault.row, fault.column, fault.expected, fault.got, advice)

    def locate(self, row: int, error: FieldError) -> CellError:
        """Return the error for a row that a transform refuses."""
        column = self._columns.get(error.field or "", error.field or "")
        return self._name(row - self._block.first_row, column, error.expected, error.got, ADVICE)

    def _name(self, row: int, column: str, expected: object, got: object, advice: str) -> CellError:
        block = self._block
        number, line = locate_row(block, row, self._reading)
        path = block.path
        if IMAGE in block.columns:
            name = str(block.columns[IMAGE][row])
            path = f"{block.folder}/{name}" if block.folder and not name.startswith("/") else name
        return CellError(
            f"column {column!r}",
            path=path,
            row=number,
            line=line,
            field=column,
            expected=expected,
            got=got,
            advice=advice,
        )
