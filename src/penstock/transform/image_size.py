"""How images get their size: the default size, and the images of a batch decoded, cropped and resized.

In: the statistics of a field of images, or the headers of a sample of them. Out: height and width. In: a
column of encoded or cached images. Out: pixels of one size, or whole images for a cache, and the errors of
images that cannot be decoded, by row.

Images that all have one size keep it if no side is above 160. Otherwise height and width are each the median
over the images, rounded down to a multiple of 32, and at least 32 and at most 160.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Bytes, CodedColumn, Dense, Mask, Pictures
from penstock.decode.pixels import PixelError, PixelRules, Size, SliceImages, read_sizes
from penstock.errors import FieldError
from penstock.statistics.quantiles import QUANTILES
from penstock.statistics.summary import Distribution
from penstock.transform.base import FitSource, Prepared
from penstock.transform.draws import Draws

LARGEST_SIDE: Final = 160
"""Largest side of images by default: twice the side takes four times the training time."""
SMALLEST_SIDE: Final = 32
"""Smallest side of images of different sizes by default."""

_MULTIPLE: Final = 32  # so that each stage of a network halves the side without a remainder
_MEDIAN: Final = QUANTILES.index(0.5)
_SAMPLE_ROWS: Final = 1024  # medians hardly change with more images


class _Sides(NamedTuple):
    """Heights, or widths, of images: the smallest, the largest, and the median."""

    least: float
    greatest: float
    median: float


def choose_size(name: str, source: FitSource, *, orient: bool) -> Size:
    """Return the default height and width of images.

    Statistics of the manifest are used if there are any; otherwise the headers of up to 1,024 images that are
    spread evenly over the split. Images whose header cannot be read do not count.

    `orient`: whether photos are rotated upright, as their EXIF orientation specifies. Statistics have the
    sides as stored, so that the headers of the sample decide where sides differ and photos are rotated.
    """
    sides = _find_known(name, source)
    size = None if sides is None else _decide(*sides)
    if size is None or (orient and size[0] != size[1]):
        heights, widths, has_turned = _read_sample(name, source, orient=orient)
        if not len(heights):
            return size or (SMALLEST_SIDE, SMALLEST_SIDE)
        if size is None or has_turned:
            return _decide(_summarize(heights), _summarize(widths))
    return size


def _find_known(name: str, source: FitSource) -> tuple[_Sides, _Sides] | None:
    """Return heights and widths by the statistics that are available without a pass over the data."""
    if not source.knows(name):
        return None
    statistics = source.statistics(name)
    heights, widths = _read_distribution(statistics.heights), _read_distribution(statistics.widths)
    return None if heights is None or widths is None else (heights, widths)


def _read_distribution(sides: Distribution | None) -> _Sides | None:
    if sides is None or sides.min is None or sides.max is None or sides.quantiles is None:
        return None
    return _Sides(sides.min, sides.max, sides.quantiles[_MEDIAN])


def _read_sample(
    name: str, source: FitSource, *, orient: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], bool]:
    """Return heights and widths of a sample of the images, and whether any is rotated."""
    heights, widths, turned = [], [], False
    for column in source.columns(name, _SAMPLE_ROWS):
        found = read_sizes(Bytes.of(column))
        is_turned = found.is_turned if orient else np.zeros_like(found.is_turned)
        known = found.heights > 0 if column.present is None else (found.heights > 0) & column.present
        heights.append(np.where(is_turned, found.widths, found.heights)[known])
        widths.append(np.where(is_turned, found.heights, found.widths)[known])
        turned |= bool(is_turned[known].any())
    return _join(heights), _join(widths), turned


def _join(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _summarize(sides: NDArray[np.int64]) -> _Sides:
    return _Sides(float(sides.min()), float(sides.max()), float(np.median(sides)))


def _decide(heights: _Sides, widths: _Sides) -> Size:
    if all(each.least == each.greatest <= LARGEST_SIDE for each in (heights, widths)):
        return int(heights.least), int(widths.least)
    return _round(heights.median), _round(widths.median)


def _round(median: float) -> int:
    return min(LARGEST_SIDE, max(SMALLEST_SIDE, int(median) // _MULTIPLE * _MULTIPLE))


@dataclass(frozen=True)
class ImageResizer:
    """Decodes, crops and resizes images; `area` and `aspect` are the ranges of random crops."""

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
