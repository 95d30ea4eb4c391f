"""Random numbers of a batch: a pure function of seed, epoch, record and purpose.

In: the keys of the records of a batch. Out: `Draws`, which returns one row of random numbers per record. The
result does not depend on threads, order of calls or other records of the batch.
"""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.errors import OptionError
from penstock.foundation.wording import show

_Doubles = NDArray[np.float64]

# Wichura's AS 241 (1988), PPND16: numerator and denominator, highest power first.
_CENTRE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
     5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
_NEAR_TAIL = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
     0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
)  # fmt: skip
_FAR_TAIL = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
     0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
     0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0),
)  # fmt: skip
_LN_2 = 0.6931471805599453


def normal_quantile(shares: _Doubles) -> _Doubles:
    """Return quantiles of the standard normal distribution for probabilities in (0, 1)."""
    distance = shares - 0.5
    found = distance * _ratio(_CENTRE, 0.180625 - distance * distance)
    is_tail = np.abs(distance) > 0.425
    if is_tail.any():
        far = distance[is_tail]
        root = np.sqrt(-_logarithm(np.where(far < 0, shares[is_tail], 0.5 - far)))
        size = np.where(root <= 5.0, _ratio(_NEAR_TAIL, root - 1.6), _ratio(_FAR_TAIL, root - 5.0))
        found[is_tail] = np.where(far < 0, -size, size)
    return found


def _ratio(parts: tuple[tuple[float, ...], tuple[float, ...]], at: _Doubles) -> _Doubles:
    numerator, denominator = (_polynomial(part, at) for part in parts)
    return numerator / denominator


def _polynomial(powers: tuple[float, ...], at: _Doubles) -> _Doubles:
    total = np.full_like(at, powers[0])
    for power in powers[1:]:
        total = total * at + power
    return total


def _logarithm(values: _Doubles) -> _Doubles:
    """Return natural logarithms of positive numbers, exact to a few units in the last place."""
    fractions, exponents = np.frexp(values)
    # From 0.5…1 to 0.71…1.41, where the series is short: 11 terms are below 2^-54 of the first.
    is_low = fractions < 0.7071067811865476
    fractions = np.where(is_low, fractions * 2.0, fractions)
    part = (fractions - 1.0) / (fractions + 1.0)
    series = _polynomial(tuple(1.0 / n for n in range(23, 0, -2)), part * part)
    return 2.0 * part * series + (exponents - is_low) * _LN_2


_MAX_WORDS = 4 << 16  # per record and purpose: the counter has 16 bits for blocks of four words
_WIDEST_RANGE = 1 << 53


class Draws:
    """Random numbers for the records of one batch.

    A purpose is a name such as "crop" or "noise". Each purpose has its own random numbers, independent of
    other purposes; a second call with the same purpose returns the same numbers.

    Attributes:
        seed: Random seed of the loader.
        epoch: Epoch, counted from 0; a record gets other numbers in each epoch.
        records: One key per row, which identifies the record in the data set.
        augments: Whether the batch is for training, in which images are augmented.

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
        """Return draws for the same records with separate purposes, such as the purposes of one map."""
        return Draws(self.seed, self.epoch, self.records, f"{self._scope}{scope}/", augments=self.augments)

    def keys(self, *purposes: str) -> tuple[int, int, tuple[int, ...], NDArray[np.int64]]:
        """Return the arguments for draws by the core: seed, epoch, a number per purpose, and records."""
        return self.seed, self.epoch, tuple(map(self._number, purposes)), self.records

    def words(self, purpose: str, count: int) -> NDArray[np.uint32]:
        """Return `count` random 32-bit words per record, in the shape (rows, count).

        Raises:
            OptionError: `count` exceeds the maximum for one purpose.
        """
        if not 0 <= count <= _MAX_WORDS:
            expected = f"at most {_MAX_WORDS} 32-bit words per record (a number takes two)"
            advice = "Divide them among several purposes."
            raise OptionError(f"draw {purpose!r}", expected=expected, got=show(count), advice=advice)
        return _native.random_words(self.seed, self.epoch, self._number(purpose), self.records, count)

    def uniform(self, purpose: str, shape: tuple[int, ...] = ()) -> NDArray[np.float64]:
        """Return uniform random numbers in [0, 1), one array of `shape` per record."""
        # 53 bits of two words: the precision of a double.
        pairs = self._pairs(purpose, shape)
        return (pairs >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def integers(self, purpose: str, low: int, high: int, shape: tuple[int, ...] = ()) -> NDArray[np.int64]:
        """Return random integers from `low` to `high` (exclusive), one array of `shape` per record.

        Raises:
            OptionError: The range is empty or has more than 2^53 integers.
        """
        if not 0 < high - low <= _WIDEST_RANGE:
            expected = "a range of 1 to 2^53 integers"
            raise OptionError(f"draw {purpose!r}", expected=expected, got=f"{show(low)} to {show(high)}")
        # A uniform number is at most 1 - 2^-53, so that the rounded product stays below the range.
        return np.floor(self.uniform(purpose, shape) * float(high - low)).astype(np.int64) + low

    def normal(self, purpose: str, shape: tuple[int, ...] = ()) -> NDArray[np.float64]:
        """Return standard normal random numbers, one array of `shape` per record."""
        # The middle of each of 2^52 intervals: neither 0 nor 1, whose quantiles are infinite.
        pairs = self._pairs(purpose, shape)
        return normal_quantile(((pairs >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)

    def _pairs(self, purpose: str, shape: tuple[int, ...]) -> NDArray[np.uint64]:
        words = self.words(purpose, 2 * prod(shape)).astype(np.uint64)
        pairs: NDArray[np.uint64] = words[:, 0::2] << np.uint64(32) | words[:, 1::2]
        return pairs.reshape((len(self.records), *shape))

    def _number(self, purpose: str) -> int:
        # 16 bits: two purposes share their numbers with a probability of 1 in 65,536.
        return _native.crc32c(f"{self._scope}{purpose}".encode()) & 0xFFFF
