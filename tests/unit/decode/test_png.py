"""read_png: every PNG into pixels, as Pillow has them; cut, damaged or too large files are refused."""

import io
import struct
import threading
import time
import zlib

import numpy as np
import pytest
from PIL import Image

from each_case import each_case
from penstock import _native
from penstock._native import read_png
from penstock.decode.pixels import MAX_PIXELS
from png_files import (
    FORMS,
    GREY,
    GREY_ALPHA,
    PALETTE,
    RGB,
    RGBA,
    SIGNATURE,
    chunk,
    compress,
    draw,
    encode,
    header,
    pixels_of,
    raw_rows,
)
from raising import raises_with

END = chunk(b"IEND", b"")
PHOTO = draw(RGB, 8, 9, 11, seed=3)


def read(data, out=None, channels=3, max_pixels=MAX_PIXELS):
    return read_png(data, out, channels, max_pixels)


def refuse(data, words, **options):
    with pytest.raises(ValueError, match=words) as caught:
        read(data, **options)
    assert type(caught.value) is ValueError


def with_stream(stream, drawing=PHOTO):
    height, width = drawing.samples.shape[:2]
    return header(width, height, drawing.depth, drawing.colour) + chunk(b"IDAT", stream) + END


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("with_hidden", [False, True])
@each_case(("colour", "depth"), FORMS)
def test_pixels_of_each_form_equal_pixels_of_the_format(colour, depth, with_hidden, interlaced, channels):
    for seed, (height, width) in enumerate([(1, 1), (2, 5), (13, 17), (40, 3)]):
        drawing = draw(colour, depth, height, width, seed=seed, with_hidden=with_hidden)
        got = read(encode(drawing, interlaced=interlaced), channels=channels)
        assert got.dtype == np.uint8
        assert got.flags.c_contiguous
        np.testing.assert_array_equal(got, pixels_of(drawing, channels))


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("with_hidden", [False, True])
@each_case(("colour", "depth"), FORMS)
def test_pixels_equal_pillow(colour, depth, with_hidden, interlaced):
    drawing = draw(colour, depth, 12, 19, with_hidden=with_hidden)
    data = encode(drawing, interlaced=interlaced)
    image = Image.open(io.BytesIO(data))
    if image.mode == "I;16":  # Pillow keeps all sixteen bits, and no alpha
        np.testing.assert_array_equal(read(data, channels=1)[..., 0], np.asarray(image) >> 8)
        return
    if colour == PALETTE and with_hidden:
        image = image.convert("RGBA")
    np.testing.assert_array_equal(read(data, channels=3), np.asarray(image.convert("RGB")))
    np.testing.assert_array_equal(read(data, channels=1)[..., 0], np.asarray(image.convert("L")))
    # Pillow compares the high bytes alone of 16 bits, and of fewer than 8 what they are scaled to.
    if not with_hidden or colour == PALETTE or depth == 8:
        np.testing.assert_array_equal(read(data, channels=4), np.asarray(image.convert("RGBA")))


@pytest.mark.parametrize("colour", [GREY, GREY_ALPHA, RGB, RGBA])
@pytest.mark.parametrize("depth", [8, 16])
@each_case("filter", range(5))
def test_each_filter_is_undone_at_each_pixel_size(colour, depth, filter):
    for width in (1, 2, 3, 4, 5, 31, 64):
        drawing = draw(colour, depth, 6, width, seed=width)
        got = read(encode(drawing, filters=(filter,)), channels=4)
        np.testing.assert_array_equal(got, pixels_of(drawing, 4))


@pytest.mark.parametrize(
    "deflate",
    [
        {"level": 0},
        {"level": 1},
        {"level": 9},
        {"strategy": zlib.Z_FIXED},
        {"strategy": zlib.Z_RLE},
        {"strategy": zlib.Z_HUFFMAN_ONLY},
    ],
)
@pytest.mark.parametrize("idat_bytes", [None, 1, 7, 100])
def test_stream_of_any_make_in_any_pieces_gives_the_same(deflate, idat_bytes):
    data = encode(PHOTO, idat_bytes=idat_bytes, **deflate)
    np.testing.assert_array_equal(read(data), pixels_of(PHOTO, 3))


def test_empty_chunks_of_pixels_are_passed_over():
    data = encode(PHOTO, before=chunk(b"IDAT", b""), after=chunk(b"IDAT", b""))
    np.testing.assert_array_equal(read(data), pixels_of(PHOTO, 3))


def test_pixels_go_into_a_window_of_a_larger_array():
    canvas = np.full((2, 20, 30, 3), 7, np.uint8)
    window = canvas[1, 5:14, 10:21]
    assert read(encode(PHOTO), window) is window
    np.testing.assert_array_equal(window, pixels_of(PHOTO, 3))
    window[...] = 7
    assert (canvas == 7).all()


@pytest.mark.parametrize("colour", [GREY, RGB, RGBA])
def test_pixels_beside_a_window_are_left_alone(colour):
    for channels in (1, 3, 4):
        drawing = draw(colour, 8, 5, 6)
        canvas = np.full((5, 8, channels), 9, np.uint8)
        read(encode(drawing), canvas[:, 1:7], channels)
        np.testing.assert_array_equal(canvas[:, 1:7], pixels_of(drawing, channels))
        assert (canvas[:, ::7] == 9).all()


@pytest.mark.parametrize(
    "out",
    [
        np.empty((9, 11, 4), np.uint8),
        np.empty((11, 9, 3), np.uint8),
        np.empty((9, 11, 3), np.int8),
        np.empty((9, 33), np.uint8),
        np.empty((9, 22, 3), np.uint8)[:, ::2],
        np.empty((9, 11, 6), np.uint8)[..., ::2],
        np.empty((9, 11, 3), np.float32),
    ],
)
def test_out_of_another_form_is_refused(out):
    refuse(encode(PHOTO), r"out: expected uint8 of shape \(9, 11, 3\) with pixels side by side", out=out)


def test_out_that_is_read_only_is_refused():
    out = np.empty((9, 11, 3), np.uint8)
    out.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        read(encode(PHOTO), out)


@pytest.mark.parametrize("channels", [0, 2, 5])
def test_number_of_channels_that_there_is_not_is_refused(channels):
    refuse(encode(PHOTO), "channels: expected 1, 3 or 4", channels=channels)


def test_any_buffer_is_read():
    data = encode(PHOTO)
    padded = np.frombuffer(b"xx" + data + b"yy", np.uint8)
    for given in (bytearray(data), memoryview(data), memoryview(padded[2:-2])):
        np.testing.assert_array_equal(read(given), pixels_of(PHOTO, 3))


@pytest.mark.parametrize(
    "before",
    [
        chunk(b"tEXt", b"Comment\0hello"),
        chunk(b"iCCP", b"junk\0\0" + b"\xff" * 50),
        chunk(b"zTXt", b"bomb\0\0" + zlib.compress(bytes(10_000_000), 9)),
        chunk(b"eXIf", b"MM\0*"),
        chunk(b"acTL", struct.pack(">II", 2, 0)) + chunk(b"fcTL", bytes(26)),
        chunk(b"gAMA", b"")[:-1] + b"!",  # nobody asks for it, so nobody minds
        chunk(b"PLTE", bytes(6)),  # a suggestion, in an image of all colours
    ],
)
def test_chunks_that_do_not_matter_are_passed_over(before):
    np.testing.assert_array_equal(read(encode(PHOTO, before=before)), pixels_of(PHOTO, 3))


def test_frames_of_an_animation_are_passed_over():
    after = chunk(b"fcTL", bytes(26)) + chunk(b"fdAT", bytes(4) + compress(bytes(33)))
    np.testing.assert_array_equal(read(encode(PHOTO, after=after)), pixels_of(PHOTO, 3))


def test_bytes_behind_the_end_are_passed_over():
    np.testing.assert_array_equal(read(encode(PHOTO) + b"rubbish"), pixels_of(PHOTO, 3))
    stream = compress(raw_rows(PHOTO)) + b"rubbish"
    np.testing.assert_array_equal(read(with_stream(stream)), pixels_of(PHOTO, 3))


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("colour", [RGB, PALETTE])
def test_every_cut_is_refused(colour, interlaced):
    data = encode(draw(colour, 8, 6, 7, with_hidden=True), interlaced=interlaced, idat_bytes=50)
    for size in range(len(data)):
        refuse(data[:size], "cut short|begin")


@pytest.mark.parametrize("colour", [RGB, PALETTE])
def test_every_flipped_bit_is_refused(colour):
    data = encode(draw(colour, 8, 3, 4, with_hidden=True), idat_bytes=40)
    # The name of tRNS may become the name of a chunk that is ignored.
    needless = range(data.index(b"tRNS"), data.index(b"tRNS") + 4)
    for at in set(range(len(data))) - set(needless):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit
            refuse(flipped, "^(it|a|the|there|chunk) ")


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        (b"", "short|few"),
        (b"PK\3\4", "zlib"),
        (compress(raw_rows(PHOTO))[:-1], "stream.*short"),
        (compress(raw_rows(PHOTO)[:-1]), "fewer"),
        (compress(raw_rows(PHOTO) + b"\0"), "more"),
        (compress(raw_rows(PHOTO) + bytes(10_000_000)), "more"),
        (compress(raw_rows(PHOTO))[:-4] + b"\0\0\0\0", "checksum"),
        (compress(b"\5" + raw_rows(PHOTO)[1:]), "filter 5"),
        (b"\x78\x9c\x07", "block"),
    ],
)
def test_damaged_stream_is_refused(stream, words):
    refuse(with_stream(stream), words)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "PNG"),
        (b"GIF89a", "PNG"),
        (SIGNATURE, "header"),
        (SIGNATURE + END, "header"),
        (header(1, 1), "short"),
        (header(1, 1) + END, "IDAT"),
        (header(0, 5), "header.*0 x 5"),
        (header(5, 2**31), "header.*5 x 2147483648"),
        (header(1, 1, 8, 1), "1.*8 bits"),
        (header(1, 1, 4, RGB), "2.*4 bits"),
        (header(1, 1, 16, PALETTE), "3.*16 bits"),
        (header(1, 1, rest=(1, 0, 0)), "interlace"),
        (header(1, 1, rest=(0, 64, 0)), "interlace"),
        (header(1, 1, rest=(0, 0, 2)), "interlace"),
        (header(1, 1) + header(1, 1)[8:], "two headers"),
        (header(1, 1) + chunk(b"CgBI", b""), "CgBI"),
        (header(1, 1) + chunk(b"a!bc", b""), "chunk.*name"),
        (header(1, 1, 8, PALETTE) + chunk(b"IDAT", b"x"), "palette"),
        (header(1, 1, 8, PALETTE) + chunk(b"PLTE", bytes(4)), "PLTE.*4 bytes"),
        (header(1, 1) + chunk(b"PLTE", bytes(3)) * 2, "two.*PLTE"),
        (header(1, 1) + chunk(b"tRNS", bytes(6)) * 2, "two.*tRNS"),
        (header(1, 1) + chunk(b"tRNS", bytes(5)), "tRNS.*5 bytes"),
        (header(1, 1) + chunk(b"IDAT", b"x") + chunk(b"PLTE", bytes(3)), "PLTE.*pixels"),
        (
            header(1, 1) + chunk(b"IDAT", b"x") + chunk(b"tEXt", b"") + chunk(b"IDAT", b"x"),
            "IDAT",
        ),
    ],
)
def test_file_that_is_no_png_of_any_kind_is_refused(data, words):
    refuse(data, words)


def test_chunk_whose_crc_does_not_fit_is_refused_by_name():
    data = encode(PHOTO)
    for name in (b"IHDR", b"IDAT", b"IEND"):
        at = data.index(name) + 4 + struct.unpack(">I", data[data.index(name) - 4 : data.index(name)])[0]
        damaged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        refuse(damaged, f"a chunk is damaged: the CRC of {name.decode()} does not fit")


def test_colour_that_a_palette_lacks_is_refused():
    drawing = draw(PALETTE, 4, 5, 5)
    refuse(encode(drawing._replace(palette=drawing.palette[:3])), "palette")


@pytest.mark.parametrize(("width", "height"), [(60000, 60000), (20000, 20000), (2**31 - 1, 2**31 - 1)])
def test_header_that_claims_too_much_is_refused_at_once(width, height):
    data = header(width, height) + chunk(b"IDAT", compress(b"")) + END
    assert len(data) < 80
    refuse(data, f"it is of {width} x {height} pixels, more than the 50000000 allowed")


def test_real_image_that_is_too_large_is_refused_unless_allowed():
    data = encode(draw(GREY, 1, 300, 400))
    refuse(data, "it is of 400 x 300 pixels, more than the 119999 allowed", max_pixels=119_999)
    assert read(data, channels=1, max_pixels=120_000).shape == (300, 400, 1)


def test_claim_that_the_stream_cannot_fill_is_refused_before_memory_is_taken():
    data = header(7000, 7000, 16, RGBA) + chunk(b"IDAT", compress(bytes(1000))) + END
    begin = time.thread_time()
    refuse(data, "it is cut short: 17 bytes of deflate are too few for 7000 x 7000 pixels", channels=4)
    assert time.thread_time() - begin < 0.05


def test_too_many_chunks_are_refused():
    refuse(header(1, 1) + chunk(b"tEXt", b"") * 100_000 + END, "it has more than 100000 chunks")


def test_threads_decode_side_by_side():
    drawings = [draw(RGB, 8, 120, 130, seed=seed) for seed in range(4)]
    files = [encode(drawing) for drawing in drawings]
    wrong = []

    def work(number):
        for _ in range(20):
            if not np.array_equal(read(files[number]), pixels_of(drawings[number], 3)):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_room_beside_a_stream_is_bounded():
    stream = compress(b"pixels")
    assert _native.inflate(stream, 6, 1 << 20) == b"pixels"
    for slack in ((1 << 20) + 1, 2**64 - 1):
        with raises_with(ValueError, "slack 1048576 bytes"):
            _native.inflate(stream, 6, slack)


@pytest.mark.parametrize("rows", [-27, -1, 0, 32])
def test_rows_that_overlap_are_refused(rows):
    canvas = np.zeros(1000, np.uint8)
    out = np.lib.stride_tricks.as_strided(canvas[500:], (9, 11, 3), (rows, 3, 1))
    with raises_with(ValueError, "out uint8 shape rows"):
        read(encode(PHOTO), out)
