"""Small image files of every kind: JPEG and PNG, of all colors, bits and orientations.

In: a size. Out: files by a description, made without the data of a user: for the check of an export.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock.errors import importing

_HEIGHT, _WIDTH = 16, 24  # not square, and not the size of the model: a turned file has another shape
_ORIENTATIONS: Final = range(2, 9)
_ORDERS: Final = {"<": "little endian", ">": "big endian"}
_GREY, _RGB, _PALETTE, _GREY_ALPHA, _RGBA = 0, 2, 3, 4, 6
_COLORS: Final = {
    _GREY: ("gray", 1, (1, 2, 4, 8, 16)),
    _RGB: ("RGB", 3, (8, 16)),
    _PALETTE: ("palette", 1, (1, 2, 4, 8)),
    _GREY_ALPHA: ("gray with alpha", 2, (8, 16)),
    _RGBA: ("RGB with alpha", 4, (8, 16)),
}
"""Color types of PNG: their names, numbers of samples per pixel, and bits per sample."""

# Of each pass of an interlaced PNG: first row, first column, and the steps between rows and between columns.
_PASSES: Final = (
    (0, 0, 8, 8),
    (0, 4, 8, 8),
    (4, 0, 8, 4),
    (0, 2, 4, 4),
    (2, 0, 4, 2),
    (0, 1, 2, 2),
    (1, 0, 2, 1),
)
_QUALITY: Final = 95
_APP1, _APP14 = 0xE1, b"\xff\xee"


def make_pngs() -> Iterator[tuple[str, bytes]]:
    """Yield PNG files with their descriptions."""
    for color, (name, samples, depths) in _COLORS.items():
        for depth in depths:
            kind = f"{name}, {depth} bits"
            drawn = (_draw(_HEIGHT, _WIDTH)[..., :samples] * (2**depth - 1)).astype(np.uint16)
            yield f"a PNG ({kind})", _write_png(drawn, depth, color)
            yield f"an interlaced PNG ({kind})", _write_png(drawn, depth, color, is_interlaced=True)
            if color in (_GREY, _RGB, _PALETTE):
                hidden = _hide(drawn, color)
                yield f"a PNG ({kind}) with a transparent color", _write_png(drawn, depth, color, hidden)
    drawn = (_draw(_HEIGHT, _WIDTH)[..., :3] * 255).astype(np.uint16)
    for orientation in _ORIENTATIONS:
        for order, name in _ORDERS.items():
            exif = _chunk(b"eXIf", _write_exif(orientation, order))
            kind = f"a PNG with EXIF orientation {orientation} ({name})"
            yield kind, _write_png(drawn, 8, _RGB, exif)


def make_jpegs(large: tuple[int, int] | None) -> Iterator[tuple[str, bytes]]:
    """Yield JPEG files with their descriptions.

    `large`: height and width of files that are decoded at a reduced size; None for no such file.
    """
    pixels = (_draw(_HEIGHT, _WIDTH) * 255).astype(np.uint8)
    color = _encode_jpeg(pixels[..., :3], "RGB")
    yield "a JPEG (gray)", _encode_jpeg(pixels[..., :1], "GRAY", "Gray")
    for sampling in ("444", "422", "420"):
        kind = f"a JPEG (color, subsampling {':'.join(sampling)})"
        yield kind, _encode_jpeg(pixels[..., :3], "RGB", sampling)
    four = _encode_jpeg(pixels, "CMYK")
    marked = four.index(_APP14)
    end = marked + 2 + int.from_bytes(four[marked + 2 : marked + 4], "big")
    yield "a JPEG (YCCK)", four
    yield "a JPEG (CMYK)", four[: end - 1] + b"\0" + four[end:]
    yield "a JPEG (CMYK without a segment of Adobe)", four[:marked] + four[end:]
    for orientation in _ORIENTATIONS:
        for order, name in _ORDERS.items():
            kind = f"a JPEG with EXIF orientation {orientation} ({name})"
            yield kind, _add_exif(color, orientation, order)
    if large is not None:
        pixels = (_draw(*large)[..., :3] * 255).astype(np.uint8)
        whole = _encode_jpeg(pixels, "RGB")
        yield "a large JPEG", whole
        for orientation in (3, 6):
            yield f"a large JPEG with EXIF orientation {orientation}", _add_exif(whole, orientation, ">")


def _draw(height: int, width: int) -> NDArray[np.float64]:
    """Return a picture from 0 to 1 with four samples per pixel, which differs from all its mirror images."""
    down, across = np.mgrid[:height, :width] / max(height, width)
    waves = [
        0.1 + 0.8 * across,
        0.9 - 0.8 * down,
        0.5 + 0.4 * np.sin(5 * across + 3 * down),
        1 - 0.6 * across,
    ]
    picture = np.stack(waves, axis=-1)
    picture[: height // 3, : width // 4] = (1, 0, 0, 0.5)
    picture[-(height // 4) :, -(width // 3) :] = (0, 0.2, 1, 1)
    return picture


def _hide(drawn: NDArray[np.uint16], color: int) -> bytes:
    """Return the chunk that makes the color of the first pixel transparent."""
    if color == _PALETTE:
        return _chunk(b"tRNS", bytes([0, 99, 200])[: int(drawn.max()) + 1])
    return _chunk(b"tRNS", drawn[0, 0].astype(">u2").tobytes())


def _write_png(
    samples: NDArray[np.uint16], depth: int, color: int, more: bytes = b"", *, is_interlaced: bool = False
) -> bytes:
    """Return a PNG of samples (height, width, samples per pixel), with chunks before its pixels."""
    height, width = samples.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(is_interlaced))
    entries = np.arange(2**depth if color == _PALETTE else 0)[:, None] * (37, 91, 151) % 256
    palette = _chunk(b"PLTE", entries.astype(np.uint8).tobytes()) if color == _PALETTE else b""
    parts = _PASSES if is_interlaced else ((0, 0, 1, 1),)
    rows = b"".join(_pack(samples[top::down, left::across], depth) for top, left, down, across in parts)
    pixels = _chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + palette + more + pixels + _chunk(b"IEND", b"")


def _pack(samples: NDArray[np.uint16], depth: int) -> bytes:
    """Return rows as they are stored: a byte for "no filter", then their samples in `depth` bits."""
    flat = samples.reshape(len(samples), -1)
    if depth == 16:
        packed = flat.astype(">u2").view(np.uint8)
    else:
        bits = flat.astype(np.uint8)[..., None] >> np.arange(depth - 1, -1, -1) & 1
        packed = np.packbits(bits.astype(np.uint8).reshape(len(samples), -1), axis=1)
    return np.concatenate([np.zeros((len(samples), 1), np.uint8), packed], axis=1).tobytes()


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _write_exif(orientation: int, order: str) -> bytes:
    """Return EXIF data with an orientation alone."""
    mark = b"II" if order == "<" else b"MM"
    return mark + struct.pack(f"{order}HIHHHIHHI", 42, 8, 1, 0x0112, 3, 1, orientation, 0, 0)


def _add_exif(data: bytes, orientation: int, order: str) -> bytes:
    """Return a JPEG with a segment of EXIF after its first marker."""
    exif = b"Exif\0\0" + _write_exif(orientation, order)
    return data[:2] + struct.pack(">BBH", 0xFF, _APP1, len(exif) + 2) + exif + data[2:]


def _encode_jpeg(pixels: NDArray[np.uint8], colors: str, subsampling: str = "444") -> bytes:
    with importing("a JPEG for the check", "images"):
        from penstock.decode.jpeg import encode_jpeg  # noqa: PLC0415 - only runs with images need it

    rows = np.ascontiguousarray(pixels)
    return bytes(encode_jpeg(rows, colorspace=colors, colorsubsampling=subsampling, quality=_QUALITY))
