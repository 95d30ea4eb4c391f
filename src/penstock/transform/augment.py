"""`Augment`: random changes to the images of a training batch.

In: images of one size, and the draws of the batch. Out: augmented images, which depend only on seed, epoch
and record.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.errors import OptionError
from penstock.foundation.json_form import JsonValue
from penstock.foundation.option_checks import check_real, refuse_option
from penstock.foundation.wording import find_nearest, show
from penstock.transform.cast import convert
from penstock.transform.draws import Draws

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
        _native.erase(images, boxes, colour)


def flip(images: NDArray[np.uint8], across: float, down: float, draws: Draws) -> None:
    """Mirror each image horizontally with probability `across`, and vertically with `down`."""
    if across or down:
        chances = draws.uniform("flip", (2,))
        _native.flip(images, chances[:, 0] < across, chances[:, 1] < down)


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
    moved = _native.empty(images.shape, "uint8")
    _native.shift(images, moved, offsets.astype(np.int32))
    return moved


_SHARES: Final = ("flip", "flip_down", "brightness", "contrast", "saturation", "crop", "cutout")
_RANGES: Final = ("area", "aspect")  # of the crops of resize="random"


@dataclass(frozen=True, kw_only=True, repr=False)
class Augment:
    """Random augmentation of images in training.

    Each option is a number from 0 (off) to 1, except the ranges `area` and `aspect`. The changes are applied
    to resized images in this order: crop, flips, colors, cutout.

    Attributes:
        flip: Probability to mirror an image horizontally (left to right).
        flip_down: Probability to mirror an image vertically (top to bottom).
        crop: Maximum shift of an image in each direction, as a fraction of its sides. This is a random crop
            of the image padded by reflection.
        brightness: Maximum change of the brightness, as a fraction of the full range.
        contrast: Maximum relative change of the contrast, the difference from the mean brightness.
        saturation: Maximum relative change of the saturation, the difference from gray.
        cutout: Side of a square that is painted over, as a fraction of the shorter side.
        area: Minimum and maximum area of the random crop, as a fraction of the image. Only with
            `resize="random"`.
        aspect: Minimum and maximum aspect ratio (width / height) of the random crop. Only with
            `resize="random"`.

    Example:
        >>> Augment(flip=0.5, brightness=0.2)
        Augment(flip=0.5, brightness=0.2)
    """

    flip: float = 0.0
    flip_down: float = 0.0
    crop: float = 0.0
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    cutout: float = 0.0
    area: tuple[float, float] = (0.08, 1.0)
    aspect: tuple[float, float] = (3 / 4, 4 / 3)

    def __post_init__(self) -> None:
        for name in _SHARES:
            value = check_real("Augment", name, getattr(self, name))
            if not 0 <= value <= 1:
                raise refuse_option("Augment", name, "a number from 0 to 1", show(value))
            object.__setattr__(self, name, float(value))
        for name, most in zip(_RANGES, (1.0, 1000.0), strict=True):
            object.__setattr__(self, name, _check_range(name, getattr(self, name), most))

    @property
    def changes(self) -> bool:
        """Whether resized images are changed."""
        return any(getattr(self, name) for name in _SHARES)

    def changed_options(self) -> dict[str, Any]:
        """Return the options that differ from their defaults."""
        values = {each.name: (getattr(self, each.name), each.default) for each in dataclasses.fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}

    def __repr__(self) -> str:
        return f"Augment({', '.join(f'{name}={value!r}' for name, value in self.changed_options().items())})"

    @classmethod
    def usual(cls) -> Augment:
        """Return options that suit most photos: mirroring, shifts by a tenth, small changes of the colors."""
        return cls(flip=0.5, crop=0.1, brightness=0.1, contrast=0.1, saturation=0.1)

    @classmethod
    def load(cls, value: JsonValue) -> Augment:
        """Read a mapping of options.

        Raises:
            SchemaError: It is not one; the message gives the path of the fault.
        """
        given = value.children(*(each.name for each in dataclasses.fields(cls)))
        try:
            return cls(**{name: option.any_value() for name, option in given.items()})
        except OptionError as error:
            raise value.refuse(error.expected, error.got, error.advice, at=f".{error.field}") from None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        values = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def apply(self, images: NDArray[np.uint8], fill: NDArray[np.uint8], draws: Draws) -> NDArray[np.uint8]:
        """Return the augmented images of a batch; the given images are not modified."""
        if not self.changes:
            return images
        images = shift(images, self.crop, draws) if self.crop else convert(images, "uint8")
        flip(images, self.flip, self.flip_down, draws)
        maps = self._draw_colours(images, draws)
        if maps is not None:
            _native.recolour(images, maps.astype(np.float32))
        if self.cutout:
            cut_out(images, self.cutout, fill, draws)
        return images

    def _draw_colours(self, images: NDArray[np.uint8], draws: Draws) -> ColorMaps | None:
        channels = min(images.shape[3], 3)  # alpha is no colour
        maps: list[ColorMaps] = []
        if self.brightness:
            maps.append(brightness(self.brightness, channels, draws))
        if self.contrast:
            middles = brightness_of(_native.channel_means(images)[:, :channels])
            if maps:
                middles = middles + maps[0][:, 0, channels]
            maps.append(contrast(self.contrast, channels, middles, draws))
        if self.saturation and channels == 3:
            maps.append(saturation(self.saturation, draws))
        if not maps:
            return None
        whole = maps[0]
        for each in maps[1:]:
            whole = combine(whole, each)
        return whole


def load_augment(owner: str, given: object, resize: str = "random") -> Augment | None:
    """Return what was given as an `Augment`: one, its options, True for the usual ones, or None.

    Args:
        owner: Whose option it is.
        given: What was given.
        resize: How images get their size; the ranges of random parts are for "random" alone.

    Raises:
        OptionError: It is something else, or has ranges that nothing would use.
    """
    augment = _load(owner, given)
    changed = {} if augment is None or resize == "random" else augment.changed_options()
    for name in _RANGES:
        if name in changed:
            expected, advice = 'resize="random"', "Set resize='random', or remove this option."
            raise refuse_option(owner, f"augment.{name}", expected, f"resize={resize!r}", advice)
    return augment


def _load(owner: str, given: object) -> Augment | None:
    if given is None or given is False:
        return None
    if given is True:
        return Augment.usual()
    if isinstance(given, Augment):
        return given
    if isinstance(given, Mapping):
        names = [each.name for each in dataclasses.fields(Augment)]
        for name in given:
            if name not in names:
                nearest = find_nearest(name, names) if isinstance(name, str) else None
                advice = "" if nearest is None else f"Did you mean {nearest!r}?"
                raise refuse_option(owner, "augment", f"only {', '.join(names)}", show(name), advice)
        return Augment(**given)
    expected = "an Augment, a mapping of its options, True or None"
    raise refuse_option(owner, "augment", expected, show(given))


def _check_range(name: str, value: object, most: float) -> tuple[float, float]:
    pair = tuple(value) if isinstance(value, tuple | list) else ()
    if len(pair) != 2:
        raise refuse_option("Augment", name, "two numbers, (least, greatest)", show(value))
    low, high = (float(check_real("Augment", name, each)) for each in pair)
    if not 0 < low <= high <= most:
        raise refuse_option("Augment", name, f"0 < least <= greatest <= {most:g}", show(value))
    return low, high
