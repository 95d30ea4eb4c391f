"""What every source yields: blocks of raw columns, in the order of the data.

In: nothing. Out: `Block`, the `Source` protocol, and the size of a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.schema.field import Field

Form: TypeAlias = Literal["value", "path", "date", "time", "bool", "json"]
"""How a column holds the values of its field.

- `value`: as they are.
- `path`: as names of files that hold them, relative to where the source lies.
- `date`: as dates, stored as days since 1970-01-01.
- `time`: as points in time, stored as microseconds since 1970-01-01T00:00 UTC; UTC where they name no zone.
- `bool`: as true or false, in any case; stored as 1 and 0.
- `json`: as texts that hold a JSON list.
"""

NanMeaning: TypeAlias = Literal["missing", "value"]
"""What NaN means in a column of single numbers: a missing value, or a value like any other."""

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
    forms: Mapping[str, Form]

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
