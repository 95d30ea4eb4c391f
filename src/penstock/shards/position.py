"""Where each row lies among all rows: the number of 64 bits by which hashes divide them into splits.

In: a ledger. Out: one position per row, the same for all rows of one deciding value. Values that differ but
have the same hash are placed by their digests: hashes can be made to collide, so that all go to one split.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.shards.grouping import Grouping
from penstock.shards.ledger import Ledger
from penstock.shards.partition import RowUpdates
from penstock.shards.scratch import make_row_array, release_pages
from penstock.types import Mask


class Positions:
    """The position of every row of a ledger.

    Attributes:
        num_collisions: How many rows have the hash of a row whose deciding value is another one.
        num_hashes: How many different hashes there are.
    """

    def __init__(self, ledger: Ledger, seed: int) -> None:
        self.num_collisions = 0
        self._ledger = ledger
        self._seed = seed
        grouping = Grouping(ledger.folder, ledger.positions.read, ledger.num_rows)
        self.num_hashes = grouping.num_keys
        self._is_collision = self._find_collisions(grouping)

    @property
    def are_distinct(self) -> bool:
        """Whether no two rows have the same hash, so that no two deciding values are the same."""
        return self.num_hashes == self._ledger.num_rows

    def _find_collisions(self, grouping: Grouping) -> Mask | None:
        ledger = self._ledger
        with RowUpdates(ledger.folder, ledger.num_rows) as updates:
            for found in grouping.groups(ledger.position_digests.read):
                updates.add(found.rows[found.is_mixed], np.ones(1))
            self.num_collisions = updates.count
            if not self.num_collisions:
                return None
            is_collision = make_row_array(ledger.folder, ledger.num_rows, np.bool_)
            updates.apply(is_collision)
            return is_collision

    def read(self, start: int, stop: int) -> NDArray[np.uint64]:
        """Return the positions of rows `start` to `stop`."""
        hashes = self._ledger.positions.read(start, stop)
        if self._is_collision is not None:
            is_collision = np.array(self._is_collision[start:stop])
            release_pages(self._is_collision)
            if is_collision.any():
                digests = self._ledger.position_digests.read(start, stop)
                hashes = np.where(is_collision, digests[:, 0], hashes)
        return _native.mix_hashes(self._seed, hashes)
