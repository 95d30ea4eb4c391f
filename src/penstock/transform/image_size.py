"""The default size of images, chosen from the images of the train split.

In: the statistics of a field of images, or the headers of a sample of them. Out: height and width.

Images that all have one size keep it if no side is above 160. Otherwise height and width are each the median
over the images, rounded down to a multiple of 32, and at least 32 and at most 160.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Bytes
from penstock.decode.pixels import Size, read_sizes
from penstock.statistics.quantiles import QUANTILES
from penstock.statistics.summary import Distribution
from penstock.transform.base import FitSource

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
