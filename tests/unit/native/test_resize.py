"""Resized pixels equal Pillow within about one level, with and without vector code the same bytes."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from each_case import each_case
from penstock import _native
from raising import raises_with

MODES = {1: "L", 3: "RGB", 4: "RGBX"}


def picture(height, width, channels=3, seed=0):
    """Return pixels with soft shapes, noise and hard edges."""
    rng = np.random.default_rng([seed, height, width, channels])
    y, x = np.ogrid[:height, :width]
    shapes = [np.sin(y / (5 + 3 * c)) + np.cos(x / (4 + 5 * c)) for c in range(channels)]
    pixels = np.stack(shapes, axis=-1) * 60 + 128 + rng.normal(size=(height, width, channels)) * 10
    pixels[height // 3 : height // 2, width // 4 : width // 2] = 255
    return pixels.clip(0, 255).astype(np.uint8)


def resized(source, height, width, *, box=None, antialias=True):
    """Return the pixels by vector code after a look at those without it."""
    box = (0.0, 0.0, *map(float, source.shape[:2])) if box is None else box
    out = np.full((height, width, source.shape[2]), 7, np.uint8)
    plain = out.copy()
    _native.resize(source, out, box, antialias)
    _native.resize(source, plain, box, antialias, by_scalar=True)
    np.testing.assert_array_equal(out, plain)
    return out


def by_pillow(source, height, width, box=None):
    channels = source.shape[2]
    size = (source.shape[1], source.shape[0])
    image = Image.frombytes(MODES[channels], size, source.tobytes(), "raw", MODES[channels])
    if box is not None:
        top, left, tall, wide = box
        box = (left, top, left + wide, top + tall)
    image = image.resize((width, height), Image.Resampling.BILINEAR, box=box)
    return np.frombuffer(image.tobytes(), np.uint8).reshape(height, width, channels)


def weights(source, start, extent, out, antialias):
    """Return the matrix of one side, by its definition."""
    scale = extent / out
    reach = max(scale, 1.0) if antialias else 1.0
    center = start + (np.arange(out)[:, None] + 0.5) * scale
    matrix = np.maximum(0.0, 1.0 - np.abs(np.arange(source) + 0.5 - center) / reach)
    return matrix / matrix.sum(axis=1, keepdims=True)


def by_definition(source, height, width, box=None, *, antialias):
    top, left, tall, wide = (0, 0, *source.shape[:2]) if box is None else box
    rows = weights(source.shape[0], top, tall, height, antialias)
    columns = weights(source.shape[1], left, wide, width, antialias)
    return np.einsum("yh,hwc,xw->yxc", rows, source.astype(np.float64), columns, optimize=True)


def difference(a, b):
    return np.abs(a.astype(np.float64) - b.astype(np.float64))


SIZES = [
    (375, 500, 224, 224),
    (448, 448, 224, 224),
    (256, 256, 224, 224),
    (60, 90, 224, 200),
    (224, 300, 224, 224),
    (300, 224, 224, 224),
    (97, 1031, 31, 37),
    (700, 9, 5, 3),
    (5, 700, 3, 11),
    (2, 2, 5, 7),
    (1, 1, 4, 4),
    (33, 41, 1, 1),
]


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize(("height", "width", "tall", "wide"), SIZES)
def test_antialiased_pixels_are_within_a_level_of_pillow(height, width, tall, wide, channels):
    source = picture(height, width, channels)
    off = difference(resized(source, tall, wide), by_pillow(source, tall, wide))
    assert off.max() <= 2
    assert off.mean() < 0.3


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("antialias", [True, False])
@each_case(("height", "width", "tall", "wide"), SIZES)
def test_pixels_are_within_rounding_of_the_definition(height, width, tall, wide, channels, antialias):
    source = picture(height, width, channels, seed=1)
    got = resized(source, tall, wide, antialias=antialias)
    assert difference(got, by_definition(source, tall, wide, antialias=antialias)).max() < 1.05


@pytest.mark.parametrize("antialias", [True, False])
def test_noise_is_within_rounding_of_the_definition(antialias):
    source = np.random.default_rng(2).integers(0, 2, (375, 500, 3), np.uint8) * 255
    off = difference(
        resized(source, 224, 224, antialias=antialias),
        by_definition(source, 224, 224, antialias=antialias),
    )
    assert off.max() < 1.05


BOXES = [
    (0.0, 0.0, 60.0, 80.0),
    (10.0, 20.0, 30.0, 40.0),
    (0.5, 0.25, 59.5, 79.75),
    (33.3, 41.7, 11.1, 22.2),
    (59.0, 79.0, 1.0, 1.0),
    (10.2, 3.7, 0.01, 0.5),
    (0.0, 0.0, 1.0, 80.0),
    (0.1 + 0.2, 0.0, 59.7, 80.0),
]


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("size", [(17, 13), (60, 80), (90, 200)])
def test_box_equals_pillow(box, size):
    source = picture(60, 80)
    got = resized(source, *size, box=box)
    exact = (box[0], box[1], min(box[2], 60 - box[0]), min(box[3], 80 - box[1]))
    off = difference(got, by_pillow(source, *size, box=exact))
    assert off.max() <= 2
    assert off.mean() < 0.35
    plain = resized(source, *size, box=box, antialias=False)
    assert difference(plain, by_definition(source, *size, box=box, antialias=False)).max() < 1.05


@settings(max_examples=150)
@given(st.data())
def test_any_box_and_size_is_within_rounding_of_the_definition(data):
    channels = data.draw(st.sampled_from([1, 3, 4]))
    height, width, tall, wide = (data.draw(st.integers(1, 70)) for _ in range(4))
    antialias = data.draw(st.booleans())
    source = picture(height, width, channels)
    top, left = (data.draw(st.floats(0, side, exclude_max=True)) for side in (height, width))
    share = st.floats(1e-3, 1)
    box = (top, left, (height - top) * data.draw(share), (width - left) * data.draw(share))
    got = resized(source, tall, wide, box=box, antialias=antialias)
    assert difference(got, by_definition(source, tall, wide, box, antialias=antialias)).max() < 1.05


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("antialias", [True, False])
def test_the_same_size_gives_the_same_pixels(channels, antialias):
    source = picture(37, 53, channels)
    np.testing.assert_array_equal(resized(source, 37, 53, antialias=antialias), source)
    part = resized(source, 20, 30, box=(5.0, 7.0, 20.0, 30.0), antialias=antialias)
    np.testing.assert_array_equal(part, source[5:25, 7:37])


@pytest.mark.parametrize("level", [0, 1, 127, 128, 254, 255])
@pytest.mark.parametrize(
    ("height", "width"), [(300, 500), (7, 9), (128 * 8, 3), (3, 128 * 8), (2100, 5), (5, 2100)]
)
def test_one_colour_stays_that_colour(level, height, width):
    source = np.full((height, width, 3), level, np.uint8)
    for antialias in (True, False):
        assert (resized(source, 16, 16, antialias=antialias) == level).all()


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize(
    ("height", "width", "tall", "wide"),
    [(12000, 4, 1, 1), (4, 12000, 1, 1), (12000, 3, 2, 5), (3, 12000, 5, 2), (1300, 300, 10, 2)],
)
def test_very_large_scales_do_not_overflow(height, width, tall, wide, channels):
    source = picture(height, width, channels)
    got = resized(source, tall, wide)
    assert difference(got, by_definition(source, tall, wide, antialias=True)).max() < 1.05
    assert (resized(np.full_like(source, 255), tall, wide) == 255).all()


def test_a_row_of_a_million_pixels_becomes_one():
    source = np.zeros((1, 1 << 20, 1), np.uint8)
    source[:, 1 << 19 :] = 255
    assert resized(source, 1, 1).tolist() == [[[128]]]
    assert resized(source, 1, 2)[0, :, 0].tolist() == [36, 219]


def test_plain_interpolation_of_half_pixel_centres_clamps_at_the_edges():
    source = np.array([[[0], [100]]], np.uint8)
    assert resized(source, 1, 4, antialias=False)[0, :, 0].tolist() == [0, 25, 75, 100]
    source = np.arange(0, 160, 10, dtype=np.uint8).reshape(1, 16, 1)
    assert resized(source, 1, 4, antialias=False)[0, :, 0].tolist() == [15, 55, 95, 135]
    assert resized(source, 1, 4, antialias=True)[0, :, 0].tolist() != [15, 55, 95, 135]


@pytest.mark.parametrize("channels", [1, 3, 4])
@each_case("width", range(1, 36))
def test_nothing_is_written_beside_a_window_of_a_larger_array(width, channels):
    source = picture(30, 40, channels)
    canvas = np.full((20, width + 9, channels), 201, np.uint8)
    window = canvas[3:14, 4 : 4 + width]
    _native.resize(source, window, (0.0, 0.0, 30.0, 40.0), True)
    np.testing.assert_array_equal(window, resized(source, 11, width))
    canvas[3:14, 4 : 4 + width] = 201
    assert (canvas == 201).all()


def test_threads_with_other_sizes_do_not_disturb_each_other():
    sources = [picture(60 + n, 90 - n) for n in range(8)]
    expected = [resized(source, 31, 33) for source in sources]
    with ThreadPoolExecutor(4) as pool:
        got = pool.map(lambda n: resized(sources[n % 8], 31, 33), range(200))
        for n, pixels in enumerate(got):
            np.testing.assert_array_equal(pixels, expected[n % 8])


def test_rows_of_the_source_may_lie_apart_or_upside_down():
    source = picture(40, 60)
    expected = resized(np.ascontiguousarray(source[::2, 5:45]), 11, 13)
    np.testing.assert_array_equal(resized(source[::2, 5:45], 11, 13), expected)
    upside_down = resized(source[::-1], 11, 13)
    np.testing.assert_array_equal(upside_down, resized(np.ascontiguousarray(source[::-1]), 11, 13))


GOOD = np.zeros((4, 6, 3), np.uint8)
OUT = np.zeros((2, 2, 3), np.uint8)
FROZEN = np.zeros((2, 2, 3), np.uint8)
FROZEN.flags.writeable = False
WHOLE = (0.0, 0.0, 4.0, 6.0)
NAN = float("nan")
BAD_CALLS = {
    "floats": (np.zeros((4, 6, 3), "f4"), OUT, WHOLE, "source array uint8"),
    "signed bytes": (GOOD.view(np.int8), OUT, WHOLE, "source array uint8"),
    "a matrix": (GOOD[..., 0], OUT, WHOLE, "source 3 2"),
    "two channels": (GOOD[..., :2], OUT, WHOLE, "source 1 3 4 channels"),
    "no rows": (GOOD[:0], OUT, WHOLE, "source"),
    "no columns": (GOOD, OUT[:, :0], WHOLE, "out"),
    "gaps between pixels": (GOOD[:, ::2], OUT, WHOLE, "source pixels"),
    "mirrored": (GOOD[:, ::-1], OUT, WHOLE, "source pixels"),
    "planes": (np.zeros((3, 4, 6), "u1").transpose(1, 2, 0), OUT, WHOLE, "source pixels"),
    "one row repeated": (np.broadcast_to(GOOD[:1], (4, 6, 3)), OUT, WHOLE, "source rows"),
    "a long side": (np.zeros((1, (1 << 20) + 1, 1), "u1"), OUT, WHOLE, "source"),
    "a frozen": (GOOD, FROZEN, WHOLE, "out array"),
    "other channels": (GOOD, np.zeros((2, 2, 1), np.uint8), WHOLE, "out 3 channels source 1"),
    "itself": (GOOD, GOOD, WHOLE, "out source"),
    "a part of itself": (GOOD, GOOD[1:3], WHOLE, "out source"),
    "three numbers": (GOOD, OUT, (0.0, 0.0, 1.0), "box height width"),
    "no height": (GOOD, OUT, (0.0, 0.0, 0.0, 1.0), "box height width 0"),
    "NaN": (GOOD, OUT, (0.0, 0.0, NAN, 1.0), "box height width 0"),
    "NaN top": (GOOD, OUT, (NAN, 0.0, 1.0, 1.0), "box source 4 rows"),
    "too far up": (GOOD, OUT, (-0.1, 0.0, 1.0, 1.0), "box"),
    "too far down": (GOOD, OUT, (1.0, 0.0, 3.1, 1.0), "box"),
    "too far right": (GOOD, OUT, (0.0, 5.5, 1.0, 1.0), "box"),
    "infinite": (GOOD, OUT, (0.0, 0.0, float("inf"), 1.0), "box"),
    "sides swapped": (GOOD, OUT, (0.0, 0.0, 6.0, 4.0), "box"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_resize_refuses_arguments_that_do_not_fit(case):
    source, out, box, text = BAD_CALLS[case]
    with raises_with(ValueError, text):
        _native.resize(source, out, box, True)


def test_resize_refuses_values_that_are_not_arrays():
    with pytest.raises(TypeError):
        _native.resize([1, 2], OUT, WHOLE, True)
    with raises_with(ValueError, "source 3 1"):
        _native.resize(b"abc", OUT, WHOLE, True)
