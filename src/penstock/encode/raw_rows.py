"""Blocks of raw data on their way into records.

In: a block and the plan. Out: its columns and what does not fit, with the place of each fault in words.
"""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

import numpy as np

from penstock.columns import Bytes, Column, Deferred
from penstock.encode.column import encode_column, encode_columns
from penstock.encode.fault import CellFault
from penstock.encode.options import EncodeOptions
from penstock.errors import CellError, PenstockError
from penstock.plan.plan import ColumnPlan
from penstock.source.block import Block, RawColumn
from penstock.source.options import SourceOptions
from penstock.source.row_location import find_line

_MOST_CHARS: Final = 1000
_MOST_BYTES: Final = 100


@dataclass
class EncodedRows:
    """The columns of a block.

    Attributes:
        columns: Those of the schema.
        sides: Those by which rows are split, and which are not written.
        splits: The split of each row, or of all, where that is told.
        faults: What does not fit; rows count from the beginning of the block.
    """

    columns: dict[str, Column | Deferred]
    sides: dict[str, Column | Deferred] = field(default_factory=dict)
    splits: Bytes | str | None = None
    faults: list[CellFault] = field(default_factory=list)


class Incoming(Protocol):
    """A block of rows that is to be written."""

    @property
    def first_row(self) -> int:
        """Number of its first row in the source."""

    @property
    def num_rows(self) -> int:
        """How many rows it has."""

    @property
    def num_bytes(self) -> int:
        """How much of the source it stands for."""

    @property
    def path(self) -> str | None:
        """Path of the file that it comes from; None if there is none."""

    def encode(self) -> EncodedRows:
        """Return the rows as columns; called on any thread."""

    def refuse(self, fault: CellFault) -> PenstockError:
        """Return the error for a cell that does not fit."""

    def show(self, row: int) -> dict[str, Any]:
        """Return a row of the block as JSON can hold it."""


@dataclass(frozen=True)
class RawPlan:
    """What becomes of the columns of a source.

    Attributes:
        columns: Those that are written.
        sides: Those that only rows are split by.
        split_by: The one that names the splits, or None.
        encode: How values are encoded.
        source: How the source is read.
    """

    columns: tuple[ColumnPlan, ...]
    sides: tuple[ColumnPlan, ...]
    split_by: ColumnPlan | None
    encode: EncodeOptions
    source: SourceOptions


@dataclass(frozen=True)
class RawRows:
    """A block of a source."""

    block: Block
    plan: RawPlan

    @property
    def first_row(self) -> int:
        """Number of its first row in the source."""
        return self.block.first_row

    @property
    def num_rows(self) -> int:
        """How many rows it has."""
        return self.block.num_rows

    @property
    def num_bytes(self) -> int:
        """How much of the source it stands for."""
        return self.block.num_bytes

    @property
    def path(self) -> str | None:
        """Path of the file that it comes from; None if there is none."""
        return self.block.path

    def encode(self) -> EncodedRows:
        """Return the rows as columns."""
        columns, faults = encode_columns(self.plan.columns, self.block, self.plan.encode)
        sides, side_faults = encode_columns(self.plan.sides, self.block, self.plan.encode)
        rows = EncodedRows(columns, sides, faults=faults + side_faults)
        if self.plan.split_by is not None:
            raw = self.block.columns[self.plan.split_by.column]
            column, faults = encode_column(self.plan.split_by, raw, self.block, self.plan.encode)
            rows.faults += [replace(fault, expected="the name of a split", advice="") for fault in faults]
            if not isinstance(column, Bytes):
                raise TypeError("the column that names splits is text")
            rows.splits = column
        return rows

    def refuse(self, fault: CellFault) -> CellError:
        """Return the error for a cell that does not fit."""
        first = self.block.first_row if self.block.path is None else self.block.row_in_file
        return CellError(
            f"column {fault.column!r}",
            path=self.block.path,
            row=first + fault.row + 1,
            line=find_line(self.block, fault.row, self.plan.source),
            field=fault.column,
            expected=fault.expected,
            got=fault.got,
            advice=fault.advice,
        )

    def show(self, row: int) -> dict[str, Any]:
        """Return a row as JSON can hold it; long values shortened."""
        return {name: _plain(_value(raw, row)) for name, raw in self.block.columns.items()}


def _value(raw: RawColumn, row: int) -> Any:
    value = raw[row]
    return value.as_py() if hasattr(value, "as_py") else value


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value[:_MOST_BYTES]]
    if isinstance(value, np.ndarray) and value.size <= _MOST_BYTES:
        return _plain(value.tolist())
    return _plain_cell(value)


def _plain_cell(value: Any) -> Any:
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        short = {"base64": base64.b64encode(data).decode("ascii")} if len(data) <= _MOST_BYTES else {}
        return {"bytes": len(data), **short}
    text = f"array {value.shape} {value.dtype}" if isinstance(value, np.ndarray) else str(value)
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]}…"
