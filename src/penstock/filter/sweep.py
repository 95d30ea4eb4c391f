"""One pass over a few columns of a split, from its first row to its last.

In: rows, a plan, and what to make of a block of columns. Out: what was made, one value a row, block by block
in order, whatever the number of threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from threading import Event
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.decode.reader import read_columns
from penstock.errors import PenstockError
from penstock.read.rows import Rows
from penstock.types import Columns

Measure: TypeAlias = Callable[[Columns, int], NDArray[Any]]
"""Makes of the columns of so many rows an array with an entry a row."""

_BLOCK_ROWS = 1 << 14
_BLOCK_BYTES = 16 << 20
# How far threads may be ahead of what is taken.
_AHEAD = 2


class Swept(NamedTuple):
    """What was made of some rows one behind the other.

    Attributes:
        start: The first row.
        values: One entry a row; zero for those that are bad and passed over.
    """

    start: int
    values: NDArray[Any]


class _Noted(Losses):
    """Takes note of the bad rows of a block; whether they may be passed over, is decided in order."""

    def __init__(self) -> None:
        super().__init__("collect", 0)
        self.found: dict[int, PenstockError] = {}

    def add(self, row: int, error: PenstockError) -> None:
        """Take note of a bad record."""
        self.found.setdefault(row, error)


def sweep(
    rows: Rows, plan: DecodePlan, losses: Losses, measure: Measure, num_threads: int = 1
) -> Generator[Swept]:
    """Yield what `measure` makes of all rows, in order; bad ones are raised or passed over.

    Close it (`contextlib.closing`) where it may not come to its end: then the threads end.

    Args:
        rows: The rows.
        plan: Which columns are read.
        losses: What becomes of bad records.
        measure: Called in several threads.
        num_threads: How many threads read and measure.
    """
    forward = rows.in_order()
    is_over = Event()
    with ThreadPoolExecutor(max(1, num_threads), "penstock-sweep") as pool:
        ahead: deque[Future[list[tuple[Swept, _Noted]]]] = deque()
        try:
            for blocks in _tasks(forward):
                ahead.append(pool.submit(_run, forward, plan, measure, blocks, is_over))
                if len(ahead) > _AHEAD * num_threads:
                    yield from _settle(ahead.popleft().result(), losses)
            while ahead:
                yield from _settle(ahead.popleft().result(), losses)
        finally:
            is_over.set()
            pool.shutdown(wait=False, cancel_futures=True)


def fill(swept: Iterable[Swept], num_rows: int, dtype: str) -> NDArray[Any]:
    """Return what was made of all rows as one array."""
    values = np.zeros(num_rows, dtype)
    for start, part in swept:
        values[start : start + len(part)] = part
    return values


def _tasks(rows: Rows) -> Iterator[list[tuple[int, int]]]:
    """Yield blocks for one thread, in order: all of a file that is inflated on the way."""
    blocks = rows.blocks(_BLOCK_ROWS, _BLOCK_BYTES)
    for shard, its_blocks in groupby(blocks, lambda block: rows.locate(block[0])[0]):
        if shard.index.compression != "none":
            yield list(its_blocks)
        else:
            yield from ([block] for block in its_blocks)


def _run(
    rows: Rows, plan: DecodePlan, measure: Measure, blocks: list[tuple[int, int]], is_over: Event
) -> list[tuple[Swept, _Noted]]:
    results = []
    for start, stop in blocks:
        if is_over.is_set():  # nobody waits for the rest of a file
            break
        noted = _Noted()
        columns, num_rows = read_columns(rows, plan, noted, start, stop)
        values = measure(columns, num_rows)
        if noted.found:
            whole = np.zeros((stop - start, *values.shape[1:]), values.dtype)
            whole[[row - start for row in range(start, stop) if row not in noted.found]] = values
            values = whole
        results.append((Swept(start, values), noted))
    return results


def _settle(results: list[tuple[Swept, _Noted]], losses: Losses) -> Iterator[Swept]:
    for swept, noted in results:
        for row in sorted(noted.found):
            losses.add(row, noted.found[row])
        yield swept
