"""Thumbnails: stored images, and tensors of that shape, as small pictures inside the page.

In: encoded bytes, or an array. Out: a data URI of at most some kilobytes, or None. Images are decoded as for
training: refused by their header where they are too large, and as a whole where they are damaged.
"""

from __future__ import annotations

import base64
import io
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from penstock import _native
from penstock.columns import Bytes
from penstock.decode.pixels import MAX_PIXELS, PixelRules, SliceImages
from penstock.schema.picture import read_picture

LONGEST_SIDE: Final = 160
"""Longest side of a thumbnail, in pixels: a card on a phone is about twice as wide, in CSS pixels."""

_DECODED: Final = ("jpeg", "png")  # others, which loaders decode only if asked, are left to the browser
_MOST_BYTES: Final = 30_000  # of a picture that is left to the browser
_SMALL_SIDE: Final = 64  # up to here pictures are kept without loss: icons and drawings of a few pixels
_FIRST_TURNED: Final = 5  # EXIF orientations from here on swap the sides
_QUALITY: Final = 75


def make_thumbnail(value: object) -> str | None:
    """Return a data URI for an image or an array of pixels; None if it is neither, or cannot be decoded."""
    if isinstance(value, bytes):
        picture = read_picture(value)
        if picture is None or not picture.width:
            return None
        if picture.format not in _DECODED:
            return _embed(value, picture.format) if len(value) <= _MOST_BYTES else None
        pixels = _decode(value)
    elif isinstance(value, np.ndarray):
        pixels = _scale(value)
    else:
        return None
    return None if pixels is None else _encode(pixels)


def _decode(data: bytes) -> NDArray[np.uint8] | None:
    header = _native.read_image_header(data)
    sides = (header.height, header.width)
    if header.orientation >= _FIRST_TURNED:
        sides = sides[::-1]
    size = _fit(*sides)
    fill = np.zeros(3, np.uint8)
    rules = PixelRules(
        3, _DECODED, MAX_PIXELS, True, size=size, resize="stretch", antialias=True, draft=True, fill=fill
    )
    images = SliceImages(Bytes.from_values([data]), rules)
    pixels = np.zeros((1, *size, 3), np.uint8)
    if not images.faults:
        images.decode(pixels)
    return None if images.faults else pixels[0]


def _fit(height: int, width: int) -> tuple[int, int]:
    """Return a size of the same aspect ratio with sides of at most `LONGEST_SIDE`."""
    factor = min(1.0, LONGEST_SIDE / max(height, width))
    return max(1, round(height * factor)), max(1, round(width * factor))


def _scale(values: NDArray[Any]) -> NDArray[np.uint8] | None:
    """Return numbers in the shape of an image as pixels from their minimum to their maximum."""
    array = values[..., 0] if values.ndim == 3 and values.shape[-1] == 1 else values
    is_image = array.ndim == 2 or (array.ndim == 3 and array.shape[-1] == 3)
    if not is_image or min(array.shape[:2]) < 2 or array.dtype.kind not in "iufb":
        return None
    step = max(1, -(-max(array.shape[:2]) // LONGEST_SIDE))
    numbers = np.asarray(array[::step, ::step], np.float64)
    finite = numbers[np.isfinite(numbers)]
    if array.dtype == np.uint8 or not len(finite) or finite.min() == finite.max():
        return np.clip(np.nan_to_num(numbers), 0, 255).astype(np.uint8)
    low, high = finite.min() / 2, finite.max() / 2  # halves: the distance of two doubles may not be a double
    shares = np.clip((numbers / 2 - low) / (high - low), 0, 1)
    return np.asarray(np.nan_to_num(shares) * 255, np.uint8)


def _encode(pixels: NDArray[np.uint8]) -> str:
    image, kind, file = Image.fromarray(pixels), "webp", io.BytesIO()
    if max(pixels.shape[:2]) <= _SMALL_SIDE:
        kind = "png"
        image.save(file, "PNG", optimize=True)
    else:
        image.save(file, "WEBP", quality=_QUALITY)
    return _embed(file.getvalue(), kind)


def _embed(data: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"
