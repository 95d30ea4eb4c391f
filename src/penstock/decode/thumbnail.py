"""Thumbnails: stored images, and arrays of that shape, as small pictures for pages.

In: encoded bytes, or an array. Out: pixels or a data URI, of limited size. Images are decoded as for
training: refused by their header where they are too large, and as a whole where they are damaged.
"""

from __future__ import annotations

import base64
import io
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from penstock.columns import Bytes
from penstock.decode.pixels import FORMATS, PixelError, PixelRules, SliceImages, read_sizes
from penstock.schema.picture import is_picture_shape

MAX_PIXELS: Final = 25_000_000
"""Images with more pixels are not decoded: they take 75 MB."""

MAX_BYTES: Final = 24_000
"""Largest size of an encoded thumbnail."""

_SMALL_SIDE: Final = 64  # up to here pictures are kept without loss: icons and drawings of a few pixels
_QUALITY: Final = 75
_OVERSAMPLING: Final = 4  # arrays are averaged from at most this many values per pixel and side


def make_thumbnail(value: object, longest_side: int = 96) -> str | None:
    """Return a data URI for an image or an array of pixels; None if it is neither, or cannot be decoded."""
    try:
        if isinstance(value, bytes):
            return _encode(decode_small(value, longest_side))
        if isinstance(value, np.ndarray) and is_picture_shape(value.shape) and value.dtype.kind in "iufb":
            return _encode(draw_array(value, longest_side))
    except PixelError:
        return None
    return None


def decode_small(data: bytes, longest_side: int) -> NDArray[np.uint8]:
    """Return the pixels of an encoded image, reduced to a longest side."""
    column = Bytes.from_values([data])
    sizes = read_sizes(column)
    height, width = int(sizes.heights[0]), int(sizes.widths[0])
    if sizes.is_turned[0]:
        height, width = width, height
    size = _fit(max(1, height), max(1, width), longest_side)
    fill = np.zeros(3, np.uint8)
    rules = PixelRules(
        3, FORMATS, MAX_PIXELS, True, size=size, resize="stretch", antialias=True, draft=True, fill=fill
    )
    images = SliceImages(column, rules)
    pixels = np.zeros((1, *size, 3), np.uint8)
    if not images.faults:
        images.decode(pixels)
    if images.faults:
        raise images.faults[0]
    return np.asarray(pixels[0])


def draw_array(values: NDArray[Any], longest_side: int) -> NDArray[np.uint8]:
    """Return an array as pixels, reduced to a longest side: bytes as they are, others from low to high."""
    array = values[..., 0] if values.ndim == 3 and values.shape[-1] == 1 else values
    size = _fit(array.shape[0], array.shape[1], longest_side)
    step = max(1, max(array.shape[:2]) // (_OVERSAMPLING * longest_side))
    pixels = _scale(array[::step, ::step])
    if pixels.shape[:2] == size:
        return pixels
    return np.asarray(Image.fromarray(pixels).resize(size[::-1], Image.Resampling.BOX))


def _fit(height: int, width: int, longest_side: int) -> tuple[int, int]:
    """Return a size of the same aspect ratio with sides of at most `longest_side`."""
    factor = min(1.0, longest_side / max(height, width))
    return max(1, round(height * factor)), max(1, round(width * factor))


def _scale(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return numbers as pixels from their lowest to their highest; those that are not finite are black."""
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255)
    if array.dtype == np.uint8:
        return np.ascontiguousarray(array)
    numbers = np.asarray(array, np.float64)
    finite = numbers[np.isfinite(numbers)]
    if not len(finite) or finite.min() == finite.max():
        return np.clip(np.nan_to_num(numbers), 0, 255).astype(np.uint8)
    low, high = finite.min() / 2, finite.max() / 2  # halves: the distance of two doubles may not be a double
    shares = np.where(np.isfinite(numbers), (numbers / 2 - low) / (high - low), 0)
    return np.asarray(np.clip(shares, 0, 1) * 255, np.uint8)


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
