"""Thumbnails: stored images, and arrays of that shape, as small pictures for pages.

In: encoded bytes, or an array. Out: a data URI of limited size, or None. Images are decoded as for training:
refused by their header where they are too large, and as a whole where they are damaged.
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
from penstock.decode.pixels import FORMATS, PixelRules, SliceImages

MAX_PIXELS: Final = 25_000_000
"""Images with more pixels have no thumbnail: decoding takes their time and memory."""

MAX_BYTES: Final = 24_000
"""Largest size of an encoded thumbnail."""

_FIRST_TURNED: Final = 5  # EXIF orientations from here on swap the sides
_SMALL_SIDE: Final = 64  # up to here pictures are kept without loss: icons and drawings of a few pixels
_QUALITY: Final = 75


def make_thumbnail(value: object, longest_side: int = 96) -> str | None:
    """Return a data URI for an image or an array of pixels; None if it is neither, or cannot be decoded.

    Args:
        value: Bytes of an image, or an array of shape (height, width), (height, width, 1) or
            (height, width, 3).
        longest_side: Longest side of the thumbnail, in pixels.

    Raises:
        MissingPackageError: No decoder for the format is installed.
    """
    if isinstance(value, bytes):
        pixels = _decode(value, longest_side)
    elif isinstance(value, np.ndarray):
        pixels = _scale(value, longest_side)
    else:
        return None
    return None if pixels is None else _encode(pixels)


def _decode(data: bytes, longest_side: int) -> NDArray[np.uint8] | None:
    header = _native.read_image_header(data)
    if not header.format or not header.width or not header.height:
        return None
    sides = (header.height, header.width)
    if header.orientation >= _FIRST_TURNED:
        sides = sides[::-1]
    factor = min(1.0, longest_side / max(sides))
    size = (max(1, round(sides[0] * factor)), max(1, round(sides[1] * factor)))
    fill = np.zeros(3, np.uint8)
    rules = PixelRules(
        3, FORMATS, MAX_PIXELS, True, size=size, resize="stretch", antialias=True, draft=True, fill=fill
    )
    images = SliceImages(Bytes.from_values([data]), rules)
    pixels = np.zeros((1, *size, 3), np.uint8)
    if not images.faults:
        images.decode(pixels)
    return None if images.faults else pixels[0]


def _scale(values: NDArray[Any], longest_side: int) -> NDArray[np.uint8] | None:
    """Return numbers in the shape of an image as pixels from their minimum to their maximum."""
    array = values[..., 0] if values.ndim == 3 and values.shape[-1] == 1 else values
    is_image = array.ndim == 2 or (array.ndim == 3 and array.shape[-1] == 3)
    if not is_image or min(array.shape[:2]) < 2 or array.dtype.kind not in "iufb":
        return None
    step = max(1, -(-max(array.shape[:2]) // longest_side))
    numbers = np.asarray(array[::step, ::step], np.float64)
    finite = numbers[np.isfinite(numbers)]
    if array.dtype == np.uint8 or not len(finite) or finite.min() == finite.max():
        return np.clip(np.nan_to_num(numbers), 0, 255).astype(np.uint8)
    low, high = finite.min() / 2, finite.max() / 2  # halves: the distance of two doubles may not be a double
    shares = np.clip((numbers / 2 - low) / (high - low), 0, 1)
    return np.asarray(np.nan_to_num(shares) * 255, np.uint8)


def _encode(pixels: NDArray[np.uint8]) -> str | None:
    image, kind, file = Image.fromarray(pixels), "webp", io.BytesIO()
    if max(pixels.shape[:2]) <= _SMALL_SIDE:
        kind = "png"
        image.save(file, "PNG", optimize=True)
    else:
        image.save(file, "WEBP", quality=_QUALITY)
    data = file.getvalue()
    if len(data) > MAX_BYTES:
        return None
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"
