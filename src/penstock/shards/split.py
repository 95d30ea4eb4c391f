"""How rows are divided into splits: what is asked for, and what came of it.

In: options by a user, hashes of rows. Out: `SplitOptions`, checked when made, and the split that a hash alone
gives.
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
"""A row's split is kept in a byte."""

_NAME = re.compile(r"[A-Za-z0-9_]+")
_TOLERANCE = 1e-6  # thirds are written 0.3333333


@dataclass(frozen=True, kw_only=True)
class SplitOptions:
    """What the splits of a data set are made by.

    Attributes:
        shares: The share of each split, in their order. They must add up to 1.
        group: A column; rows that are equal in it go to one split, unless `split_by` or `time` decides.
        stratify: A column; each of its values gets the shares by itself.
        split_by: A column that names each row's split.
        time: A column; the oldest rows go to the first split, the newest to the last.
        seed: Seed of the hash that decides.

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
            advice = "Each of them decides where a row goes; only group can be given beside them."
            raise OptionError(
                "the split", expected="one way to make it", got=" and ".join(given), advice=advice
            )
        is_whole = isinstance(self.seed, int) and not isinstance(self.seed, bool)
        if not is_whole or not 0 <= self.seed < 2**64:
            raise OptionError("seed", expected="a whole number from 0 to 2**64 - 1", got=show(self.seed))

    @property
    def names(self) -> tuple[str, ...]:
        """The splits, in their order."""
        return tuple(self.shares)

    @property
    def is_by_key(self) -> bool:
        """Whether a key or the content decides the split, rather than a time or a column of names."""
        return self.split_by is None and self.time is None


@dataclass(frozen=True, eq=False)
class Assignment:
    """The split of every row.

    Attributes:
        names: The splits.
        codes: The number of each row's split in `names`, in source order; it may lie on disk.
        counts: How many rows each split has.
        method: How they were made, in words.
        num_duplicates: Rows that equal a row of another split, and were moved to it, unless `notes` say why
            not.
        num_equal: Rows that equal an earlier row, whatever split they would have been in.
        is_by_hash: Whether each row is where its hash alone puts it.
        notes: What else a person should know.
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
    """Return the shares that a text such as `train=0.8,validation=0.1,test=0.1` gives.

    Raises:
        OptionError: It gives none.
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
    """Refuse names that no file can have, or too many.

    Raises:
        OptionError: They are such.
    """
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            advice = "It becomes part of the names of files."
            raise OptionError(
                "the name of a split", expected="letters, digits and _", got=show(name), advice=advice
            )
    if not 1 <= len(names) <= MAX_SPLITS:
        raise OptionError("splits", expected=f"1 to {MAX_SPLITS} of them", got=str(len(names)))


def split_hashes(hashes: NDArray[np.uint64], options: SplitOptions) -> NDArray[np.uint8]:
    """Return the number of the split that each hash gives by itself, whatever other rows there are."""
    return split_positions(_native.mix_hashes(options.seed, hashes), options)


def split_positions(positions: NDArray[np.uint64], options: SplitOptions) -> NDArray[np.uint8]:
    """Return the number of the split that each position (a hash mixed with the seed) belongs to."""
    codes = np.zeros(len(positions), np.uint8)
    for bound in split_bounds(options):
        codes += positions >= bound
    return codes


def split_bounds(options: SplitOptions) -> list[np.uint64]:
    """Return where, of 2**64 places, each split but the first begins."""
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
            "shares", expected="a share by name, such as {'train': 0.8, 'test': 0.2}", got=show(shares)
        )
    check_split_names(list(shares))
    for name, share in shares.items():
        is_number = isinstance(share, int | float) and not isinstance(share, bool)
        if not is_number or not 0 < share <= 1 + _TOLERANCE:
            advice = "Leave a split out to have none of it."
            raise OptionError(
                f"share of {name!r}", expected="a number above 0, up to 1", got=show(share), advice=advice
            )
    total = math.fsum(shares.values())
    if abs(total - 1) > _TOLERANCE:
        raise OptionError("shares", expected="a sum of 1", got=f"{total:.6g}")
