"""Decode, crop and resize the images of a batch.

In: a column of encoded or cached images. Out: pixels of one size, or whole images for a cache, and the errors
of images that cannot be decoded, by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Bytes, CodedColumn, Dense, Pictures
from penstock.decode.pixels import EncodedImages, PixelError, PixelRules, Pixels
from penstock.errors import FieldError
from penstock.transform.base import Prepared
from penstock.transform.crop import Box, Frame, Resizing, Size, choose_draft, draw_boxes, frame
from penstock.transform.draws import Draws


class Images(Protocol):
    """Images that are decoded one by one."""

    def held(self, row: int) -> NDArray[np.uint8] | None:
        """Return the cached pixels, or None."""

    def size(self, row: int) -> Size:
        """Return height and width."""

    def decode(self, row: int, denominator: int = 1, out: NDArray[np.uint8] | None = None) -> Pixels:
        """Return the pixels, written to `out` if its shape matches."""


class PartlyCachedImages:
    """Images of which a cache holds some."""

    def __init__(self, column: Pictures, rules: PixelRules) -> None:
        self._images = column.images
        self._rest = None if column.encoded is None else EncodedImages(column.encoded, rules)

    def held(self, row: int) -> NDArray[np.uint8] | None:
        """Return the cached pixels, or None."""
        return self._images[row]

    def size(self, row: int) -> Size:
        """Return height and width."""
        image = self._images[row]
        if image is None:
            return self._encoded().size(row)
        return image.shape[0], image.shape[1]

    def decode(self, row: int, denominator: int = 1, out: NDArray[np.uint8] | None = None) -> Pixels:
        """Return the pixels, written to `out` if its shape matches and they are not cached."""
        image = self._images[row]
        if image is None:
            return self._encoded().decode(row, denominator, out)
        return Pixels(image, (0.0, 0.0, float(image.shape[0]), float(image.shape[1])))

    def _encoded(self) -> EncodedImages:
        if self._rest is None:
            raise ValueError("the row is neither cached nor encoded")
        return self._rest


@dataclass(frozen=True)
class ImageResizer:
    """How images are decoded, cropped and resized.

    Attributes:
        rules: Which images are decoded, and to which channels.
        size: Height and width of the output.
        resize: How to resize an image of another aspect ratio.
        antialias: Whether to average all pixels when an image is reduced.
        draft: Whether to decode large JPEGs at a reduced size.
        fill: Pixel value where there is no image, one number per channel.
        area: Range of the area of random crops.
        aspect: Range of the aspect ratio of random crops.
    """

    rules: PixelRules
    size: Size
    resize: Resizing
    antialias: bool
    draft: bool
    fill: NDArray[np.uint8]
    area: tuple[float, float]
    aspect: tuple[float, float]

    def resize_batch(
        self, name: str, column: CodedColumn, present: list[bool] | None, draws: Draws | None
    ) -> Prepared:
        """Return the resized pixels of a batch; with `draws` and `resize="random"`, of random crops."""
        images = self._open(column)
        faults: dict[int, FieldError] = {}
        sizes = _measure(name, images, len(column), present, faults)
        boxes = None
        if self.resize == "random" and draws is not None:
            boxes = draw_boxes(draws, "box", np.array(sizes, np.int64).reshape(-1, 2), self.area, self.aspect)
        out = _native.empty((len(column), *self.size, self.rules.channels), "uint8")
        for row, size in enumerate(sizes):
            if present is not None and not present[row]:
                out[row] = self.fill
                continue
            held = None if boxes is not None else images.held(row)
            if held is not None:
                out[row] = held  # already resized
            elif row not in faults:
                box = None if boxes is None else tuple(boxes[row].tolist())
                try:
                    self._resize(images, row, size, box, out[row])
                except PixelError as error:
                    faults[row] = _fault(name, row, error)
        return Prepared(Dense(out, column.present), faults)

    def resize_for_cache(
        self, name: str, column: Bytes, present: list[bool] | None, room_bytes: int, *, is_whole: bool
    ) -> Prepared:
        """Return images for a cache, whole or resized, up to `room_bytes`; the rest stays encoded."""
        images = self._open(column)
        faults: dict[int, FieldError] = {}
        sizes = _measure(name, images, len(column), present, faults)
        held: list[NDArray[np.uint8] | None] = [None] * len(column)
        is_full = False
        for row, size in enumerate(sizes):
            if row in faults or (present is not None and not present[row]):
                continue
            shape = (*(size if is_whole else self.size), self.rules.channels)
            room_bytes -= prod(shape)
            if room_bytes < 0:
                is_full = True
                break
            pixels = np.empty(shape, np.uint8)  # of the exact size, unlike blocks of the memory pool
            try:
                if is_whole:
                    held[row] = images.decode(row, 1, pixels).values
                else:
                    self._resize(images, row, size, None, pixels)
                    held[row] = pixels
            except PixelError as error:
                faults[row] = _fault(name, row, error)
        return Prepared(Pictures(held, column.present, column if is_full else None), faults)

    def _open(self, column: CodedColumn) -> Images:
        return PartlyCachedImages(Pictures.wrap(column), self.rules)

    def _resize(
        self, images: Images, row: int, size: Size, part: Box | None, slot: NDArray[np.uint8]
    ) -> None:
        """Write one image, or a part of it, to its slot of the batch."""
        if size == self.size and part is None:
            pixels, _ = images.decode(row, 1, slot)
            if pixels is not slot:
                slot[:] = pixels
            return
        at = frame(size, self.size, self.resize)
        if part is not None:
            at = Frame(part, at.window)
        top, left, height, width = at.window
        target = slot
        if (height, width) != slot.shape[:2]:
            slot[:] = self.fill
            target = slot[top : top + height, left : left + width]
        is_whole = at.box == (0.0, 0.0, float(size[0]), float(size[1]))
        straight = slot if is_whole and target is slot else None
        pixels, area = images.decode(row, choose_draft(at) if self.draft else 1, straight)
        if pixels is straight:
            return
        down, across = area[2] / size[0], area[3] / size[1]
        box = (area[0] + at.box[0] * down, area[1] + at.box[1] * across, at.box[2] * down, at.box[3] * across)
        _native.resize(pixels, target, box, self.antialias)


def _measure(
    name: str, images: Images, count: int, present: list[bool] | None, faults: dict[int, FieldError]
) -> list[Size]:
    """Return the size of each image; (1, 1) for a row without an image."""
    sizes = []
    for row in range(count):
        size = (1, 1)
        if present is None or present[row]:
            try:
                size = images.size(row)
            except PixelError as error:
                faults[row] = _fault(name, row, error)
        sizes.append(size)
    return sizes


def _fault(name: str, row: int, error: PixelError) -> FieldError:
    return FieldError(
        f"image of field {name!r}",
        field=name,
        record=row,
        expected=error.expected,
        got=error.got,
        advice=error.advice or "Open the data with on_error='skip' to skip such records.",
    )
