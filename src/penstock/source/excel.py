"""One sheet of an Excel or OpenDocument file.

In: a path. Out: one table, whose columns have the types of their cells; a column with cells of several types
is text. Formulas have the values that were saved with them, and macros are never run.
"""

from __future__ import annotations

import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.errors import OptionError, PenstockError, SourceError
from penstock.foundation.wording import count, list_texts
from penstock.settings.groups import TextFiles
from penstock.source.arrow_schema import check_names
from penstock.source.column import make_column
from penstock.source.csv_dialect import is_data_first, word_data_first
from penstock.source.spreadsheet import (
    MAX_CELLS,
    MAX_COLUMNS,
    MAX_ROWS,
    Book,
    LostValue,
    open_book,
    refuse_size,
)
from penstock.storage.compression import MAX_RATIO

_FLOOR_BYTES: Final = 64 << 20
_FIRST: Final = 100  # rows that decide whether the first one looks like data
_MOST_NAMED: Final = 5


class ExcelFile:
    """A sheet of a spreadsheet: its first row has the names of the columns, and blank rows are skipped.

    Attributes:
        path: The file.
        num_rows: Number of rows, once the sheet was read.
        dialect_notes: Notes about the sheet and, once it was read, its names, without the name of the file.
        cautions: Notes about cells that lost their values, once the sheet was read.
    """

    def __init__(self, path: Path, options: TextFiles) -> None:
        """Choose the sheet."""
        self.path = path
        self.num_rows: int | None = None
        self.cautions: tuple[str, ...] = ()
        self._options = options
        self._check_size()
        with closing(self._open()) as book:
            self._sheet = self._choose(book.names)

    @cached_property
    def _table(self) -> pa.Table:
        with closing(self._open()) as book:
            names, rows = self._take_names(self._read_rows(book))
        used = {i for row in rows for i, cell in enumerate(row) if cell is not None}
        kept = sorted(used | {i for i, name in enumerate(names or ()) if name})
        if len(kept) * len(rows) > MAX_CELLS:
            raise refuse_size(self.path, "number of cells", MAX_CELLS)
        self.dialect_notes += tuple(
            f"column {i + 1} has no name in the first row and is named 'column_{i + 1}'"
            for i in kept
            if names is not None and not _get(names, i)
        )
        unique = check_names([_get(names, i) or f"column_{i + 1}" for i in kept], str(self.path))
        columns, lost = {}, {}
        for name, i in zip(unique, kept, strict=True):
            cells = [_get(row, i) for row in rows]
            lost[name] = Counter(cell for cell in cells if isinstance(cell, LostValue))
            columns[name] = _make_column([None if isinstance(cell, LostValue) else cell for cell in cells])
        self.cautions = tuple(_list_losses(self._sheet, lost))
        self.num_rows = len(rows)
        return pa.table(columns)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self._table.schema

    def tables(self) -> Iterator[tuple[pa.Table, int]]:
        """Yield the rows as one table, with the number of bytes of the file."""
        yield self._table, self.path.stat().st_size

    def _read_rows(self, book: Book) -> list[list[Any]]:
        """Return the rows that are not blank, without the empty cells at their ends."""
        rows: list[list[Any]] = []
        num_cells = 0
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # as when the file is opened
                for number, cells in enumerate(book.rows(self._sheet), 1):
                    if number > MAX_ROWS:
                        raise refuse_size(self.path, "number of rows", MAX_ROWS)
                    row = _trim(cells)
                    if len(row) > MAX_COLUMNS:
                        raise refuse_size(self.path, "number of columns", MAX_COLUMNS)
                    num_cells += len(cells)
                    if num_cells > MAX_CELLS:
                        raise refuse_size(self.path, "number of cells", MAX_CELLS)
                    if row:
                        rows.append(row)
        except PenstockError:
            raise
        except Exception as error:  # each package has different errors
            raise self._damage(error) from error
        return rows

    def _take_names(self, rows: list[list[Any]]) -> tuple[list[str] | None, list[list[Any]]]:
        """Return the names of the columns, or None if the sheet has none, and the other rows."""
        if not rows:
            raise SourceError(
                f"sheet {self._sheet!r} is empty",
                path=self.path,
                expected="a header and rows",
                got="no cells",
            )
        if self._options.header == "none":
            return None, rows
        first = [[_write_name(cell).encode() for cell in row] for row in rows[:_FIRST]]
        if is_data_first(first):
            self.dialect_notes += (word_data_first(first[0]),)
        return [_write_name(cell).strip() for cell in rows[0]], rows[1:]

    def _choose(self, names: Sequence[str]) -> str:
        wanted = self._options.sheet
        self.dialect_notes: tuple[str, ...] = ()
        if wanted is None:
            if len(names) > 1:
                listed = list_texts(names[1:6])
                self.dialect_notes = (
                    f"read from sheet {names[0]!r}; the others are {listed}: choose one with `sheet=NAME`",
                )
            return names[0]
        if wanted not in names:
            raise OptionError(
                "sheet", path=self.path, expected=f"one of {list_texts(names)}", got=repr(wanted)
            )
        return wanted

    def _open(self) -> Book:
        try:
            return open_book(self.path)
        except PenstockError:
            raise
        except Exception as error:  # each package has different errors
            raise self._damage(error) from error

    def _check_size(self) -> None:
        """Refuse an archive that expands too much, before it is read into memory."""
        if not zipfile.is_zipfile(self.path):
            return
        try:
            with zipfile.ZipFile(self.path) as archive:
                num_bytes = sum(info.file_size for info in archive.infolist())
        except zipfile.BadZipFile as error:
            raise self._damage(error) from error
        if num_bytes > max(_FLOOR_BYTES, MAX_RATIO * self.path.stat().st_size):
            raise SourceError(
                "the file expands too much",
                path=self.path,
                expected=f"at most {MAX_RATIO} bytes per compressed byte",
                got="more",
                advice="It may be a decompression bomb.",
            )

    def _damage(self, error: Exception) -> SourceError:
        reason = str(error).strip().split("\n")[0].rstrip(".")[:200]
        return SourceError(
            f"not a valid spreadsheet ({reason})" if reason else "not a valid spreadsheet",
            path=self.path,
            advice="The file is truncated, damaged or of another type; get it again.",
        )


def _trim(row: list[Any]) -> list[Any]:
    """Return a row without the empty cells at its end."""
    size = len(row)
    while size and row[size - 1] is None:
        size -= 1
    return row if size == len(row) else row[:size]  # equal rows of a file may be one list


def _get(row: Sequence[Any] | None, i: int) -> Any:
    return row[i] if row is not None and i < len(row) else None


def _list_losses(sheet: str, lost: Mapping[str, Counter[LostValue]]) -> Iterator[str]:
    """Yield notes about cells with errors, and about formulas without a saved value."""
    errors = sum(lost.values(), Counter[LostValue]())
    num_unsaved = errors.pop(LostValue(), 0)
    if errors:
        named = ", ".join(f"{number} {each.error}" for each, number in errors.most_common(_MOST_NAMED))
        where = _list_columns({name: each.total() - each[LostValue()] for name, each in lost.items()})
        yield (
            f"{count(errors.total(), 'cell')} with an error ({named}) in sheet {sheet!r}, read as missing: "
            f"{where}"
        )
    if num_unsaved:
        where = _list_columns({name: each[LostValue()] for name, each in lost.items()})
        yield (
            f"{count(num_unsaved, 'formula')} without a saved value in sheet {sheet!r}, read as missing: "
            f"{where}. Open the file in a spreadsheet program and save it there to store the values"
        )


def _list_columns(numbers: Mapping[str, int]) -> str:
    """Return how many cells each column has, of those that have any."""
    found = [f"{number} in {name!r}" for name, number in numbers.items() if number]
    more = f" and {count(len(found) - _MOST_NAMED, 'more column')}" if len(found) > _MOST_NAMED else ""
    return ", ".join(found[:_MOST_NAMED]) + more


def _make_column(cells: list[Any]) -> Any:
    """Return cells of one type as a column, and cells of several types as texts."""
    if all(isinstance(cell, float) and cell.is_integer() for cell in cells if cell is not None):
        # Excel stores all numbers as floats, and whole numbers beside empty cells stay such.
        cells = [None if cell is None else int(cell) for cell in cells]
    column = make_column(cells)
    if isinstance(column, np.ndarray):
        return pa.array([None if cell is None else _write_cell(cell) for cell in cells], pa.large_string())
    return column


def _write_cell(cell: Any) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _write_name(cell: Any) -> str:
    """Return a cell of the first row as text; empty if it has no value."""
    return "" if cell is None or isinstance(cell, LostValue) else _write_cell(cell)
