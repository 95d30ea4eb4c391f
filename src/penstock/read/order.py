"""The order of an epoch: which record is at which position, a pure function of (seed, epoch).

In: how many rows a split has, which of them are wanted, how they are shuffled; for a mixture, the orders of
several splits and their shares. Out: the rows at any positions, each computed by itself, so that nothing of
the size of the split is in memory and no position takes longer than another.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.errors import OptionError
from penstock.foundation.wording import count, list_choices, show
from penstock.read.bitmap import Bitmap

Shuffle: TypeAlias = Literal["none", "global", "block"]

# Purposes of random numbers. They are part of the meaning of a seed, and never change.
_SHUFFLE, _ROTATE, _BLOCKS, _WINDOW, _DRAW, _MIX = range(1, 7)
_UNIT = 2.0**-53

# Every source has its share of each such number of consecutive positions, within a few.
_WINDOW_RECORDS = 1024
_WEIGHTED_STEP = 257  # odd: positions of neighbouring passes fall on different turns
_SHARE_UNITS = 1 << 32


class Picks(NamedTuple):
    """The records at some positions of an epoch.

    Attributes:
        rows: Row number of each record in its split.
        sources: Number of the split of each record, for a mixture; otherwise None.
        turns: Number that distinguishes repetitions of a record within an epoch: for a mixture the pass over
            its split, with weights the position; otherwise None.
    """

    rows: NDArray[np.int64]
    sources: NDArray[np.int32] | None = None
    turns: NDArray[np.int64] | None = None


class Order(Protocol):
    """The order of the records in each epoch."""

    @property
    def window_records(self) -> int | None:
        """Within how many positions records are read that lie together in blocks; None if they do not."""

    def __len__(self) -> int:
        """Return the number of positions in an epoch."""

    def pick(self, epoch: int, start: int, stop: int) -> Picks:
        """Return the records at positions `start` to `stop` of an epoch."""

    def describe(self) -> dict[str, object]:
        """Return a description of the order as a small dict for JSON; different orders differ in it."""


@dataclass(frozen=True, eq=False)
class SplitOrder:
    """The order of the rows of one split.

    Of the rows in `bitmap`, in stored order, the first `skip` are left out and at most `take` are used; these
    are shuffled anew in each epoch.

    Attributes:
        num_rows: Number of rows in the split.
        shuffle: "none" is stored order. "global" is a permutation of all rows. "block" reads consecutive
            rows: the rows are rotated by a random number and divided into blocks, the blocks come in random
            order, and rows are shuffled within windows of blocks.
        seed: Random seed of the shuffle.
        block_records: Number of rows per block, for "block".
        window_blocks: Number of blocks whose rows are shuffled together, for "block". The last window also
            contains the remaining rows.
        bitmap: Selected rows; None for all.
        skip: Number of selected rows to skip.
        take: Maximum number of the remaining rows to use; None for all.
        weights: One number of at least 0 per row of the split. With weights, the record at each position is
            drawn independently, with replacement, and `shuffle` is ignored. An epoch keeps its length.

    Raises:
        OptionError: An argument is not valid.

    Example:
        >>> order = SplitOrder(5, shuffle="global", seed=7)
        >>> sorted(order.pick(0, 0, 5).rows.tolist())
        [0, 1, 2, 3, 4]
    """

    num_rows: int
    _: KW_ONLY
    shuffle: Shuffle = "none"
    seed: int = 0
    block_records: int = 1024
    window_blocks: int = 64
    bitmap: Bitmap | None = None
    skip: int = 0
    take: int | None = None
    weights: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if self.shuffle not in get_args(Shuffle):
            raise OptionError("shuffle", expected=list_choices(get_args(Shuffle)), got=show(self.shuffle))
        _check_seed(self.seed)
        for name, least in (("num_rows", 0), ("block_records", 1), ("window_blocks", 1), ("skip", 0)):
            check_count(name, getattr(self, name), least)
        if self.take is not None:
            check_count("take", self.take, 0)
        if self.bitmap is not None and self.bitmap.num_rows != self.num_rows:
            raise OptionError("bitmap", expected=f"{self.num_rows} rows", got=self.bitmap.num_rows)
        if self.weights is not None and self.weights.shape != (self.num_rows,):
            shape = self.weights.shape
            raise OptionError("weights", expected=f"an array of the shape ({self.num_rows},)", got=shape)
        _ = self._sums  # adds up the weights, which may be wrong

    def __len__(self) -> int:
        wanted = self.num_rows if self.bitmap is None else len(self.bitmap)
        left = max(0, wanted - self.skip)
        return left if self.take is None else min(left, self.take)

    @property
    def window_records(self) -> int | None:
        """Within how many positions records are read that lie together in blocks; None if they do not."""
        is_blocks = self.shuffle == "block" and self.weights is None
        return self.block_records * self.window_blocks if is_blocks else None

    def pick(self, epoch: int, start: int, stop: int) -> Picks:
        """Return the records at positions `start` to `stop` of an epoch."""
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"an epoch has {len(self)} positions; there are no positions {start} to {stop}")
        places = self._shuffle(epoch, start, stop) + self.skip
        rows = places if self.bitmap is None else self.bitmap.select(places)
        return Picks(rows, turns=None if self._sums is None else np.arange(start, stop, dtype=np.int64))

    def describe(self) -> dict[str, object]:
        """Return a description of the order as a small dict for JSON."""
        sums = self._sums
        mode = self.shuffle if sums is None else "weighted"
        facts: dict[str, object] = {"mode": mode, "rows": self.num_rows}
        if mode != "none":
            facts["seed"] = self.seed
        if mode == "block":
            facts |= {"block_records": self.block_records, "window_blocks": self.window_blocks}
        if self.skip or self.take is not None:
            facts |= {"skip": self.skip, "take": self.take}
        if self.bitmap is not None:
            facts["chosen"] = self.bitmap.digest()
        if sums is not None:
            facts["weights"] = f"{_native.hash_bytes(sums.view(np.uint8).data):016x}"
        return facts

    def _shuffle(self, epoch: int, start: int, stop: int) -> NDArray[np.int64]:
        """Return the indexes among the wanted rows of the rows at some positions."""
        positions = np.arange(start, stop, dtype=np.int64)
        if self._sums is not None and start < stop:
            return _draw(self.seed, epoch, self._sums, positions)
        if self.shuffle == "global" and start < stop:
            return _native.permute(self.seed, epoch, _SHUFFLE, len(self), positions)
        if self.shuffle == "block" and start < stop:
            return self._shuffle_blocks(epoch, positions)
        return positions

    def _shuffle_blocks(self, epoch: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        size, block = len(self), self.block_records
        slots = self._shuffle_windows(epoch, int(positions[0]), int(positions[-1]) + 1)
        numbers, within = np.divmod(slots, block)
        is_full = numbers < size // block  # the block that is cut short comes last
        numbers[is_full] = _native.permute(self.seed, epoch, _BLOCKS, max(1, size // block), numbers[is_full])
        # Turned round by another number in each epoch, so that rows have other companions in their blocks,
        # and others are in the short one.
        return (numbers * block + within + _draw_below(self.seed, epoch, size)) % size

    def _shuffle_windows(self, epoch: int, start: int, stop: int) -> NDArray[np.int64]:
        """Return the positions before the shuffle inside windows."""
        size = len(self)
        window = min(self.block_records * self.window_blocks, size)
        # What does not fill a window joins the last one: alone it might be a few rows, hardly shuffled.
        last = size // window - 1
        pieces = []
        for number in range(min(start // window, last), min((stop - 1) // window, last) + 1):
            begin = number * window
            end = size if number == last else begin + window
            inside = np.arange(max(start, begin), min(stop, end), dtype=np.int64) - begin
            key = int(_native.mix_rows(self.seed, number, 1)[0])
            pieces.append(_native.permute(key, epoch, _WINDOW, end - begin, inside) + begin)
        return np.concatenate(pieces)

    @cached_property
    def _sums(self) -> NDArray[np.float64] | None:
        return None if self.weights is None else self._add_up(self.weights)

    def _add_up(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of the weights of the wanted rows, up to each."""
        chosen = weights if self.bitmap is None else self.bitmap.take(weights)
        chosen = chosen[self.skip : self.skip + len(self)]
        if not np.all(chosen >= 0):
            row = int(np.flatnonzero(~(chosen >= 0))[0])
            raise OptionError("weights", expected="numbers of at least 0", got=show(float(chosen[row])))
        with np.errstate(over="ignore"):
            sums = np.cumsum(chosen, dtype=np.float64)
        if len(sums) and not 0 < sums[-1] < np.inf:
            got = "only zeros" if sums[-1] == 0 else "a sum that is infinite"
            raise OptionError("weights", expected="some that are above 0, and a finite sum", got=got)
        return sums


def shard_slice(batch: range, rank: int, world: int) -> range:
    """Return the positions of a global batch that one of several ranks takes.

    Of b positions, rank r of n takes those from r·b // n to (r + 1)·b // n, also of a last batch that is
    short: each position goes to one rank, and no rank gets more than one more than another. A batch of fewer
    positions than ranks leaves some with none.

    Example:
        >>> [list(shard_slice(range(10, 17), rank, 3)) for rank in range(3)]
        [[10, 11], [12, 13], [14, 15, 16]]
    """
    if not 0 <= rank < world:
        raise OptionError("shard", expected=f"a rank from 0 to {world - 1} of {world}", got=show(rank))
    return batch[rank * len(batch) // world : (rank + 1) * len(batch) // world]


def _check_seed(seed: object) -> None:
    """Check that a seed is an unsigned 64-bit integer."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**64:
        raise OptionError("seed", expected="a whole number from 0 to 2**64 - 1", got=show(seed))


def check_count(name: str, value: object, least: int) -> None:
    """Check that an option is an integer of at least `least`."""
    is_whole = hasattr(value, "__index__") and not isinstance(value, bool)
    if not is_whole or operator.index(value) < least:  # type: ignore[arg-type]
        raise OptionError(name, expected=f"a whole number of at least {least}", got=show(value))


def _draw_below(seed: int, epoch: int, size: int) -> int:
    low, high = _native.random_words(seed, epoch, _ROTATE, np.zeros(1, np.int64), 2)[0].tolist()
    return int((high << 32 | low) * size >> 64)


def _draw(
    seed: int, epoch: int, sums: NDArray[np.float64], positions: NDArray[np.int64]
) -> NDArray[np.int64]:
    words = _native.random_words(seed, epoch, _DRAW, positions, 2).astype(np.uint64)
    points = ((words[:, 1] << np.uint64(32) | words[:, 0]) >> np.uint64(11)) * _UNIT * sums[-1]
    found = np.searchsorted(sums, points, side="right")
    # Rounding may move a point to the end, which is exclusive.
    last = int(np.searchsorted(sums, sums[-1]))
    places: NDArray[np.int64] = np.minimum(found, last)
    return places


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
        _check_shares(orders, shares)
        _check_seed(seed)
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
        first, last = start // _WINDOW_RECORDS, -(-stop // _WINDOW_RECORDS)
        pieces = [self._window(number) for number in range(first, last)]
        sources = np.concatenate([np.empty(0, np.int32), *pieces])
        begin = start - first * _WINDOW_RECORDS
        before = np.bincount(sources[:begin], minlength=len(self._orders)).tolist()
        counters = [n + more for n, more in zip(self._counters(first), before, strict=True)]
        return _Stretch(sources[begin : begin + stop - start], counters)

    def _window(self, number: int) -> NDArray[np.int32]:
        """Return the source of each position of a window."""
        quotas = np.subtract(self._counters(number + 1), self._counters(number)).astype(np.int64)
        key = int(_native.mix_rows(self._seed, number, 1)[0])
        slots = _native.permute(key, 0, _MIX, _WINDOW_RECORDS, np.arange(_WINDOW_RECORDS, dtype=np.int64))
        return np.repeat(np.arange(len(quotas), dtype=np.int32), quotas)[slots]

    def _counters(self, window: int) -> list[int]:
        """Return the number of records of each source before a window."""
        left = window * _WINDOW_RECORDS
        counters = []
        for units, all_units in zip(self._units, self._left, strict=True):
            counters.append(left * units // all_units)
            left -= counters[-1]
        return counters


def _check_shares(orders: Sequence[Order], shares: Sequence[float]) -> None:
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
