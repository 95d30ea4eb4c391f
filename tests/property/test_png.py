"""Laws of PNG: what was drawn comes back, damage never passes, inflating agrees with zlib."""

import zlib

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock import _native
from penstock._native import read_png
from png_files import FORMS, chunk, compress, draw, encode, header, pixels_of, raw_rows

STRATEGIES = (zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_RLE, zlib.Z_HUFFMAN_ONLY, zlib.Z_FILTERED)
SLACKS = (0, 1, 319, 320, 1000)


@given(
    form=st.sampled_from(FORMS),
    height=st.integers(1, 24),
    width=st.integers(1, 40),
    seed=st.integers(0, 1000),
    with_hidden=st.booleans(),
    channels=st.sampled_from([1, 3, 4]),
    coding=st.fixed_dictionaries(
        {
            "interlaced": st.booleans(),
            "filters": st.lists(st.integers(0, 4), min_size=1, max_size=7),
            "level": st.integers(0, 9),
            "idat_bytes": st.none() | st.integers(1, 300),
        }
    ),
)
@settings(max_examples=250)
def test_encoded_drawing_is_decoded_unchanged(form, height, width, seed, with_hidden, channels, coding):
    drawing = draw(*form, height, width, seed=seed, with_hidden=with_hidden)
    data = encode(drawing, **coding)
    np.testing.assert_array_equal(
        read_png(data, None, channels, max_pixels=1000), pixels_of(drawing, channels)
    )


@st.composite
def streams(draw_value):
    """Streams of all kinds: of bytes that repeat or do not, whole, cut or changed in some places."""
    rng = np.random.default_rng(draw_value(st.integers(0, 10_000)))
    size = draw_value(st.sampled_from([0, 1, 5, 64, 300, 1000, 5000, 70_000]))
    spread = draw_value(st.sampled_from([1, 2, 4, 30, 256]))
    raw = rng.integers(0, spread, size).astype(np.uint8)
    if draw_value(st.booleans()):  # repeats from near and far
        period = draw_value(st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 1000, 32768]))
        raw[period:] = raw[: max(size - period, 0)] if period < size else raw[period:]
    strategy = draw_value(st.sampled_from(STRATEGIES))
    stream = bytearray(compress(raw.tobytes(), draw_value(st.integers(0, 9)), strategy))
    for at, bit in draw_value(
        st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)), max_size=3)
    ):
        # Most that can be wrong is in the first bytes: the code lengths.
        stream[int(at**4 * len(stream))] ^= 1 << bit
    if draw_value(st.integers(0, 5)) == 0:
        del stream[draw_value(st.integers(0, len(stream))) :]
    return bytes(stream) + draw_value(st.sampled_from([b"", b"behind the end"])), size


def by_zlib(stream, size):
    """Return the bytes, or None where zlib finds anything wrong or they are not so many."""
    inflating = zlib.decompressobj()
    try:
        data = inflating.decompress(stream, size + 1)
    except zlib.error:
        return None
    return data if inflating.eof and len(data) == size else None


def by_core(stream, size, slack):
    if size // 1032 > len(stream):
        return None
    try:
        return _native.inflate(stream, size, slack)
    except ValueError:
        return None


@given(case=streams(), more=st.sampled_from([0, 0, 0, 0, 1, -1, 300]), slack=st.sampled_from(SLACKS))
@settings(max_examples=300)
@example(case=(b"", 0), more=0, slack=0)
def test_inflating_agrees_with_zlib(case, more, slack):
    stream, size = case
    size = max(size + more, 0)
    assert by_core(stream, size, slack) == by_zlib(stream, size)


def test_inflating_agrees_with_zlib_on_blocks_of_chance():
    # Bytes of chance behind the beginning of a block of codes: most are no codes, some are.
    rng = np.random.default_rng(1)
    agreed = 0
    for _ in range(20_000):
        first = rng.choice([0b100, 0b101, 0b010, 0b011, 0b000]) | rng.integers(0, 32) << 3
        stream = b"\x78\x9c" + bytes([first]) + rng.integers(0, 256, 60, np.uint8).tobytes()
        for size in (0, 10):
            expected = by_zlib(stream, size)
            assert by_core(stream, size, 320) == expected
            agreed += 1
    assert agreed == 40_000


@given(
    form=st.sampled_from(FORMS),
    seed=st.integers(0, 1000),
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)), min_size=1, max_size=4),
)
@settings(max_examples=200)
def test_damaged_stream_with_a_sound_crc_never_gives_other_pixels(form, seed, flips):
    drawing = draw(*form, 9, 13, seed=seed)
    stream = bytearray(compress(raw_rows(drawing)))
    for at, bit in flips:
        stream[int(at * len(stream))] ^= 1 << bit
    colours = b"" if drawing.palette is None else chunk(b"PLTE", drawing.palette.tobytes())
    data = (
        header(13, 9, drawing.depth, drawing.colour)
        + colours
        + chunk(b"IDAT", bytes(stream))
        + chunk(b"IEND", b"")
    )
    try:
        got = read_png(data, None, channels=4, max_pixels=1000)
    except ValueError:
        return
    np.testing.assert_array_equal(got, pixels_of(drawing, 4))
