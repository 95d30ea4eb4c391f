"""Encoded images into pixels: their format, whether they may be decoded, and their pixels.

In: images of a slice of a batch, encoded or cached. Out: uint8 pixels in given arrays, upright, cropped and
resized. An image is refused by its header, before anything of its size is allocated, and a damaged one as a
whole.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Bytes, Mask, Pictures
from penstock.errors import MissingPackageError

FORMATS: Final = ("jpeg", "png", "webp", "gif", "bmp")
"""The formats that can be decoded."""

MAX_PIXELS: Final = 50_000_000
"""Default of the largest number of pixels: larger images are more often hostile than wanted."""

Resizing: TypeAlias = Literal["stretch", "pad", "crop", "random"]
Size: TypeAlias = tuple[int, int]

_NAMES: Final = (None, *FORMATS)
_RESIZINGS: Final = {"stretch": 0, "pad": 1, "crop": 2, "random": 2}  # random crops are passed separately
_FIRST_TURNED: Final = 5  # EXIF orientations from here on swap the sides
# The faults of a header: ImageFault in native/image/image_plan.h.
_BAD_FORMAT, _NO_SIZE, _TOO_MANY_PIXELS, _TOO_LONG, _TOO_MANY_SCANS = range(1, 6)


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
    """Which encoded images are decoded, and how they become pixels of one size.

    Attributes:
        channels: 1, 3 or 4.
        formats: The formats to decode.
        max_pixels: Largest number of pixels of an image.
        orient: Whether to turn a photo upright by its EXIF orientation.
        size: Height and width of the output.
        resize: How to resize an image of another aspect ratio; "random" without draws is "crop".
        antialias: Whether to average all pixels when an image is reduced.
        draft: Whether to decode large JPEGs at a reduced size.
        fill: Pixel value where there is no image, one number per channel.
    """

    channels: int
    formats: tuple[str, ...]
    max_pixels: int
    orient: bool
    _: KW_ONLY
    size: Size
    resize: Resizing
    antialias: bool
    draft: bool
    fill: NDArray[np.uint8]

    @cached_property
    def numbers(self) -> _native.ImageRules:
        """The rules as the core takes them."""
        formats = sum(1 << _NAMES.index(each) for each in self.formats)
        resizing = _RESIZINGS[self.resize]
        header = (self.channels, formats, self.max_pixels, self.orient)
        return (*header, *self.size, resizing, self.antialias, self.draft, self.fill)


class _Image(NamedTuple):
    """An image of a slice that the core did not decode: its row, its bytes, and its header.

    Attributes:
        row: Row of the slice.
        start: Offset of the first byte.
        stop: Offset after the last byte.
        number: Number of its format in `FORMATS`, from 1.
        height: Number of rows of pixels.
        width: Number of pixels per row.
        denominator: Divisor of both sizes, for a JPEG that is decoded at a smaller size.
        is_progressive: Whether it is a progressive JPEG.
    """

    row: int
    start: int
    stop: int
    number: int
    height: int
    width: int
    denominator: int
    is_progressive: bool


class SliceImages:
    """The images of a slice of a batch: headers are read at once, and pixels are made on request.

    Args:
        column: The images, encoded or cached.
        rules: Rules of decoding and resizing.
        present: Which rows have an image; None if all have one.
        crop: Draws and ranges of random crops; None for none.
        is_whole: Whether to decode whole images, each in its own size, instead of resizing them.

    Attributes:
        faults: Errors of images by row; `decode` adds errors of damaged images.
    """

    def __init__(
        self,
        column: Pictures | Bytes,
        rules: PixelRules,
        present: Mask | None = None,
        crop: _native.RandomCrops | None = None,
        *,
        is_whole: bool = False,
    ) -> None:
        encoded = column if isinstance(column, Bytes) else column.encoded
        held = list(column.images) if isinstance(column, Pictures) else None
        self._rules = rules
        self._data = None if encoded is None else encoded.arena.data
        spans = None if encoded is None else encoded.spans()
        self._plan = _native.ImagePlan(rules.numbers, held, spans, present, crop, is_whole)
        self.faults: dict[int, PixelError] = {}
        for row, fault in self._plan.faults():
            self.faults[row] = self._refuse(row, fault)

    def slot_size(self, row: int) -> Size | None:
        """Return the height and width of the pixels of an image; None if it is absent or refused."""
        return self._plan.slot_size(row)

    def decode(self, slots: _native.ImageSlots) -> None:
        """Write the pixels of all images to their slots.

        `slots`: array (rows, height, width, channels); or one array for each row, None for rows to skip.
        """
        decode, space = None, ""
        if self._plan.has_jpegs:
            # Imported late, so that the package is needed only for such images.
            try:
                from penstock.decode.jpeg import SPACES, decode_jpeg  # noqa: PLC0415
            except ModuleNotFoundError as error:
                raise MissingPackageError.from_import(error, "decoding jpeg", "images") from error
            decode, space = decode_jpeg, SPACES[self._rules.channels]
        damaged, refused, others = self._plan.decode(slots, decode, space)
        for row, fault in damaged:
            self.faults[row] = _damage("png", fault)
        for image in refused:
            self._decode_apart(_Image(*image))
        for image in others:
            self._decode_apart(_Image(*image))

    def _decode_apart(self, image: _Image) -> None:
        """Decode an image of a rare format, or a JPEG that a strict decoder refused."""
        format, channels = FORMATS[image.number - 1], self._rules.channels
        data = memoryview(b"") if self._data is None else self._data[image.start : image.stop]
        size = (image.height, image.width)
        try:
            if format == "jpeg":
                from penstock.decode.jpeg import read_jpeg  # noqa: PLC0415

                pixels = read_jpeg(
                    data, size, channels, image.denominator, is_progressive=image.is_progressive
                )
            else:
                from penstock.decode.raster import read_raster  # noqa: PLC0415

                pixels = read_raster(data, format, size, channels)
        except ModuleNotFoundError as error:
            raise MissingPackageError.from_import(error, f"decoding {format}", "images") from error
        except ValueError as error:
            self.faults[image.row] = _damage(format, str(error))
            return
        if not self._plan.place(image.row, pixels):
            size_text = f"{pixels.shape[1]} x {pixels.shape[0]} pixels"
            self.faults[image.row] = _damage(format, f"{size_text} differ from the size in its header")

    def _refuse(self, row: int, fault: int) -> PixelError:
        number, height, width, scans, start, stop = self._plan.header(row)
        format = _NAMES[number]
        if fault == _BAD_FORMAT:
            return self._refuse_format(format, start, stop)
        if fault == _NO_SIZE:
            return PixelError(f"a complete {format}", "one that is truncated or damaged before its size")
        got = f"a {format} of {width} x {height}"
        if fault == _TOO_MANY_PIXELS:
            advice = "Pass Image(max_pixels=…) to allow larger images."
            return PixelError(f"at most {self._rules.max_pixels} pixels", got, advice)
        if fault == _TOO_LONG:
            return PixelError(f"sides of at most {_native.LONGEST_SIDE} pixels", got)
        return PixelError(f"at most {_native.MOST_SCANS} scans", f"a {format} of {scans}")

    def _refuse_format(self, format: str | None, start: int, stop: int) -> PixelError:
        wanted = " or ".join(self._rules.formats)
        if format is None:
            first = b"" if self._data is None else bytes(self._data[start:stop][:4])
            got = f"{stop - start} bytes that begin with {first!r}" if stop > start else "no bytes"
            return PixelError(f"an image ({wanted})", got)
        advice = f"Use Image(formats=({', '.join(map(repr, (*self._rules.formats, format)))}))."
        return PixelError(wanted, f"a {format}", advice)


def _damage(format: str, fault: str) -> PixelError:
    return PixelError(f"a complete {format}", f"a damaged one ({fault})")


class StoredSizes(NamedTuple):
    """Sizes of encoded images by their headers.

    Attributes:
        heights: Heights in pixels, as stored; 0 where the header cannot be read.
        widths: Widths in pixels, as stored, or 0.
        is_turned: Whether each image is stored rotated by 90 degrees, according to its EXIF orientation.
    """

    heights: NDArray[np.int64]
    widths: NDArray[np.int64]
    is_turned: Mask


def read_sizes(column: Bytes) -> StoredSizes:
    """Return the sizes of the images of a column."""
    _, widths, heights, orientations, _ = _native.read_image_headers(*column.spans())
    is_known = (widths > 0) & (heights > 0)
    return StoredSizes(
        np.where(is_known, heights, 0), np.where(is_known, widths, 0), orientations >= _FIRST_TURNED
    )
