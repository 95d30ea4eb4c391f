"""The randomness of a batch, a pure function of seed, epoch, record and purpose.

In: the keys of the records of a batch. Out: `Draws`, which gives random numbers a row a record. Who draws
when, in which thread or beside whom changes nothing.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.errors import OptionError
from penstock.foundation.wording import show
from penstock.transform.normal import normal_quantile

_MOST_WORDS = 4 << 16  # of a record and purpose: the counter has 16 bits for blocks of four words
_WIDEST_RANGE = 1 << 53


class Draws:
    """Random numbers for the records of one batch.

    A purpose is a name such as "crop" or "noise". It gets numbers of its own, which another purpose does not
    change; asking twice for one purpose gives the same numbers twice.

    Attributes:
        seed: Of the loader.
        epoch: Counted from 0; the same record gets other numbers in the next one.
        records: A key a row, which names its record in the data set.
        augments: Whether the batch is for training, where images and the like are changed at random.

    Example:
        >>> import numpy as np
        >>> draws = Draws(seed=7, epoch=0, records=np.arange(3))
        >>> draws.uniform("noise", (2,)).shape
        (3, 2)
    """

    __slots__ = ("_scope", "augments", "epoch", "records", "seed")

    def __init__(
        self, seed: int, epoch: int, records: NDArray[np.int64], scope: str = "", *, augments: bool = True
    ) -> None:
        self.seed = seed
        self.epoch = epoch
        self.records = records
        self._scope = scope
        self.augments = augments

    def __len__(self) -> int:
        return len(self.records)

    def within(self, scope: str) -> Draws:
        """Return draws for the same records whose purposes are others: those of one map, say."""
        return Draws(self.seed, self.epoch, self.records, f"{self._scope}{scope}/", augments=self.augments)

    def words(self, purpose: str, count: int) -> NDArray[np.uint32]:
        """Return `count` random words of 32 bits a record, as (rows, count).

        Raises:
            OptionError: These are more than a record has for one purpose.
        """
        if not 0 <= count <= _MOST_WORDS:
            expected = f"at most {_MOST_WORDS} words of 32 bits a record, a number takes two"
            advice = "Draw them for several purposes."
            raise OptionError(f"draw {purpose!r}", expected=expected, got=show(count), advice=advice)
        return _native.random_words(self.seed, self.epoch, self._number(purpose), self.records, count)

    def uniform(self, purpose: str, shape: tuple[int, ...] = ()) -> NDArray[np.float64]:
        """Return numbers in [0, 1), an array of `shape` a record."""
        # 53 bits of two words, as many as a double holds in that range.
        pairs = self._pairs(purpose, shape)
        return (pairs >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def integers(self, purpose: str, low: int, high: int, shape: tuple[int, ...] = ()) -> NDArray[np.int64]:
        """Return whole numbers from `low` to below `high`, an array of `shape` a record.

        Raises:
            OptionError: There is no number between them, or more than 2^53.
        """
        if not 0 < high - low <= _WIDEST_RANGE:
            expected = "1 to 2^53 numbers from low to below high"
            raise OptionError(f"draw {purpose!r}", expected=expected, got=f"{show(low)} to {show(high)}")
        # The product is below the range however it is rounded, as a uniform number ends 2^-53 below 1.
        return np.floor(self.uniform(purpose, shape) * float(high - low)).astype(np.int64) + low

    def normal(self, purpose: str, shape: tuple[int, ...] = ()) -> NDArray[np.float64]:
        """Return numbers of the standard normal distribution, an array of `shape` a record."""
        # The middle of each of 2^52 intervals: neither 0 nor 1, whose quantiles are infinite.
        pairs = self._pairs(purpose, shape)
        return normal_quantile(((pairs >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)

    def _pairs(self, purpose: str, shape: tuple[int, ...]) -> NDArray[np.uint64]:
        words = self.words(purpose, 2 * prod(shape)).astype(np.uint64)
        pairs: NDArray[np.uint64] = words[:, 0::2] << np.uint64(32) | words[:, 1::2]
        return pairs.reshape((len(self.records), *shape))

    def _number(self, purpose: str) -> int:
        # 16 bits: two purposes of one batch share their numbers once in 65 536.
        return _native.crc32c(f"{self._scope}{purpose}".encode()) & 0xFFFF
