"""Rows that fit into memory, in the order of each split.

In: all rows in one chunk, their keys, their splits. Out: chunks of a split; the bytes stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from penstock.shards.chunk import Chunk

_STEP_ROWS = 1 << 18  # of which places are taken at a time: a few megabytes


class Resident:
    """The rows of all splits, in memory."""

    def __init__(
        self, rows: Chunk, keys: NDArray[np.uint64], codes: NDArray[np.uint8], num_splits: int
    ) -> None:
        self._rows = rows
        self._orders = []
        for split in range(num_splits):
            found = np.flatnonzero(codes == split)
            self._orders.append(found[np.argsort(keys[found])])

    @property
    def counts(self) -> list[int]:
        """How many rows each split has."""
        return [len(order) for order in self._orders]

    def chunks(self, split: int, start: int, stop: int, chunk_bytes: int) -> Iterator[Chunk]:
        """Yield the rows of a split from one position to another."""
        order = self._orders[split]
        for first in range(start, stop, _STEP_ROWS):
            yield from self._rows.take(order[first : min(first + _STEP_ROWS, stop)]).cut(chunk_bytes)
