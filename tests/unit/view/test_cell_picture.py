"""Pictures: always files that the viewer made, of limited size."""

import io

import numpy as np
import pytest
from PIL import Image as PillowImage

from image_files import jpeg, png, saved, scene
from penstock.decode import thumbnail
from penstock.decode.pixels import PixelError
from penstock.schema.array import Tensor
from penstock.schema.scalar import Image, Number
from penstock.view import cell as module
from penstock.view.cell import draw_picture


def drawn(field, value, size="small"):
    data = draw_picture(field, value, size)
    assert data.startswith(b"\x89PNG")
    return PillowImage.open(io.BytesIO(data))


@pytest.mark.parametrize("write", [png, jpeg])
def test_small_image_keeps_its_size_and_a_large_one_its_ratio(write):
    assert drawn(Image(), write(scene(40, 60))).size == (60, 40)
    assert drawn(Image(), write(scene(600, 300))).size == (112, 224)
    assert drawn(Image(), write(scene(600, 300)), "large").size == (300, 600)


def test_pixels_equal_pixels_of_the_image():
    pixels = scene(20, 30)
    assert np.array_equal(np.asarray(drawn(Image(), png(pixels))), pixels)


def test_image_with_too_many_pixels_is_refused_by_its_header(monkeypatch):
    monkeypatch.setattr(thumbnail, "MAX_PIXELS", 100)
    with pytest.raises(PixelError) as caught:
        draw_picture(Image(), png(scene(11, 10)), "small")
    assert "100" in caught.value.expected


@pytest.mark.parametrize(
    "value", [b"", b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>", png(scene())[:200]]
)
def test_bytes_that_are_no_complete_image_are_refused(value):
    with pytest.raises(PixelError):
        draw_picture(Image(), value, "small")


def test_arrays_in_the_shape_of_a_picture_are_drawn():
    colours = np.arange(192, dtype=np.uint8).reshape(8, 8, 3)
    assert np.array_equal(np.asarray(drawn(Tensor((8, 8, 3), "uint8"), colours)), colours)
    assert drawn(Tensor((448, 10, 1), "uint8"), np.zeros((448, 10, 1), np.uint8)).size == (5, 224)


@pytest.mark.parametrize("format", ["png", "gif", "webp"])
def test_formats_that_need_much_memory_have_separate_limits(monkeypatch, format):
    monkeypatch.setitem(module.MAX_PIXELS, format, 300)
    value = saved(scene(20, 20), format.upper())
    with pytest.raises(PixelError) as caught:
        draw_picture(Image(), value, "small")
    assert (caught.value.got, "300" in caught.value.expected) == ("20 x 20", True)
    monkeypatch.setitem(module.MAX_PIXELS, format, 400)
    assert draw_picture(Image(), value, "small").startswith(b"\x89PNG")


def test_other_fields_have_no_picture():
    with pytest.raises(PixelError):
        draw_picture(Number(), 3, "small")
