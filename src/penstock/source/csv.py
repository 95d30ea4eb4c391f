"""One CSV or TSV file, plain or compressed, with every cell as text.

In: a path. Out: tables of strings, null for a missing cell. pyarrow parses the file; an exact scanner finds
what pyarrow does not report: unclosed quotes, and the line of an error. A NUL is a character of its cell.
Blank lines are not rows, even in a file with one column. Plain files can be parsed in ranges by any thread.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.csv

from penstock.errors import SourceError
from penstock.foundation.wording import argument
from penstock.settings.groups import TextFiles
from penstock.source.arrow_schema import check_names, open_arrow
from penstock.source.csv_dialect import DELIMITERS, CsvDialect, open_text, show_delimiter
from penstock.source.csv_ranges import CsvRange, cut_ranges
from penstock.source.csv_scanner import MAX_ROW_BYTES, ScannedRow, count_lines, scan_rows, split_cells
from penstock.source.text_file import BYTE_ORDER_MARK, ChunkFile, TextFile
from penstock.storage.open_file import OpenFile


def find_fault(
    text: TextFile, delimiter: bytes, num_columns: int, *, fills_short: bool, has_header: bool = True
) -> SourceError | None:
    """Return the error of the first invalid row, or None; a header is row 0."""
    for row, scanned in enumerate(scan_rows(text.chunks(), delimiter), 0 if has_header else 1):
        if fault := check_text(text, row or None, scanned):
            return fault
        num_cells = len(split_cells(scanned.text, delimiter))
        if num_cells > num_columns or (num_cells < num_columns and not fills_short):
            return _wrong_count(text, delimiter, row, scanned, (num_columns, num_cells))
    return None


def check_text(text: TextFile, row: int | None, scanned: ScannedRow) -> SourceError | None:
    """Return the error of a row with an unclosed quote, that is too long, or that is not UTF-8; or None."""
    content = scanned.text
    if scanned.unclosed is not None:
        shown = content[scanned.unclosed :][:20].decode(errors="replace")
        return SourceError(
            "a quote is never closed",
            path=text.path,
            row=row,
            line=scanned.line + count_lines(content[: scanned.unclosed]),
            advice=f"Close it, or double it if it belongs to the text: {shown!r}.",
        )
    if not scanned.is_whole:
        return SourceError(
            "length of the row",
            path=text.path,
            row=row,
            line=scanned.line,
            expected=f"at most {MAX_ROW_BYTES >> 20} MiB",
            got="more",
            advice="Check the line endings of the file.",
        )
    try:
        content.decode()
    except UnicodeDecodeError as error:
        got = content[error.start : error.start + 4]
        return text.encoding_error(scanned.offset + error.start, got, row, scanned.line)
    return None


def _wrong_count(
    text: TextFile, delimiter: bytes, row: int, scanned: ScannedRow, counts: tuple[int, int]
) -> SourceError:
    expected, got = counts
    advice = f"Quote cells that contain the delimiter {show_delimiter(delimiter)}."
    if got < expected:
        advice = "Complete the row, or read absent cells as missing: `short_rows='fill'`."
    if more := count_lines(scanned.text):
        advice = f"The row continues to line {scanned.line + more}: a quote may be unclosed. {advice}"
    return SourceError(
        "number of cells",
        path=text.path,
        row=row,
        line=scanned.line,
        expected=expected,
        got=got,
        advice=advice,
    )


_EXCEL_LINE: Final = re.compile(rb"sep=[^\w\s]|sep=\t")

MAX_COLUMNS = 200_000
"""Maximum number of columns, as each becomes a field; store a wider matrix as one tensor."""


class Header(NamedTuple):
    """The first line of a CSV file that is not blank.

    Attributes:
        cells: Cells of the line.
        names: Names of the columns; a column without a name is named by its number.
        num_bytes: Length of the line in bytes.
        end: Offset of its line end; 0 if the line is a row.
        notes: Notes about columns without a name and about a delimiter that seems wrong.
        is_alone: Whether no row follows a line of names.
    """

    cells: tuple[str, ...]
    names: tuple[str, ...]
    num_bytes: int
    end: int
    notes: tuple[str, ...]
    is_alone: bool


def read_header(text: TextFile, dialect: CsvDialect, options: TextFiles) -> Header:
    """Read the header.

    `options`: whether the file has a header, and whether the user declared the delimiter. If not, a single
    name that contains another common delimiter, such as `;`, is an error.
    """
    delimiter = dialect.delimiter
    rows = scan_rows(text.chunks(), delimiter)
    row = next(rows, None)
    if row is None:
        raise SourceError(
            "the file is empty",
            path=text.path,
            expected="a header and rows",
            got="no lines, or only blank ones",
        )
    if fault := check_text(text, None, row):
        raise fault
    if _EXCEL_LINE.fullmatch(row.text.removeprefix(BYTE_ORDER_MARK).strip(b"\r\n")):
        raise SourceError(
            "header",
            path=text.path,
            line=row.line,
            expected="column names",
            got=f"{row.text.decode().strip()!r}, which names the delimiter for Excel",
            advice="Remove this line from the file.",
        )
    cells = tuple(cell.decode() for cell in split_cells(row.text, delimiter))
    if len(cells) > MAX_COLUMNS:
        raise SourceError(
            "number of columns",
            path=text.path,
            line=row.line,
            expected=f"at most {MAX_COLUMNS}",
            got=len(cells),
            advice="Store them as one tensor: pass a dict of NumPy arrays, {'values': array}.",
        )
    if options.header == "none":
        numbered = tuple(f"column_{number}" for number in range(1, len(cells) + 1))
        return Header(cells, numbered, len(row.text), 0, (), is_alone=False)
    if len(cells) == 1 and options.delimiter is None:
        _check_delimiter(text, row, cells[0], delimiter)
    # pandas writes an index without a name.
    written = [cell.lstrip(" ") for cell in cells] if dialect.strips_names else cells
    names = [cell or f"column_{number}" for number, cell in enumerate(written, 1)]
    notes = tuple(
        f"{text.path.name}: column {number} has no name in the header and is named 'column_{number}'."
        for number, cell in enumerate(written, 1)
        if not cell
    )
    if len(cells) == 1 and (other := _find_other(cells[0])):
        given = show_delimiter(delimiter)
        name = f"with the delimiter {given} the header is the single name {cells[0][:80]!r}"
        notes += (f"{text.path.name}: {name}. Should the delimiter be {other!r}?",)
    is_alone = next(rows, None) is None
    try:
        unique = check_names(names, str(text.path))
    except SourceError as error:
        if dialect.is_data_first:
            error.advice = "If the first line is a row, use `header='none'`."
            error.args = (str(error),)
        raise
    return Header(cells, unique, len(row.text), row.offset + len(row.text), notes, is_alone)


def _check_delimiter(text: TextFile, row: ScannedRow, cell: str, delimiter: bytes) -> None:
    other = _find_other(cell)
    if other is None:
        return
    raise SourceError(
        "header",
        path=text.path,
        line=row.line,
        expected=f"names separated by {show_delimiter(delimiter)}",
        got=f"the single name {cell[:80]!r}",
        advice=f"Specify the delimiter: {argument('delimiter', other)}.",
    )


def _find_other(cell: str) -> str | None:
    """Return another delimiter that occurs in a header of one name, or None."""
    return next((other for other in reversed(DELIMITERS) if other in cell), None)


# For pyarrow, no row may be longer than a piece, and it reads about forty pieces ahead: small pieces keep
# memory use low and are as fast. A wide file gets several rows per piece; a file with long rows is parsed
# again with larger pieces.
_PIECE_BYTES = 1 << 20
_HEADERS_A_PIECE = 16
_LARGER_PIECES = (4 << 20, MAX_ROW_BYTES)


class CsvFile:
    """A CSV file whose header was read.

    Attributes:
        path: The file.
        schema: The names of the columns; all are strings.
        num_rows: None, because the number of rows is only known after reading.
        header: The first line.
        notes: Notes about the header.
        dialect_notes: Notes about detected properties, without the name of the file.
    """

    def __init__(self, path: Path, options: TextFiles) -> None:
        """Read the header."""
        self.path = path
        self.num_rows: int | None = None
        self._options = options
        self._text, dialect = open_text(path, options)
        self._delimiter = dialect.delimiter
        self._has_header = options.header == "first"
        self.header = read_header(self._text, dialect, options)
        self.schema = pa.schema([(name, pa.string()) for name in self.header.names])
        self.notes = self.header.notes
        self.dialect_notes = dialect.notes
        self._fault_lock = threading.Lock()
        self._fault: tuple[SourceError | None] | None = None  # once the file was scanned for it

    def tables(self) -> Iterator[tuple[pa.Table, int]]:
        """Yield the rows as tables, each with the number of bytes of the file that it accounts for."""
        if self.header.is_alone:
            return  # pyarrow does not recognize a header without a line ending
        usual = min(max(_PIECE_BYTES, _HEADERS_A_PIECE * self.header.num_bytes), MAX_ROW_BYTES)
        num_rows = num_bytes = 0
        for piece_bytes in (usual, *(size for size in _LARGER_PIECES if size > usual)):
            parsed = 0
            try:
                for batch, position in self._parse(piece_bytes):
                    known = max(0, num_rows - parsed)  # rows that smaller pieces have yielded already
                    parsed += batch.num_rows
                    if known < batch.num_rows:
                        table = pa.Table.from_batches([batch.slice(known)])
                        yield table.rename_columns(list(self.header.names)), max(0, position - num_bytes)
                        num_rows, num_bytes = parsed, max(num_bytes, position)
                return
            except pa.ArrowInvalid as error:
                if "straddling" not in str(error) or piece_bytes >= MAX_ROW_BYTES:
                    raise self._explain(error) from None

    def ranges(self) -> Iterator[CsvRange | None]:
        """Yield ranges of the file with the rows of a block each; None: `tables` must read the other rows.

        Those are all rows of files that are compressed, in another encoding, with comments, with spaces after
        delimiters or with short rows to fill; and the rows from a long one or an unclosed quote on.
        """
        if self.header.is_alone:
            return iter(())
        if not self._text.is_plain or self._options.short_rows == "fill":
            return iter((None,))
        return cut_ranges(OpenFile(self.path), self.header.end, self._delimiter, len(self.header.names))

    def parse(self, found: CsvRange) -> pa.Table:
        """Return the rows of a range; any number of threads can call it."""
        data = found.read()
        try:
            table = pyarrow.csv.read_csv(
                pa.BufferReader(data),  # type: ignore[arg-type]
                read_options=pyarrow.csv.ReadOptions(
                    use_threads=False, block_size=len(data) + 1, column_names=list(self.header.names)
                ),
                parse_options=self._parse_options(),
                convert_options=self._convert_options(self.header.names),
            )
        except pa.ArrowInvalid as error:
            raise self._explain(error) from None
        if table.num_rows != found.num_rows:
            raise self._explain(ValueError(f"expected {found.num_rows} rows, got {table.num_rows}"))
        return table

    def _parse_options(self) -> pyarrow.csv.ParseOptions:
        return pyarrow.csv.ParseOptions(delimiter=self._delimiter.decode(), newlines_in_values=True)

    def _convert_options(self, names: Iterable[str]) -> pyarrow.csv.ConvertOptions:
        return pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=list(self._options.missing),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )

    def _parse(self, piece_bytes: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Yield batches with the position in the file."""
        fills = self._options.short_rows == "fill"
        chunks = ChunkFile(self._fill() if fills else self._text.chunks())
        native = open_arrow(self.path) if self._text.is_plain and not fills else None
        file: Any = pa.PythonFile(chunks, "r") if native is None else native  # type: ignore[arg-type]
        last: pa.RecordBatch | None = None
        try:
            # The file is not closed here: the reader is one piece ahead, in its own thread.
            for batch in pyarrow.csv.open_csv(
                file,
                read_options=pyarrow.csv.ReadOptions(
                    block_size=piece_bytes, column_names=None if self._has_header else list(self.header.names)
                ),
                parse_options=self._parse_options(),
                convert_options=self._convert_options(
                    self.header.cells if self._has_header else self.header.names
                ),
            ):
                last = batch if batch.num_rows else last
                yield batch, self._text.position if native is None else native.tell()
        finally:
            chunks.close()
        if last is not None:
            self._check_end(last, chunks.tail if native is None else self._text.read_tail())

    def _check_end(self, last: pa.RecordBatch, tail: bytes) -> None:
        """Raise an error for a file that ends inside a quote: pyarrow reads the rest of it as a value."""
        value = last.column(last.num_columns - 1)[-1].as_py()
        if value is None:
            return
        # Such a file ends with a quote and the value, whose own quotes are doubled. An unquoted value may
        # look the same; the scanner distinguishes them.
        end = b'"' + value.encode().replace(b'"', b'""')
        if end[-len(tail) :] == tail[-len(end) :] and (fault := self._find_fault()):
            raise fault

    def _explain(self, error: Exception) -> SourceError:
        reason = str(error).strip().rstrip(".")[:200]
        return self._find_fault() or SourceError(f"not a valid CSV file ({reason})", path=self.path)

    def _find_fault(self) -> SourceError | None:
        """Return the first fault of the file, which is scanned once for all threads that ask."""
        with self._fault_lock:
            if self._fault is None:
                fault = find_fault(
                    open_text(self.path, self._options)[0],  # another thread may read `_text`
                    self._delimiter,
                    len(self.header.cells),
                    fills_short=self._options.short_rows == "fill",
                    has_header=self._has_header,
                )
                self._fault = (fault,)
            return self._fault[0]

    def _fill(self) -> Iterator[bytes]:
        """Yield the text, with short rows completed by delimiters."""
        num_columns = len(self.header.cells)
        rows: list[bytes] = []
        num_bytes = 0
        for scanned in scan_rows(self._text.chunks(), self._delimiter):
            row = scanned.text
            if scanned.unclosed is None:  # after an unclosed quote, a delimiter would be text
                row += self._delimiter * (num_columns - len(split_cells(row, self._delimiter))) + b"\n"
            rows.append(row)
            num_bytes += len(row)
            if num_bytes > _PIECE_BYTES:
                yield b"".join(rows)
                rows, num_bytes = [], 0
        yield b"".join(rows)
