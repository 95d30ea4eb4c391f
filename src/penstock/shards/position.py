"""Where each row lies among all rows: the number of 64 bits by which hashes divide them into splits.

In: a ledger. Out: one position per row, the same for all rows of one deciding value. Values that differ but
have the same hash are placed by their digests: hashes can be made to collide, so that all go to one split.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.shards.grouping import group_rows, slice_rows
from penstock.shards.ledger import Ledger
from penstock.shards.scratch import make_row_array
from penstock.types import Mask


class Positions:
    """The position of every row of a ledger.

    Attributes:
        num_collisions: How many rows have the hash of a row whose deciding value is another one.
        are_distinct: Whether no two rows have the same hash, so that no two deciding values are the same.
    """

    def __init__(self, ledger: Ledger, seed: int) -> None:
        self.num_collisions = 0
        self.are_distinct = True
        self._ledger = ledger
        self._seed = seed
        self._is_collision = self._find_collisions()

    def _find_collisions(self) -> Mask | None:
        ledger, found = self._ledger, None
        for groups in group_rows(ledger.positions.read, ledger.position_digests.read, ledger.num_rows):
            self.are_distinct = self.are_distinct and not len(groups.keys)
            if not groups.is_mixed.any():
                continue
            if found is None:
                found = make_row_array(ledger.folder, ledger.num_rows, np.bool_)
            for start, stop in slice_rows(ledger.num_rows):
                inside, group_of = groups.find(ledger.positions.read(start, stop))
                rows = start + inside[groups.is_mixed[group_of]]
                found[rows] = True
                self.num_collisions += len(rows)
        return found

    def read(self, start: int, stop: int) -> NDArray[np.uint64]:
        """Return the positions of rows `start` to `stop`."""
        hashes = self._ledger.positions.read(start, stop)
        if self._is_collision is not None and self._is_collision[start:stop].any():
            digests = self._ledger.position_digests.read(start, stop)
            hashes = np.where(self._is_collision[start:stop], digests[:, 0], hashes)
        return _native.mix_hashes(self._seed, hashes)
