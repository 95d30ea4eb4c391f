"""Pixels into encoded images, and large images into smaller ones.

In: arrays of pixels, PIL images, encoded images. Out: encoded images. What is no picture raises a
`ValueError` that says what it is instead.
"""

from __future__ import annotations

import io
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile, ImageOps

from penstock.encode.options import EncodeOptions
from penstock.schema.picture import Picture, read_picture

FORMATS: Final = ("JPEG", "PNG", "WEBP", "GIF", "BMP")
_LOSSLESS_MODES: Final = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")
_CHANNELS: Final = (1, 3, 4)
_QUALITY: Final = 95


def draw_array(pixels: NDArray[Any], options: EncodeOptions) -> bytes:
    """Return the pixels (height, width) or (height, width, 1, 3 or 4) as a PNG."""
    shape, dtype = pixels.shape, pixels.dtype
    if pixels.ndim == 3 and shape[2] == 1:
        pixels = pixels[:, :, 0]
    has_channels = pixels.ndim == 3 and shape[2] in _CHANNELS
    is_fit = (dtype == np.uint8 and (has_channels or pixels.ndim == 2)) or (
        dtype.newbyteorder("=") == np.uint16 and pixels.ndim == 2
    )
    if not is_fit or not pixels.size:
        raise ValueError(f"an array of shape {shape} and type {dtype}")
    native = np.ascontiguousarray(pixels, dtype.newbyteorder("="))
    return _save(Image.fromarray(native), "PNG", compress_level=options.png_level)


def draw_image(image: Image.Image, options: EncodeOptions) -> bytes:
    """Return a PIL image as the file that it was read from, where that is still there, or as a PNG."""
    data = _original(image)
    if data is not None:
        return data
    if image.mode not in _LOSSLESS_MODES:
        raise ValueError(f"a PIL image of mode {image.mode}")
    return _save(image, "PNG", compress_level=options.png_level)


def shrink(data: bytes, picture: Picture, options: EncodeOptions) -> bytes:
    """Return an encoded image with its shorter side as long as asked; the same bytes, if it is no longer."""
    side = options.resize
    if side is None or min(picture.width, picture.height) <= side:
        return data
    if picture.width * picture.height > options.max_pixels:
        raise ValueError(f"an image of {picture.width} x {picture.height} pixels")
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            return _shrink(image, data, side, options)
    except Exception as error:  # decoders raise whatever a damaged file makes them raise
        raise ValueError(f"an image that cannot be decoded ({error})") from error


def _shrink(image: Image.Image, data: bytes, side: int, options: EncodeOptions) -> bytes:
    if image.width * image.height > options.max_pixels:
        # The header that the decoder goes by need not be the one that was looked at.
        raise ValueError(f"{image.width} x {image.height} pixels")
    format = image.format or "PNG"
    profile = image.info.get("icc_profile")
    # A JPEG can be decoded at a half, a quarter or an eighth; at twice the size wanted, nobody sees it.
    image.draft(None, (2 * side, 2 * side))
    upright = ImageOps.exif_transpose(image)
    if upright.mode == "P":
        upright = upright.convert("RGBA" if "transparency" in upright.info else "RGB")
    elif upright.mode == "1":
        upright = upright.convert("L")
    scale = side / min(upright.size)
    width, height = (max(side, round(length * scale)) for length in upright.size)
    small = upright.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=3.0)
    if format == "JPEG":
        return _save(small, format, quality=_QUALITY, icc_profile=profile)
    if format == "WEBP":
        return _save(small, format, quality=_QUALITY, lossless=data[12:16] == b"VP8L", icc_profile=profile)
    if format == "PNG":
        return _save(small, format, compress_level=options.png_level, icc_profile=profile)
    return _save(small, format)


def _original(image: Image.Image) -> bytes | None:
    """Return the bytes that an image was opened from, if its pixels were not loaded, and so not changed."""
    file = getattr(image, "fp", None)
    if not isinstance(image, ImageFile.ImageFile) or file is None or not image.tile or image.tell():
        return None
    try:
        place = file.tell()
        file.seek(0)
        data: bytes = file.read()
        file.seek(place)
    except (OSError, ValueError):
        return None
    picture = read_picture(data)
    return data if picture is not None and (picture.width, picture.height) == image.size else None


def _save(image: Image.Image, format: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()
