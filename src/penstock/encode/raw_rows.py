"""Blocks of raw rows that become columns of fields.

In: a block and the plan. Out: its encoded columns and its faults, and the error for each fault with file, row
and line.
"""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import numpy as np

from penstock.columns import Bytes, Column
from penstock.encode.column import encode_column, encode_columns
from penstock.encode.file_check import FileThreads
from penstock.encode.plain import CellFault
from penstock.errors import CellError, PenstockError
from penstock.foundation.wording import show
from penstock.plan.plan import ColumnPlan
from penstock.settings.groups import StoredImages, TextFiles
from penstock.source.block import Block, RawColumn
from penstock.source.row_location import locate_row
from penstock.storage.deferred import Deferred

_MAX_CHARS: Final = 1000
_MAX_BYTES: Final = 100


@dataclass
class EncodedRows:
    """The encoded columns of a block.

    Attributes:
        columns: Columns of the schema, by field name.
        split_columns: Columns that are used only for splitting, and are not written.
        splits: Split of each row, or of all rows, if the source declares it; otherwise None.
        faults: Cells that do not fit; rows are counted from the start of the block.
    """

    columns: dict[str, Column | Deferred]
    split_columns: dict[str, Column | Deferred] = field(default_factory=dict)
    splits: Bytes | str | None = None
    faults: list[CellFault] = field(default_factory=list)


class RowBlock(Protocol):
    """A block of rows to encode and write, from raw or stored data."""

    @property
    def first_row(self) -> int:
        """Index of the first row in the source."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""

    @property
    def num_bytes(self) -> int:
        """Number of bytes of the source that the block was read from."""

    @property
    def path(self) -> str | None:
        """Path of the source file, or None if there is none."""

    def encode(self, threads: FileThreads | None = None) -> EncodedRows:
        """Return the rows as columns; any thread can call this.

        `threads`: threads that help to read the files that rows name.
        """

    def refuse(self, fault: CellFault) -> PenstockError:
        """Return the error for a cell that does not fit."""

    def show(self, row: int) -> dict[str, Any]:
        """Return a row of the block as a JSON value."""


@dataclass(frozen=True)
class RawPlan:
    """Plan for encoding the columns of a source.

    Attributes:
        columns: Plans of the columns that are written.
        split_columns: Plans of the columns that are used only for splitting.
        split_by: Plan of the column that names the splits, or None.
        encode: Options of encoding.
        source: Options of reading the source.
    """

    columns: tuple[ColumnPlan, ...]
    split_columns: tuple[ColumnPlan, ...]
    split_by: ColumnPlan | None
    encode: StoredImages
    source: TextFiles


@dataclass(frozen=True)
class RawRows:
    """A block of raw rows, with the plan for encoding it."""

    block: Block
    plan: RawPlan

    @property
    def first_row(self) -> int:
        """Index of the first row in the source."""
        return self.block.first_row

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self.block.num_rows

    @property
    def num_bytes(self) -> int:
        """Number of bytes of the source that the block was read from."""
        return self.block.num_bytes

    @property
    def path(self) -> str | None:
        """Path of the source file, or None if there is none."""
        return self.block.path

    def encode(self, threads: FileThreads | None = None) -> EncodedRows:
        """Return the rows as columns."""
        columns, faults = encode_columns(self.plan.columns, self.block, self.plan.encode, threads)
        split_columns, split_faults = encode_columns(self.plan.split_columns, self.block, self.plan.encode)
        rows = EncodedRows(columns, split_columns, faults=faults + split_faults)
        if self.plan.split_by is not None:
            raw = self.block.columns[self.plan.split_by.column]
            column, faults = encode_column(self.plan.split_by, raw, self.block, self.plan.encode)
            rows.faults += [replace(fault, expected="the name of a split", advice="") for fault in faults]
            rows.splits = Bytes.of(column)
        return rows

    def refuse(self, fault: CellFault) -> CellError:
        """Return the error for a cell that does not fit."""
        row, line = locate_row(self.block, fault.row, self.plan.source)
        keys = None if self.block.key is None else self.block.columns.get(self.block.key)
        of_sample = "" if keys is None else f" of sample {show(_value(keys, fault.row))}"
        return CellError(
            f"column {show(fault.column)}{of_sample}",
            path=self.block.path,
            row=row,
            line=line,
            field=fault.column,
            expected=fault.expected,
            got=fault.got,
            advice=fault.advice,
        )

    def show(self, row: int) -> dict[str, Any]:
        """Return a row as a JSON value, with long values shortened."""
        return show_row(self.block, row)


def show_row(block: Block, row: int) -> dict[str, Any]:
    """Return a row of a block as a JSON value, with long values shortened."""
    return {name: _to_json(_value(raw, row)) for name, raw in block.columns.items()}


def _value(raw: RawColumn, row: int) -> Any:
    value = raw[row]
    return value.as_py() if hasattr(value, "as_py") else value


def _to_json(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return {str(key): _to_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(each) for each in value[:_MAX_BYTES]]
    if isinstance(value, np.ndarray) and value.size <= _MAX_BYTES:
        return _to_json(value.tolist())
    return _cell_to_json(value)


def _cell_to_json(value: Any) -> Any:
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        short = {"base64": base64.b64encode(data).decode("ascii")} if len(data) <= _MAX_BYTES else {}
        return {"bytes": len(data), **short}
    text = f"array {value.shape} {value.dtype}" if isinstance(value, np.ndarray) else str(value)
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}…"
