"""Formats and sizes from the headers of images."""

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from penstock.schema.picture import Picture, read_picture


def picture_bytes(format: str, size: tuple[int, int] = (60, 40), mode: str = "RGB", **options) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, size).save(buffer, format, **options)
    return buffer.getvalue()


FILES = [
    picture_bytes("JPEG"),
    picture_bytes("JPEG", progressive=True),
    picture_bytes("PNG"),
    picture_bytes("GIF", mode="P"),
    picture_bytes("BMP"),
    picture_bytes("WEBP"),
    picture_bytes("WEBP", lossless=True),
    picture_bytes("WEBP", mode="RGBA", exif=b"Exif\0\0"),
]


@pytest.mark.parametrize("data", FILES)
def test_header_that_pillow_wrote_has_format_and_size(data):
    picture = read_picture(data)
    assert picture is not None
    assert (picture.width, picture.height) == (60, 40)
    assert picture.format == Image.open(io.BytesIO(data)).format.lower()


@pytest.mark.parametrize("data", FILES)
def test_header_cut_at_any_byte_has_the_size_or_none(data):
    for stop in range(min(len(data), 700)):
        picture = read_picture(data[:stop])
        assert picture is None or (picture.width, picture.height) in ((0, 0), (60, 40))


def segment(marker: int, content: bytes) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", len(content) + 2) + content


def test_size_of_a_jpeg_with_more_than_64_kb_of_exif_is_found():
    data = picture_bytes("JPEG")
    exif = b"".join(segment(0xE1, bytes(65_000)) for _ in range(3))
    assert read_picture(data[:2] + exif + data[2:]) == Picture("jpeg", 60, 40)


def test_size_of_a_jpeg_with_stray_bytes_and_padding_between_segments_is_found():
    data = picture_bytes("JPEG")
    assert read_picture(data[:2] + segment(0xFE, b"x") + b"\0\1\2\xff\xff\xff" + data[2:]) == Picture(
        "jpeg", 60, 40
    )


def test_size_inside_the_thumbnail_of_a_jpeg_is_not_taken_for_its_own():
    data = picture_bytes("JPEG")
    thumbnail = segment(0xE1, picture_bytes("JPEG", (8, 8)))
    assert read_picture(data[:2] + thumbnail + data[2:]) == Picture("jpeg", 60, 40)


def test_bmp_that_runs_from_top_to_bottom_has_a_positive_height():
    data = bytearray(picture_bytes("BMP"))
    data[22:26] = struct.pack("<i", -40)
    assert read_picture(bytes(data)) == Picture("bmp", 60, 40)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"BM",
        b"BMW,Audi,Fiat are three makes of cars",
        b"\xff\xd8",
        b"RIFF1234WAVE",
        b"<svg/>",
        b"GIF88a",
    ],
)
def test_bytes_that_are_not_an_image_give_none(data):
    assert read_picture(data) is None


@pytest.mark.parametrize(
    ("data", "format"),
    [
        (b"\xff\xd8\xff\xd9", "jpeg"),
        (b"\xff\xd8\xff" + b"\xff" * 100, "jpeg"),
        (b"\xff\xd8" + segment(0xE0, b"") * 10_000, "jpeg"),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "png"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR" + bytes(8), "png"),
        (b"RIFF\0\0\0\0WEBPVP8 " + bytes(40), "webp"),
        (b"GIF89a\0\0\5\0", "gif"),
    ],
)
def test_image_without_a_size_in_its_header_has_none(data, format):
    assert read_picture(data) == Picture(format, 0, 0)


@given(st.sampled_from([data[:40] for data in FILES] + [b""]), st.binary(max_size=200), st.integers(0, 40))
def test_any_bytes_give_a_picture_or_none(head, tail, cut):
    picture = read_picture(head[:cut] + tail)
    assert picture is None or (picture.width >= 0 and picture.height >= 0)
