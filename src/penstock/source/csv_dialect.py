"""The dialect of a CSV file, detected from its first rows: delimiter, spaces after delimiters, header.

In: the text of a file, and the user's declarations. Out: a `CsvDialect`, with notes on detected properties.
Declarations are never overruled, and where the rows allow two delimiters the usual one is kept.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Final, NamedTuple

from penstock.errors import SourceError
from penstock.settings.groups import TextFiles
from penstock.source.csv_scanner import MAX_ROW_BYTES, find_close, scan_rows, split_cells
from penstock.source.text_file import BYTE_ORDER_MARK, TextFile

DELIMITERS: Final = (",", ";", "\t", "|")
"""Delimiters that are detected."""

_SAMPLE_BYTES: Final = 256 << 10
_SAMPLE_ROWS: Final = 100
"""Limits of the sample that decides: a file of any size is opened in a few milliseconds."""

_NUMBER: Final = re.compile(rb"\s*[+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?\s*")


class CsvDialect(NamedTuple):
    """How the cells of a CSV file are separated.

    Attributes:
        delimiter: Delimiter between cells.
        skips_spaces: Whether spaces at the start of cells are not part of their values.
        strips_names: Whether spaces at the start of names in the header are not part of the names.
        is_data_first: Whether the first row looks like data instead of column names.
        notes: Notes about detected properties, without the name of the file.
    """

    delimiter: bytes
    skips_spaces: bool = False
    strips_names: bool = False
    is_data_first: bool = False
    notes: tuple[str, ...] = ()


class CleanText(TextFile):
    """A CSV file without its comments, and without the spaces at the start of its cells.

    Raises:
        PenstockError: See `TextFile`.
    """

    def __init__(self, path: Path, options: TextFiles, spaced: bytes | None = None) -> None:
        super().__init__(path, options.encoding)
        self.is_plain = False
        self._options = options
        self._spaced = spaced

    def chunks(self) -> Generator[bytes, None, None]:
        """Yield the text without those parts."""
        chunks = super().chunks()
        if self._options.comment is not None:
            chunks = skip_comments(chunks, self._options.comment.encode(), self._options.delimiter)
        return chunks if self._spaced is None else skip_spaces(chunks, self._spaced)

    def encoding_error(
        self,
        offset: int | None,  # noqa: ARG002 - it does not count the bytes that are left out
        got: bytes,
        row: int | None = None,
        line: int | None = None,
    ) -> SourceError:
        """Return the error for bytes that are not valid in the encoding."""
        return super().encoding_error(None, got, row, line)


def open_text(path: Path, options: TextFiles) -> tuple[TextFile, CsvDialect]:
    """Open a CSV file, and detect properties that are not declared."""
    is_clean = options.comment is None
    text = TextFile(path, options.encoding) if is_clean else CleanText(path, options)
    dialect = find_dialect(text, options)
    if dialect.skips_spaces:
        text = CleanText(path, options, dialect.delimiter)
    return text, dialect


def find_dialect(text: TextFile, options: TextFiles) -> CsvDialect:
    """Return the dialect of a file."""
    sample, is_whole = _take_sample(text)
    notes: list[str] = []
    if options.delimiter is not None:
        delimiter = options.delimiter.encode()
    else:
        delimiter, notes = _choose_delimiter(_name_delimiter(text.path), sample, is_whole=is_whole)
    first, rest = _split_first(sample, delimiter)
    skips = _is_spaced(rest if rest.strip() else first, delimiter)
    strips = skips or (options.header == "first" and _is_spaced(first, delimiter))
    if strips:
        what = "values and column names" if skips else "column names"
        notes.append(f"spaces after the delimiter {show_delimiter(delimiter)} are not part of {what}")
    rows = _list_cells(sample, delimiter, is_whole=is_whole)
    is_data = options.header == "first" and is_data_first(rows)
    if is_data:
        notes.append(word_data_first(rows[0]))
    return CsvDialect(delimiter, skips, strips, is_data, tuple(notes))


def word_data_first(first: Sequence[bytes]) -> str:
    """Return the note about a first row that looks like data."""
    shown = ", ".join(repr(cell.decode(errors="replace")[:20]) for cell in first[:3])
    more = ", …" if len(first) > 3 else ""
    return (
        f"the first line looks like a row, but is read as column names ({shown}{more}). If the file has "
        "no header, use `header='none'`"
    )


def is_table(sample: bytes, *, is_whole: bool) -> bool:
    """Return whether a delimiter divides all rows of a text into the same number of cells, at least two."""
    try:
        text = sample.decode()
    except UnicodeDecodeError as error:
        if error.start < len(sample) - 4:
            return False
        text = sample[: error.start].decode()
    if not all(char.isprintable() or char in "\t\r\n\ufeff" for char in text):
        return False
    for each in DELIMITERS:
        counts = [len(cells) for cells in _list_cells(sample, each.encode(), is_whole=is_whole)]
        if len(counts) > 1 and counts[0] > 1 and len(set(counts)) == 1:
            return True
    return False


def show_delimiter(delimiter: bytes) -> str:
    """Return a delimiter as a user writes it."""
    return repr(delimiter.decode())


def skip_spaces(chunks: Iterable[bytes], delimiter: bytes) -> Generator[bytes, None, None]:
    """Yield a text without the spaces at the start of cells; those inside quotes are kept."""
    opening = re.compile(rb'[%b\r\n] *"' % re.escape(delimiter))
    spaces = re.compile(rb"([%b\r\n]) +" % re.escape(delimiter))
    window, is_first = b"\n", True  # the line ending marks the start of the first cell
    for chunk in _with_end(chunks):
        window += chunk.removeprefix(BYTE_ORDER_MARK) if is_first else chunk
        pieces: list[bytes] = []
        position = 0
        while match := opening.search(window, position):
            close = find_close(window, match.end())
            if close + 1 >= len(window) and chunk and len(window) - match.start() <= MAX_ROW_BYTES:
                break  # the cell continues in the next chunk
            pieces += [spaces.sub(rb"\1", window[position : match.start() + 1]), b'"']
            pieces.append(window[match.end() : close + 1])
            position = close + 1
        # Spaces at the end may be the start of a cell in quotes.
        end = len(window) if not chunk else match.start() if match else _find_last_cell(window, delimiter)
        end = max(end, position)
        pieces.append(spaces.sub(rb"\1", window[position:end]))
        text = b"".join(pieces)
        window = window[end:]
        if text:
            yield text[1:] if is_first else text
            is_first = False


def skip_comments(
    chunks: Iterable[bytes], mark: bytes, delimiter: str | None = None
) -> Generator[bytes, None, None]:
    """Yield a text whose lines that begin with a character are empty; those inside quotes are kept.

    Lines keep their numbers. Readers leave out empty ones.
    """
    delimiters = re.escape("".join(DELIMITERS) if delimiter is None else delimiter).encode()
    found = re.compile(rb'(?<=[\r\n])(?P<comment>%b[^\r\n]*)|[%b\r\n] *"' % (re.escape(mark), delimiters))
    window, num_done = b"\n", 1  # the line ending marks the start of the first line
    is_first = True
    for chunk in _with_end(chunks):
        window += chunk.removeprefix(BYTE_ORDER_MARK) if is_first else chunk
        is_first = False
        pieces: list[bytes] = []
        position, end = 0, len(window) if not chunk else len(window.rstrip(b" ")) - 1
        while match := found.search(window, position):
            if match["comment"] is None:
                close = find_close(window, match.end())
                if close + 1 >= len(window) and chunk and len(window) - match.start() <= MAX_ROW_BYTES:
                    end = match.start()  # the cell continues in the next chunk
                    break
                pieces.append(window[max(position, num_done) : close + 1])
                position = close + 1
            else:
                pieces.append(window[max(position, num_done) : match.start()])
                position = match.end()
                if position == len(window) and chunk:  # the comment continues in the next chunk
                    window += window[match.start() - 1 : match.start()] + mark
                    end, num_done = position, position + 1
                    break
        end = max(end, position)
        text = b"".join([*pieces, window[max(position, num_done) : end]])
        window, num_done = window[end:], max(0, num_done - end)
        if text:
            yield text


def _find_last_cell(window: bytes, delimiter: bytes) -> int:
    """Return the index of the separator before the last cell, if only spaces follow; otherwise the end."""
    stripped = window.rstrip(b" ")
    return len(stripped) - 1 if stripped.endswith((delimiter, b"\r", b"\n")) else len(window)


def _with_end(chunks: Iterable[bytes]) -> Iterator[bytes]:
    yield from (chunk for chunk in chunks if chunk)
    yield b""


def _take_sample(text: TextFile) -> tuple[bytes, bool]:
    """Return the first bytes of a text, and whether there are no others."""
    pieces: list[bytes] = []
    num_bytes = 0
    for chunk in text.chunks():
        pieces.append(chunk)
        num_bytes += len(chunk)
        if num_bytes > _SAMPLE_BYTES:
            break
    sample = b"".join(pieces)
    return sample[:_SAMPLE_BYTES].removeprefix(BYTE_ORDER_MARK), num_bytes <= _SAMPLE_BYTES


def _name_delimiter(path: Path) -> bytes:
    """Return the usual delimiter for the suffix of a file."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return b"\t" if ".tsv" in suffixes or ".tab" in suffixes else b","


def _choose_delimiter(usual: bytes, sample: bytes, *, is_whole: bool) -> tuple[bytes, list[str]]:
    """Return the delimiter, and a note if it is not the usual one or may be another.

    A delimiter fits if it divides every row of the sample into the same number of cells, at least two.
    """
    counts = {
        each.encode(): [len(cells) for cells in _list_cells(sample, each.encode(), is_whole=is_whole)]
        for each in DELIMITERS
        if each.encode() in sample
    }
    fitting = [each for each, found in counts.items() if found[:1] > [1] and len(set(found)) == 1]
    of_usual = counts.get(usual, [1])[:1] or [1]
    if usual in fitting or (not fitting and of_usual > [1]):
        others = [each for each in fitting if each != usual]
        return usual, [_word_doubt(usual, others[0])] if others else []
    if not fitting:  # rows with too few or too many cells, which are separate errors
        fitting = [
            each
            for each, found in counts.items()
            if found[:1] > [1] and 2 * found[1:].count(found[0]) >= max(1, len(found) - 1)
        ]
    if len(fitting) == 1:
        return fitting[0], [f"read with delimiter {show_delimiter(fitting[0])}"]
    return usual, [_word_doubt(usual, fitting[0])] if fitting else []


def _word_doubt(usual: bytes, other: bytes) -> str:
    name = show_delimiter(other)
    return (
        f"read with delimiter {show_delimiter(usual)}, but {name} divides the rows equally well. If it is "
        f"the delimiter, use `delimiter={name}`"
    )


def _list_cells(sample: bytes, delimiter: bytes, *, is_whole: bool) -> list[list[bytes]]:
    """Return the cells of the first rows; an incomplete last row is left out if there are others."""
    first, rest = _split_first(sample, delimiter)
    if _is_spaced(rest if rest.strip() else first, delimiter):
        sample = b"".join(skip_spaces([sample], delimiter))
    rows = list(islice(scan_rows([sample], delimiter), _SAMPLE_ROWS + 1))
    if len(rows) > _SAMPLE_ROWS or (not is_whole and len(rows) > 1):
        rows = rows[:-1]
    return [split_cells(row.text, delimiter) for row in rows]


def _split_first(sample: bytes, delimiter: bytes) -> tuple[bytes, bytes]:
    """Return the first row of a sample, and the rest."""
    row = next(scan_rows([sample], delimiter), None)
    if row is None:
        return b"", b""
    return row.text, sample[row.offset + len(row.text) :]


def _is_spaced(sample: bytes, delimiter: bytes) -> bool:
    """Return whether a space follows every delimiter, except before empty cells."""
    if delimiter == b" " or delimiter + b" " not in sample:
        return False
    outside = _quoted_pattern(delimiter).sub(rb"\1x", b"\n" + sample)
    num_empty = len(re.findall(rb"%b *(?=[%b\r\n]|\Z)" % ((re.escape(delimiter),) * 2), outside))
    num_spaced = len(re.findall(rb"%b +(?![ %b\r\n]|\Z)" % ((re.escape(delimiter),) * 2), outside))
    return num_spaced > 0 and num_spaced + num_empty == outside.count(delimiter)


@cache
def _quoted_pattern(delimiter: bytes) -> re.Pattern[bytes]:
    return re.compile(rb'([%b\r\n] *)"[^"]*"(?:"[^"]*"){0,100}' % re.escape(delimiter))


def is_data_first(rows: Sequence[Sequence[bytes]]) -> bool:
    """Return whether the first row looks like the others: numbers stand where they have numbers.

    Consecutive years, and the column numbers of a matrix from 0, are usual names.
    """
    if not rows:
        return False
    first, others = rows[0], rows[1:]
    if not others:
        return len(first) > 1 and all(map(_NUMBER.fullmatch, first)) and not _are_consecutive(first)
    columns = [
        name
        for number, name in enumerate(first)
        if (cells := [row[number] for row in others if number < len(row) and row[number].strip()])
        and all(map(_NUMBER.fullmatch, cells))
    ]
    return bool(columns) and all(map(_NUMBER.fullmatch, columns)) and not _are_consecutive(columns)


def _are_consecutive(names: Sequence[bytes]) -> bool:
    if not all(name.strip().isdigit() and len(name) < 19 for name in names):
        return False
    numbers = list(map(int, names))
    are_years = all(1900 <= number <= 2100 for number in numbers)
    is_counted = all(after - before == 1 for before, after in pairwise(numbers))
    return is_counted and (numbers[0] == 0 or are_years)
