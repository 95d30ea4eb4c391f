"""Which part of an image is taken, and which part of the output it fills.

In: the size of an image, the size wanted. Out: a `Frame`. Nothing here is random but `draw_boxes`, whose
numbers come from the batch's draws.
"""

from __future__ import annotations

import math
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.transform.draws import Draws

Resizing: TypeAlias = Literal["stretch", "pad", "crop", "random"]
Size: TypeAlias = tuple[int, int]
Box: TypeAlias = tuple[float, float, float, float]

DRAFTS: Final = (8, 4, 2)
"""How much smaller libjpeg can decode at little cost."""

DRAFT_MARGIN: Final = 1.5
"""How much larger than the output a draft must still be, each way: the rest is filtered as ever."""

_TRIES = 10


class Frame(NamedTuple):
    """What becomes of one image.

    Attributes:
        box: The part that is taken: top, left, height, width, in its pixels.
        window: The part of the output that it fills, likewise.
    """

    box: Box
    window: tuple[int, int, int, int]


def stretch(image: Size, size: Size) -> Frame:
    """Take all of an image, whatever becomes of its proportions."""
    return Frame((0.0, 0.0, float(image[0]), float(image[1])), (0, 0, *size))


def fit(image: Size, size: Size) -> Frame:
    """Take all of an image, in its proportions, in the middle of what is padded."""
    scale = min(size[0] / image[0], size[1] / image[1])
    height, width = (max(1, min(most, round(side * scale))) for side, most in zip(image, size, strict=True))
    window = ((size[0] - height) // 2, (size[1] - width) // 2, height, width)
    return Frame((0.0, 0.0, float(image[0]), float(image[1])), window)


def cover(image: Size, size: Size) -> Frame:
    """Take the largest part of an image, from its middle, that has the proportions of the output."""
    scale = max(size[0] / image[0], size[1] / image[1])
    height, width = (min(float(side), want / scale) for side, want in zip(image, size, strict=True))
    return Frame(((image[0] - height) / 2, (image[1] - width) / 2, height, width), (0, 0, *size))


def frame(image: Size, size: Size, resizing: Resizing) -> Frame:
    """Return what becomes of an image where nothing is random."""
    if resizing == "stretch":
        return stretch(image, size)
    return fit(image, size) if resizing == "pad" else cover(image, size)


def choose_draft(frame: Frame) -> int:
    """Return how much smaller than it is an image may be decoded: 1, 2, 4 or 8."""
    room = min(frame.box[2] / frame.window[2], frame.box[3] / frame.window[3])
    return next((each for each in DRAFTS if room >= each * DRAFT_MARGIN), 1)


def draw_boxes(
    draws: Draws,
    purpose: str,
    images: NDArray[np.int64],
    area: tuple[float, float],
    aspect: tuple[float, float],
) -> NDArray[np.float64]:
    """Draw a part of each image, whole pixels, of random size, proportions and place.

    Args:
        draws: Of the batch.
        purpose: Of these numbers.
        images: Height and width of each image, (rows, 2).
        area: The least and the greatest share of the image's area.
        aspect: The least and the greatest width over height; what lies between is drawn by its logarithm.

    Returns:
        Top, left, height and width, (rows, 4). Where ten tries all reach beyond an image, the largest part
        from its middle that keeps within `aspect`.
    """
    numbers = draws.uniform(purpose, (_TRIES, 4))
    heights, widths = images[:, :1].astype(np.float64), images[:, 1:].astype(np.float64)
    shares = area[0] + numbers[..., 0] * (area[1] - area[0])
    ratios = aspect[0] * _power(aspect[1] / aspect[0], numbers[..., 1])
    tall = np.rint(np.sqrt(shares * heights * widths / ratios))
    wide = np.rint(np.sqrt(shares * heights * widths * ratios))
    fits = (tall >= 1) & (wide >= 1) & (tall <= heights) & (wide <= widths)
    first = np.argmax(fits, axis=1)
    rows = np.arange(len(images))
    tall, wide = tall[rows, first], wide[rows, first]
    middle = ~fits[rows, first]
    if middle.any():
        tall[middle], wide[middle] = _largest(images[middle].astype(np.float64), aspect)
    spare = images - np.stack([tall, wide], axis=1)
    corners = np.floor(numbers[rows, first, 2:] * (spare + 1))
    corners[middle] = np.floor(spare[middle] / 2)
    return np.concatenate([corners, tall[:, None], wide[:, None]], axis=1)


def _power(base: float, exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return base to the power of numbers in [0, 1), by 16 bits of them.

    Of roots and products alone, which every machine rounds alike; logarithms differ in their last bit.
    """
    bits = np.floor(exponents * 2**16).astype(np.int64)
    powers = np.ones_like(exponents)
    for place in range(15, -1, -1):
        base = math.sqrt(base)
        powers = np.where(bits >> place & 1, powers * base, powers)
    return powers


def _largest(
    images: NDArray[np.float64], aspect: tuple[float, float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    heights, widths = images[:, 0], images[:, 1]
    tall = np.minimum(heights, np.maximum(1, np.rint(widths / aspect[0])))
    wide = np.minimum(widths, np.maximum(1, np.rint(heights * aspect[1])))
    return tall, wide
