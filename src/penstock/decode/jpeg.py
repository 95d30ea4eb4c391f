"""JPEG into pixels, and pixels into JPEG, by libjpeg-turbo.

In: the bytes of a JPEG. Out: uint8 pixels. A damaged file is a `ValueError`; missing pixels are never filled
in.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import simplejpeg
from numpy.typing import NDArray

from penstock import _native

SPACES: Final = {1: "GRAY", 3: "RGB", 4: "RGBA"}
"""Color spaces of simplejpeg by number of channels."""

decode_jpeg = simplejpeg.decode_jpeg
"""Decoder of one JPEG, which the core calls with a buffer, and strictly."""

encode_jpeg = simplejpeg.encode_jpeg
"""Encoder of one JPEG, for the files that a check makes itself."""

_END = "before marker 0xd9"  # unused bytes after the last pixel: some cameras write them
_STRAY = "extraneous bytes before marker"  # between segments of the header: padding by some cameras
_BOUNDS = "Invalid SOS parameters"  # unused parameters of a baseline scan
_ODD = "subsampling"  # this interface of libjpeg-turbo refuses rare chroma subsampling


def read_jpeg(
    data: memoryview | bytes,
    size: tuple[int, int],
    channels: int,
    denominator: int,
    *,
    is_progressive: bool,
) -> NDArray[np.uint8]:
    """Return the pixels of a JPEG; warnings of the decoder are errors, except for those that affect no pixel.

    `size`: height and width of the pixels, from its header and the denominator. `channels`: 1 for grey, 3 for
    RGB, 4 for RGBA with an alpha of 255. `denominator`: 1, or 2, 4, 8 for an image smaller by this factor:
    each pixel is then made from the low frequencies of a block, which takes less time. `is_progressive`:
    whether the file has several scans. Unused bytes after the last pixel are damage then; in other files they
    are ignored.
    """
    # At least the requested size, and at least that factor smaller: only one scale fits both.
    height, width = size
    buffer = _native.empty((height * width * channels,), "uint8")
    arguments = (SPACES[channels], False, False, height, width, denominator, buffer)
    try:
        return decode_jpeg(data, *arguments, True)  # type: ignore[no-any-return]
    except ValueError as error:
        fault = str(error)
    if _END in fault and not is_progressive:
        return decode_jpeg(data, *arguments, False)  # type: ignore[no-any-return]
    tidied = _native.tidy_jpeg(data) if _STRAY in fault or _BOUNDS in fault else None
    if tidied is not None:  # a second fault is damage: there is nothing left to tidy
        return read_jpeg(tidied, size, channels, denominator, is_progressive=is_progressive)
    if _ODD in fault:
        # Other interfaces accept them, but fill in damaged parts.
        whole = "its chroma subsampling is not supported"
        fault = whole if _native.has_jpeg_end(data) else "it is truncated: pixels are missing"
    raise ValueError(fault)
