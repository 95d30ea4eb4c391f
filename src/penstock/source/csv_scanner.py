r"""An exact CSV scanner: the start and the cells of each row, by the rules of pyarrow's reader.

In: chunks of UTF-8. Out: rows with line and byte offset. A quote opens a cell only at the start of the cell
and is doubled inside (RFC 4180); elsewhere it is a character. Lines end with \n, \r or \r\n; blank lines are
not rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final, NamedTuple

from penstock.source.text_file import BYTE_ORDER_MARK

MAX_ROW_BYTES = 16 << 20
"""Maximum length of a row. A longer row has an unclosed quote; memory must not grow with the rest of the
file."""


class ScannedRow(NamedTuple):
    """A row of a CSV file.

    Attributes:
        text: Bytes of the row without the line ending; of a row that is too long, the beginning.
        line: Line number where the row begins, from 1.
        offset: Byte offset where the row begins.
        unclosed: Index in `text` of a quote that is never closed, or None.
        is_whole: Whether `text` is the complete row.
    """

    text: bytes
    line: int
    offset: int
    unclosed: int | None = None
    is_whole: bool = True


def scan_rows(chunks: Iterable[bytes], delimiter: bytes) -> Iterator[ScannedRow]:
    """Yield the rows of a CSV file, including its header; a row longer than MAX_ROW_BYTES is the last one.

    Regular expressions scan about 30 MB/s, which is enough to find an error or to read a header.
    """
    pattern = _span_pattern(delimiter)
    ahead = iter(chunks)
    window, line, offset, is_last = b"", 1, 0, False
    while not is_last:
        window, is_last = _extend(window, ahead)
        if offset == 0 and window.startswith(BYTE_ORDER_MARK):
            window, offset = window[len(BYTE_ORDER_MARK) :], len(BYTE_ORDER_MARK)
        position = 0
        while position < len(window):
            match = pattern.match(window, position)
            if match is None or match["end"] is None:  # rare: see `_find_row_end`
                row_end, end, unclosed = _find_row_end(window, position, delimiter)
            else:
                row_end, end, unclosed = match.end("row"), match.end(), None
            # A row at the end of the window may continue after it, if only by the \n of an \r\n.
            if end == len(window) and not is_last:
                break
            row = window[position:row_end]
            if row:
                yield ScannedRow(row, line, offset + position, unclosed)
            line += end > row_end
            if b'"' in row:
                line += count_lines(row)
            position = end
        offset += position
        window = window[position:]
        if len(window) > MAX_ROW_BYTES:
            yield ScannedRow(window, line, offset, _find_row_end(window, 0, delimiter)[2], is_whole=False)
            return


def split_cells(row: bytes, delimiter: bytes) -> list[bytes]:
    """Return the cells of a row, without their quotes."""
    if b'"' not in row:
        return row.split(delimiter)
    cells: list[bytes] = []
    position = 0
    while position <= len(row):
        quoted = b""
        if row.startswith(b'"', position):
            close = find_close(row, position + 1)
            quoted = row[position + 1 : close].replace(b'""', b'"')
            position = close + 1  # past the row if the quote is never closed
        end = row.find(delimiter, position)
        if end < 0:
            end = len(row)
        cells.append(quoted + row[position:end])
        position = end + 1  # past the row if this was the last cell
    return cells


def count_lines(text: bytes) -> int:
    """Return the number of line endings in a text."""
    num_returns = text.count(b"\r")
    return text.count(b"\n") + (num_returns and num_returns - text.count(b"\r\n"))


def _extend(window: bytes, ahead: Iterator[bytes]) -> tuple[bytes, bool]:
    """Return the window, at least doubled in size, and whether the text ends with it."""
    pieces = [window]
    wanted = max(1, len(window))
    while wanted > 0:
        chunk = next(ahead, None)
        if chunk is None:
            return b"".join(pieces), True
        pieces.append(chunk)
        wanted -= len(chunk)
    return b"".join(pieces), False


def _find_row_end(window: bytes, start: int, delimiter: bytes) -> tuple[int, int, int | None]:
    """Find the end of the row that begins at `start`, whatever its length.

    Returns:
        The end of the row, the start of the next row, and the index in the row of a quote that is never
        closed, or None.
    """
    pattern = _span_pattern(delimiter)
    position = start
    while match := pattern.match(window, position):
        if match["end"] is not None:
            return match.end("row"), match.end(), None
        is_stuck = match.end() == position
        position = match.end()
        if is_stuck:  # at an unclosed cell, or one with too many quotes for the pattern
            close = find_close(window, position + 1)
            if close == len(window):
                return close, close, position - start
            position = close + 1
    return position, position, None  # not reached: the pattern matches everywhere


def find_close(text: bytes, position: int) -> int:
    """Return the index of the quote that closes the cell around `position`, or `len(text)` if none does."""
    close = text.find(b'"', position)
    while close >= 0:
        if not text.startswith(b'"', close + 1):
            return close
        match = _DOUBLED.match(text, close)
        close = -1 if match is None or match.end() == len(text) else match.end()
    return len(text)


# No possessive quantifiers and no atomic groups: Python before 3.11.4 matches them wrongly. The patterns need
# neither: at each byte one alternative at most can match, so that matching takes linear time, and repeated
# groups are bounded, because `re` keeps some 100 bytes of memory for each repetition of a group.
_MOST_CELLS: Final = 1000
_MOST_QUOTES: Final = 100
_DOUBLED: Final = re.compile(rb'(?:""[^"]*){1,%d}' % _MOST_CELLS)


@cache
def _span_pattern(delimiter: bytes) -> re.Pattern[bytes]:
    """Return a pattern for the rest of a row; without group "end", it stops before the end of the row.

    It stops at a quote that is never closed, or after so many quotes that the memory of `re` would grow. A
    quote opens a cell after a delimiter or at the beginning of the row; elsewhere it is a character.
    """
    outside = rb"%b\r\n" % re.escape(delimiter)
    quoted = rb'(?<![^%b]")[^"]*"(?:(?!")|(?:"[^"]*"){1,%d}(?!"))' % (outside, _MOST_QUOTES)
    literal = rb'(?<=[^%b]")' % outside
    spans = rb'(?:"(?:%b|%b)[^"\r\n]*){0,%d}' % (quoted, literal, _MOST_CELLS)
    return re.compile(rb'(?P<row>[^"\r\n]*%b)(?P<end>\r\n?|\n|\Z)?' % spans)
