"""Cut tables and columns into blocks at rows that depend on the data alone.

In: tables of any size, or whole columns. Out: the rows of blocks, with at most BLOCK_ROWS rows and about
BLOCK_BYTES bytes each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.source.arrow_schema import plain_table, to_column
from penstock.source.block import BLOCK_BYTES, BLOCK_ROWS, RawColumn


class BlockRows(NamedTuple):
    """The rows of one block.

    Attributes:
        columns: Raw columns by name.
        num_rows: Number of rows.
        num_bytes: Number of bytes of the source that were read since the previous block.
        is_copy: Whether an array is a copy, rather than a view of the given data.
    """

    columns: Mapping[str, RawColumn]
    num_rows: int
    num_bytes: int
    is_copy: bool


def cut_tables(tables: Iterable[tuple[pa.Table, int]]) -> Iterator[BlockRows]:
    """Cut a stream of tables, each given with the number of bytes of the source that it accounts for.

    A block has BLOCK_ROWS rows, or a half, a quarter, … of that if those would be too many bytes, so that the
    sizes of the tables do not matter.
    """
    pending = _Pending()
    for table, num_bytes in tables:
        pending.add(table, num_bytes)
        while pending.is_enough:
            yield pending.take()
    while pending.num_rows:
        yield pending.take()


class _Pending:
    """Rows that are collected until they fill a block."""

    def __init__(self) -> None:
        self.num_rows = 0
        self._table: pa.Table | None = None
        self._size = 0  # in memory; computing it takes a second for 100,000 columns
        self._num_bytes = 0
        self._is_copy = False

    @property
    def is_enough(self) -> bool:
        return self.num_rows >= BLOCK_ROWS or self._size > BLOCK_BYTES

    def add(self, given: pa.Table, num_bytes: int) -> None:
        table = plain_table(given)
        self._is_copy |= table is not given
        self._num_bytes += num_bytes
        self._size += table.nbytes
        self._table = pa.concat_tables([self._table, table]) if self._table and self.num_rows else table
        self.num_rows = self._table.num_rows

    def take(self) -> BlockRows:
        table = self._table or pa.table({})
        if self._size <= BLOCK_BYTES:
            num_rows = min(self.num_rows, BLOCK_ROWS)
        else:
            num_rows = fit_rows(self.num_rows, lambda rows: table.slice(0, rows).nbytes)
        columns = {name: table.column(i).slice(0, num_rows) for i, name in enumerate(table.column_names)}
        is_copy = self._is_copy or any(column.num_chunks != 1 for column in columns.values())
        arrays = {name: to_column(column) for name, column in columns.items()}
        piece = BlockRows(arrays, num_rows, self._num_bytes, is_copy)
        self.num_rows -= num_rows
        self._num_bytes = 0
        self._is_copy &= self.num_rows > 0
        self._table = table.slice(num_rows) if self.num_rows else None
        self._size = 0 if self._table is None else self._table.nbytes
        return piece


def cut_columns(columns: Mapping[str, RawColumn], num_rows: int) -> Iterator[BlockRows]:
    """Cut whole columns, without copying."""
    typed = [column for column in columns.values() if not _is_objects(column)]
    # Sizes of objects are estimated once, not once for every candidate block.
    ends = sum(
        (np.cumsum([0, *map(estimate_bytes, column)]) for column in columns.values() if _is_objects(column)),
        np.zeros(num_rows + 1, np.int64),
    )
    start = 0
    while start < num_rows:
        rest = min(num_rows - start, BLOCK_ROWS)

        def measure(rows: int, start: int = start) -> int:
            of_typed = sum(count_bytes(slice_rows(column, start, rows)) for column in typed)
            return of_typed + int(ends[start + rows] - ends[start])

        rows = fit_rows(rest, measure)
        pieces = {name: slice_rows(column, start, rows) for name, column in columns.items()}
        yield BlockRows(pieces, rows, 0, is_copy=False)
        start += rows


def fit_rows(num_rows: int, measure: Callable[[int], int]) -> int:
    """Return the number of next rows that form a block; `measure` returns the size of the first rows."""
    if num_rows <= BLOCK_ROWS and measure(num_rows) <= BLOCK_BYTES:
        return num_rows
    rows = BLOCK_ROWS
    while rows > 1 and (rows > num_rows or measure(rows) > BLOCK_BYTES):
        rows //= 2
    return rows


def slice_rows(column: RawColumn, start: int, num_rows: int) -> RawColumn:
    """Return rows of a column without copying."""
    return column[start : start + num_rows]


def _is_objects(column: RawColumn) -> bool:
    return isinstance(column, np.ndarray) and column.dtype == object


def count_bytes(column: RawColumn) -> int:
    """Return the approximate size of a column in bytes."""
    if _is_objects(column):
        return sum(map(estimate_bytes, column))
    return int(column.nbytes)


def estimate_bytes(value: Any) -> int:
    """Return the approximate size of a Python value in bytes."""
    if isinstance(value, (str, bytes, bytearray)):
        return len(value)
    if isinstance(value, (list, tuple)):
        return 8 * len(value) if not value or isinstance(value[0], (int, float)) else _sum_bytes(value)
    if isinstance(value, dict):
        return _sum_bytes(value.values())
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if hasattr(value, "getbands"):  # a PIL image
        return int(value.width * value.height * len(value.getbands()))
    return 8


def _sum_bytes(values: Iterable[Any]) -> int:
    return sum(map(estimate_bytes, values))
