"""Byte ranges of a CSV file that hold the rows of one block each, so that any thread can parse them.

In: a plain file in UTF-8. Out: ranges, as long as it is certain that the blocks are those of a reader of the
whole file; its errors and long rows are left to that reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from penstock import _native
from penstock.source.block import BLOCK_BYTES, BLOCK_ROWS
from penstock.source.text_file import BYTE_ORDER_MARK
from penstock.storage.open_file import OpenFile

_READ_BYTES: Final = 4 << 20
_LONG_ROW_BYTES: Final = 1 << 20  # a longer one may be an error, which depends on pieces

# Memory of a cell, a chunk of a column and a column, beside the bytes of the cells: no less than in Arrow.
_CELL_BYTES: Final = 5
_CHUNK_BYTES: Final = 8
_COLUMN_BYTES: Final = 64


class CsvRange(NamedTuple):
    """Bytes of consecutive rows, from a line end or the beginning of the file on.

    Without a line end, Arrow would remove a byte order mark that belongs to the first cell.
    """

    file: OpenFile
    begin: int
    end: int
    num_rows: int

    def read(self) -> bytes:
        """Return the bytes."""
        return self.file.read(self.begin, self.end - self.begin)


def cut_ranges(file: OpenFile, begin: int, delimiter: bytes, num_columns: int) -> Iterator[CsvRange | None]:
    """Yield the ranges of blocks, and None at the end if they do not have all rows of the file.

    `begin`: line end before the rows, or 0.
    """
    has_mark = begin == 0 and file.read(0, len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK
    position = len(BYTE_ORDER_MARK) if has_mark else begin
    rows = _native.RowCutter(delimiter[0], BLOCK_ROWS, position)
    while piece := file.read(position, _READ_BYTES):
        position += len(piece)
        ends = rows.scan(piece)
        is_certain = rows.longest_row <= _LONG_ROW_BYTES
        for end in ends:
            is_certain = is_certain and _is_block(end - begin, BLOCK_ROWS, num_columns)
            if is_certain:
                yield CsvRange(file, begin, end, BLOCK_ROWS)
                begin = end - 1
        if not is_certain or position - begin > BLOCK_BYTES:
            yield None
            return
    if rows.is_quoted or not _is_block(position - begin, rows.num_rows, num_columns):
        yield None
    elif rows.num_rows:
        yield CsvRange(file, begin, position, rows.num_rows)


def _is_block(num_bytes: int, num_rows: int, num_columns: int) -> bool:
    """Return whether rows are not too large for one block, with any number of Arrow tables."""
    num_chunks = num_bytes // _LONG_ROW_BYTES + 2
    per_column = _CELL_BYTES * num_rows + _CHUNK_BYTES * num_chunks + _COLUMN_BYTES
    return num_bytes + num_columns * per_column <= BLOCK_BYTES
