"""Thumbnails: small files that this project made, of images and of arrays in the shape of one."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from image_files import saved
from penstock.decode import thumbnail
from penstock.decode.pixels import PixelError
from penstock.decode.thumbnail import MAX_BYTES, decode_small, draw_array, make_thumbnail


def read(uri):
    kind, data = uri.removeprefix("data:image/").split(";base64,")
    return kind, Image.open(io.BytesIO(base64.b64decode(data)))


@pytest.mark.parametrize("form", ["jpeg", "png", "webp", "gif", "bmp"])
def test_every_format_is_decoded_and_written_again(form):
    kind, small = read(make_thumbnail(saved(np.full((40, 60, 3), 90, np.uint8), form)))
    assert (kind, small.size) == ("png", (60, 40))
    kind, large = read(make_thumbnail(saved(np.full((400, 600, 3), 90, np.uint8), form), 160))
    assert (kind, large.size) == ("webp", (160, 107))


def test_bytes_after_an_image_are_not_passed_on():
    photo = saved(np.zeros((8, 8, 3), np.uint8), "gif")
    assert b"<script>" not in base64.b64decode(make_thumbnail(photo + b"<script>").split(",")[1])


def test_noise_has_a_thumbnail_of_limited_size():
    noise = np.random.default_rng(0).integers(0, 256, (400, 600, 3), np.uint8)
    assert len(make_thumbnail(saved(noise, "jpeg"), 160)) < MAX_BYTES * 4 / 3 + 40
    assert make_thumbnail(saved(noise, "png"), 600) is None


@pytest.mark.parametrize("value", [b"", b"<svg onload=alert(1)>", b"GIF89a", None, "text", 3])
def test_value_that_is_not_an_image_has_no_thumbnail(value):
    assert make_thumbnail(value) is None


def test_damaged_and_huge_images_have_no_thumbnail(monkeypatch):
    photo = saved(np.full((40, 60, 3), 90, np.uint8), "png")
    assert make_thumbnail(photo[:-30]) is None
    monkeypatch.setattr(thumbnail, "MAX_PIXELS", 40 * 60 - 1)
    assert make_thumbnail(photo) is None
    with pytest.raises(PixelError):
        decode_small(photo, 160)


def test_arrays_are_drawn_from_their_lowest_to_their_highest_value():
    values = np.array([[0.0, 5.0], [10.0, np.nan]])
    assert draw_array(values, 10).tolist() == [[0, 127], [255, 0]]
    assert draw_array(np.array([[-1.7e308, 1.7e308]]), 10).tolist() == [[0, 255]]
    assert draw_array(np.array([[np.inf, 1.0], [2.0, -np.inf]]), 10).tolist() == [[0, 0], [255, 0]]
    assert draw_array(np.eye(2, dtype=np.bool_), 10).tolist() == [[255, 0], [0, 255]]
    colours = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    assert np.array_equal(draw_array(colours, 10), colours)
    assert draw_array(np.full((3, 3), 7.0), 10).tolist() == [[7] * 3] * 3


def test_large_arrays_are_averaged():
    stripes = np.tile(np.array([[0, 200]], np.uint8), (400, 200))
    assert np.abs(draw_array(stripes, 100).astype(int) - 100).max() <= 1
    assert draw_array(np.zeros((4000, 1000), np.float32), 160).shape == (160, 40)


def test_arrays_in_the_shape_of_an_image_have_a_thumbnail_and_others_have_none():
    assert read(make_thumbnail(np.linspace(-1, 1, 28 * 28).reshape(28, 28)))[1].size == (28, 28)
    assert read(make_thumbnail(np.zeros((30, 20, 4), np.uint8)))[1].size == (20, 30)
    for other in (np.zeros(9), np.zeros((3, 3)), np.zeros((9, 9, 2)), np.zeros((9, 9), "U1")):
        assert make_thumbnail(other) is None
