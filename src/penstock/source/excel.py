"""One sheet of an Excel or OpenDocument file, read with pandas.

In: a path. Out: one table, whose columns have the types of their cells; a column with cells of several types
is text. Formulas have the values that were saved with them, and macros are never run.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.errors import MissingPackageError, OptionError, SourceError, importing
from penstock.foundation.wording import list_texts
from penstock.source.arrow_schema import check_names
from penstock.source.column import is_missing, make_column
from penstock.source.csv_dialect import is_data_first, word_data_first
from penstock.source.options import SourceOptions
from penstock.storage.compression import MAX_RATIO

_ENGINES: Final = {".xls": "xlrd", ".ods": "odfpy"}
"""Packages that pandas reads other files than .xlsx with."""

_FLOOR_BYTES: Final = 64 << 20
_FIRST: Final = 100  # rows that decide whether the first one looks like data


class ExcelFile:
    """A sheet of a spreadsheet: its first row has the names of the columns, and blank rows are skipped.

    Attributes:
        path: The file.
        num_rows: Number of rows, once the sheet was read.
        dialect_notes: Notes about the sheet and, once it was read, its names, without the name of the file.
    """

    def __init__(self, path: Path, options: SourceOptions) -> None:
        """Choose the sheet.

        Raises:
            MissingPackageError: pandas, or the package that reads such a file, is not installed.
            OptionError: There is no such sheet.
            SourceError: The file is not valid.
        """
        self.path = path
        self.num_rows: int | None = None
        self._options = options
        self._check_size()
        with importing("reading Excel files", "excel"):
            import pandas as pd  # noqa: PLC0415 - for such files alone

        self._pandas = pd
        with self._open() as book:
            self._sheet = self._choose([str(name) for name in book.sheet_names])

    @cached_property
    def _table(self) -> pa.Table:
        with self._open() as book:
            try:
                frame = self._pandas.read_excel(
                    book, sheet_name=self._sheet, header=None, dtype=object, na_filter=False
                )
            except Exception as error:  # each engine has errors of its own
                raise self._damage(error) from error
        rows = [[_read_cell(cell) for cell in row] for row in frame.to_numpy(dtype=object).tolist()]
        rows = [row for row in rows if any(cell is not None for cell in row)]
        names, rows = self._take_names(rows)
        kept = [i for i, name in enumerate(names) if name or any(row[i] is not None for row in rows)]
        self.dialect_notes += tuple(
            f"column {i + 1} has no name in the first row and is named 'column_{i + 1}'"
            for i in kept
            if not names[i]
        )
        unique = check_names([names[i] or f"column_{i + 1}" for i in kept], str(self.path))
        columns = {name: _make_column([row[i] for row in rows]) for name, i in zip(unique, kept, strict=True)}
        self.num_rows = len(rows)
        return pa.table(columns)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self._table.schema

    def tables(self) -> Iterator[tuple[pa.Table, int]]:
        """Yield the rows as one table, with the number of bytes of the file."""
        yield self._table, self.path.stat().st_size

    def _take_names(self, rows: list[list[Any]]) -> tuple[list[str], list[list[Any]]]:
        if not rows:
            raise SourceError(
                f"sheet {self._sheet!r} is empty",
                path=self.path,
                expected="a header and rows",
                got="no cells",
            )
        if self._options.header == "none":
            return [f"column_{i + 1}" for i in range(len(rows[0]))], rows
        first = [
            [b"" if cell is None else _write_cell(cell).encode() for cell in row] for row in rows[:_FIRST]
        ]
        if is_data_first(first):
            self.dialect_notes += (word_data_first(first[0]),)
        return ["" if cell is None else _write_cell(cell).strip() for cell in rows[0]], rows[1:]

    def _choose(self, names: Sequence[str]) -> str:
        wanted = self._options.sheet
        self.dialect_notes: tuple[str, ...] = ()
        if wanted is None:
            if len(names) > 1:
                listed = list_texts(names[1:6])
                self.dialect_notes = (
                    f"read from sheet {names[0]!r}; the others are {listed}: choose one with sheet=NAME "
                    "(--sheet NAME)",
                )
            return names[0]
        if wanted not in names:
            raise OptionError(
                "sheet", path=self.path, expected=f"one of {list_texts(names)}", got=repr(wanted)
            )
        return wanted

    def _open(self) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # openpyxl warns of styles and extensions that it ignores
                return self._pandas.ExcelFile(self.path)
        except ImportError as error:
            suffix = self.path.suffix.lower()
            if suffix in _ENGINES:
                raise MissingPackageError(
                    f"reading {suffix} files needs the package {_ENGINES[suffix]!r}",
                    advice=f"Install it, or save the file as .xlsx or .csv: pip install {_ENGINES[suffix]}.",
                ) from error
            raise MissingPackageError(
                "reading Excel files needs the package 'openpyxl'",
                advice="Install it: pip install 'penstock[excel]'.",
            ) from error
        except Exception as error:  # each engine has errors of its own
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
            f"not a valid spreadsheet ({reason})",
            path=self.path,
            advice="The file is truncated, damaged or of another type; get it again.",
        )


def _read_cell(cell: Any) -> Any:
    """Return the value of a cell; None if it is empty."""
    if cell is None or (isinstance(cell, str) and not cell) or is_missing(cell):
        return None
    return cell


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
