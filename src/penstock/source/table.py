"""Arrow tables in memory, and streams of Arrow batches.

In: pyarrow tables and batches, anything with the Arrow C-stream interface (polars, DuckDB), Hugging Face data
sets. Out: blocks; of tables they are views.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from penstock.errors import SourceError
from penstock.schema.field import Field
from penstock.schema.plan import Form
from penstock.source.arrowtype import check_names
from penstock.source.block import BLOCK_ROWS, Block
from penstock.source.cutter import cut_tables

_FEW_ROWS = 1024


class TableSource:
    """Rows that come as Arrow tables.

    `begin` starts a pass: it returns the tables from the first to the last, all of one schema.
    """

    def __init__(
        self,
        begin: Callable[[], Iterator[pa.Table]],
        *,
        name: str,
        kind: str,
        num_rows: int | None = None,
        is_repeatable: bool = True,
        is_resident: bool = False,
    ) -> None:
        self.name = name
        self.num_rows = num_rows
        self.num_bytes: int | None = None
        self.is_repeatable = is_repeatable
        self.declared: Mapping[str, Field] = {}
        self.forms: Mapping[str, Form] = {}
        self.notes: tuple[str, ...] = ()
        self._kind = kind
        self._begin = begin
        self._is_resident = is_resident
        self._has_begun = False

    def blocks(self) -> Iterator[Block]:
        """Yield the rows.

        Raises:
            SourceError: Two columns have one name, there are no rows, or it was read and cannot be again.
        """
        if self._has_begun and not self.is_repeatable:
            raise SourceError(
                f"{self.name} was read already, and cannot be read again",
                advice="Pass the table, or a file.",
            )
        self._has_begun = True
        first_row = 0
        for piece in cut_tables((table, 0) for table in self._tables()):
            yield Block(
                first_row,
                piece.num_rows,
                piece.columns,
                is_resident=self._is_resident and not piece.is_copy,
            )
            first_row += piece.num_rows
        if not first_row:
            raise SourceError(f"no rows: {self.name}", expected="at least one row", got="none")
        self.num_rows = first_row

    def provenance(self) -> list[dict[str, Any]]:
        """Return what the rows were in, and how many there are."""
        return [{"name": self.name, "kind": self._kind, "rows": self.num_rows}]

    def _tables(self) -> Iterator[pa.Table]:
        for number, table in enumerate(self._begin()):
            if not number:
                check_names(table.column_names, self.name)
            yield table


def open_table(table: pa.Table, name: str, kind: str) -> TableSource:
    """Make a source of a table in memory."""
    check_names(table.column_names, name)

    def begin() -> Iterator[pa.Table]:
        # Slices of a block each: what must be decoded is decoded block by block.
        return (table.slice(start, BLOCK_ROWS) for start in range(0, table.num_rows, BLOCK_ROWS))

    return TableSource(begin, name=name, kind=kind, num_rows=table.num_rows, is_resident=True)


def open_stream(given: Any, name: str) -> TableSource:
    """Make a source of something with the Arrow C-stream interface; a reader gives its rows only once."""

    def begin() -> Iterator[pa.Table]:
        reader = pa.RecordBatchReader.from_stream(given)
        return (pa.Table.from_batches([batch]) for batch in reader)

    is_reader = isinstance(given, pa.RecordBatchReader)
    return TableSource(begin, name=name, kind="arrow stream", is_repeatable=not is_reader)


def open_hugging_face(given: Any, name: str) -> TableSource:
    """Make a source of a Hugging Face data set; its order is kept, also where it was shuffled or filtered."""

    def begin() -> Iterator[pa.Table]:
        # Few rows at a time: they may be images, and are copied out of the data set's own files.
        tables: Iterator[pa.Table] = given.with_format("arrow").iter(batch_size=_FEW_ROWS)
        return tables

    num_rows = len(given) if hasattr(given, "__len__") else None
    return TableSource(begin, name=name, kind="datasets", num_rows=num_rows)
