"""JPEG into pixels, by libjpeg-turbo.

In: JPEGs as bytes. Out: uint8 pixels, in a given buffer. A damaged file is a `ValueError`;
missing pixels are never filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from simplejpeg import decode_jpeg

from penstock import _native

_SPACES: Final = {1: "GRAY", 3: "RGB", 4: "RGBA"}
_VECTOR_BYTES: Final = 32
_NUM_BYTES: Final = 6  # of a planned JPEG: see _native.PlannedJpeg
_END = "before marker 0xd9"  # unused bytes after the last pixel: some cameras write them
_STRAY = "extraneous bytes before marker"  # between segments of the header: padding by some cameras
_BOUNDS = "Invalid SOS parameters"  # unused parameters of a baseline scan
_ODD = "subsampling"  # this interface of libjpeg-turbo refuses rare chroma subsampling


def decode_jpegs(
    jpegs: Sequence[_native.PlannedJpeg],
    data: memoryview,
    channels: int,
    slots: _native.ImageSlots,
    place: Callable[[int, NDArray[np.uint8]], bool],
) -> dict[int, str]:
    """Decode JPEGs one by one, and pass on the pixels of each while they are in the processor's cache.

    Args:
        jpegs: The JPEGs as the core planned them.
        data: Bytes that contain their files.
        channels: 1 for grey, 3 for RGB, 4 for RGBA with an alpha of 255.
        slots: Where the pixels of each row go at last; those that need no more change are decoded there.
        place: Takes row and pixels, and brings them to their slot; False if they differ in size from the
            header.

    Returns:
        What is wrong with damaged images, by row.
    """
    # Where rows begin at multiples of 32 bytes, libjpeg-turbo bypasses the cache, and the next reader waits
    # for memory: 224 x 224 pixels took 235 µs; half a vector further on they took 193 µs,
    # and 18 µs for the copy.
    scratch = _native.empty((max(jpeg[_NUM_BYTES] for jpeg in jpegs) + _VECTOR_BYTES,), "uint8")
    scratch = scratch[_VECTOR_BYTES // 2 :]
    faults = {}
    for row, start, stop, height, width, denominator, num_bytes, is_progressive, is_direct in jpegs:
        buffer = slots[row] if is_direct else scratch[:num_bytes]
        try:
            pixels = read_jpeg(
                data[start:stop],
                (height, width),
                channels,
                denominator,
                buffer,
                is_progressive=is_progressive,
            )
        except ValueError as error:
            faults[row] = str(error)
            continue
        if not place(row, pixels):
            faults[row] = f"{pixels.shape[1]} x {pixels.shape[0]} pixels differ from the size in its header"
    return faults


def read_jpeg(
    data: memoryview | bytes,
    size: tuple[int, int],
    channels: int,
    denominator: int,
    out: NDArray[np.uint8] | None,
    *,
    is_progressive: bool,
) -> NDArray[np.uint8]:
    """Return the pixels of a JPEG; warnings of the decoder are errors, except for those that affect no pixel.

    Args:
        data: Content of the file.
        size: Height and width of the pixels, from its header and the denominator.
        channels: 1 for grey, 3 for RGB, 4 for RGBA with an alpha of 255.
        denominator: 1, or 2, 4, 8 for an image smaller by this factor: each pixel is then made from the low
            frequencies of a block, which takes less time.
        out: Memory for the pixels.
        is_progressive: Whether the file has several scans. Unused bytes after the last pixel are damage then;
            in other files they are ignored.

    Raises:
        ValueError: The file is damaged or truncated; the message describes the damage.
    """
    # At least the requested size, and at least that factor smaller: only one scale fits both.
    height, width = size
    arguments = (_SPACES[channels], False, False, height, width, denominator, out)
    try:
        return decode_jpeg(data, *arguments, True)  # type: ignore[no-any-return]
    except ValueError as error:
        fault = str(error)
    if _END in fault and not is_progressive:
        return decode_jpeg(data, *arguments, False)  # type: ignore[no-any-return]
    tidied = _native.tidy_jpeg(data) if _STRAY in fault or _BOUNDS in fault else None
    if tidied is not None:  # a second fault is damage: there is nothing left to tidy
        return read_jpeg(tidied, size, channels, denominator, out, is_progressive=is_progressive)
    if _ODD in fault:
        # Other interfaces accept them, but fill in damaged parts.
        whole = "its chroma subsampling is not supported"
        fault = whole if _native.has_jpeg_end(data) else "it is truncated: pixels are missing"
    raise ValueError(fault)
