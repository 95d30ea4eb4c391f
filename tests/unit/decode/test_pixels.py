"""Encoded images into pixels: every format and form against Pillow, and refused files."""

import io
import sys

import numpy as np
import pytest
from PIL import Image, ImageOps

from fit_sources import strings
from image_files import (
    PNG_END,
    animated,
    bmp,
    chunk,
    exif,
    gif,
    grey,
    insert_after_start,
    jpeg,
    odd_jpeg,
    opened,
    png,
    png_start,
    saved,
    scene,
    segment,
    turned,
    turned_jpeg,
)
from penstock import _native
from penstock.columns import Pictures
from penstock.decode.jpeg import read_jpeg
from penstock.decode.pixels import FORMATS, PixelError, PixelRules, SliceImages
from penstock.errors import MissingPackageError
from raising import containing, mentions, raises_with

PICTURE = scene(40, 56)
MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def images(*data, channels=3, formats=FORMATS, max_pixels=50_000_000, orient=True):
    """Return images that are decoded whole."""
    rules = PixelRules(
        channels,
        formats,
        max_pixels,
        orient,
        size=(1, 1),
        resize="stretch",
        antialias=True,
        draft=True,
        fill=np.zeros(channels, np.uint8),
    )
    return SliceImages(strings(list(data)), rules, is_whole=True)


def decode(data, **rules):
    """Return the pixels of a file."""
    encoded = images(data, **rules)
    if not encoded.faults:
        pixels = np.zeros((*encoded.slot_size(0), rules.get("channels", 3)), np.uint8)
        encoded.decode([pixels])
    for error in encoded.faults.values():
        raise error
    return pixels


def decode_draft(data, denominator, channels=3):
    """Return the pixels of a JPEG at a reduced size."""
    header = _native.read_image_header(data)
    size = (-(-header.height // denominator), -(-header.width // denominator))
    pixels = read_jpeg(data, size, channels, denominator, is_progressive=False)
    assert pixels.shape == (*size, channels)
    return pixels


def distance(found, wanted):
    assert found.shape == wanted.shape
    return int(np.abs(found.astype(int) - wanted.astype(int)).max())


def refuse(data, **rules):
    """Return the error of a file, wherever it is met."""
    with pytest.raises(PixelError) as caught:
        decode(data, **rules)
    return caught.value


JPEGS = {
    "4:2:0": jpeg(PICTURE, subsampling="4:2:0"),
    "4:2:2": jpeg(PICTURE, subsampling="4:2:2"),
    "4:4:4": jpeg(PICTURE, subsampling="4:4:4"),
    "4:1:1": jpeg(PICTURE, subsampling="4:1:1"),
    "progressive": jpeg(PICTURE, progressive=True),
    "restarts": jpeg(PICTURE, restart_marker_blocks=2),
    "optimised": jpeg(PICTURE, optimize=True),
    "stored as red, green and blue": jpeg(PICTURE, keep_rgb=True),
    "odd sides": jpeg(scene(37, 51)),
    "one pixel": jpeg(scene(1, 1)),
    "one row": jpeg(scene(1, 300)),
    "grey": jpeg(grey(PICTURE)),
    "trailing bytes": jpeg(PICTURE) + b"trailing bytes" * 9,
    "two in one": jpeg(PICTURE) + jpeg(PICTURE[::-1].copy()),
    "stray bytes at the end": jpeg(PICTURE)[:-2] + b"\0\1\2\3\xff\xd9",
    "filled": jpeg(PICTURE)[:-2] + b"\xff\xff\xff\xd9",
    "with a profile": jpeg(PICTURE, icc_profile=b"junk" * 40_000),
    "with a comment": insert_after_start(jpeg(PICTURE), segment(0xFE, b"\xff\xd8\xff\xc0" * 900)),
}


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("form", JPEGS)
def test_jpeg_equals_pillow(form, channels):
    with Image.open(io.BytesIO(JPEGS[form])) as image:
        image.draft("L" if channels == 1 else None, None)  # brightness as it is stored
        wanted = np.asarray(image.convert(MODES[channels])).reshape(*image.size[::-1], channels)
    assert distance(decode(JPEGS[form], channels=channels), wanted) <= 1


@pytest.mark.parametrize("form", ["cmyk", "ycck"])
def test_jpeg_for_printers_is_converted_as_by_pillow(form):
    data = bytearray(jpeg(PICTURE, "CMYK"))
    if form == "ycck":
        data[data.index(b"Adobe") + 11] = 2  # the transform, which says what the four components are
    data = bytes(data)
    assert distance(decode(data), opened(data, "RGB")) <= 1
    assert distance(decode(data, channels=1), opened(data, "L")) <= 2
    rgba = decode(data, channels=4)
    assert np.array_equal(rgba[..., :3], decode(data))
    assert (rgba[..., 3] == 255).all()


def test_jpeg_of_a_rare_sampling_is_refused():
    # Its pixels could be had, but without a word where they are damaged.
    error = refuse(odd_jpeg())
    assert mentions(error.expected, "jpeg")
    assert mentions(error.got, "subsampling")


def stray(data):
    """Return a JPEG with three bytes before its first table."""
    return data.replace(b"\xff\xdb", b"\0\0\0\xff\xdb", 1)


def unbound(data):
    """Return a JPEG whose scan claims to have coefficients from 0 to 0, as some cameras write it."""
    at = data.index(b"\xff\xda") + 12
    assert data[at : at + 2] == b"\x3f\0"
    return data[:at] + b"\0" + data[at + 1 :]


@pytest.mark.parametrize("fault", [stray, unbound, lambda data: stray(unbound(data))])
def test_jpeg_with_a_fault_that_costs_no_pixel_is_decoded_unless_it_is_damaged(fault):
    whole = jpeg(PICTURE, restart_marker_blocks=2)
    data = fault(whole)
    for denominator, channels in ((1, 3), (2, 1), (8, 4)):
        wanted = decode_draft(whole, denominator, channels=channels)
        assert np.array_equal(decode_draft(data, denominator, channels=channels), wanted)
    assert np.array_equal(decode(data[:-2] + b"\0\1\2\xff\xd9"), decode(whole))
    assert mentions(refuse(data[:-2]).got, "JPEG")
    assert mentions(refuse(data[:-60] + b"\xff\xd9").got, "premature end")
    lost = data.rindex(b"\xff\xd2")  # a restart
    assert mentions(refuse(data[:lost] + data[lost + 2 :]).got, "Corrupt JPEG")


def test_stray_bytes_in_the_header_of_a_progressive_jpeg_are_passed_over():
    whole = jpeg(PICTURE, progressive=True)
    assert np.array_equal(decode(stray(whole)), decode(whole))
    assert mentions(refuse(whole.replace(b"\xff\xdb", bytes(17) + b"\xff\xdb", 1)).got, "extraneous")


def test_bytes_left_over_in_a_progressive_jpeg_are_damage():
    more = bytes(range(40)) + b"\xff\xd9"  # a decoder has read a few of them before it looks for the end
    assert distance(decode(jpeg(PICTURE)[:-2] + more), opened(jpeg(PICTURE))) <= 1
    assert mentions(refuse(jpeg(PICTURE, progressive=True)[:-2] + more).got, "bytes 0xd9")


def test_png_that_is_damaged_is_said_to_be_so_once():
    assert mentions(refuse(png(PICTURE)[:-20]).got, "IDAT")


@pytest.mark.parametrize("denominator", [2, 4, 8])
@pytest.mark.parametrize("sides", [(40, 56), (41, 57), (3, 5), (1, 1)])
def test_jpeg_at_a_part_of_its_size_is_like_the_mean_of_its_blocks(denominator, sides):
    picture = scene(*sides)
    picture[:] = 40 + 100 * (np.arange(sides[1]) / sides[1])[None, :, None]  # without edges
    found = decode_draft(jpeg(picture, subsampling="4:4:4"), denominator)
    grown = np.pad(picture, [(0, -side % denominator) for side in sides] + [(0, 0)], "edge").astype(float)
    height, width = (len(each) for each in (grown, grown[0]))
    blocks = grown.reshape(height // denominator, denominator, width // denominator, denominator, 3)
    assert np.abs(found - blocks.mean(axis=(1, 3))).max() < 8


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("order", ["<", ">"])
def test_photos_are_turned_upright(orientation, order):
    note = exif(orientation, order)
    stored = turned(PICTURE, orientation)
    files = {
        "jpeg": turned_jpeg(PICTURE, orientation, order, quality=100, subsampling="4:4:4"),
        "png": png(stored, before=chunk(b"eXIf", note)),
        "webp": saved(stored, "WEBP", lossless=True, exif=b"Exif\0\0" + note),
    }
    for format, data in files.items():
        with Image.open(io.BytesIO(data)) as image:
            upright = np.asarray(ImageOps.exif_transpose(image))
        assert upright.shape == PICTURE.shape
        found = decode(data)
        assert images(data).slot_size(0) == (40, 56)
        assert distance(found, upright) == 0, format
        if format != "jpeg":
            assert np.array_equal(found, PICTURE)
        as_stored = decode(data, orient=False)
        assert as_stored.shape == stored.shape
        assert np.array_equal(turned(found, orientation), as_stored)


def test_note_of_a_camera_is_found_behind_others():
    note = exif(6)
    other = segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>")
    data = insert_after_start(jpeg(PICTURE), other + segment(0xE1, b"Exif\0\0" + note))
    assert images(data).slot_size(0) == (56, 40)
    assert images(png(PICTURE)[:-12] + chunk(b"eXIf", note) + PNG_END).slot_size(0) == (56, 40)


@pytest.mark.parametrize("orientation", [0, 9, 65535])
def test_orientation_that_is_none_is_passed_over(orientation):
    assert np.array_equal(decode(png(PICTURE, before=chunk(b"eXIf", exif(orientation)))), PICTURE)


def test_note_that_is_damaged_is_passed_over():
    note = exif(6)
    for length in range(len(note) - 4):
        assert np.array_equal(decode(png(PICTURE, before=chunk(b"eXIf", note[:length]))), PICTURE)


SIXTEEN = np.arange(40 * 56 * 3).reshape(40, 56, 3) * 9 % 65536

PNGS = {
    "rgb": (png(PICTURE), PICTURE),
    "rgba": (png(scene(40, 56, channels=4), 8, 6), scene(40, 56, channels=4)),
    "grey": (png(grey(PICTURE), 8, 0), grey(PICTURE).repeat(3, axis=2)),
    "grey and alpha": (png(PICTURE[..., :2], 8, 4), PICTURE[..., [0, 0, 0, 1]]),
    "16 bits": (png(SIXTEEN, 16, 2), (SIXTEEN >> 8).astype(np.uint8)),
    "interlaced": (png(PICTURE, interlaced=True), PICTURE),
    "animated": (animated("PNG", [PICTURE, PICTURE[::-1].copy()]), PICTURE),
    "by pillow": (saved(PICTURE, "PNG", optimize=True), PICTURE),
}


@pytest.mark.parametrize("form", PNGS)
def test_png_is_converted_as_documented(form):
    data, wanted = PNGS[form]
    colours = wanted[..., :3]
    assert np.array_equal(decode(data), colours)
    alpha = wanted[..., 3:] if wanted.shape[2] == 4 else np.full((40, 56, 1), 255, np.uint8)
    assert np.array_equal(decode(data, channels=4), np.concatenate([colours, alpha], axis=2))
    assert np.array_equal(decode(data, channels=1), grey(colours))


@pytest.mark.parametrize("depth", [1, 2, 4, 8])
def test_png_of_a_palette_is_expanded_with_its_transparency(depth):
    places = np.arange(40 * 56).reshape(40, 56, 1) % min(2**depth, 200)
    table = (np.arange(600).reshape(200, 3) * 37 % 256).astype(np.uint8)[: 2**depth]
    palette = chunk(b"PLTE", table.tobytes())
    assert np.array_equal(decode(png(places, depth, 3, before=palette)), table[places[..., 0]])
    data = png(places, depth, 3, before=palette + chunk(b"tRNS", bytes([7, 99])))
    alpha = np.full(len(table), 255, np.uint8)
    alpha[:2] = [7, 99]
    assert np.array_equal(decode(data, channels=4)[..., 3], alpha[places[..., 0]])
    assert np.array_equal(decode(data), table[places[..., 0]])


ALPHA = scene(40, 56, channels=4)
RASTERS = {
    "webp": saved(PICTURE, "WEBP"),
    "webp without loss": saved(PICTURE, "WEBP", lossless=True),
    "webp with alpha": saved(ALPHA, "WEBP", lossless=True, exact=True),
    "webp that moves": animated("WEBP", [PICTURE, PICTURE[::-1].copy()]),
    "gif": saved(PICTURE, "GIF"),
    "gif that moves": animated("GIF", [PICTURE, PICTURE[::-1].copy()]),
    "gif of one pixel": gif((1, 1)),
    "bmp": bmp(PICTURE),
    "bmp from the top": bmp(PICTURE, is_upside_down=True),
    "bmp of 32 bits": bmp(ALPHA),
    "bmp of 8 bits": saved(PICTURE, "BMP", "P"),
    "bmp of 1 bit": saved(PICTURE, "BMP", "1"),
}


@pytest.mark.parametrize("form", RASTERS)
def test_other_formats_equal_pillow(form):
    data = RASTERS[form]
    wanted = opened(data, "RGBA")
    assert np.array_equal(decode(data), wanted[..., :3])
    assert np.array_equal(decode(data, channels=4), wanted)
    assert np.array_equal(decode(data, channels=1), grey(wanted[..., :3]))


def test_pixels_go_to_their_slots_and_nowhere_else():
    files = [jpeg(PICTURE), png(PICTURE), turned_jpeg(PICTURE, 6), bmp(PICTURE)]
    batch = np.full((len(files) + 1, 40, 56, 3), 7, np.uint8)
    wanted = [decode(data) for data in files]
    images(*files).decode(batch[:-1])
    for row, pixels in enumerate(wanted):
        assert np.array_equal(batch[row], pixels)
    assert (batch[-1] == 7).all()
    batch[:] = 7
    images(*files).decode([batch[0], None, batch[2], None])
    assert np.array_equal(batch[2], wanted[2])
    assert (batch[[1, 3]] == 7).all()


def test_each_image_of_a_column_is_its_own():
    encoded = images(jpeg(PICTURE), b"", png(PICTURE), b"text", bmp(scene(3, 4)))
    assert [encoded.slot_size(row) for row in range(5)] == [(40, 56), None, (40, 56), None, (3, 4)]
    slots = [np.zeros((*(encoded.slot_size(row) or (1, 1)), 3), np.uint8) for row in range(5)]
    encoded.decode(slots)
    assert sorted(encoded.faults) == [1, 3]
    assert np.array_equal(slots[2], PICTURE)
    assert np.array_equal(slots[4], scene(3, 4))
    assert not slots[1].any()


def test_slots_of_another_shape_are_refused():
    encoded = images(jpeg(PICTURE))
    for slots in (
        np.zeros((1, 40, 55, 3), np.uint8),
        np.zeros((2, 40, 56, 3), np.uint8),
        np.zeros((1, 40, 56, 4), np.uint8),
        np.zeros((1, 40, 112, 3), np.uint8)[:, :, ::2],
        [np.zeros((56, 40, 3), np.uint8)],
        [np.zeros((40, 56, 3), np.int8)],
        [],
    ):
        with raises_with(ValueError, "slots"):
            encoded.decode(slots)
    assert encoded.faults == {}


def test_images_that_are_neither_cached_nor_encoded_are_refused():
    with raises_with(ValueError, "images cached encoded"):
        SliceImages(Pictures([None]), images()._rules)


def test_bytes_that_are_not_an_image_are_refused_by_their_beginning():
    error = refuse(b"<html>not found</html>", formats=("jpeg", "png"))
    assert (error.expected, error.got) == (containing("jpeg", "png"), containing(22, "b'<htm'"))
    assert mentions(refuse(b"", formats=("jpeg",)).got, "bytes")
    assert mentions(refuse(b"BMW and Audi").got, "12 bytes b'BMW '")


@pytest.mark.parametrize("form", ["webp", "gif", "bmp"])
def test_format_that_was_not_asked_for_is_refused_and_how_to_ask(form):
    error = refuse(RASTERS[form], formats=("jpeg", "png"))
    assert (error.expected, error.got) == ("jpeg or png", f"a {form}")
    assert mentions(error.advice, f"Image(formats=('jpeg' 'png' '{form}'")


def test_image_of_too_many_pixels_is_refused_by_its_header():
    error = refuse(png_start(6000, 70_000), max_pixels=419_999_999)
    assert mentions(error.expected, "419999999 pixels")
    assert mentions(error.got, "png 70000 6000")
    assert mentions(error.advice, "Image(max_pixels=…)")
    assert decode(png(PICTURE), max_pixels=40 * 56).shape == PICTURE.shape
    for data in (png(PICTURE), jpeg(PICTURE), *RASTERS.values()):
        if opened(data).size > 40:
            assert mentions(refuse(data, max_pixels=40 * 56 - 1).expected, "2239 pixels")


def test_image_that_is_damaged_is_refused_with_the_reason():
    for data, format in ((jpeg(PICTURE), "jpeg"), (png(PICTURE), "png"), (RASTERS["webp"], "webp")):
        error = refuse(data[: len(data) * 3 // 4])
        assert mentions(error.expected, f"{format}")
        assert mentions(error.got, "damaged")
    assert mentions(refuse(jpeg(PICTURE)[:-2]).got, "JPEG")


def test_frame_that_is_larger_than_its_screen_is_refused():
    for frame in ((41, 41), (12_000, 12_000), (32_767, 32_767)):
        assert mentions(refuse(gif((40, 40), frame)).expected, "gif")


def test_image_that_ends_before_its_size_is_refused():
    for data, format in ((jpeg(PICTURE)[:30], "jpeg"), (png(PICTURE)[:20], "png"), (gif((1, 1))[:8], "gif")):
        error = refuse(data)
        assert mentions(error.expected, f"{format}")
        assert mentions(error.got, "size")


@pytest.mark.parametrize(
    ("module", "package", "file", "format", "data"),
    [
        ("simplejpeg", "simplejpeg", "jpeg", "jpeg", jpeg(PICTURE)),
        ("PIL", "pillow", "raster", "gif", RASTERS["gif"]),
    ],
)
def test_decoder_that_is_not_installed_is_named(monkeypatch, module, package, file, format, data):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"penstock.decode.{file}", raising=False)
    with raises_with(MissingPackageError, f"{format} {package!r} 'penstock[images]'"):
        decode(data)
    assert np.array_equal(decode(png(PICTURE)), PICTURE)  # needs neither
