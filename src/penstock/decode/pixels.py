"""Encoded images into pixels: their format, whether they may be decoded, and their pixels.

In: a column of encoded images. Out: uint8 arrays (height, width, channels), upright. An image is refused by
its header, before anything of its size is allocated, and a damaged one as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Bytes, Column
from penstock.errors import MissingPackageError

FORMATS: Final = ("jpeg", "png", "webp", "gif", "bmp")
"""The formats that can be decoded."""

MAX_PIXELS: Final = 50_000_000
"""Default of the largest number of pixels: larger images are more often hostile than wanted."""

_NAMES: Final = (None, *FORMATS)
_MAX_SCANS: Final = 100  # of a progressive JPEG; encoders write about ten
# EXIF orientations from 5 swap the sides; these store rows, or columns, in reverse order.
_FIRST_TURNED = 5
_UPSIDE_DOWN, _MIRRORED = (3, 4, 6, 7), (2, 3, 7, 8)


class Pixels(NamedTuple):
    """The pixels of one image.

    Attributes:
        values: uint8 (height, width, channels).
        area: The part of them that is the image: top, left, height, width. It is all of them, except that an
            image decoded at a reduced size ends within the pixels of its last block.
    """

    values: NDArray[np.uint8]
    area: tuple[float, float, float, float]


class PixelError(ValueError):
    """An image cannot be decoded.

    Attributes:
        expected: The image that can be decoded.
        got: The image that was found.
        advice: What to do.
    """

    def __init__(self, expected: str, got: str, advice: str = "") -> None:
        self.expected = expected
        self.got = got
        self.advice = advice
        super().__init__(f"expected {expected}, got {got}")


@dataclass(frozen=True)
class PixelRules:
    """Which encoded images are decoded, and how.

    Attributes:
        channels: 1, 3 or 4.
        formats: The formats to decode.
        max_pixels: Largest number of pixels of an image.
        orient: Whether to turn a photo upright by its EXIF orientation.
    """

    channels: int
    formats: tuple[str, ...]
    max_pixels: int
    orient: bool


class EncodedImages:
    """The images of a column: their headers are read at once, the pixels of each on request."""

    def __init__(self, column: Bytes, rules: PixelRules) -> None:
        self._rules = rules
        self._view = column.arena.data
        starts, stops = (np.ascontiguousarray(each) for each in (column.starts, column.stops))
        formats, widths, heights, orientations, scans = _native.read_image_headers(
            column.arena, starts, stops
        )
        self._starts, self._stops = starts.tolist(), stops.tolist()
        self._formats = formats.tolist()
        self._sizes = list(zip(heights.tolist(), widths.tolist(), strict=True))
        self._scans = scans.tolist()
        self._orientations = orientations.tolist() if rules.orient else [1] * len(self._starts)

    def format(self, row: int) -> str | None:
        """Return the format of an image by its first bytes, or None."""
        return _NAMES[self._formats[row]]

    def size(self, row: int) -> tuple[int, int]:
        """Return the height and the width of an image when it is upright.

        Raises:
            PixelError: It is not an image, or not one that may be decoded.
        """
        format, (height, width) = self.format(row), self._sizes[row]
        if format is None or format not in self._rules.formats:
            raise self._refuse_format(row, format)
        if not height or not width:
            raise PixelError(f"a complete {format}", "one that is truncated or damaged before its size")
        if height * width > self._rules.max_pixels:
            raise PixelError(
                f"at most {self._rules.max_pixels} pixels",
                f"a {format} of {width} x {height}",
                "Pass Image(max_pixels=…) to allow larger images.",
            )
        if max(height, width) > _native.LONGEST_SIDE:
            got = f"a {format} of {width} x {height}"
            raise PixelError(f"sides of at most {_native.LONGEST_SIDE} pixels", got)
        if self._scans[row] > _MAX_SCANS:  # each takes a few bytes and a pass over all pixels
            raise PixelError(f"at most {_MAX_SCANS} scans", f"a {format} of {self._scans[row]}")
        return (width, height) if self._orientations[row] >= _FIRST_TURNED else (height, width)

    def decode(self, row: int, denominator: int = 1, out: NDArray[np.uint8] | None = None) -> Pixels:
        """Return the pixels of an image, in `out` if they have its shape; call `size` first, which checks it.

        Args:
            row: The row of the image.
            denominator: Factor by which a JPEG may be decoded smaller: 1, 2, 4 or 8.
            out: Array for the pixels.

        Raises:
            PixelError: The file is damaged.
        """
        orientation, (height, width) = self._orientations[row], self._sizes[row]
        if orientation == 1:
            values = self._decode(row, denominator, out)
            return Pixels(values, (0.0, 0.0, *_sides(values, height, width, denominator)))
        stored = self._decode(row, denominator, None)
        sides = _sides(stored, height, width, denominator)
        rest = (stored.shape[0] - sides[0], stored.shape[1] - sides[1])  # below, and at the right
        top, left = (
            (rest[0] if orientation in _UPSIDE_DOWN else 0.0),
            (rest[1] if orientation in _MIRRORED else 0.0),
        )
        shape, area = stored.shape, (top, left, *sides)
        if orientation >= _FIRST_TURNED:
            shape, area = (shape[1], shape[0], shape[2]), (left, top, sides[1], sides[0])
        upright = out if out is not None and out.shape == shape else _native.empty(shape, "uint8")
        _native.orient(stored, upright, orientation)
        return Pixels(upright, area)

    def _decode(self, row: int, denominator: int, out: NDArray[np.uint8] | None) -> NDArray[np.uint8]:
        data = self._view[self._starts[row] : self._stops[row]]
        format, size, channels = self.format(row) or "", self._sizes[row], self._rules.channels
        try:
            if format == "png":
                target = out if out is not None and out.shape == (*size, channels) else None
                return _native.read_png(data, target, channels, self._rules.max_pixels)
            # Imported late, so that their packages are needed only for such images.
            if format == "jpeg":
                from penstock.decode.jpeg import read_jpeg  # noqa: PLC0415

                is_progressive = self._scans[row] > 0
                return read_jpeg(data, size, channels, denominator, out, is_progressive=is_progressive)
            from penstock.decode.raster import read_raster  # noqa: PLC0415

            return read_raster(data, format, size, channels)
        except ModuleNotFoundError as error:
            raise MissingPackageError.from_import(error, f"decoding {format}", "images") from error
        except ValueError as error:
            raise PixelError(f"a complete {format}", f"a damaged one ({error})") from None

    def _refuse_format(self, row: int, format: str | None) -> PixelError:
        wanted = " or ".join(self._rules.formats)
        if format is None:
            num_bytes = self._stops[row] - self._starts[row]
            first = bytes(self._view[self._starts[row] : self._stops[row]][:4])
            got = f"{num_bytes} bytes that begin with {first!r}" if num_bytes else "no bytes"
            return PixelError(f"an image ({wanted})", got)
        advice = f"Use Image(formats=({', '.join(map(repr, (*self._rules.formats, format)))}))."
        return PixelError(wanted, f"a {format}", advice)


def has_turned(column: Column) -> bool:
    """Return whether a column has images that are stored rotated by 90 degrees."""
    orientations = _native.read_image_headers(*Bytes.of(column).spans())[3]
    return bool((orientations >= _FIRST_TURNED).any())


def _sides(values: NDArray[np.uint8], height: int, width: int, denominator: int) -> tuple[float, float]:
    """Return the height and width of the image in pixels; fractions for one decoded at a reduced size."""
    if values.shape[:2] == (height, width):
        return float(height), float(width)
    return height / denominator, width / denominator
