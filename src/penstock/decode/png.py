"""PNG images into pixels.

In: the bytes of a file. Out: an array of pixels, (height, width, channels), or a ValueError that says what is
wrong: a file that is cut or damaged never gives half an image. The work is done by the core, without the GIL.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock import _native


def read_png(
    data: bytes | bytearray | memoryview,
    out: NDArray[np.uint8] | None,
    channels: int,
    max_pixels: int,
) -> NDArray[np.uint8]:
    """Decode a PNG of any colour type and depth, interlaced or not; of an animated one, the default image.

    Grey becomes RGB by repetition; RGB becomes grey as in Pillow. Of 16 bits the high byte is kept, grey of
    fewer than 8 bits is scaled to 0 … 255. Alpha is dropped, or with four channels kept, 255 where none is.

    Args:
        data: The file.
        out: Where the pixels go: (height, width, channels), rows any distance apart, pixels side by side.
            None makes an array.
        channels: 1 for grey, 3 for RGB, 4 for RGBA.
        max_pixels: A header that claims more is refused before anything is read or allocated.

    Returns:
        `out`, or the array that was made.

    Raises:
        ValueError: The file is no PNG, is cut or damaged, has more pixels than allowed, or does not fit.

    Example:
        >>> read_png(b"GIF89a", None, channels=3, max_pixels=1000)
        Traceback (most recent call last):
        ValueError: it does not begin as a PNG does
    """
    return _native.read_png(data, out, channels, max_pixels)
