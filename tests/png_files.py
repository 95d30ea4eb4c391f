"""PNG files of every kind, and what their pixels must be: by the rules of the format, without a decoder."""

import struct
import zlib
from typing import NamedTuple

import numpy as np

GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6
SAMPLES = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGBA: 4}
DEPTHS = {
    GREY: (1, 2, 4, 8, 16),
    RGB: (8, 16),
    PALETTE: (1, 2, 4, 8),
    GREY_ALPHA: (8, 16),
    RGBA: (8, 16),
}
FORMS = [(colour, depth) for colour, depths in DEPTHS.items() for depth in depths]
# first column, first row, columns and rows between pixels
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
SIGNATURE = b"\x89PNG\r\n\x1a\n"


class Drawing(NamedTuple):
    """An image as samples, (height, width, samples), and the PNG header that describes them."""

    samples: np.ndarray
    colour: int
    depth: int
    palette: np.ndarray | None = None
    hidden: tuple[int, ...] | None = None  # samples that are transparent, or the alphas of a palette


def draw(colour, depth, height, width, *, seed=0, with_hidden=False):
    """Return a drawing of chance, in which some pixels are transparent if asked for."""
    rng = np.random.default_rng(seed)
    shape = (height, width, SAMPLES[colour])
    if colour == PALETTE:
        num_colours = min(2**depth, 200)
        palette = rng.integers(0, 256, (num_colours, 3), np.uint8)
        hidden = tuple(rng.integers(0, 256, max(num_colours // 2, 1)).tolist()) if with_hidden else None
        return Drawing(rng.integers(0, num_colours, shape, np.uint16), colour, depth, palette, hidden)
    samples = rng.integers(0, 2**depth, shape, np.uint16)
    hidden = None
    if with_hidden and colour in (GREY, RGB):
        hidden = tuple(samples[0, 0].tolist())
        samples[:: max(height // 3, 1), :: max(width // 3, 1)] = hidden
        if depth == 16:  # the same high bytes are another colour
            samples[-1, -1] = np.array(hidden) ^ 1
    return Drawing(samples, colour, depth, None, hidden)


def pixels_of(drawing, channels):
    """Return the pixels that a drawing must be decoded to."""
    samples, colour, depth, palette, hidden = drawing
    alpha = np.full(samples.shape[:2], 255, np.uint8)
    if colour == PALETTE:
        alphas = np.full(256, 255, np.uint8)
        alphas[: len(hidden or ())] = hidden or ()
        alpha = alphas[samples[..., 0]]
        rgb = palette[samples[..., 0]]
    else:
        if hidden is not None:
            alpha[(samples == np.array(hidden)).all(-1)] = 0
        bytes_ = samples >> 8 if depth == 16 else samples * 255 // (2**depth - 1)
        bytes_ = bytes_.astype(np.uint8)
        if colour in (GREY_ALPHA, RGBA):
            alpha = bytes_[..., -1]
        rgb = bytes_[..., :3] if colour in (RGB, RGBA) else np.repeat(bytes_[..., :1], 3, axis=-1)
    if channels == 3:
        return rgb
    if channels == 4:
        return np.concatenate([rgb, alpha[..., None]], axis=-1)
    weighed = rgb.astype(np.uint32) @ np.array([19595, 38470, 7471], np.uint32) + 32768 >> 16
    return weighed.astype(np.uint8)[..., None]


def encode(
    drawing, *, interlaced=False, filters=(0, 1, 2, 3, 4), before=b"", after=b"", idat_bytes=None, **deflate
):
    """Return a PNG file; rows take the filters in turn, other chunks stand before and after the pixels."""
    height, width = drawing.samples.shape[:2]
    head = struct.pack(">IIBBBBB", width, height, drawing.depth, drawing.colour, 0, 0, interlaced)
    colours = b"" if drawing.palette is None else chunk(b"PLTE", drawing.palette.tobytes())
    if drawing.hidden is not None:
        form = "B" if drawing.colour == PALETTE else "H"
        colours += chunk(b"tRNS", struct.pack(f">{len(drawing.hidden)}{form}", *drawing.hidden))
    stream = compress(raw_rows(drawing, interlaced, filters), **deflate)
    pieces = [stream] if idat_bytes is None else cut(stream, idat_bytes)
    pixels = b"".join(chunk(b"IDAT", piece) for piece in pieces)
    return SIGNATURE + chunk(b"IHDR", head) + colours + before + pixels + after + chunk(b"IEND", b"")


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def header(width, height, depth=8, colour=RGB, rest=(0, 0, 0)):
    return SIGNATURE + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, *rest))


def cut(data, size):
    return [data[at : at + size] for at in range(0, len(data), size)]


def compress(data, level=6, strategy=zlib.Z_DEFAULT_STRATEGY):
    packer = zlib.compressobj(level, zlib.DEFLATED, 15, 9, strategy)
    return packer.compress(data) + packer.flush()


def raw_rows(drawing, interlaced=False, filters=(0, 1, 2, 3, 4)):
    """Return what the stream of a drawing inflates to."""
    samples = drawing.samples
    passes = PASSES if interlaced else [(0, 0, 1, 1)]
    parts = [samples[top::down, left::across] for left, top, across, down in passes]
    return b"".join(_filtered(_packed(part, drawing.depth), drawing, filters) for part in parts if part.size)


def _packed(samples, depth):
    height, width, count = samples.shape
    if depth == 16:
        return samples.astype(">u2").reshape(height, -1).view(np.uint8)
    bits = samples.reshape(height, width * count, 1).astype(np.uint8) >> np.arange(depth - 1, -1, -1) & 1
    return np.packbits(bits.astype(np.uint8).reshape(height, -1), axis=1)


def _filtered(rows, drawing, filters):
    step = max(drawing.depth * SAMPLES[drawing.colour] // 8, 1)
    height, size = rows.shape
    wide = np.zeros((height + 1, size + step), np.int64)
    wide[1:, step:] = rows
    here, left, above, corner = wide[1:, step:], wide[1:, :-step], wide[:-1, step:], wide[:-1, :-step]
    guess = left + above - corner
    by_left, by_above, by_corner = abs(guess - left), abs(guess - above), abs(guess - corner)
    nearest = np.where(by_above <= by_corner, above, corner)
    nearest = np.where((by_left <= by_above) & (by_left <= by_corner), left, nearest)
    guesses = [np.zeros_like(here), left, above, (left + above) // 2, nearest]
    out = bytearray()
    for y in range(height):
        number = filters[y % len(filters)]
        out.append(number)
        out += (here[y] - guesses[number][y]).astype(np.uint8).tobytes()
    return bytes(out)
