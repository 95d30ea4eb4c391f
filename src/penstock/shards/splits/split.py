"""The split of every row, and splits by hash.

In: options of splits, hashes of rows. Out: the split that the hash of a row alone determines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.errors import OptionError
from penstock.foundation.wording import show
from penstock.schema.schema import Schema
from penstock.settings.groups import MAX_SPLITS, Splits, is_split_name


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


def is_by_key(split: Splits) -> bool:
    """Return whether a key or the content of a row decides its split, and not a time or a column of names."""
    return split.split_by is None and split.time is None


def name_strata(options: Splits, schema: Schema) -> Splits:
    """Return the options of the splits, in which strata of the target have the name of that field."""
    if options.stratify is not True:
        return options.narrow(Splits)
    if len(schema.targets) != 1:
        advice = "Give the name of the field, such as `stratify='breed'`."
        raise options.refuse("stratify", "one target", f"{len(schema.targets)}", advice)
    return options.narrow(Splits, stratify=schema.targets[0])


def check_split_names(names: Sequence[str]) -> None:
    """Refuse names that cannot be part of a file name, and too many names."""
    for name in names:
        if not is_split_name(name):
            advice = "The name becomes part of file names."
            raise OptionError(
                "the name of a split", expected="letters, digits and _", got=show(name), advice=advice
            )
    if not 1 <= len(names) <= MAX_SPLITS:
        raise OptionError("number of splits", expected=f"1 to {MAX_SPLITS}", got=str(len(names)))


def split_hashes(hashes: NDArray[np.uint64], split: Splits, seed: int) -> NDArray[np.uint8]:
    """Return the index of the split that each hash determines, independently of other rows."""
    return split_positions(_native.mix_hashes(seed, hashes), split)


def split_positions(positions: NDArray[np.uint64], split: Splits) -> NDArray[np.uint8]:
    """Return the index of the split that each position (a hash mixed with the seed) belongs to."""
    codes = np.zeros(len(positions), np.uint8)
    for bound in split_bounds(split):
        codes += positions >= bound
    return codes


def split_bounds(split: Splits) -> list[np.uint64]:
    """Return the first position, from 0 to 2**64 - 1, of each split except the first."""
    shares = list(split.shares.values())
    total = math.fsum(shares)
    bounds = []
    for number in range(1, len(shares)):
        part = math.fsum(shares[:number]) / total
        bounds.append(np.uint64(min(int(part * 2.0**64), 2**64 - 1)))
    return bounds
