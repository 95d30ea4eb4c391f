"""Crops: which part of an image is used, and which part of the output it fills.

In: sizes of the image and of the output. Out: a `Frame`. Only `draw_boxes` is random; its random numbers come
from the draws of the batch.
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
"""Denominators of the reduced sizes at which libjpeg decodes quickly."""

DRAFT_MARGIN: Final = 1.5
"""Minimum ratio of a reduced image to the output in each direction; the rest is resized as usual."""

_NUM_ATTEMPTS = 10


class Frame(NamedTuple):
    """Crop of an image, and its position in the output.

    Attributes:
        box: Part of the image: top, left, height, width, in pixels of the image.
        window: Part of the output that it fills: top, left, height, width, in pixels of the output.
    """

    box: Box
    window: tuple[int, int, int, int]


def stretch(image: Size, size: Size) -> Frame:
    """Use the whole image, with a change of its aspect ratio."""
    return Frame((0.0, 0.0, float(image[0]), float(image[1])), (0, 0, *size))


def fit(image: Size, size: Size) -> Frame:
    """Use the whole image with its aspect ratio, centered in a padded output."""
    scale = min(size[0] / image[0], size[1] / image[1])
    height, width = (max(1, min(most, round(side * scale))) for side, most in zip(image, size, strict=True))
    window = ((size[0] - height) // 2, (size[1] - width) // 2, height, width)
    return Frame((0.0, 0.0, float(image[0]), float(image[1])), window)


def cover(image: Size, size: Size) -> Frame:
    """Use the largest centered part of the image that has the aspect ratio of the output."""
    scale = max(size[0] / image[0], size[1] / image[1])
    height, width = (min(float(side), want / scale) for side, want in zip(image, size, strict=True))
    return Frame(((image[0] - height) / 2, (image[1] - width) / 2, height, width), (0, 0, *size))


def frame(image: Size, size: Size, resizing: Resizing) -> Frame:
    """Return the frame of an image without random crops."""
    if resizing == "stretch":
        return stretch(image, size)
    return fit(image, size) if resizing == "pad" else cover(image, size)


def choose_draft(frame: Frame) -> int:
    """Return the denominator of the reduced size at which to decode an image: 1, 2, 4 or 8."""
    room = min(frame.box[2] / frame.window[2], frame.box[3] / frame.window[3])
    return next((each for each in DRAFTS if room >= each * DRAFT_MARGIN), 1)


def draw_boxes(
    draws: Draws,
    purpose: str,
    images: NDArray[np.int64],
    area: tuple[float, float],
    aspect: tuple[float, float],
) -> NDArray[np.float64]:
    """Draw a crop of each image in whole pixels, of random size, aspect ratio and position.

    Args:
        draws: Draws of the batch.
        purpose: Purpose of the random numbers.
        images: Height and width of each image, (rows, 2).
        area: Minimum and maximum fraction of the area of the image.
        aspect: Minimum and maximum ratio of width to height; its logarithm is uniformly distributed.

    Returns:
        Top, left, height and width, (rows, 4). If ten attempts all exceed the image, the largest centered
        part whose aspect ratio is within `aspect`.
    """
    numbers = draws.uniform(purpose, (_NUM_ATTEMPTS, 4))
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
    """Return base to the power of numbers in [0, 1), using 16 bits of them.

    Only square roots and products are used, which round identically on every machine; logarithms do not.
    """
    bits = np.floor(exponents * 2**16).astype(np.int64)
    powers = np.ones_like(exponents)
    for bit in range(15, -1, -1):
        base = math.sqrt(base)
        powers = np.where(bits >> bit & 1, powers * base, powers)
    return powers


def _largest(
    images: NDArray[np.float64], aspect: tuple[float, float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    heights, widths = images[:, 0], images[:, 1]
    tall = np.minimum(heights, np.maximum(1, np.rint(widths / aspect[0])))
    wide = np.minimum(widths, np.maximum(1, np.rint(heights * aspect[1])))
    return tall, wide
