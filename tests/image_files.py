"""Images of every kind, made in code: sound, odd, damaged, and made to do harm.

In: pixels. Out: the bytes of files. What libraries cannot write is put together here byte by byte.
"""

import io
import struct
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]

PNG_HEAD = b"\x89PNG\r\n\x1a\n"
PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by colour type
_ADAM7 = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def scene(height: int = 24, width: int = 32, seed: int = 0, channels: int = 3) -> Pixels:
    """Return a smooth picture with edges that is like none of its mirror images."""
    down, across = np.mgrid[0:height, 0:width] / max(height, width)
    red = 40 + 150 * across + 20 * np.sin(7 * down + seed)
    green = 30 + 160 * down + 25 * np.cos(5 * across + seed)
    blue = 220 - 120 * across - 60 * down
    alpha = 255 - 200 * across * down
    picture = np.stack([red, green, blue, alpha], axis=2)[:, :, : max(channels, 3)]
    picture[: height // 3, : width // 4] = np.array([250, 20, 30, 128])[: picture.shape[2]]
    picture[-(height // 4) :, -(width // 3) :] = np.array([10, 30, 240, 200])[: picture.shape[2]]
    whole = np.clip(np.rint(picture), 0, 255).astype(np.uint8)
    return grey(whole) if channels == 1 else whole


def grey(pixels: Pixels) -> Pixels:
    """Return how bright pixels are, (height, width, 1), as the documented conversion has it."""
    red, green, blue = (pixels[..., i].astype(np.int64) for i in range(3))
    return (((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16).astype(np.uint8))[..., None]


def saved(pixels: Pixels, format: str, mode: str | None = None, **options: Any) -> bytes:
    """Return a file as Pillow writes it, of the mode named."""
    image = Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels)
    stream = io.BytesIO()
    (image if mode is None else image.convert(mode)).save(stream, format, **options)
    return stream.getvalue()


def jpeg(pixels: Pixels, mode: str | None = None, **options: Any) -> bytes:
    """Return a JPEG of good quality."""
    return saved(pixels, "JPEG", mode, **{"quality": 92, **options})


def opened(data: bytes, mode: str | None = None) -> Pixels:
    """Return the pixels that Pillow finds in a file, (height, width, channels)."""
    with Image.open(io.BytesIO(data)) as image:
        pixels = np.asarray(image if mode is None else image.convert(mode))
    return pixels if pixels.ndim == 3 else pixels[..., None]


def segment(marker: int, payload: bytes) -> bytes:
    """Return a segment of a JPEG."""
    return b"\xff" + bytes([marker]) + struct.pack(">H", len(payload) + 2) + payload


def insert_after_start(data: bytes, more: bytes) -> bytes:
    """Return a JPEG with more bytes after its first marker."""
    return data[:2] + more + data[2:]


def odd_jpeg(height: int = 16, width: int = 48) -> bytes:
    """Return a JPEG of a ratio of colour to brightness that is rare: 3 x 1. It is of one colour."""
    data = jpeg(np.full((height, width, 3), (200, 60, 30), np.uint8), subsampling="4:4:4")
    return _of_one_colour(data, height, width, 0x31)


def _of_one_colour(data: bytes, height: int, width: int, factor: int) -> bytes:
    # Of one colour every block is alike: the first of each component has the colour, the others add nothing.
    # So the stream of such a picture can be written anew for any layout of blocks, by Pillow's own tables.
    frame = data.find(b"\xff\xc0")
    scan = data.find(b"\xff\xda")
    start = scan + 2 + struct.unpack_from(">H", data, scan + 2)[0]
    bits = "".join(f"{byte:08b}" for byte in data[start:-2].replace(b"\xff\x00", b"\xff"))
    firsts, rest = _first_blocks(bits)
    across = factor >> 4
    num_units = -(-height // 8) * -(-width // (8 * across))
    units = []
    for i in range(num_units):
        blocks = [firsts[0] if i == 0 else rest[0], *[rest[0]] * (across - 1)]
        blocks += [firsts[1] if i == 0 else rest[1], firsts[2] if i == 0 else rest[1]]
        units += blocks
    stream = "".join(units)
    stream += "1" * (-len(stream) % 8)
    coded = bytes(int(stream[i : i + 8], 2) for i in range(0, len(stream), 8)).replace(b"\xff", b"\xff\x00")
    changed = bytearray(data[:start] + coded + b"\xff\xd9")
    changed[frame + 11] = factor
    return bytes(changed)


# The tables of the standard: how many bits each size of a difference takes, and the code of "nothing more".
_DC_LUMA = {"00": 0, "010": 1, "011": 2, "100": 3, "101": 4, "110": 5, "1110": 6, "11110": 7, "111110": 8}
_DC_LUMA |= {"1111110": 9, "11111110": 10, "111111110": 11}
_DC_CHROMA = {"00": 0, "01": 1, "10": 2, "110": 3, "1110": 4, "11110": 5, "111110": 6, "1111110": 7}
_DC_CHROMA |= {"11111110": 8, "111111110": 9, "1111111110": 10, "11111111110": 11}
_END_LUMA, _END_CHROMA = "1010", "00"


def _first_blocks(bits: str) -> tuple[list[str], list[str]]:
    """Return the bits of the first block of each component, and bits of later ones, which add nothing."""
    at, firsts = 0, []
    for table, end in ((_DC_LUMA, _END_LUMA), (_DC_CHROMA, _END_CHROMA), (_DC_CHROMA, _END_CHROMA)):
        size = next(n for n in range(2, 12) if bits[at : at + n] in table)
        stop = at + size + table[bits[at : at + size]]
        assert bits[stop : stop + len(end)] == end
        firsts.append(bits[at:stop] + end)
        at = stop + len(end)
    return firsts, ["00" + _END_LUMA, "00" + _END_CHROMA]


def exif(orientation: int, order: str = "<") -> bytes:
    """Return the note of a camera that says how it was held, in either order of bytes."""
    mark = b"II" if order == "<" else b"MM"
    entry = struct.pack(f"{order}HHIHH", 0x0112, 3, 1, orientation, 0)
    return mark + struct.pack(f"{order}HIH", 42, 8, 1) + entry + bytes(4)


def turned(upright: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Return the pixels that are stored for an upright picture under an orientation of EXIF."""
    return {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.swapaxes(0, 1),
        6: upright.swapaxes(0, 1)[::-1],
        7: upright[::-1, ::-1].swapaxes(0, 1),
        8: upright.swapaxes(0, 1)[:, ::-1],
    }[orientation].copy()


def turned_jpeg(upright: Pixels, orientation: int, order: str = "<", **options: Any) -> bytes:
    """Return a JPEG that is stored turned, with the note that says so."""
    data = jpeg(turned(upright, orientation), **options)
    return insert_after_start(data, segment(0xE1, b"Exif\0\0" + exif(orientation, order)))


def chunk(kind: bytes, data: bytes = b"", crc: int | None = None) -> bytes:
    """Return a chunk of a PNG."""
    found = zlib.crc32(kind + data) if crc is None else crc
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", found)


def png_start(height: int, width: int, depth: int = 8, colour: int = 2, interlace: int = 0) -> bytes:
    """Return the beginning of a PNG: whatever it claims, its CRC fits."""
    return PNG_HEAD + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace))


PNG_END = chunk(b"IEND")


def png(
    samples: NDArray[Any], depth: int = 8, colour: int = 2, *, interlaced: bool = False, before: bytes = b""
) -> bytes:
    """Return a PNG of samples (height, width, channels), with chunks before its pixels."""
    height, width, channels = samples.shape
    assert channels == PNG_CHANNELS[colour]
    parts = [(0, 0, 1, 1)] if not interlaced else _ADAM7
    rows = b"".join(_scan_rows(samples[top::down, left::across], depth) for top, left, down, across in parts)
    start = png_start(height, width, depth, colour, int(interlaced))
    return start + before + chunk(b"IDAT", zlib.compress(rows)) + PNG_END


def _scan_rows(samples: NDArray[Any], depth: int) -> bytes:
    """Return rows as they are stored: a byte that says that they are not filtered, then their bits."""
    if not samples.size:
        return b""
    height = len(samples)
    flat = samples.reshape(height, -1)
    if depth == 16:
        packed = flat.astype(">u2").view(np.uint8).reshape(height, -1)
    else:
        places = np.arange(depth - 1, -1, -1)
        bits = (flat.astype(np.uint8)[:, :, None] >> places) & 1
        packed = np.packbits(bits.reshape(height, -1).astype(np.uint8), axis=1)
    return np.concatenate([np.zeros((height, 1), np.uint8), packed], axis=1).tobytes()


def text_bomb(kind: bytes, num_bytes: int) -> bytes:
    """Return a chunk of text, zTXt or iTXt, that inflates to so many spaces."""
    flags = b"\0" if kind == b"zTXt" else b"\1\0\0\0"
    return chunk(kind, b"Comment\0" + flags + zlib.compress(b" " * num_bytes, 9))


def blank_png(side: int, colour: int = 2) -> bytes:
    """Return a real PNG of so many rows and columns of black: a thousandth of its pixels long."""
    num_bytes = side * (1 + side * PNG_CHANNELS[colour])
    block = zlib.compressobj(9)
    zeros = block.compress(bytes(num_bytes // side * 40)) + block.flush(zlib.Z_FULL_FLUSH)
    assert side % 40 == 0
    # Flushed blocks are independent; of zeros, the checksum at the end counts how many there are.
    stream = zeros + zeros[2:] * (side // 40 - 1) + b"\x03\x00" + struct.pack(">HH", num_bytes % 65521, 1)
    return png_start(side, side, 8, colour) + chunk(b"IDAT", stream) + PNG_END


def gif(screen: tuple[int, int], frame: tuple[int, int] = (1, 1)) -> bytes:
    """Return a GIF by the sizes of its screen and its one frame, which need not agree; both are (h, w)."""
    table = bytes([0, 0, 0, 255, 255, 255])
    start = b"GIF89a" + struct.pack("<HHBBB", screen[1], screen[0], 0x80, 0, 0) + table
    place = b"," + struct.pack("<HHHHB", 0, 0, frame[1], frame[0], 0)
    return start + place + b"\x02\x02\x44\x01\x00;"


def animated(format: str, frames: Iterable[Pixels], **options: Any) -> bytes:
    """Return a file of several frames: GIF, WEBP or PNG."""
    first, *rest = (Image.fromarray(each) for each in frames)
    stream = io.BytesIO()
    first.save(stream, format, save_all=True, append_images=rest, duration=100, **options)
    return stream.getvalue()


def bmp(pixels: Pixels, *, is_upside_down: bool = False) -> bytes:
    """Return a BMP of 24 bits a pixel, or of 32 for four channels; by its sign, from the top down."""
    height, width, channels = pixels.shape
    order = [2, 1, 0, 3][:channels]
    rows = pixels[..., order] if is_upside_down else pixels[::-1][..., order]
    pad = bytes(-width * channels % 4)
    body = b"".join(row.tobytes() + pad for row in rows)
    signed = -height if is_upside_down else height
    info = struct.pack("<IiiHHIIiiII", 40, width, signed, 1, 8 * channels, 0, len(body), 2835, 2835, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + len(body), 0, 0, 54) + info + body
