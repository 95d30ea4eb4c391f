"""Pictures of records as PNG files: decoded and drawn again, never passed on as stored.

In: a value of a record and its field. Out: the bytes of a PNG of limited size. So a browser only gets files
that this module made, and an image is refused by its header before its pixels take memory.
"""

from __future__ import annotations

import io
from typing import Any, Final

import numpy as np
from PIL import Image as PillowImage

from penstock.decode.pixels import PixelError
from penstock.decode.thumbnail import decode_small, draw_array
from penstock.schema.field import Field
from penstock.schema.picture import read_picture
from penstock.schema.scalar import Image
from penstock.view.cell import is_picture

SIZES: Final = {"small": 224, "large": 1024}
"""Longest side in pixels, by the name of the size."""

MAX_PIXELS: Final = {"png": 20_000_000, "gif": 12_500_000, "webp": 12_500_000}
"""Most pixels by format: decoding takes up to 11 bytes per pixel of PNG, and 15 of GIF and WebP."""

_PNG_LEVEL: Final = 3


def draw_picture(field: Field, value: Any, size: str) -> bytes:
    """Return a value as a PNG file.

    `size`: "small" or "large".
    """
    if not is_picture(field):
        raise PixelError("a field with pictures", f"a {field.type_name}")
    if isinstance(field, Image):
        _check_pixels(value)
        pixels = decode_small(value, SIZES[size])
    else:
        pixels = draw_array(np.asarray(value), SIZES[size])
    file = io.BytesIO()
    PillowImage.fromarray(pixels).save(file, "PNG", compress_level=_PNG_LEVEL)
    return file.getvalue()


def _check_pixels(value: bytes) -> None:
    found = read_picture(value)
    most = None if found is None else MAX_PIXELS.get(found.format)
    if found is None or most is None or found.width * found.height <= most:
        return  # `decode_small` has a separate limit
    raise PixelError(f"a {found.format} of at most {most:,} pixels", f"{found.width} x {found.height}")
