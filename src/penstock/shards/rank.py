"""Shares met exactly, by rank: for rows so few that a hash alone would miss them.

In: units of rows in order, which must stay together. Out: the split of each unit.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def share_out(num_rows: int, shares: Sequence[float]) -> list[int]:
    """Return how many rows each split gets: whole numbers near the shares, and none is empty if possible.

    Example:
        >>> share_out(5, (0.8, 0.1, 0.1))
        [3, 1, 1]
    """
    total = sum(shares)
    quotas = [num_rows * share / total for share in shares]
    counts = [int(quota) for quota in quotas]
    by_remainder = sorted(range(len(shares)), key=lambda i: counts[i] - quotas[i])
    for i in by_remainder[: num_rows - sum(counts)]:
        counts[i] += 1
    if num_rows < len(shares):
        return [int(i in _largest(shares, num_rows)) for i in range(len(shares))]
    while 0 in counts:
        counts[counts.index(max(counts))] -= 1
        counts[counts.index(0)] += 1
    return counts


def split_units(sizes: NDArray[np.int64], shares: Sequence[float]) -> NDArray[np.uint8]:
    """Return the number of the split of each unit; splits take units in order.

    A cut goes between units, as near as possible to where the shares put it, and so that no split is empty.
    Where units are fewer than splits, those with the largest shares get one each.
    """
    num_units, num_splits = len(sizes), len(shares)
    if num_units < num_splits:
        return np.array(sorted(_largest(shares, num_units)), np.uint8)
    ends = np.cumsum(sizes)
    cuts = np.zeros(num_splits - 1, np.int64)  # how many units lie before each
    wanted = 0
    for i, count in enumerate(share_out(int(ends[-1]), shares)[:-1]):
        wanted += count
        after = int(np.searchsorted(ends, wanted))
        before_rows = int(ends[after - 1]) if after else 0
        nearest = after + (int(ends[after]) - wanted <= wanted - before_rows)
        least = int(cuts[i - 1]) + 1 if i else 1
        cuts[i] = min(max(nearest, least), num_units - (num_splits - 1 - i))
    return np.searchsorted(cuts, np.arange(num_units), side="right").astype(np.uint8)


def split_by_rank(places: NDArray[np.uint64], shares: Sequence[float]) -> NDArray[np.uint8]:
    """Return the split of each row by the rank of its place; rows of one place are a unit."""
    _, unit_of, sizes = np.unique(places, return_inverse=True, return_counts=True)
    return split_units(sizes, shares)[unit_of]


def _largest(shares: Sequence[float], count: int) -> list[int]:
    return sorted(range(len(shares)), key=lambda i: -shares[i])[:count]
