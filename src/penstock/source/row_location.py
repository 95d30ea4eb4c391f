"""Location of a row for messages: the number of the row in its file, and its line.

In: a block and a row in it. Out: two numbers. Lines are counted only on request, by reading the file again,
once for all requests.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from penstock.settings.groups import TextFiles
from penstock.source.block import Block
from penstock.source.csv_dialect import open_text
from penstock.source.csv_scanner import scan_rows
from penstock.source.jsonl import read_layout
from penstock.source.recognition import find_kind
from penstock.source.text_file import TextFile
from penstock.storage.open_file import FileIdentity, OpenFile


def locate_row(block: Block, row: int, options: TextFiles) -> tuple[int, int | None]:
    """Return the number and the line of row `row` of a block, counted from 0, in its file or other source.

    The returned row and line are counted from 1; a header is line 1 but not a row. The line is None if the
    source has no lines.
    """
    first = block.first_row if block.path is None else block.row_in_file
    return first + row + 1, _find_line(block, row, options)


def _find_line(block: Block, row: int, options: TextFiles) -> int | None:
    if block.lines is not None:
        return int(block.lines[row])
    if block.path is None:
        return None
    path = Path(block.copy or block.path)
    if block.copy is not None and not path.exists():
        return None  # another machine made the copy
    return _lines_of(path, OpenFile(path).identity, options).find(block.row_in_file + row)


class RowLines:
    """Line numbers of the rows of a file, counted on request; safe for any number of threads.

    Only rows where the difference between line and row changes are stored: after blank lines and multi-line
    cells.
    """

    def __init__(self, lines: Iterator[int]) -> None:
        self._lines = lines
        self._num_rows = 0
        self._rows: list[int] = []
        self._drifts: list[int] = []
        self._lock = threading.Lock()

    def find(self, row: int) -> int | None:
        """Return the line of a row, counted from 0; None if the file has no such row."""
        with self._lock:
            while self._num_rows <= row:
                line = next(self._lines, None)
                if line is None:
                    return None
                drift = line - self._num_rows
                if not self._drifts or drift != self._drifts[-1]:
                    self._rows.append(self._num_rows)
                    self._drifts.append(drift)
                self._num_rows += 1
            return row + self._drifts[bisect_right(self._rows, row) - 1]


# The identity is part of the key: the lines of a changed file are counted again.
@lru_cache(maxsize=4)
def _lines_of(path: Path, identity: FileIdentity, options: TextFiles) -> RowLines:  # noqa: ARG001
    kind = find_kind(path, options)
    if kind == "csv":
        text, dialect = open_text(path, options)
        rows = scan_rows(text.chunks(), dialect.delimiter)
        if options.header == "first":
            next(rows, None)
        return RowLines(row.line for row in rows)
    if kind == "jsonl" and read_layout(text := TextFile(path, options.encoding)).start is None:
        return RowLines(_filled_lines(text.chunks()))
    return RowLines(iter(()))


def _filled_lines(chunks: Iterator[bytes]) -> Iterator[int]:
    """Yield the numbers of the lines that are not blank."""
    number, is_filled = 1, False
    for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            if is_filled or end.strip():
                yield number
            number, is_filled = number + 1, False
        is_filled = is_filled or bool(rest.strip())
    if is_filled:
        yield number
