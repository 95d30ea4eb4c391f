"""Decode, crop and resize the images of a slice of a batch.

In: a column of encoded or cached images. Out: pixels of one size, or whole images for a cache, and the errors
of images that cannot be decoded, by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Bytes, CodedColumn, Dense, Mask, Pictures
from penstock.decode.pixels import PixelError, PixelRules, SliceImages
from penstock.errors import FieldError
from penstock.transform.base import Prepared
from penstock.transform.draws import Draws


@dataclass(frozen=True)
class ImageResizer:
    """How images are decoded, cropped and resized.

    Attributes:
        rules: Which images are decoded, and how they get their size.
        area: Range of the area of random crops.
        aspect: Range of the aspect ratio of random crops.
    """

    rules: PixelRules
    area: tuple[float, float]
    aspect: tuple[float, float]

    def resize_batch(
        self,
        name: str,
        column: CodedColumn,
        present: Mask | None,
        draws: Draws | None,
        out: NDArray[np.uint8] | None = None,
    ) -> Prepared:
        """Return the resized pixels of some rows; with `draws` and `resize="random"`, of random crops.

        `present`: which rows have an image; None if all have one. `draws`: random draws of the rows, or None.
        """
        crop: _native.RandomCrops | None = None
        if self.rules.resize == "random" and draws is not None:
            crop = (draws.keys("box"), (*self.area, *self.aspect))
        given = column if isinstance(column, Bytes) else Pictures.of(column)
        images = SliceImages(given, self.rules, present, crop)
        if out is None:
            out = _native.empty((len(column), *self.rules.size, self.rules.channels), "uint8")
        images.decode(out)
        return Prepared(Dense(out, column.present), _name_faults(name, images.faults))

    def resize_for_cache(
        self, name: str, column: Bytes, present: Mask | None, room_bytes: int, *, is_whole: bool
    ) -> Prepared:
        """Return images for a cache, whole or resized, up to `room_bytes`; the rest stays encoded."""
        images = SliceImages(column, self.rules, present, is_whole=is_whole)
        held: list[NDArray[np.uint8] | None] = [None] * len(column)
        is_full = False
        for row in range(len(column)):
            size = images.slot_size(row)
            if size is None:
                continue
            shape = (*size, self.rules.channels)
            room_bytes -= prod(shape)
            if room_bytes < 0:
                is_full = True
                break
            held[row] = np.empty(shape, np.uint8)  # of the exact size, unlike blocks of the memory pool
        images.decode(held)
        for row in images.faults:
            held[row] = None
        pictures = Pictures(held, column.present, column if is_full else None)
        return Prepared(pictures, _name_faults(name, images.faults))


def _name_faults(name: str, faults: dict[int, PixelError]) -> dict[int, FieldError]:
    return {row: _name_fault(name, row, faults[row]) for row in sorted(faults)} if faults else {}


def _name_fault(name: str, row: int, error: PixelError) -> FieldError:
    return FieldError(
        f"image of field {name!r}",
        field=name,
        record=row,
        expected=error.expected,
        got=error.got,
        advice=error.advice or "Open the data with `on_error='skip'` to leave such records out.",
    )
