"""Options of splits, the split of every row, and splits by hash.

In: options of a user, hashes of rows. Out: `SplitOptions`, checked when created, and the split that the hash
of a row alone determines.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.errors import OptionError
from penstock.foundation.wording import show

DEFAULT_SHARES: Final = MappingProxyType({"train": 0.8, "validation": 0.1, "test": 0.1})
MAX_SPLITS: Final = 255
"""Maximum number of splits: the split of a row is stored in one byte."""

_NAME = re.compile(r"[A-Za-z0-9_]+")
_TOLERANCE = 1e-6  # thirds are written 0.3333333


@dataclass(frozen=True, kw_only=True)
class SplitOptions:
    """Options of the splits of a data set.

    Attributes:
        shares: Share of each split, in order. The shares must add up to 1.
        group: Name of a column; rows with the same value in it go to the same split, unless `split_by` or
            `time` decides.
        stratify: Name of a column; the rows of each of its values are divided by the shares.
        split_by: Name of a column that contains the split of each row.
        time: Name of a column; the oldest rows go to the first split, the newest to the last.
        seed: Seed of the hash that decides the splits.

    Example:
        >>> SplitOptions(shares={"train": 0.9, "test": 0.1}).names
        ('train', 'test')
    """

    shares: Mapping[str, float] = field(default_factory=lambda: DEFAULT_SHARES)
    group: str | None = None
    stratify: str | None = None
    split_by: str | None = None
    time: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        _check_shares(self.shares)
        given = []
        for name in ("stratify", "split_by", "time"):
            column = getattr(self, name)
            _check_column(name, column)
            if column is not None:
                given.append(name)
        _check_column("group", self.group)
        if len(given) > 1:
            advice = (
                "Each of these options decides the split of a row: use one of them, with or without group."
            )
            raise OptionError(
                "the split", expected="one option that decides it", got=" and ".join(given), advice=advice
            )
        is_whole = isinstance(self.seed, int) and not isinstance(self.seed, bool)
        if not is_whole or not 0 <= self.seed < 2**64:
            raise OptionError("seed", expected="a whole number from 0 to 2**64 - 1", got=show(self.seed))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the splits, in order."""
        return tuple(self.shares)

    @property
    def is_by_key(self) -> bool:
        """Whether a key or the content of a row decides its split, and not a time or a column of names."""
        return self.split_by is None and self.time is None


@dataclass(frozen=True, eq=False)
class Assignment:
    """The split of every row.

    Attributes:
        names: Names of the splits.
        codes: Index into `names` of each row's split, in source order; possibly a memory-mapped file.
        counts: Number of rows per split.
        method: Description of how the splits were made.
        num_duplicates: Number of rows that equal a row of another split, and were moved to it unless `notes`
            give a reason why not.
        num_equal: Number of rows that equal an earlier row, in any split.
        is_by_hash: Whether each row is in the split that its hash alone determines.
        notes: Notes for the user.
    """

    names: tuple[str, ...]
    codes: NDArray[np.uint8]
    counts: tuple[int, ...]
    method: str
    num_duplicates: int = 0
    num_equal: int = 0
    is_by_hash: bool = False
    notes: tuple[str, ...] = ()


def parse_shares(text: str) -> dict[str, float]:
    """Return the shares of a text such as `train=0.8,validation=0.1,test=0.1`.

    Raises:
        OptionError: The text is not valid.
    """
    shares: dict[str, float] = {}
    for item in text.split(","):
        name, _, share = map(str.strip, item.partition("="))
        try:
            value = float(share)
        except ValueError:
            expected = "NAME=SHARE, such as train=0.8,validation=0.1,test=0.1"
            raise OptionError("split", expected=expected, got=show(item)) from None
        if name in shares:
            raise OptionError("split", expected="each name once", got=f"{show(name)} twice")
        shares[name] = value
    _check_shares(shares)
    return shares


def check_split_names(names: Sequence[str]) -> None:
    """Refuse names that cannot be part of a file name, and too many names.

    Raises:
        OptionError: A name is not valid, or there are too many names.
    """
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            advice = "The name becomes part of file names."
            raise OptionError(
                "the name of a split", expected="letters, digits and _", got=show(name), advice=advice
            )
    if not 1 <= len(names) <= MAX_SPLITS:
        raise OptionError("number of splits", expected=f"1 to {MAX_SPLITS}", got=str(len(names)))


def split_hashes(hashes: NDArray[np.uint64], options: SplitOptions) -> NDArray[np.uint8]:
    """Return the index of the split that each hash determines, independently of other rows."""
    return split_positions(_native.mix_hashes(options.seed, hashes), options)


def split_positions(positions: NDArray[np.uint64], options: SplitOptions) -> NDArray[np.uint8]:
    """Return the index of the split that each position (a hash mixed with the seed) belongs to."""
    codes = np.zeros(len(positions), np.uint8)
    for bound in split_bounds(options):
        codes += positions >= bound
    return codes


def split_bounds(options: SplitOptions) -> list[np.uint64]:
    """Return the first position, from 0 to 2**64 - 1, of each split except the first."""
    shares = list(options.shares.values())
    total = math.fsum(shares)
    bounds = []
    for number in range(1, len(shares)):
        part = math.fsum(shares[:number]) / total
        bounds.append(np.uint64(min(int(part * 2.0**64), 2**64 - 1)))
    return bounds


def _check_column(name: str, column: object) -> None:
    if column is not None and (not isinstance(column, str) or not column):
        raise OptionError(name, expected="the name of a column", got=show(column))


def _check_shares(shares: object) -> None:
    if not isinstance(shares, Mapping):
        raise OptionError(
            "shares", expected="a share per name, such as {'train': 0.8, 'test': 0.2}", got=show(shares)
        )
    check_split_names(list(shares))
    for name, share in shares.items():
        is_number = isinstance(share, int | float) and not isinstance(share, bool)
        if not is_number or not 0 < share <= 1 + _TOLERANCE:
            advice = "To have no such split, leave out its name."
            raise OptionError(
                f"share of {name!r}",
                expected="a number above 0 and at most 1",
                got=show(share),
                advice=advice,
            )
    total = math.fsum(shares.values())
    if abs(total - 1) > _TOLERANCE:
        raise OptionError("shares", expected="a sum of 1", got=f"{total:.6g}")
