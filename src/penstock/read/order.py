"""The order of an epoch: which record stands at which position, a pure function of (seed, epoch).

In: how many rows a split has, which of them are wanted, how they are shuffled. Out: the rows at any
positions, each computed by itself, so that nothing of the size of the split is held and no position costs
more than another.
"""

from __future__ import annotations

import operator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Literal, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.errors import OptionError
from penstock.foundation.wording import list_choices, show
from penstock.read.bitmap import Bitmap

Shuffle: TypeAlias = Literal["none", "global", "block"]

# Purposes of random numbers. They are part of the meaning of a seed, and never change.
_SHUFFLE, _ROTATE, _BLOCKS, _WINDOW, _DRAW = range(1, 6)
_UNIT = 2.0**-53


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

    Rows that `bitmap` leaves out are as if they were not there; of the others, `skip` are passed over and at
    most `take` are used, in stored order; these are shuffled anew in each epoch.

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
        check_seed(self.seed)
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
        """Return the places among the wanted rows that stand at some positions."""
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


def check_seed(seed: object) -> None:
    """Check that a seed is an unsigned 64-bit integer."""
    if not isinstance(seed, int) or isinstance(seed, bool) or not 0 <= seed < 2**64:
        raise OptionError("seed", expected="a whole number from 0 to 2**64 - 1", got=show(seed))


def check_count(name: str, value: object, least: int) -> None:
    """Check that an option is an integer of at least `least`."""
    is_whole = hasattr(value, "__index__") and not isinstance(value, bool)
    if not is_whole or operator.index(value) < least:  # type: ignore[arg-type]
        raise OptionError(name, expected=f"a whole number of at least {least}", got=show(value))


def _draw_below(seed: int, epoch: int, size: int) -> int:
    """Return a random number from 0 to `size` − 1."""
    low, high = _native.random_words(seed, epoch, _ROTATE, np.zeros(1, np.int64), 2)[0].tolist()
    return int((high << 32 | low) * size >> 64)


def _draw(
    seed: int, epoch: int, sums: NDArray[np.float64], positions: NDArray[np.int64]
) -> NDArray[np.int64]:
    words = _native.random_words(seed, epoch, _DRAW, positions, 2).astype(np.uint64)
    points = ((words[:, 1] << np.uint64(32) | words[:, 0]) >> np.uint64(11)) * _UNIT * sums[-1]
    found = np.searchsorted(sums, points, side="right")
    # Rounding may lift a point to the very end, behind which there is nothing.
    last = int(np.searchsorted(sums, sums[-1]))
    places: NDArray[np.int64] = np.minimum(found, last)
    return places
