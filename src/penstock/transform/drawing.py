"""Images into the slots of a batch: decoded, the part that is taken, in the size that is wanted.

In: a column of encoded images, or of pictures that a cache holds. Out: pixels of one size, or whole pictures,
and all images that have none, by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.decode.pixels import EncodedImages, PixelError, PixelRules, Pixels
from penstock.errors import FieldError
from penstock.transform.base import Prepared
from penstock.transform.draws import Draws
from penstock.transform.framing import Frame, Resizing, Size, choose_draft, draw_boxes, frame
from penstock.types import Bytes, CodedColumn, Dense, Pictures


class Images(Protocol):
    """Images that can be asked for one by one."""

    def size(self, row: int) -> Size:
        """Return height and width."""

    def decode(self, row: int, denominator: int = 1, out: NDArray[np.uint8] | None = None) -> Pixels:
        """Return the pixels; in `out`, if they are of its shape."""


class HeldPictures:
    """The pictures that a cache holds, which need no decoding."""

    def __init__(self, column: Pictures) -> None:
        self._column = column

    def size(self, row: int) -> Size:
        """Return height and width."""
        height, width, _ = self._column.image(row).shape
        return height, width

    def decode(
        self,
        row: int,
        denominator: int = 1,  # noqa: ARG002 - they are whole
        out: NDArray[np.uint8] | None = None,  # noqa: ARG002 - and others share them
    ) -> Pixels:
        """Return the pixels."""
        image = self._column.image(row)
        return Pixels(image, (0.0, 0.0, float(image.shape[0]), float(image.shape[1])))


@dataclass(frozen=True)
class Drawing:
    """How images become pixels.

    Attributes:
        rules: Which images are decoded, and to what.
        size: Height and width wanted.
        resize: How an image of other proportions gets there.
        antialias: Whether all pixels count when it shrinks.
        draft: Whether a JPEG may be decoded at a part of its size.
        fill: What stands where no image is, a number a channel.
        area: The shares of an image that may be drawn at random.
        aspect: The proportions of such a part.
    """

    rules: PixelRules
    size: Size
    resize: Resizing
    antialias: bool
    draft: bool
    fill: NDArray[np.uint8]
    area: tuple[float, float]
    aspect: tuple[float, float]

    def draw(
        self, name: str, column: CodedColumn, present: list[bool] | None, draws: Draws | None
    ) -> Prepared:
        """Return the pixels of a batch: of random parts, if there are draws and that is how to resize."""
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
            elif row not in faults:
                at = frame(size, self.size, self.resize)
                if boxes is not None:
                    at = Frame(tuple(boxes[row].tolist()), at.window)
                try:
                    self._draw(images, row, size, at, out[row])
                except PixelError as error:
                    faults[row] = _fault(name, row, error)
        return Prepared(Dense(out, column.present), faults)

    def hold(self, name: str, column: CodedColumn, present: list[bool] | None) -> Prepared:
        """Return the pictures of a batch, whole."""
        images = self._open(column)
        faults: dict[int, FieldError] = {}
        _measure(name, images, len(column), present, faults)
        held: list[NDArray[np.uint8] | None] = [None] * len(column)
        for row in range(len(column)):
            if row in faults or (present is not None and not present[row]):
                continue
            try:
                held[row] = images.decode(row).values
            except PixelError as error:
                faults[row] = _fault(name, row, error)
        return Prepared(Pictures(held, column.present), faults)

    def _open(self, column: CodedColumn) -> Images:
        if isinstance(column, Bytes):
            return EncodedImages(column, self.rules)
        if isinstance(column, Pictures):
            return HeldPictures(column)
        raise TypeError(f"{column!r} holds no images")

    def _draw(self, images: Images, row: int, size: Size, at: Frame, slot: NDArray[np.uint8]) -> None:
        """Put one image into its slot of the batch."""
        top, left, height, width = at.window
        target = slot
        if (height, width) != slot.shape[:2]:
            slot[:] = self.fill
            target = slot[top : top + height, left : left + width]
        is_whole = at.box == (0.0, 0.0, float(size[0]), float(size[1]))
        # Where parts are drawn at random, a cache holds the whole image: so it is whole without one, too.
        denominator = choose_draft(at) if self.draft and self.resize != "random" else 1
        straight = slot if is_whole and target is slot else None
        pixels, area = images.decode(row, denominator, straight)
        if pixels is straight:
            return
        down, across = area[2] / size[0], area[3] / size[1]
        box = (area[0] + at.box[0] * down, area[1] + at.box[1] * across, at.box[2] * down, at.box[3] * across)
        _native.resize(pixels, target, box, self.antialias)


def _measure(
    name: str, images: Images, count: int, present: list[bool] | None, faults: dict[int, FieldError]
) -> list[Size]:
    """Return the size of each image, (1, 1) where there is none."""
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
        advice=error.advice,
    )
