"""Encoded images into pixels: which they are, whether they may be decoded, and their pixels.

In: a column of encoded images. Out: uint8 arrays (height, width, channels), upright. An image is refused by
its header, before anything of its size is allocated, and a damaged one as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.errors import MissingPackageError
from penstock.types import Bytes, Column

FORMATS: Final = ("jpeg", "png", "webp", "gif", "bmp")
"""The formats that can be decoded."""

MAX_PIXELS: Final = 50_000_000
"""What an image may have unless more is asked for: larger ones are more often hostile than wanted."""

_NAMES: Final = (None, *FORMATS)
_MOST_SCANS: Final = 100  # that go over the pixels of a JPEG; encoders write about ten
# Of the orientations of EXIF: those that swap the sides, those whose rows, or columns, are stored last first.
_FIRST_TURNED = 5
_UPSIDE_DOWN, _MIRRORED = (3, 4, 6, 7), (2, 3, 7, 8)


class Pixels(NamedTuple):
    """The pixels of one image.

    Attributes:
        values: uint8 (height, width, channels).
        area: Which part of them is the image: top, left, height, width. It is all of them, but that an image
            which was decoded at a part of its size ends within the pixels of its last block.
    """

    values: NDArray[np.uint8]
    area: tuple[float, float, float, float]


class PixelError(ValueError):
    """An image cannot be decoded.

    Attributes:
        expected: What was wanted.
        got: What it is instead.
        advice: What to do.
    """

    def __init__(self, expected: str, got: str, advice: str = "") -> None:
        self.expected = expected
        self.got = got
        self.advice = advice
        super().__init__(f"expected {expected}, got {got}")


@dataclass(frozen=True)
class PixelRules:
    """What is taken of encoded images.

    Attributes:
        channels: 1, 3 or 4.
        formats: Which are decoded.
        max_pixels: How many pixels an image may have.
        orient: Whether to turn a photo upright, as its camera noted.
    """

    channels: int
    formats: tuple[str, ...]
    max_pixels: int
    orient: bool


class EncodedImages:
    """The images of a column, by their headers, and each one's pixels when asked for."""

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
        """Return what an image is by its first bytes, or None."""
        return _NAMES[self._formats[row]]

    def size(self, row: int) -> tuple[int, int]:
        """Return the height and the width of an image when it is upright.

        Raises:
            PixelError: It is none, or none that may be decoded.
        """
        format, (height, width) = self.format(row), self._sizes[row]
        if format is None or format not in self._rules.formats:
            raise self._refuse_format(row, format)
        if not height or not width:
            raise PixelError(f"a whole {format}", "one that ends, or is damaged, before it tells its size")
        if height * width > self._rules.max_pixels:
            raise PixelError(
                f"at most {self._rules.max_pixels} pixels",
                f"a {format} of {width} x {height}",
                "Say Image(max_pixels=…) if it may be so large.",
            )
        if max(height, width) > _native.LONGEST_SIDE:
            got = f"a {format} of {width} x {height}"
            raise PixelError(f"sides of at most {_native.LONGEST_SIDE} pixels", got)
        if self._scans[row] > _MOST_SCANS:  # a few bytes ask for each
            raise PixelError(f"at most {_MOST_SCANS} scans", f"a {format} of {self._scans[row]}")
        return (width, height) if self._orientations[row] >= _FIRST_TURNED else (height, width)

    def decode(self, row: int, denominator: int = 1, out: NDArray[np.uint8] | None = None) -> Pixels:
        """Return the pixels of an image whose `size` was asked for; in `out`, if they are of its shape.

        Args:
            row: Which one.
            denominator: How much smaller it may be: 1, 2, 4 or 8. Only JPEGs are.
            out: Where to put the pixels.

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
            # By module, so that whoever has no such images needs no such package.
            if format == "jpeg":
                from penstock.decode.jpeg import read_jpeg  # noqa: PLC0415

                is_progressive = self._scans[row] > 0
                return read_jpeg(data, size, channels, denominator, out, is_progressive=is_progressive)
            from penstock.decode.raster import read_raster  # noqa: PLC0415

            return read_raster(data, format, size, channels)
        except ModuleNotFoundError as error:
            raise MissingPackageError.from_import(error, f"decoding {format}", "images") from error
        except ValueError as error:
            raise PixelError(f"a whole {format}", f"a damaged one ({error})") from None

    def _refuse_format(self, row: int, format: str | None) -> PixelError:
        wanted = " or ".join(self._rules.formats)
        if format is None:
            num_bytes = self._stops[row] - self._starts[row]
            first = bytes(self._view[self._starts[row] : self._stops[row]][:4])
            got = f"{num_bytes} bytes that begin with {first!r}" if num_bytes else "no bytes"
            return PixelError(f"an image ({wanted})", got)
        advice = f"Say Image(formats=({', '.join(map(repr, (*self._rules.formats, format)))}))."
        return PixelError(wanted, f"a {format}", advice)


def has_turned(column: Column) -> bool:
    """Say whether a column has images that lie on their side as they are stored."""
    if not isinstance(column, Bytes):
        raise TypeError(f"{column!r} holds no images")
    starts, stops = (np.ascontiguousarray(each) for each in (column.starts, column.stops))
    orientations = _native.read_image_headers(column.arena, starts, stops)[3]
    return bool((orientations >= _FIRST_TURNED).any())


def _sides(values: NDArray[np.uint8], height: int, width: int, denominator: int) -> tuple[float, float]:
    """Return how many rows and columns of pixels the image is: of a draft, not all of the last ones."""
    if values.shape[:2] == (height, width):
        return float(height), float(width)
    return height / denominator, width / denominator
