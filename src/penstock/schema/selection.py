"""The rows of a block that count, and those among them that are sampled.

In: which rows are wanted, their keys, and a column's presence. Out: `Selection`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.schema.sample import SAMPLE_ROWS
from penstock.types import Mask


class Selection:
    """Some rows of a block, in two orders: as they are, and by their keys.

    Attributes:
        keep: Which rows of the block they are; None if all.
        num_rows: How many they are.
        keys: The smallest of their keys, ascending, at most `SAMPLE_ROWS`.
        sampled: The rows that have those keys.
    """

    __slots__ = ("_by_key", "_keys", "_rows", "keep", "keys", "num_rows", "sampled")

    def __init__(
        self, keep: Mask | None, keys: NDArray[np.uint64], by_key: NDArray[np.int64], num_rows: int
    ) -> None:
        """Select rows of a block; `by_key` are all of them in the order of their keys."""
        self.keep = keep
        self.num_rows = num_rows
        self.sampled = by_key[:SAMPLE_ROWS]
        self.keys = keys[self.sampled]
        self._by_key, self._keys = by_key, keys
        self._rows = None if keep is None else np.flatnonzero(keep)

    @classmethod
    def of_block(cls, keep: Mask | None, keys: NDArray[np.uint64]) -> Selection:
        """Select the rows of a block that are wanted; None wants all."""
        # Sorted once for all columns: merging a sample then takes the head of it and looks at nothing else.
        by_key = np.argsort(keys)
        return cls(None, keys, by_key, len(keys)).where(keep)

    def where(self, present: Mask | None) -> Selection:
        """Select those of the rows for which `present` is True; None is for all."""
        if present is None:
            return self
        keep = present if self.keep is None else self.keep & present
        num_rows = int(np.count_nonzero(keep))
        if num_rows == self.num_rows:
            return self
        return Selection(keep, self._keys, self._by_key[keep[self._by_key]], num_rows)

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the rows of an array with a row for each of the block."""
        return values if self._rows is None else values.take(self._rows, axis=0)
