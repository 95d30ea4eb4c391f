"""JPEG into pixels, by libjpeg-turbo.

In: the bytes of a JPEG. Out: uint8 pixels, in a given buffer where it fits. What is damaged is refused as a
`ValueError`; nothing is ever filled in.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import simplejpeg
from numpy.typing import NDArray

from penstock import _native

_SPACES: Final = {1: "GRAY", 3: "RGB", 4: "RGBA"}
_VECTOR_BYTES: Final = 32
_END = "before marker 0xd9"  # bytes that are left over behind the last pixel: cameras write such, too
_STRAY = "extraneous bytes before marker"  # between segments of the header: cameras fill up, too
_BOUNDS = "Invalid SOS parameters"  # of a scan that has none to obey
_ODD = "subsampling"  # this interface of libjpeg-turbo refuses rare ratios of colour to brightness


def read_jpeg(
    data: memoryview,
    size: tuple[int, int],
    channels: int,
    denominator: int,
    out: NDArray[np.uint8] | None,
    *,
    is_progressive: bool,
) -> NDArray[np.uint8]:
    """Return the pixels of a JPEG.

    Args:
        data: The whole file.
        size: Height and width by its header.
        channels: 1 for brightness, 3 for colours, 4 for colours and an alpha of 255.
        denominator: 1, or 2, 4, 8 for an image that is so much smaller: each pixel is made of a block's low
            frequencies, which takes less time than all of them.
        out: Where to put the pixels, if it is of their shape.
        is_progressive: Whether it goes over its pixels again and again. Bytes that are left over behind them
            are damage then; of other files they are passed over.

    Raises:
        ValueError: The file is damaged, or ends too early; the text says how.
    """
    shape = (-(-size[0] // denominator), -(-size[1] // denominator), channels)
    if out is not None and out.shape != shape:
        out = None
    is_slow = shape[1] * channels % _VECTOR_BYTES == 0
    place = _make_place(shape) if out is None or is_slow else out
    pixels = _decode(data, channels, denominator, place, is_progressive=is_progressive)
    if pixels.shape != shape:
        raise ValueError(f"{pixels.shape[1]} x {pixels.shape[0]} pixels where its header says otherwise")
    if out is None or place is out:
        return place
    out[:] = place
    return out


def _make_place(shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    # Where rows begin at multiples of 32 bytes, libjpeg-turbo writes past the cache, and whoever comes next
    # waits for memory: 224 x 224 pixels took 235 µs, and 193 µs half a vector further on, with 18 µs for a
    # copy from there to the slot.
    count = shape[0] * shape[1] * shape[2]
    return _native.empty((count + _VECTOR_BYTES,), "uint8")[_VECTOR_BYTES // 2 :][:count].reshape(shape)


def _decode(
    data: memoryview | bytes,
    channels: int,
    denominator: int,
    out: NDArray[np.uint8],
    *,
    is_progressive: bool,
) -> NDArray[np.uint8]:
    """Decode; what a decoder warns of is refused, but for what costs no pixel."""
    try:
        return _run(data, channels, denominator, out, strict=True)
    except ValueError as error:
        fault = str(error)
    if _END in fault and not is_progressive:
        return _run(data, channels, denominator, out, strict=False)
    tidied = _native.tidy_jpeg(data) if _STRAY in fault or _BOUNDS in fault else None
    if tidied is not None:  # which has nothing more to tidy: what is wrong with it is damage
        return _decode(tidied, channels, denominator, out, is_progressive=is_progressive)
    if _ODD in fault:
        # Other interfaces take them, and fill in what is damaged.
        whole = "its colours are sampled in a rare ratio"
        fault = whole if _native.has_jpeg_end(data) else "it ends before its pixels do"
    raise ValueError(fault)


def _run(
    data: memoryview | bytes,
    channels: int,
    denominator: int,
    out: NDArray[np.uint8],
    *,
    strict: bool,
) -> NDArray[np.uint8]:
    # Never smaller than asked for, and at least so much smaller than the whole: one scale alone fits both.
    height, width = out.shape[:2]
    pixels: NDArray[np.uint8] = simplejpeg.decode_jpeg(
        data,
        _SPACES[channels],
        min_height=height,
        min_width=width,
        min_factor=denominator,
        buffer=out,
        strict=strict,
    )
    return pixels
