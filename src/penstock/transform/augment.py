"""`Augment`: random changes to the images of a training batch.

In: images of one size, and the draws of the batch. Out: augmented images, which depend only on seed, epoch
and record.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.errors import OptionError
from penstock.foundation.json_form import JsonValue
from penstock.foundation.option_checks import check_real, refuse_option
from penstock.foundation.wording import find_nearest, show
from penstock.transform.draws import Draws

_SHARES: Final = ("flip", "flip_down", "brightness", "contrast", "saturation", "crop", "cutout")
_CHANGES: Final = ("crop", "flip", "flip_down", "brightness", "contrast", "saturation", "cutout")
_PURPOSES: Final = ("crop", "flip", "brightness", "contrast", "saturation", "cutout")  # both flips share one
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
    def light(cls) -> Augment:
        """Return options that suit images of almost anything: shifts by a tenth, and changes of brightness.

        `penstock.train` uses them for models that it builds. There are no flips: digits, letters and signs
        change their meaning when they are mirrored.
        """
        return cls(crop=0.1, brightness=0.1)

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

    def apply(self, images: NDArray[np.uint8], fill: NDArray[np.uint8], draws: Draws) -> None:
        """Augment images in place; each is changed by the draws of its record alone.

        Args:
            images: C-contiguous array (rows, height, width, channels).
            fill: Color of cutouts, one number per channel.
            draws: Random draws of the rows.
        """
        if self.changes:
            changes = tuple(getattr(self, name) for name in _CHANGES)
            _native.augment(images, changes, fill, draws.keys(*_PURPOSES))


def load_augment(owner: str, given: object, resize: str = "random") -> Augment | None:
    """Return an `Augment` for a given one, for its options, for True (the usual ones), or None.

    `resize`: how images get their size; the ranges of random parts are for "random" alone.
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
