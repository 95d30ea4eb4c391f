"""Several splits mixed by shares: which of them gives the record at a position, and which of its records.

In: the order of each split and its share. Out: one `Order` over all, a pure function of the seed, in which
any position is computed by itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.errors import OptionError
from penstock.foundation.wording import count, show
from penstock.read.order import Order, Picks, check_count, check_seed

# Every source has its share of each stretch of so many positions, to within a few.
_WINDOW = 1024
_MIX = 6  # the purpose of the random numbers, beside the purposes in order.py
_WEIGHTED_STEP = 257  # odd: positions of neighbouring passes fall on different turns
_SHARE_UNITS = 1 << 32


class _Stretch(NamedTuple):
    """Consecutive positions: the source of each, and the number of records of each source before them."""

    sources: NDArray[np.int32]
    counters: list[int]


class MixedOrder:
    """Records of several splits by shares; positions, and each split, continue from epoch to epoch.

    Positions are cut into windows of 1024. How often a source has come before a window is a formula: the
    first has had its share of all positions, rounded down; the second, its share of those that the first
    left; and so on. Those counts never go back and add up to all positions, so every window knows how many
    records of each source it has; a permutation keyed by the window's number says which positions they have
    in it. The n-th record of a source is record n mod length of its pass n // length.

    Args:
        orders: Order of each split; none may be empty.
        shares: Share of each split, above 0, in any unit.
        seed: Random seed of the mixture.
        num_records: Number of positions per epoch. Defaults to the number of records of all splits.

    Raises:
        OptionError: An argument is not valid.

    Example:
        >>> from penstock.read.order import SplitOrder
        >>> mixed = MixedOrder([SplitOrder(24), SplitOrder(1000)], [3, 1], seed=7)
        >>> len(mixed), np.bincount(mixed.pick(0, 0, 1024).sources).tolist()
        (1024, [768, 256])
    """

    def __init__(
        self, orders: Sequence[Order], shares: Sequence[float], seed: int = 0, num_records: int | None = None
    ) -> None:
        _check(orders, shares)
        check_seed(seed)
        if num_records is not None:
            check_count("num_records", num_records, 1)
        self._orders = tuple(orders)
        self._shares = [float(share) for share in shares]
        self._seed = seed
        self._size = sum(len(order) for order in orders) if num_records is None else num_records
        total = math.fsum(self._shares)
        self._units = [max(1, round(share / total * _SHARE_UNITS)) for share in self._shares]
        # Of each source, its units and the units of all later sources.
        self._left = [*accumulate(reversed(self._units))][::-1]

    @property
    def window_records(self) -> None:
        """None: a mixture reads all over its splits."""
        return None

    def __len__(self) -> int:
        return self._size

    def pick(self, epoch: int, start: int, stop: int) -> Picks:
        """Return the records at positions `start` to `stop` of an epoch."""
        if not 0 <= start <= stop <= self._size:
            raise IndexError(f"an epoch has {self._size} positions; there are no positions {start} to {stop}")
        sources, counters = self._stretch(epoch * self._size + start, epoch * self._size + stop)
        rows = np.empty(len(sources), np.int64)
        turns = np.empty(len(sources), np.int64)
        for number in range(len(self._orders)):
            places = np.flatnonzero(sources == number)
            if len(places):
                rows[places], turns[places] = self._take(number, counters[number], len(places))
        return Picks(rows, sources, turns)

    def describe(self) -> dict[str, object]:
        """Return a description of the order as a small dict for JSON, with one digest per source."""
        sources = [json.dumps(order.describe(), sort_keys=True) for order in self._orders]
        return {
            "mode": "mixture",
            "seed": self._seed,
            "records": self._size,
            "shares": self._shares,
            "sources": [f"{_native.hash_bytes(source.encode()):016x}" for source in sources],
        }

    def _take(self, number: int, first: int, num_wanted: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return rows and turns of the records of a source from its `first` on."""
        order, length = self._orders[number], len(self._orders[number])
        rows, turns = [], []
        at, end = first, first + num_wanted
        while at < end:
            epoch, start = divmod(at, length)
            stop = min(length, start + end - at)
            picks = order.pick(epoch, start, stop)
            rows.append(picks.rows)
            passes = np.full(stop - start, epoch, np.int64)
            turns.append(passes if picks.turns is None else passes + _WEIGHTED_STEP * picks.turns)
            at += stop - start
        return np.concatenate(rows), np.concatenate(turns)

    def _stretch(self, start: int, stop: int) -> _Stretch:
        """Find the sources of positions that are counted from the first epoch on."""
        first, last = start // _WINDOW, -(-stop // _WINDOW)
        pieces = [self._window(number) for number in range(first, last)]
        sources = np.concatenate([np.empty(0, np.int32), *pieces])
        begin = start - first * _WINDOW
        before = np.bincount(sources[:begin], minlength=len(self._orders)).tolist()
        counters = [n + more for n, more in zip(self._counters(first), before, strict=True)]
        return _Stretch(sources[begin : begin + stop - start], counters)

    def _window(self, number: int) -> NDArray[np.int32]:
        """Return the source of each position of a window."""
        quotas = np.subtract(self._counters(number + 1), self._counters(number)).astype(np.int64)
        key = int(_native.mix_rows(self._seed, number, 1)[0])
        slots = _native.permute(key, 0, _MIX, _WINDOW, np.arange(_WINDOW, dtype=np.int64))
        return np.repeat(np.arange(len(quotas), dtype=np.int32), quotas)[slots]

    def _counters(self, window: int) -> list[int]:
        """Return how many records of each source come before a window."""
        left = window * _WINDOW
        counters = []
        for units, all_units in zip(self._units, self._left, strict=True):
            counters.append(left * units // all_units)
            left -= counters[-1]
        return counters


def _check(orders: Sequence[Order], shares: Sequence[float]) -> None:
    if not orders or len(orders) != len(shares):
        expected = (
            f"one share for each of {count(len(orders), 'data set')}" if orders else "at least one data set"
        )
        raise OptionError("shares", expected=expected, got=count(len(shares), "share"))
    for number, (order, share) in enumerate(zip(orders, shares, strict=True)):
        if isinstance(order, MixedOrder):
            raise OptionError(f"data set {number} of a mixture", expected="a split", got="a mixture")
        if len(order) == 0:
            raise OptionError(f"data set {number} of a mixture", expected="at least one record", got="none")
        is_number = isinstance(share, int | float) and not isinstance(share, bool)
        if not is_number or not 0 < share < math.inf:
            raise OptionError(f"shares[{number}]", expected="a number above 0", got=show(share))
