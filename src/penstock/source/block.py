"""What every source yields: blocks of raw columns, in the order of the data.

In: nothing. Out: `Block`, the `Source` protocol, and the size of a block.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.schema.declaration import Representation
from penstock.schema.field import Field

RawColumn: TypeAlias = "pa.Array[Any] | NDArray[Any]"
"""One value a row. NumPy arrays may be (rows, …); those of dtype object hold anything: arrays, images, …"""

BLOCK_ROWS = 16_384
"""At most so many rows a block. Blocks are cut by the data alone: statistics are merged block by block."""

BLOCK_BYTES = 32 << 20
"""About so many bytes a block at most: a few blocks are in flight at once, and memory must stay flat."""


LARGE_BYTES = 4096
"""Byte strings of this size and more are not worth moving about: they stay where they are until written."""


@dataclass(frozen=True)
class Block:
    """Some consecutive rows of a source, as they are there.

    Attributes:
        first_row: Number of the first row in the source, from 0.
        num_rows: How many rows.
        columns: A value a row; the same names in the same order in every block.
        path: The file that the rows are in; no block has rows of two files.
        row_in_file: Number of the first row in that file, from 0.
        lines: The line of each row where that is known beforehand; `place.find_line` finds it elsewhere.
        folder: What relative paths in the rows are relative to.
        is_resident: Whether the arrays live as long as the source does, as those of a table in memory.
        num_bytes: How much of the source's `num_bytes` the block stands for.
    """

    first_row: int
    num_rows: int
    columns: Mapping[str, RawColumn]
    path: str | None = None
    row_in_file: int = 0
    lines: NDArray[np.int64] | None = None
    folder: str | None = None
    is_resident: bool = False
    num_bytes: int = 0

    def cut(self, num_rows: int) -> Iterator[Block]:
        """Yield the same rows in blocks of at most so many."""
        if self.num_rows <= num_rows:
            yield self
            return
        for start in range(0, self.num_rows, num_rows):
            stop = min(start + num_rows, self.num_rows)
            yield replace(
                self,
                first_row=self.first_row + start,
                num_rows=stop - start,
                columns={name: raw[start:stop] for name, raw in self.columns.items()},
                row_in_file=self.row_in_file + start,
                lines=None if self.lines is None else self.lines[start:stop],
                num_bytes=self.num_bytes * (stop - start) // self.num_rows,
            )


class Source(Protocol):
    """Raw data that yields blocks.

    Attributes:
        name: What messages call it: `pets.csv`, `DataFrame`, `iterable of dicts`.
        is_repeatable: Whether `blocks()` can be called again.
        num_rows: How many rows there are, or None where only reading tells.
        num_bytes: How many bytes there are to read, or None where nobody knows.
        declared: Fields that the source itself knows, by column.
        forms: How those columns hold their values.
        notes: What a person should hear about the source, sentence by sentence; complete once it was read.
    """

    name: str
    is_repeatable: bool
    declared: Mapping[str, Field]
    forms: Mapping[str, Representation]

    @property
    def num_rows(self) -> int | None:
        """See above."""

    @property
    def num_bytes(self) -> int | None:
        """See above."""

    @property
    def notes(self) -> tuple[str, ...]:
        """See above."""

    def blocks(self) -> Iterator[Block]:
        """Yield the rows from the first to the last."""

    def provenance(self) -> list[dict[str, Any]]:
        """Return where the rows come from, as JSON: name, bytes, sha256 and rows of each file.

        Names are base names or relative to the source's folder, never absolute. What is in memory has name,
        kind and rows. Rows are None where they were not counted.
        """


HEAD_ROWS: Final = 65_536
HEAD_BYTES: Final = 64 << 20
"""The head ends with the block that reaches either: it follows from the data alone, as the plan must."""


class PeekedSource:
    """A source with its first blocks at hand; a `Source` itself.

    Attributes:
        head: The first blocks.
        is_whole: Whether there are no others.

    The first call of `blocks()` lets go of the head block by block, as it is passed on.
    """

    def __init__(self, source: Source) -> None:
        self.name = source.name
        self.is_repeatable = source.is_repeatable
        self.num_rows = source.num_rows
        self.num_bytes = source.num_bytes
        self.declared: Mapping[str, Field] = source.declared
        self.forms: Mapping[str, Representation] = source.forms
        self._source = source
        self._absent: tuple[str, ...] = ()
        self._rest: Iterator[Block] | None = source.blocks()
        self.head, self.is_whole = _take_head(self._rest)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should hear about the source; complete once it was read."""
        return self._source.notes

    def add_absent(self, names: Iterable[str]) -> None:
        """Give all blocks columns that the source does not have, in which every value is missing."""
        self._absent = (*self._absent, *names)
        self.head = tuple(map(self._add_absent, self.head))

    def _add_absent(self, block: Block) -> Block:
        if not self._absent:
            return block
        nulls: dict[str, RawColumn] = dict.fromkeys(self._absent, pa.nulls(block.num_rows))
        return replace(block, columns={**block.columns, **nulls})

    def blocks(self) -> Iterator[Block]:
        """Yield the rows from the first to the last."""
        if self._rest is None:
            yield from map(self._add_absent, self._source.blocks())
            return
        rest, self._rest = self._rest, None
        head, self.head = deque(self.head), ()
        while head:
            yield head.popleft()
        yield from map(self._add_absent, rest)

    def provenance(self) -> list[dict[str, Any]]:
        """Return where the rows come from, as JSON."""
        return self._source.provenance()


def _take_head(blocks: Iterator[Block]) -> tuple[tuple[Block, ...], bool]:
    head = []
    num_rows = num_bytes = 0
    for block in blocks:
        head.append(block)
        num_rows += block.num_rows
        num_bytes += sum(map(_count_bytes, block.columns.values()))
        if num_rows >= HEAD_ROWS or num_bytes >= HEAD_BYTES:
            break
    else:
        return tuple(head), True
    return tuple(head), False


def _count_bytes(column: RawColumn) -> int:
    if isinstance(column, np.ndarray) and column.dtype == object:
        # Arrays, byte strings and texts know their size; others are small, or not worth a guess.
        return sum(getattr(value, "nbytes", 0) or _len(value) for value in column)
    return int(column.nbytes)


def _len(value: object) -> int:
    return len(value) if isinstance(value, (bytes, bytearray, str)) else 0
