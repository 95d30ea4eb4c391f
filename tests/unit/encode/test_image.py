"""Images from paths, bytes, structs, pixels and PIL images."""

import io
import os

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image as Pillow

from encode_columns import encode, objects, values_of
from penstock import _native
from penstock.columns import Bytes
from penstock.fields import Image
from penstock.settings.groups import StoredImages
from penstock.storage.deferred import Deferred
from raising import containing, mentions

ANY = containing("JPEG", "PNG", "WebP", "GIF", "BMP")


def picture(format: str = "PNG", size: tuple[int, int] = (6, 4), mode: str = "RGB", **options) -> bytes:
    buffer = io.BytesIO()
    Pillow.effect_noise(size, 60).convert(mode).save(buffer, format, **options)
    return buffer.getvalue()


def opened(data: bytes) -> Pillow.Image:
    image = Pillow.open(io.BytesIO(data))
    image.load()
    return image


def pixels(data: bytes) -> np.ndarray:
    return np.asarray(opened(data))


def test_paths_refer_to_files_that_were_looked_at(tmp_path):
    (tmp_path / "a.png").write_bytes(picture("PNG"))
    (tmp_path / "b.jpg").write_bytes(picture("JPEG", (8, 5)))
    raw = pa.array(["a.png", None, str(tmp_path / "b.jpg")])
    column, faults = encode(Image(optional=True), raw, "path", folder=str(tmp_path))
    assert faults == []
    assert isinstance(column, Deferred)
    assert column.paths == [f"{tmp_path}/a.png", "", f"{tmp_path}/b.jpg"]
    assert column.sizes.tolist() == [
        len((tmp_path / "a.png").read_bytes()),
        0,
        (tmp_path / "b.jpg").stat().st_size,
    ]
    assert column.widths.tolist() == [6, 0, 8]
    assert column.heights.tolist() == [4, 0, 5]
    assert column.hashes[0] == _native.hash_bytes((tmp_path / "a.png").read_bytes())
    assert column.digests[0].tobytes() == _native.digest_bytes((tmp_path / "a.png").read_bytes())
    assert column.present.tolist() == [True, False, True]


def test_path_without_an_image_is_a_fault_that_names_the_path_and_its_content(tmp_path):
    (tmp_path / "text.jpg").write_text("not found")
    (tmp_path / "empty.jpg").write_bytes(b"")
    (tmp_path / "folder.jpg").mkdir()
    (tmp_path / "cut.jpg").write_bytes(picture("JPEG")[:30])
    (tmp_path / "lfs.jpg").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    (tmp_path / "junk.jpg").write_bytes(bytes(range(128, 256)))
    os.mkfifo(tmp_path / "pipe.jpg")
    names = ["gone.jpg", "text.jpg", "empty.jpg", "folder.jpg", "cut.jpg", "lfs.jpg", "junk.jpg", "pipe.jpg"]
    column, faults = encode(Image(), pa.array(names), "path", folder=str(tmp_path))
    found = [
        "no such file",
        "text",
        "no bytes",
        "a folder",
        "a JPEG image whose header is damaged or truncated",
        "a Git LFS pointer",
        "bytes that begin with b'\\x80\\x81\\x82\\x83\\x84\\x85\\x86\\x87'",
        "not a regular file",
    ]
    assert [(row, expected) for row, expected, _ in faults] == [(row, ANY) for row in range(8)]
    for name, what, (_, _, got) in zip(names, found, faults, strict=True):
        assert got.endswith(f"{name}', {what}")
    assert column.sizes.tolist() == [0] * 8


def test_encoded_images_are_kept_byte_for_byte():
    cells = [picture("JPEG"), None, picture("GIF", mode="P")]
    column, faults = encode(Image(optional=True), pa.array(cells))
    assert faults == []
    assert isinstance(column, Bytes)
    assert values_of(column) == cells
    assert values_of(encode(Image(optional=True), objects(*cells))[0]) == cells


def test_encoded_bytes_that_are_no_image_are_a_fault():
    raw = pa.array([picture(), b"", b"hello", picture()[:20]])
    assert encode(Image(), raw)[1] == [
        (1, ANY, containing("bytes")),
        (2, ANY, "text"),
        (3, ANY, containing("PNG", "image")),
    ]


def test_image_of_another_format_than_told_is_a_fault():
    assert encode(Image("jpeg"), pa.array([picture("PNG")]))[1] == [
        (0, containing("JPEG", "image"), containing("PNG", "image"))
    ]
    assert encode(Image("jpeg"), np.zeros((1, 2, 2), np.uint8))[1] == [
        (0, containing("JPEG", "image"), containing("PNG", "image"))
    ]


def test_large_images_of_a_table_in_memory_are_not_copied():
    cell = picture("BMP", (64, 48))
    column, _ = encode(Image(), pa.array([cell, cell]), is_resident=True)
    assert isinstance(column, Deferred)
    assert column.widths.tolist() == [64, 64]
    assert values_of(column) == [cell, cell]


def test_large_objects_in_memory_are_referred_to_themselves():
    cell = picture("BMP", (64, 48))
    column, _ = encode(Image(), objects(cell), is_resident=True)
    assert column.values[0] is cell


def test_size_behind_a_long_exif_is_found():
    cell = picture("JPEG")
    exif = b"\xff\xe1\xff\xff" + bytes(65_533)
    column, faults = encode(Image(), pa.array([cell[:2] + exif + cell[2:]]), is_resident=True)
    assert faults == []
    assert column.widths.tolist() == [6]


def test_struct_gives_its_bytes_or_else_its_file(tmp_path):
    (tmp_path / "a.png").write_bytes(picture())
    blob = picture("JPEG")
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    both = pa.array([{"bytes": blob, "path": "x.jpg"}, None, {"bytes": None, "path": "a.png"}], kind)
    column, faults = encode(Image(optional=True), both, folder=str(tmp_path))
    assert faults == []
    assert values_of(column) == [blob, None, (tmp_path / "a.png").read_bytes()]
    assert values_of(encode(Image(optional=True), both.slice(0, 2))[0]) == [blob, None]
    column, _ = encode(Image(), both.slice(2), folder=str(tmp_path))
    assert column.paths == [f"{tmp_path}/a.png"]
    column, _ = encode(Image(), objects({"bytes": blob}, {"path": "a.png"}), folder=str(tmp_path))
    assert values_of(column) == [blob, (tmp_path / "a.png").read_bytes()]


PIXELS = [
    np.arange(24, dtype=np.uint8).reshape(1, 4, 6),
    np.arange(24, dtype=np.uint8).reshape(1, 4, 6, 1),
    np.arange(72, dtype=np.uint8).reshape(1, 4, 6, 3),
    np.arange(96, dtype=np.uint8).reshape(1, 4, 6, 4),
    np.arange(24, dtype=np.uint16).reshape(1, 4, 6) * 1000,
    np.arange(24, dtype=">u2").reshape(1, 4, 6) * 1000,
    np.arange(144, dtype=np.uint8).reshape(1, 8, 6, 3)[:, ::2],
]


@pytest.mark.parametrize("raw", PIXELS)
def test_arrays_become_images_of_the_same_pixels(raw):
    for given in (raw, objects(*raw)):
        column, faults = encode(Image(), given)
        assert faults == []
        assert column[0].startswith(b"\x89PNG")
        np.testing.assert_array_equal(pixels(column[0]), raw[0].squeeze())


@pytest.mark.parametrize(
    ("raw", "got"),
    [
        (np.zeros((1, 4, 6, 3)), containing("(4, 6, 3)", "float64")),
        (np.zeros((1, 4, 6, 2), np.uint8), containing("(4, 6, 2)", "uint8")),
        (np.zeros((1, 4, 6, 3), np.uint16), containing("(4, 6, 3)", "uint16")),
        (objects(np.zeros((0, 6), np.uint8)), containing("(0, 6)", "uint8")),
        (objects(Pillow.new("F", (2, 2))), containing("PIL", "image")),
        (objects("a.png"), "'a.png'"),
        (objects(3), "3"),
        (pa.array([3]), "3"),
    ],
)
def test_values_that_no_image_can_have_are_a_fault(raw, got):
    assert encode(Image(), raw)[1] == [(0, ANY, got)]


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_pil_image_becomes_an_image_of_the_same_pixels(mode):
    image = Pillow.new(mode, (6, 4))
    image.putpixel((1, 1), (7,) * len(image.getbands()) if len(image.getbands()) > 1 else 1)
    column, faults = encode(Image(optional=True), objects(image, None))
    assert faults == []
    np.testing.assert_array_equal(pixels(column[0]), np.asarray(image))
    assert column.present.tolist() == [True, False]


def test_pil_image_that_was_not_loaded_keeps_the_bytes_of_its_file():
    data = picture("JPEG")
    image = Pillow.open(io.BytesIO(data))
    assert values_of(encode(Image(), objects(image))[0]) == [data]
    np.testing.assert_array_equal(np.asarray(image), pixels(data))


def test_pil_image_that_was_changed_does_not():
    data = picture("PNG")
    image = Pillow.open(io.BytesIO(data))
    image.putpixel((0, 0), (1, 2, 3))
    column, _ = encode(Image(), objects(image))
    assert pixels(column[0])[0, 0].tolist() == [1, 2, 3]


def resized(data: bytes, side: int = 16, **options) -> bytes:
    column, faults = encode(Image(), pa.array([data]), options=StoredImages(resize=side, **options))
    assert faults == []
    return column[0]


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "GIF", "BMP"])
def test_resize_makes_the_shorter_side_as_long_as_asked_in_the_same_format(format):
    small = opened(resized(picture(format, (100, 40), "P" if format == "GIF" else "RGB")))
    assert small.format == format
    assert small.size == (40, 16)


def test_resize_leaves_small_images_byte_for_byte():
    data = picture("JPEG", (100, 16))
    assert resized(data) == data


def test_resize_applies_the_orientation():
    exif = Pillow.Exif()
    exif[0x0112] = 6
    small = opened(resized(picture("JPEG", (100, 40), exif=exif)))
    assert small.size == (16, 40)
    assert 0x0112 not in small.getexif()


def test_resize_of_files_gives_bytes(tmp_path):
    (tmp_path / "a.jpg").write_bytes(picture("JPEG", (64, 64)))
    raw = pa.array(["a.jpg", None, "gone.jpg"])
    options = StoredImages(resize=16)
    column, faults = encode(Image(optional=True), raw, "path", options, folder=str(tmp_path))
    assert [row for row, _, _ in faults] == [2]
    assert isinstance(column, Bytes)
    assert opened(column[0]).size == (16, 16)
    assert column.present.tolist() == [True, False, True]


def test_resize_of_damaged_pixels_is_a_fault():
    data = picture("PNG", (64, 64))
    _, faults = encode(Image(), pa.array([data[:100]]), options=StoredImages(resize=16))
    assert mentions(faults[0][2], "image decoded")


def test_image_that_claims_too_many_pixels_is_not_decoded():
    data = picture("PNG", (100, 100))
    _, faults = encode(Image(), pa.array([data]), options=StoredImages(resize=16, max_pixels=9999))
    assert faults == [(0, ANY, containing(100, 100))]
