r"""An exact CSV scanner: where each row begins, and its cells, by the rules of pyarrow's reader.

In: chunks of UTF-8. Out: rows with line and byte. A quote opens a cell only at its beginning, and is doubled
inside (RFC 4180); elsewhere it is a character. Lines end with \n, \r or \r\n; blank ones are no rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from penstock.source.stream import BYTE_ORDER_MARK

MAX_ROW_BYTES = 16 << 20
"""What is longer is a quote that was never closed; memory must not grow with the rest of the file."""


class ScannedRow(NamedTuple):
    """A row of a CSV as it is in the file.

    Attributes:
        text: Its bytes without the line end; of a row that is too long, the beginning.
        line: The line where it begins, from 1.
        offset: The byte where it begins.
        unclosed: Where in `text` a quote opens that is never closed, or None.
        is_whole: Whether `text` is all of it.
    """

    text: bytes
    line: int
    offset: int
    unclosed: int | None = None
    is_whole: bool = True


def scan_rows(chunks: Iterable[bytes], delimiter: bytes) -> Iterator[ScannedRow]:
    """Yield the rows of a CSV, its header among them; one of more than MAX_ROW_BYTES is the last.

    Python's regular expressions do the work, at some 100 MB/s: enough to find a fault or to read a header.
    """
    pattern = _row_pattern(delimiter)
    ahead = iter(chunks)
    window, line, offset, is_last = b"", 1, 0, False
    while not is_last:
        window, is_last = _extend(window, ahead)
        position = len(BYTE_ORDER_MARK) if offset == 0 and window.startswith(BYTE_ORDER_MARK) else 0
        for match in pattern.finditer(window, position):
            # What touches the end of the window may go on behind it, be it only by the \n of an \r\n.
            if match.end() == len(window) and not is_last:
                break
            if match["row"]:
                yield ScannedRow(match["row"], line, offset + position, _unclosed(match))
            line += count_lines(match[0])
            position = match.end()
        offset += position
        window = window[position:]
        if len(window) > MAX_ROW_BYTES:
            yield ScannedRow(window, line, offset, _unclosed(pattern.match(window)), is_whole=False)
            return


def split_cells(row: bytes, delimiter: bytes) -> list[bytes]:
    """Return the cells of a row, without their quotes."""
    if b'"' not in row:
        return row.split(delimiter)
    pattern = _cell_pattern(delimiter)
    cells: list[bytes] = []
    position = 0
    while position <= len(row) and (match := pattern.match(row, position)):
        quoted, rest = match["quoted"], match["rest"]
        cells.append(rest if quoted is None else quoted.replace(b'""', b'"') + rest)
        position = match.end() + 1  # behind the delimiter; beyond the row if this was the last
    return cells


def count_lines(text: bytes) -> int:
    """Return how many line ends there are in a text."""
    return text.count(b"\n") + text.count(b"\r") - text.count(b"\r\n")


def _unclosed(match: re.Match[bytes] | None) -> int | None:
    return None if match is None or match["open"] is None else match.start("open") - match.start()


def _extend(window: bytes, ahead: Iterator[bytes]) -> tuple[bytes, bool]:
    """Add at least as much as is there, so that a long row is looked at a few times only; tell the end."""
    pieces = [window]
    wanted = max(1, len(window))
    while wanted > 0:
        chunk = next(ahead, None)
        if chunk is None:
            return b"".join(pieces), True
        pieces.append(chunk)
        wanted -= len(chunk)
    return b"".join(pieces), False


# Possessive quantifiers throughout: a row is matched in one way or not at all, in linear time.
_QUOTED = rb'"(?:[^"]++|"")*+'


@cache
def _row_pattern(delimiter: bytes) -> re.Pattern[bytes]:
    end = re.escape(delimiter)
    cell = rb'(?:%b"[^%b\r\n]*+|(?!")[^%b\r\n]*+)' % (_QUOTED, end, end)
    return re.compile(
        rb"(?P<row>(?:%b%b)*+(?:%b|(?P<open>%b\Z)))(?:\r\n?|\n|\Z)" % (cell, end, cell, _QUOTED)
    )


@cache
def _cell_pattern(delimiter: bytes) -> re.Pattern[bytes]:
    return re.compile(rb'(?:"(?P<quoted>(?:[^"]++|"")*+)"?+)?+(?P<rest>[^%b]*+)' % re.escape(delimiter))
