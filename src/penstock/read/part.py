"""A part of a split by chance: which rows it has is a function of their numbers alone.

In: two shares of 0 to 1. Out: a bitmap; parts whose shares do not overlap have no row in common.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from penstock import _native
from penstock.read.bitmap import Bitmap
from penstock.types import Mask

_SEED = 0x5EED0F7AB7  # part of what a part is: it never changes
_ROWS = 1 << 20


def choose_part(num_rows: int, part: tuple[float, float]) -> Bitmap:
    """Return the rows whose random number lies in a part, its beginning in it and its end not."""
    return Bitmap.from_masks(_list_masks(num_rows, part), num_rows)


def both(bitmap: Bitmap, other: Bitmap) -> Bitmap:
    """Return the rows that two bitmaps share."""
    return Bitmap.from_mask(bitmap.to_mask() & other.to_mask())


def _list_masks(num_rows: int, part: tuple[float, float]) -> Iterator[Mask]:
    for start in range(0, num_rows, _ROWS):
        words = _native.mix_rows(_SEED, start, min(_ROWS, num_rows - start))
        points = (words >> np.uint64(11)) * 2.0**-53
        yield (points >= part[0]) & (points < part[1])
