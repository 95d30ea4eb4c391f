"""Arrow tables in memory, and streams of Arrow batches.

In: pyarrow tables and batches, objects with the Arrow C stream interface (polars, DuckDB), Hugging Face data
sets.
Out: blocks, which are views of tables in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import SourceError
from penstock.foundation.wording import show
from penstock.schema.declaration import Representation
from penstock.schema.field import Field
from penstock.schema.scalar import Category
from penstock.source.arrow_schema import check_names, declare_coded, is_coded, read_carried
from penstock.source.block import BLOCK_ROWS, Block
from penstock.source.cutter import cut_tables

_FEW_ROWS = 1024


class TableSource:
    """Rows given as Arrow tables.

    `begin` starts a pass: it returns an iterator of all tables, which have the same schema.
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
        declared: Mapping[str, Field] | None = None,
    ) -> None:
        self.name = name
        self.num_rows = num_rows
        self.num_bytes: int | None = None
        self.is_repeatable = is_repeatable
        self.declared: Mapping[str, Field] = declared or {}
        self.forms: Mapping[str, Representation] = {}
        self.notes: tuple[str, ...] = ()
        self._kind = kind
        self._begin = begin
        self._is_resident = is_resident
        self._has_begun = False

    def blocks(self) -> Iterator[Block]:
        """Yield the rows."""
        if self._has_begun and not self.is_repeatable:
            raise SourceError(
                f"{self.name} was already read and cannot be read again",
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
        """Return the name and kind of the source, and the number of rows."""
        return [{"name": self.name, "kind": self._kind, "rows": self.num_rows}]

    def _tables(self) -> Iterator[pa.Table]:
        for number, table in enumerate(self._begin()):
            if not number:
                check_names(table.column_names, self.name)
            yield table


def open_table(table: pa.Table, name: str, kind: str) -> TableSource:
    """Return the source of a table in memory."""
    check_names(table.column_names, name)

    def begin() -> Iterator[pa.Table]:
        # One slice per block, so that encoded columns are decoded block by block.
        return (table.slice(start, BLOCK_ROWS) for start in range(0, table.num_rows, BLOCK_ROWS))

    coded = {field.name: table.column(i) for i, field in enumerate(table.schema) if is_coded(table.column(i))}
    return TableSource(
        begin,
        name=name,
        kind=kind,
        num_rows=table.num_rows,
        is_resident=True,
        declared={**declare_coded(coded), **read_carried(table.schema)},
    )


def open_polars(frame: Any) -> TableSource:
    """Return the source of a polars DataFrame."""
    for name, dtype in frame.schema.items():
        # polars exports the addresses of Python objects as bytes.
        is_known = "Object" not in str(dtype)
        try:
            if is_known:
                pa.table(frame[:0].select(name))
        except (pa.ArrowException, TypeError, ValueError):
            is_known = False
        if not is_known:
            raise SourceError(
                f"type of column {show(name)}",
                path="polars DataFrame",
                field=name,
                expected="a type that Arrow supports",
                got=str(dtype),
                advice=f"Cast the column, or leave it out: frame.drop({show(name)}).",
            )
    return open_table(pa.table(frame), "polars DataFrame", "polars")


def open_stream(given: Any, name: str) -> TableSource:
    """Return the source of an object with the Arrow C stream interface; a reader can be read only once."""

    def begin() -> Iterator[pa.Table]:
        reader = pa.RecordBatchReader.from_stream(given)
        return (pa.Table.from_batches([batch]) for batch in reader)

    is_reader = isinstance(given, pa.RecordBatchReader)
    return TableSource(begin, name=name, kind="arrow stream", is_repeatable=not is_reader)


def open_hugging_face(given: Any, name: str) -> TableSource:
    """Return the source of a Hugging Face data set, in its own order, also after a shuffle or a filter.

    Class labels become the names of the classes.
    """
    # A streaming data set has no such property.
    format_options = getattr(given, "format", None) or {}
    if format_options.get("type") == "custom":
        raise SourceError(
            f"{name} with a transform",
            expected="rows as they are stored",
            got="a function that changes rows when they are read",
            advice="Apply it with .map(), or remove it with .reset_format().",
        )
    columns = format_options.get("columns")
    features = getattr(given, "features", None) or {}
    labels = {
        column: list(feature.names)
        for column, feature in features.items()
        if type(feature).__name__ == "ClassLabel" and (columns is None or column in columns)
    }

    def begin() -> Iterator[pa.Table]:
        # Few rows at a time, because they may be images and are copied from the files of the data set.
        options = {} if columns is None else {"columns": columns}
        tables = given.with_format("arrow", **options).iter(batch_size=_FEW_ROWS)
        return (_name_labels(table, labels) for table in tables)

    num_rows = len(given) if hasattr(given, "__len__") else None
    declared = {column: Category(values=tuple(names)) for column, names in labels.items() if names}
    return TableSource(begin, name=name, kind="datasets", num_rows=num_rows, declared=declared)


def _name_labels(table: pa.Table, labels: Mapping[str, list[str]]) -> pa.Table:
    for column, names in labels.items():
        i = table.schema.get_field_index(column)
        codes: Any = table.column(i)
        # In Hugging Face data sets, -1 is a missing label.
        known = pc.if_else(pc.equal(codes, pa.scalar(-1, codes.type)), pa.scalar(None, codes.type), codes)
        named: Any = pa.array(names, pa.large_string()).take(known)
        table = table.set_column(i, column, named)
    return table
