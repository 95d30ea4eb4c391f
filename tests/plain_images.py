"""Crops and augmentation of images in NumPy, step by step. The tests compare the core with it."""

from __future__ import annotations

import math
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.transform import Augment, Draws

Size: TypeAlias = tuple[int, int]
Box: TypeAlias = tuple[float, float, float, float]
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


def make_frame(image: Size, size: Size, resizing: str) -> Frame:
    """Return the frame of an image without random crops."""
    if resizing == "stretch":
        return stretch(image, size)
    return fit(image, size) if resizing == "pad" else cover(image, size)


def choose_draft(frame: Frame) -> int:
    """Return the denominator of the reduced size at which to decode an image: 1, 2, 4 or 8."""
    room = min(frame.box[2] / frame.window[2], frame.box[3] / frame.window[3])
    return next((each for each in (8, 4, 2) if room >= each * 1.5), 1)


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
    ratios = aspect[0] * power(aspect[1] / aspect[0], numbers[..., 1])
    tall = np.rint(np.sqrt(shares * heights * widths / ratios))
    wide = np.rint(np.sqrt(shares * heights * widths * ratios))
    fits = (tall >= 1) & (wide >= 1) & (tall <= heights) & (wide <= widths)
    first = np.argmax(fits, axis=1)
    rows = np.arange(len(images))
    tall, wide = tall[rows, first], wide[rows, first]
    middle = ~fits[rows, first]
    if middle.any():
        tall[middle], wide[middle] = find_largest(images[middle].astype(np.float64), aspect)
    spare = images - np.stack([tall, wide], axis=1)
    corners = np.floor(numbers[rows, first, 2:] * (spare + 1))
    corners[middle] = np.floor(spare[middle] / 2)
    return np.concatenate([corners, tall[:, None], wide[:, None]], axis=1)


def power(base: float, exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return base to the power of numbers in [0, 1), using 16 bits of them.

    Only square roots and products are used, which round identically on every machine; logarithms do not.
    """
    bits = np.floor(exponents * 2**16).astype(np.int64)
    powers = np.ones_like(exponents)
    for bit in range(15, -1, -1):
        base = math.sqrt(base)
        powers = np.where(bits >> bit & 1, powers * base, powers)
    return powers


def find_largest(
    images: NDArray[np.float64], aspect: tuple[float, float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the sides of the largest part of each image within a range of aspect ratios."""
    heights, widths = images[:, 0], images[:, 1]
    tall = np.minimum(heights, np.maximum(1, np.rint(widths / aspect[0])))
    wide = np.minimum(widths, np.maximum(1, np.rint(heights * aspect[1])))
    return tall, wide


ColorMaps: TypeAlias = NDArray[np.float64]

GREY: Final = np.array([0.299, 0.587, 0.114])
"""Weights of red, green and blue in the brightness, as in JPEG."""


def scaled_maps(factors: NDArray[np.float64], added: NDArray[np.float64], channels: int) -> ColorMaps:
    """Return color maps that multiply all channels by a factor and add a number; both are (rows,)."""
    maps = np.zeros((len(factors), channels, channels + 1))
    maps[:, range(channels), range(channels)] = factors[:, None]
    maps[:, :, channels] = added[:, None]
    return maps


def combine(first: ColorMaps, second: ColorMaps) -> ColorMaps:
    """Return the color maps that apply `first`, then `second`."""
    channels = first.shape[1]
    # Written out: a matrix product may sum in any order, and so differ from machine to machine.
    maps = np.zeros_like(first)
    for inner in range(channels):
        maps += second[:, :, inner, None] * first[:, None, inner, :]
    maps[:, :, channels] += second[:, :, channels]
    return maps


def brightness_of(means: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the brightness of images from the means of their channels, (rows,)."""
    if means.shape[1] == 1:
        return means[:, 0]
    grey: NDArray[np.float64] = means[:, 0] * GREY[0] + means[:, 1] * GREY[1] + means[:, 2] * GREY[2]
    return grey


def brightness(most: float, channels: int, draws: Draws) -> ColorMaps:
    """Change the brightness of each image by up to the fraction `most` of the full range."""
    added = (2 * draws.uniform("brightness") - 1) * most * 255
    return scaled_maps(np.ones(len(draws)), added, channels)


def contrast(most: float, channels: int, middles: NDArray[np.float64], draws: Draws) -> ColorMaps:
    """Multiply the difference of each pixel from the mean brightness by 1 − `most` to 1 + `most`."""
    factors = 1 + (2 * draws.uniform("contrast") - 1) * most
    return scaled_maps(factors, (1 - factors) * middles, channels)


def cut_out(images: NDArray[np.uint8], side: float, colour: NDArray[np.uint8], draws: Draws) -> None:
    """Paint over a square at a random position; `side` is its size as a fraction of the shorter side."""
    height, width = images.shape[1:3]
    length = round(side * min(height, width))
    if length:
        middles = np.floor(draws.uniform("cutout", (2,)) * np.array([height, width]))
        boxes = np.full((len(images), 4), length, np.int32)
        boxes[:, :2] = middles - length // 2
        for image, (top, left, _, _) in zip(images, boxes.tolist(), strict=True):
            image[max(0, top) : max(0, top + length), max(0, left) : max(0, left + length)] = colour


def flip(images: NDArray[np.uint8], across: float, down: float, draws: Draws) -> None:
    """Mirror each image horizontally with probability `across`, and vertically with `down`."""
    if across or down:
        chances = draws.uniform("flip", (2,))
        for image, (left_right, top_bottom) in zip(images, chances, strict=True):
            image[:] = image[:: -1 if top_bottom < down else 1, :: -1 if left_right < across else 1].copy()


def saturation(most: float, draws: Draws) -> ColorMaps:
    """Multiply the difference of each pixel from its gray value by 1 − `most` to 1 + `most`."""
    factors = 1 + (2 * draws.uniform("saturation") - 1) * most
    maps = scaled_maps(factors, np.zeros(len(draws)), 3)
    maps[:, :, :3] += (1 - factors)[:, None, None] * GREY
    return maps


def shift(images: NDArray[np.uint8], most: float, draws: Draws) -> NDArray[np.uint8]:
    """Move each image by up to the fraction `most` of each side, in any direction."""
    reach = np.minimum(np.rint(np.array(images.shape[1:3]) * most), np.array(images.shape[1:3]) - 1)
    offsets = np.floor(draws.uniform("crop", (2,)) * (2 * reach + 1)) - reach
    moved = np.empty_like(images)
    for row, offset in enumerate(offsets.astype(int)):
        rows, columns = (
            np.abs(side - 1 - np.abs(np.arange(side) + shift - (side - 1)))
            for side, shift in zip(images.shape[1:3], offset, strict=True)
        )
        moved[row] = images[row][rows][:, columns]
    return moved


def augment_plainly(
    images: NDArray[np.uint8], augment: Augment, fill: NDArray[np.uint8], draws: Draws
) -> NDArray[np.uint8]:
    """Return the augmented images of a batch."""
    images = shift(images, augment.crop, draws) if augment.crop else images.copy()
    flip(images, augment.flip, augment.flip_down, draws)
    maps = draw_colours(images, augment, draws)
    if maps is not None:
        images = recolour(images, maps.astype(np.float32))
    if augment.cutout:
        cut_out(images, augment.cutout, fill, draws)
    return images


def draw_colours(images: NDArray[np.uint8], augment: Augment, draws: Draws) -> ColorMaps | None:
    """Return the color maps of all changes together; None for no change."""
    channels = min(images.shape[3], 3)  # alpha is no colour
    maps: list[ColorMaps] = []
    if augment.brightness:
        maps.append(brightness(augment.brightness, channels, draws))
    if augment.contrast:
        middles = brightness_of(images.mean(axis=(1, 2), dtype=np.float64)[:, :channels])
        if maps:
            middles = middles + maps[0][:, 0, channels]
        maps.append(contrast(augment.contrast, channels, middles, draws))
    if augment.saturation and channels == 3:
        maps.append(saturation(augment.saturation, draws))
    if not maps:
        return None
    whole = maps[0]
    for each in maps[1:]:
        whole = combine(whole, each)
    return whole


def recolour(images: NDArray[np.uint8], maps: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return images with other colors: sums of float32 from left to right, clipped and rounded."""
    side = maps.shape[1]
    changed = images.copy()
    for row, (image, map_) in enumerate(zip(images, maps, strict=True)):
        colours = [image[..., i].astype(np.float32) for i in range(side)]
        for i in range(side):
            total = map_[i, 0] * colours[0]
            for j in range(1, side):
                total = total + map_[i, j] * colours[j]
            changed[row, ..., i] = np.rint(np.clip(total + map_[i, side], 0, 255)).astype(np.uint8)
    return changed
