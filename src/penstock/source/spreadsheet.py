"""The cells of spreadsheets: .xlsx and .xlsm with openpyxl, .xls with xlrd, .ods with the standard library.

In: a path. Out: the names of the sheets, and the rows of one. What a file claims is checked before it is
read: rows and columns beyond the limits of Excel, which a few bytes can encode, are refused.
"""

from __future__ import annotations

import datetime
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol
from xml.etree import ElementTree
from xml.parsers import expat

from penstock.errors import MissingPackageError, SourceError, importing
from penstock.storage.compression import name_content

MAX_ROWS: Final = 1_048_576
MAX_COLUMNS: Final = 16_384
"""Limits of a sheet, as in Excel and LibreOffice."""
MAX_CELLS: Final = 100_000_000
"""Maximum number of cells of a sheet, empty ones between others included: it is read into memory."""

_READ_BYTES: Final = 1 << 20


class LostValue(NamedTuple):
    """A cell that has no value, although it is not empty.

    Attributes:
        error: The error in the cell, such as `#N/A`; empty for a formula without a saved value.
    """

    error: str = ""


class Book(Protocol):
    """An open spreadsheet."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the sheets."""

    def rows(self, name: str) -> Iterator[list[Any]]:
        """Yield the rows of a sheet; None is an empty cell. Blank rows may be left out."""

    def close(self) -> None:
        """Close the file."""


def open_book(path: Path) -> Book:
    """Open a spreadsheet; its content decides the format."""
    with path.open("rb") as file:
        first = file.read(512)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            is_open_document = "content.xml" in archive.namelist()
        return OpenDocumentBook(path) if is_open_document else ExcelBook(path)
    if first.startswith((b"\xd0\xcf\x11\xe0", b"\x09")):
        return OldExcelBook(path)
    raise SourceError(
        "not a valid spreadsheet",
        path=path,
        expected="an Excel or OpenDocument file",
        got=name_content(first) or "another kind of file, or a damaged one",
        advice="The file is truncated, damaged or of another type; get it again.",
    )


def refuse_size(path: Path, what: str, most: int) -> SourceError:
    """Return the error for a sheet that is too large."""
    return SourceError(
        f"{what} of a sheet",
        path=path,
        expected=f"at most {most:,}",
        got="more",
        advice="Save larger tables as CSV or Parquet.",
    )


_ROW: Final = re.compile(rb"<(?:\w+:)?row[\s/>]")
_CELL: Final = re.compile(rb"<(?:\w+:)?c[\s/>]")
_UNSAVED: Final = re.compile(
    rb"(?:</(?:\w+:)?f>|<(?:\w+:)?f(?:\s[^<>]*)?/>)\s*(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v>\s*</|</(?:\w+:)?c>)"
)
_OVERLAP: Final = 256  # longer than a match, except for the attributes of a formula


class _CellCounter:
    """Numbers of rows and cells in a sheet, which is given as chunks of XML; each chunk is checked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rest = b""
        self._num_rows = self._num_cells = self._num_columns = 0

    def add(self, chunk: bytes) -> None:
        text = self._rest + chunk
        end = max(text.rfind(b"<"), len(text) - _OVERLAP)
        self._rest = text[end:] if text[end : end + 1] == b"<" else b""
        before, *rows = _ROW.split(text[:end] if self._rest else text)
        if self._num_rows:  # other parts of a file may hold the same tag without a row
            self._count_cells(before)
        for row in rows:
            self._num_columns = 0
            self._num_rows += 1
            self._count_cells(row)
        if self._num_rows > MAX_ROWS:
            raise refuse_size(self._path, "number of rows", MAX_ROWS)
        if self._num_cells > MAX_CELLS:
            raise refuse_size(self._path, "number of cells", MAX_CELLS)

    def _count_cells(self, part: bytes) -> None:
        number = len(_CELL.findall(part))
        self._num_cells += number
        self._num_columns += number
        if self._num_columns > MAX_COLUMNS:
            raise refuse_size(self._path, "number of columns", MAX_COLUMNS)


class ExcelBook:
    """A file in the format of Excel 2007 and later."""

    def __init__(self, path: Path) -> None:
        with importing("reading Excel files", "excel"):
            import openpyxl  # noqa: PLC0415 - for such files alone
            from openpyxl.cell.read_only import EMPTY_CELL  # noqa: PLC0415

        self._path = path
        self._empty = EMPTY_CELL
        self._load = openpyxl.load_workbook
        self._has_unsaved = self._scan()
        self._open_files = ExitStack()
        self._book = self._open(data_only=True)
        self.names = [str(sheet.title) for sheet in self._book.worksheets]

    def _open(self, *, data_only: bool) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl warns of styles and extensions that it ignores
            # As a file, because openpyxl refuses names without the usual suffix.
            file = self._open_files.enter_context(self._path.open("rb"))
            try:
                book = self._load(file, read_only=True, data_only=data_only, keep_links=False)
            except BaseException:
                self.close()
                raise
            self._open_files.callback(book.close)
            return book

    def _scan(self) -> bool:
        """Return whether a formula may lack a saved value, after a check of the numbers of rows and cells.

        openpyxl does not distinguish such a formula from an empty cell, and needs minutes, or gigabytes for a
        row of millions of cells, to find out that there are too many.
        """
        has_unsaved = False
        with zipfile.ZipFile(self._path) as archive:
            for info in archive.infolist():
                if not info.filename.endswith(".xml") or "sharedStrings" in info.filename:
                    continue
                counter, tail = _CellCounter(self._path), b""
                with archive.open(info) as file:
                    while chunk := file.read(_READ_BYTES):
                        counter.add(chunk)
                        window = tail + chunk
                        has_unsaved = has_unsaved or _UNSAVED.search(window) is not None
                        tail = window[-_OVERLAP:]
        return has_unsaved

    def rows(self, name: str) -> Iterator[list[Any]]:
        """Yield the rows of a sheet."""
        rows = self._iterate(self._book, name)
        if not self._has_unsaved:
            for cells in rows:
                yield [None if cell is self._empty else _read_cell(cell) for cell in cells]
            return
        formulas = self._iterate(self._open(data_only=False), name)
        for cells, written in zip(rows, formulas, strict=True):
            yield [_read_cell(*pair) for pair in zip(cells, written, strict=True)]

    def _iterate(self, book: Any, name: str) -> Iterator[Any]:
        sheet = next(each for each in book.worksheets if str(each.title) == name)
        sheet.reset_dimensions()  # those that a file declares may be wrong
        return iter(sheet.iter_rows())

    def close(self) -> None:
        """Close the file."""
        self._open_files.close()


def _read_cell(cell: Any, written: Any = None) -> Any:
    """Return the value of a cell; `written` is the same cell with its formula."""
    value, kind = cell.value, cell.data_type
    if value is None or (isinstance(value, str) and not value):
        is_unsaved = kind == "n" and written is not None and written.data_type == "f"
        return LostValue() if is_unsaved else None
    if kind == "e":
        return LostValue(str(value))
    return _as_number(value) if kind == "n" else value


def _as_number(value: Any) -> Any:
    return int(value) if isinstance(value, float) and int(value) == value else value


class OldExcelBook:
    """A file in the format of Excel 97 to 2003."""

    def __init__(self, path: Path) -> None:
        try:
            import xlrd  # noqa: PLC0415 - for such files alone
        except ImportError as error:
            raise MissingPackageError(
                "reading .xls files needs the package 'xlrd'",
                advice="Install it, or save the file as .xlsx or .csv: pip install xlrd.",
            ) from error
        self._xlrd = xlrd
        self._book = xlrd.open_workbook(str(path), on_demand=True)
        self.names = list(map(str, self._book.sheet_names()))

    def rows(self, name: str) -> Iterator[list[Any]]:
        """Yield the rows of a sheet."""
        sheet = self._book.sheet_by_name(name)
        for number in range(sheet.nrows):
            kinds, values = sheet.row_types(number), sheet.row_values(number)
            yield [self._read(kind, value) for kind, value in zip(kinds, values, strict=True)]

    def _read(self, kind: int, value: Any) -> Any:
        if kind == self._xlrd.XL_CELL_ERROR:
            return LostValue(self._xlrd.error_text_from_code.get(value, "an error"))
        if kind == self._xlrd.XL_CELL_BOOLEAN:
            return bool(value)
        if kind == self._xlrd.XL_CELL_NUMBER:
            return _as_number(value)
        if kind == self._xlrd.XL_CELL_DATE:
            time = self._xlrd.xldate_as_datetime(value, self._book.datemode)
            return time.time() if 0 <= value < 1 else time
        return None if kind in (self._xlrd.XL_CELL_EMPTY, self._xlrd.XL_CELL_BLANK) or not value else value

    def close(self) -> None:
        """Close the file."""
        self._book.release_resources()


_OFFICE, _TABLE, _TEXT = (
    f"urn:oasis:names:tc:opendocument:xmlns:{each}:1.0" for each in ("office", "table", "text")
)
_CALC_TYPE: Final = "{urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0}value-type"
_CELLS: Final = (f"{{{_TABLE}}}table-cell", f"{{{_TABLE}}}covered-table-cell")
_ERROR: Final = re.compile(r"#(N/A|DIV/0!|NAME\?|NULL!|NUM!|REF!|VALUE!|SPILL!|CALC!)|Err:[0-9]+")
_DURATION: Final = re.compile(r"(-?)PT(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?")
_MAX_SPACES: Final = 32_767  # characters of a cell


class OpenDocumentBook:
    """A spreadsheet in the OpenDocument format."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._archive = zipfile.ZipFile(path)
        try:
            self.names = self._find_names()
        except BaseException:
            self._archive.close()
            raise

    def _find_names(self) -> list[str]:
        names: list[str] = []
        num_rows = num_columns = 0

        def begin(name: str, attributes: dict[str, str]) -> None:
            nonlocal num_rows, num_columns
            if name in column_tags:
                num_columns += 1
                if num_columns > MAX_COLUMNS:
                    raise refuse_size(self._path, "number of columns", MAX_COLUMNS)
            elif name == f"{_TABLE} table":
                names.append(attributes.get(f"{_TABLE} name", ""))
                num_rows = num_columns = 0
            elif name == f"{_TABLE} table-row":
                num_rows += 1
                num_columns = 0
                if num_rows > MAX_ROWS:
                    raise refuse_size(self._path, "number of rows", MAX_ROWS)

        column_tags = {f"{_TABLE} {each}" for each in ("table-cell", "covered-table-cell", "table-column")}
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartElementHandler = begin
        with self._archive.open("content.xml") as file:
            while chunk := file.read(_READ_BYTES):
                parser.Parse(chunk, False)
        parser.Parse(b"", True)
        return names

    def rows(self, name: str) -> Iterator[list[Any]]:
        """Yield the rows of a sheet that are not blank."""
        is_wanted, num_rows = False, 0
        with self._archive.open("content.xml") as file:
            for event, element in ElementTree.iterparse(file, ("start", "end")):  # noqa: S314 - expat 2.4
                if element.tag == f"{{{_TABLE}}}table":
                    if event == "end" and is_wanted:
                        return
                    is_wanted = event == "start" and element.get(f"{{{_TABLE}}}name", "") == name
                elif event == "end" and element.tag == f"{{{_TABLE}}}table-row":
                    repeats = int(element.get(f"{{{_TABLE}}}number-rows-repeated", 1))
                    num_rows += repeats if is_wanted else 0
                    row = self._read_row(element) if is_wanted else []
                    element.clear()
                    if row and num_rows > MAX_ROWS:
                        raise refuse_size(self._path, "number of rows", MAX_ROWS)
                    if row:
                        yield from repeat(row, repeats)

    def _read_row(self, element: ElementTree.Element) -> list[Any]:
        cells: list[Any] = []
        num_empty = 0
        for each in element:
            if each.tag not in _CELLS:
                continue
            repeats = int(each.get(f"{{{_TABLE}}}number-columns-repeated", 1))
            is_covered = each.tag == _CELLS[1] and each.get(f"{{{_OFFICE}}}value") is None
            value = None if is_covered else _read_open_cell(each)
            if value is None:
                num_empty += repeats
                continue
            if len(cells) + num_empty + repeats > MAX_COLUMNS:
                raise refuse_size(self._path, "number of columns", MAX_COLUMNS)
            cells += [None] * num_empty + [value] * repeats
            num_empty = 0
        return cells

    def close(self) -> None:
        """Close the file."""
        self._archive.close()


def _read_open_cell(cell: ElementTree.Element) -> Any:
    kind = cell.get(f"{{{_OFFICE}}}value-type")
    has_formula = cell.get(f"{{{_TABLE}}}formula") is not None
    if kind is None:
        return LostValue() if has_formula and not _read_text(cell) else None
    text = _read_text(cell) if kind == "string" or has_formula else ""
    if cell.get(_CALC_TYPE) == "error" or text == "#N/A" or (has_formula and _ERROR.fullmatch(text)):
        return LostValue(text or "an error")
    if kind == "string" and text:
        return text
    attribute, convert = _CONVERSIONS.get(kind, _NUMBER)
    return convert(cell.get(f"{{{_OFFICE}}}{attribute}", ""))


def _read_duration(text: str) -> datetime.time | datetime.timedelta:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a time")
    sign, hours, minutes, seconds = found.groups("0")
    span = datetime.timedelta(hours=int(hours), minutes=int(minutes), seconds=float(seconds))
    if sign == "-" or span >= datetime.timedelta(days=1):
        return -span if sign == "-" else span
    return (datetime.datetime.min + span).time()


_NUMBER: Final[tuple[str, Callable[[str], Any]]] = ("value", lambda text: _as_number(float(text)))
_CONVERSIONS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "string": ("string-value", lambda text: text or None),
    "boolean": ("boolean-value", lambda text: text == "true"),
    "date": ("date-value", datetime.datetime.fromisoformat),
    "time": ("time-value", _read_duration),
}
"""Attribute that holds the value of a cell, and its conversion; all other types are numbers."""


def _read_text(element: ElementTree.Element) -> str:
    """Return the text of a cell: its paragraphs, one per line, without comments."""
    return "\n".join(_join(each) for each in element.findall(f"{{{_TEXT}}}p"))


def _join(element: ElementTree.Element) -> str:
    parts = [(element.text or "").strip("\n")]
    for each in element:
        if each.tag == f"{{{_TEXT}}}s":
            parts.append(" " * min(int(each.get(f"{{{_TEXT}}}c", 1)), _MAX_SPACES))
        elif each.tag == f"{{{_TEXT}}}line-break":
            parts.append("\n")
        elif each.tag == f"{{{_TEXT}}}tab":
            parts.append("\t")
        elif each.tag != f"{{{_OFFICE}}}annotation":
            parts.append(_join(each))
        parts.append((each.tail or "").strip("\n"))
    return "".join(parts)
