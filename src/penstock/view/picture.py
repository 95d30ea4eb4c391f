"""Pictures of records as PNG files: decoded and drawn again, never passed on as stored.

In: a value of a record and its field. Out: the bytes of a PNG of limited size. So a browser only gets files
that this module made, and an image is refused by its header before its pixels take memory.
"""

from __future__ import annotations

import io
import threading
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image as PillowImage

from penstock.columns import Bytes
from penstock.decode.pixels import FORMATS, PixelError, PixelRules, SliceImages, read_sizes
from penstock.schema.field import Field
from penstock.schema.scalar import Image
from penstock.view.cell import is_picture

SIZES: Final = {"small": 224, "large": 1024}
"""Longest side in pixels, by the name of the size."""

MAX_PIXELS: Final = 25_000_000
"""Images with more pixels are not decoded: they take 75 MB."""

_PNG_LEVEL: Final = 3
_LOCK: Final = threading.Lock()  # one image at a time, so that memory is bounded


def draw_picture(field: Field, value: Any, size: str) -> bytes:
    """Return a value as a PNG file.

    Args:
        field: Field of the value.
        value: The value, as in a sample.
        size: "small" or "large".

    Raises:
        PixelError: The value is not an image, is damaged, or has too many pixels.
        MissingPackageError: No decoder for the format is installed.
    """
    if not is_picture(field):
        raise PixelError("a field with pictures", f"a {field.type_name}")
    with _LOCK:
        if isinstance(field, Image):
            pixels = _decode(value, SIZES[size])
        else:
            pixels = _shrink(_as_pixels(np.asarray(value)), SIZES[size])
        file = io.BytesIO()
        PillowImage.fromarray(pixels).save(file, "PNG", compress_level=_PNG_LEVEL)
    return file.getvalue()


def _decode(value: bytes, longest: int) -> NDArray[np.uint8]:
    column = Bytes.from_values([value])
    sizes = read_sizes(column)
    height, width = int(sizes.heights[0]), int(sizes.widths[0])
    if sizes.is_turned[0]:
        height, width = width, height
    size = _fit(max(1, height), max(1, width), longest)
    rules = PixelRules(
        3,
        FORMATS,
        MAX_PIXELS,
        True,
        size=size,
        resize="stretch",
        antialias=True,
        draft=True,
        fill=np.zeros(3, np.uint8),
    )
    images = SliceImages(column, rules)
    pixels = np.zeros((1, *size, 3), np.uint8)
    if not images.faults:
        images.decode(pixels)
    if images.faults:
        raise images.faults[0]
    return np.asarray(pixels[0])


def _fit(height: int, width: int, longest: int) -> tuple[int, int]:
    scale = min(1.0, longest / max(height, width))
    return max(1, round(height * scale)), max(1, round(width * scale))


def _as_pixels(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Return an array as pixels: bytes as they are, other numbers from their lowest to their highest."""
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[:, :, 0]
    if values.dtype == np.bool_:
        return values.astype(np.uint8) * np.uint8(255)
    if values.dtype == np.uint8:
        return values
    numbers = values.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    span = high - low if 0 < high - low < np.inf else 1.0
    scaled = np.nan_to_num((numbers - low) / span, nan=0.0, posinf=1.0, neginf=0.0)
    return np.asarray(np.clip(scaled, 0, 1) * 255, np.uint8)


def _shrink(pixels: NDArray[np.uint8], longest: int) -> NDArray[np.uint8]:
    size = _fit(pixels.shape[0], pixels.shape[1], longest)
    if size == pixels.shape[:2]:
        return pixels
    return np.asarray(PillowImage.fromarray(pixels).resize(size[::-1], PillowImage.Resampling.BOX))
