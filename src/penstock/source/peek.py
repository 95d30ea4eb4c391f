"""A source whose first blocks are looked at before a conversion begins, and are read only once all the same.

In: any source. Out: its head, for the survey; then all its blocks, the head among them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.schema.field import Field
from penstock.source.block import Block, Form, RawColumn, Source

HEAD_ROWS: Final = 65_536
HEAD_BYTES: Final = 64 << 20
"""The head ends with the block that reaches either: it follows from the data alone, as the plan must."""


class Peeked:
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
        self.forms: Mapping[str, Form] = source.forms
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
