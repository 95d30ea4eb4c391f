"""JPEG into pixels, by libjpeg-turbo.

In: the bytes of a JPEG. Out: uint8 pixels, in a given buffer where it fits. A damaged file is a `ValueError`;
missing pixels are never filled in.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import simplejpeg
from numpy.typing import NDArray

from penstock import _native

_SPACES: Final = {1: "GRAY", 3: "RGB", 4: "RGBA"}
_VECTOR_BYTES: Final = 32
_END = "before marker 0xd9"  # unused bytes after the last pixel: some cameras write them
_STRAY = "extraneous bytes before marker"  # between segments of the header: padding by some cameras
_BOUNDS = "Invalid SOS parameters"  # unused parameters of a baseline scan
_ODD = "subsampling"  # this interface of libjpeg-turbo refuses rare chroma subsampling


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
        data: Content of the file.
        size: Height and width from its header.
        channels: 1 for grey, 3 for RGB, 4 for RGBA with an alpha of 255.
        denominator: 1, or 2, 4, 8 for an image smaller by this factor: each pixel is then made from the low
            frequencies of a block, which takes less time.
        out: Array for the pixels, used if it has their shape.
        is_progressive: Whether the file has several scans. Unused bytes after the last pixel are damage then;
            in other files they are ignored.

    Raises:
        ValueError: The file is damaged or truncated; the message describes the damage.
    """
    shape = (-(-size[0] // denominator), -(-size[1] // denominator), channels)
    if out is not None and out.shape != shape:
        out = None
    is_slow = shape[1] * channels % _VECTOR_BYTES == 0
    buffer = _make_buffer(shape) if out is None or is_slow else out
    pixels = _decode(data, channels, denominator, buffer, is_progressive=is_progressive)
    if pixels.shape != shape:
        raise ValueError(f"{pixels.shape[1]} x {pixels.shape[0]} pixels differ from the size in its header")
    if out is None or buffer is out:
        return buffer
    out[:] = buffer
    return out


def _make_buffer(shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    # Where rows begin at multiples of 32 bytes, libjpeg-turbo bypasses the cache, and the next reader waits
    # for memory: 224 x 224 pixels took 235 µs; half a vector further on they took 193 µs,
    # and 18 µs for the copy.
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
    """Decode; warnings of the decoder are errors, except for those that affect no pixel."""
    try:
        return _run(data, channels, denominator, out, strict=True)
    except ValueError as error:
        fault = str(error)
    if _END in fault and not is_progressive:
        return _run(data, channels, denominator, out, strict=False)
    tidied = _native.tidy_jpeg(data) if _STRAY in fault or _BOUNDS in fault else None
    if tidied is not None:  # a second fault is damage: there is nothing left to tidy
        return _decode(tidied, channels, denominator, out, is_progressive=is_progressive)
    if _ODD in fault:
        # Other interfaces accept them, but fill in damaged parts.
        whole = "its chroma subsampling is not supported"
        fault = whole if _native.has_jpeg_end(data) else "it is truncated: pixels are missing"
    raise ValueError(fault)


def _run(
    data: memoryview | bytes,
    channels: int,
    denominator: int,
    out: NDArray[np.uint8],
    *,
    strict: bool,
) -> NDArray[np.uint8]:
    # At least the requested size, and at least that factor smaller: only one scale fits both.
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
