"""The header of an encoded image: its format, its width and its height, read by the core.

In: the bytes of a file. Out: a `Picture`, or None if they are not an image. Arrays that can be drawn as
pictures are recognized by their shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, get_args

from penstock import _native
from penstock.schema.scalar import ImageFormat

HEAD_BYTES: Final = 4096
"""Bytes that contain the size of nearly every image; a JPEG may have more metadata before its size."""

_FORMATS: Final = get_args(ImageFormat)  # by the core's numbers, from 1
_LEAST_SIDE: Final = 8  # smaller arrays are easier to read as numbers
_LARGEST_SIDE: Final = 4096
_CHANNELS: Final = (1, 3, 4)


class Picture(NamedTuple):
    """An encoded image, by its header.

    Attributes:
        format: Name of the format.
        width: Width in pixels; 0 if the bytes end, or are not valid, before the size.
        height: Height in pixels, or 0.
    """

    format: ImageFormat
    width: int = 0
    height: int = 0


def read_picture(data: bytes | memoryview) -> Picture | None:
    """Read the header of an image.

    Example:
        >>> read_picture(b"GIF89a" + bytes([64, 0, 48, 0]))
        Picture(format='gif', width=64, height=48)
        >>> read_picture(b"photo,label")
    """
    header = _native.read_image_header(bytes(data[:HEAD_BYTES]))
    if header.format and not header.width and len(data) > HEAD_BYTES:
        header = _native.read_image_header(bytes(data))
    return Picture(_FORMATS[header.format - 1], header.width, header.height) if header.format else None


def number_format(format: ImageFormat) -> int:
    """Return the core's number of a format."""
    return _FORMATS.index(format) + 1


def is_picture_shape(shape: Sequence[int]) -> bool:
    """Whether an array has the shape of a picture: two sides, or with them 1, 3 or 4 channels.

    Example:
        >>> is_picture_shape((28, 28)), is_picture_shape((64, 48, 3)), is_picture_shape((3, 3))
        (True, True, False)
    """
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in _CHANNELS):
        return False
    return min(shape[:2]) >= _LEAST_SIDE and max(shape[:2]) <= _LARGEST_SIDE
