"""Kernels for batches of images give what NumPy gives, with and without vector code."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from penstock import _native
from raising import raises_with

SHAPES = [(1, 1), (1, 2), (2, 1), (3, 5), (7, 11), (8, 16), (9, 33), (20, 31), (5, 64)]


def images(num, height, width, channels, seed=0):
    rng = np.random.default_rng([seed, num, height, width, channels])
    return rng.integers(0, 256, (num, height, width, channels), np.uint8)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize(("height", "width"), SHAPES)
def test_orient_undoes_what_exif_says_as_pillow_does(orientation, channels, height, width):
    source = images(1, height, width, channels)[0]
    planes = []
    for c in range(channels):
        image = Image.fromarray(source[..., c])
        image.getexif()[0x0112] = orientation
        planes.append(np.asarray(ImageOps.exif_transpose(image)))
    expected = np.stack(planes, axis=-1)
    out = np.zeros_like(expected)
    _native.orient(source, out, orientation)
    np.testing.assert_array_equal(out, expected)


def test_orient_takes_windows_of_larger_arrays():
    source = images(1, 40, 50, 3)[0][3:30, 4:44]
    canvas = np.full((60, 60, 3), 9, np.uint8)
    _native.orient(source, canvas[5:45, 6:33], 6)
    np.testing.assert_array_equal(canvas[5:45, 6:33], np.rot90(source, -1))
    canvas[5:45, 6:33] = 9
    assert (canvas == 9).all()


@pytest.mark.parametrize("by_scalar", [False, True])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("width", [*range(1, 45), 224])
def test_flip_mirrors_the_images_that_the_masks_name(width, channels, by_scalar):
    batch = images(4, 5, width, channels)
    across, down = np.array([0, 1, 0, 1], bool), np.array([0, 0, 1, 1], bool)
    expected = np.stack([batch[0], batch[1][:, ::-1], batch[2][::-1], batch[3][::-1, ::-1]])
    _native.flip(batch, across, down, by_scalar=by_scalar)
    np.testing.assert_array_equal(batch, expected)


@pytest.mark.parametrize("by_scalar", [False, True])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize(("height", "width"), [*SHAPES, (300, 301)])
def test_channel_means_are_exact(height, width, channels, by_scalar):
    for batch in (images(3, height, width, channels), np.full((2, height, width, channels), 255, np.uint8)):
        got = _native.channel_means(batch, by_scalar=by_scalar)
        expected = batch.sum(axis=(1, 2), dtype=np.uint64) / (height * width)
        assert got.dtype == np.float64
        np.testing.assert_array_equal(got, expected)


def recoloured(batch, matrices):
    """Return the sums in float32 from left to right."""
    side = matrices.shape[1]
    x = batch[..., :side].astype(np.float32)
    out = batch.copy()
    with np.errstate(all="ignore"):
        for row in range(side):
            m = matrices[:, row, :, None, None]
            total = m[:, 0] * x[..., 0]
            for column in range(1, side):
                total = total + m[:, column] * x[..., column]
            total = total + m[:, side]
            out[..., row] = np.rint(np.nan_to_num(total, nan=0.0).clip(0, 255)).astype(np.uint8)
    return out


@pytest.mark.parametrize("by_scalar", [False, True])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize(("height", "width"), [*SHAPES, (60, 61)])
def test_recolour_is_the_clipped_and_rounded_product(height, width, channels, by_scalar):
    rng = np.random.default_rng(height)
    side = 1 if channels == 1 else 3
    batch = images(6, height, width, channels)
    matrices = rng.normal(size=(6, side, side + 1)).astype(np.float32)
    matrices[..., side] *= 100
    matrices[2] = np.eye(side, side + 1)
    matrices[3] *= 1e36
    matrices[4, 0, 0] = np.nan
    matrices[5] = np.eye(side, side + 1) * 0.5
    expected = recoloured(batch, matrices)
    _native.recolour(batch, matrices, by_scalar=by_scalar)
    np.testing.assert_array_equal(batch, expected)


def test_recolour_rounds_halves_to_even():
    batch = np.arange(8, dtype=np.uint8).reshape(1, 1, 8, 1)
    _native.recolour(batch, np.array([[[0.5, 0.0]]], np.float32))
    assert batch.ravel().tolist() == [0, 0, 1, 2, 2, 2, 3, 4]


def test_recolour_leaves_the_fourth_channel():
    batch = images(2, 9, 9, 4)
    alpha = batch[..., 3].copy()
    _native.recolour(batch, np.zeros((2, 3, 4), np.float32))
    assert (batch[..., :3] == 0).all()
    np.testing.assert_array_equal(batch[..., 3], alpha)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_erase_paints_the_part_of_the_box_that_is_inside(channels):
    boxes = [(2, 3, 4, 5), (-2, -3, 4, 5), (8, 9, 400, 500), (0, 0, 0, 5), (3, 3, 2, -1), (-9, 0, 3, 3)]
    boxes += [(0, 0, 10, 12), (50, 0, 3, 3), (2**31 - 1, 0, 2**31 - 1, 3), (-(2**31), 0, 2**31 - 1, 3)]
    batch = images(len(boxes), 10, 12, channels)
    colour = np.arange(50, 50 + channels, dtype=np.uint8)
    expected = batch.copy()
    for image, (top, left, height, width) in zip(expected, boxes, strict=True):
        image[max(top, 0) : max(top + max(height, 0), 0), max(left, 0) : max(left + max(width, 0), 0)] = (
            colour
        )
    _native.erase(batch, np.array(boxes, np.int32), colour)
    np.testing.assert_array_equal(batch, expected)


@settings(max_examples=150)
@given(st.data())
def test_shift_reads_the_reflected_place(data):
    channels = data.draw(st.sampled_from([1, 3, 4]))
    height, width, num = (data.draw(st.integers(1, n)) for n in (12, 40, 3))
    batch = images(num, height, width, channels)
    pair = st.tuples(st.integers(1 - height, height - 1), st.integers(1 - width, width - 1))
    offsets = np.array(data.draw(st.lists(pair, min_size=num, max_size=num)), np.int32)
    out = np.zeros_like(batch)
    _native.shift(batch, out, offsets)
    for image, got, (rows, columns) in zip(batch, out, offsets, strict=True):
        padded = np.pad(image, ((height, height), (width, width), (0, 0)), "reflect")
        top, left = height + rows, width + columns
        np.testing.assert_array_equal(got, padded[top : top + height, left : left + width])


@pytest.mark.parametrize("by_scalar", [False, True])
@pytest.mark.parametrize(
    "shape",
    [(2, 5, 7, 3), (3, 4, 4), (9, 1), (7,), (1, 50, 3), (13, 5), (6, 24), (0, 3), (3, 0), (700001, 3)],
)
def test_scale_pixels_is_the_product_and_the_sum_of_float32(shape, by_scalar):
    rng = np.random.default_rng(1)
    batch = rng.integers(0, 256, shape, np.uint8)
    factor, offset = (rng.normal(size=shape[-1]).astype(np.float32) for _ in range(2))
    got = _native.scale_pixels(batch, factor, offset, by_scalar=by_scalar)
    assert (got.dtype, got.shape) == (np.float32, shape)
    assert got.ctypes.data % 64 == 0
    np.testing.assert_array_equal(got, batch.astype(np.float32) * factor + offset)


def test_kernels_take_batches_without_images():
    none = np.zeros((0, 4, 4, 3), np.uint8)
    mask = np.zeros(0, bool)
    _native.flip(none, mask, mask)
    _native.recolour(none, np.zeros((0, 3, 4), np.float32))
    _native.erase(none, np.zeros((0, 4), np.int32), np.zeros(3, np.uint8))
    _native.shift(none, none.copy(), np.zeros((0, 2), np.int32))
    assert _native.channel_means(none).shape == (0, 3)


BATCH = np.zeros((2, 4, 5, 3), np.uint8)
FROZEN = np.zeros((2, 4, 5, 3), np.uint8)
FROZEN.flags.writeable = False
MASK = np.zeros(2, bool)
THREE = np.ones(3, np.float32)
BAD_CALLS = {
    "orientation 0": ("orient", (BATCH[0], BATCH[1], 0), "orientation 1 8 0"),
    "orientation 9": ("orient", (BATCH[0], BATCH[1], 9), "orientation 1 8 9"),
    "sides not swapped": ("orient", (BATCH[0], BATCH[1], 5), "out shape (5, 4, 3)"),
    "orient in place": ("orient", (BATCH[0], BATCH[0], 2), "out source"),
    "one image": ("flip", (BATCH[0], MASK, MASK), "images 4 3"),
    "frozen images": ("flip", (FROZEN, MASK, MASK), "images array"),
    "a short mask": ("flip", (BATCH, MASK[:1], MASK), "across 2 rows 1"),
    "a mask of bytes": ("flip", (BATCH, MASK, MASK.view("u1")), "down array bool uint8"),
    "images apart": ("flip", (BATCH[:, ::2], MASK, MASK), "images array"),
    "two channels": ("channel_means", (BATCH[..., :2],), "images 1 3 4 channels"),
    "no pixels": ("channel_means", (BATCH[:, :0],), "images"),
    "a small matrix": ("recolour", (BATCH, np.zeros((2, 3, 3), "f4")), "matrices shape (2, 3, 4)"),
    "doubles": ("recolour", (BATCH, np.zeros((2, 3, 4))), "matrices array float32"),
    "one box": ("erase", (BATCH, np.zeros((1, 4), "i4"), BATCH[0, 0, 0]), "boxes shape (2, 4)"),
    "one colour": ("erase", (BATCH, np.zeros((2, 4), "i4"), BATCH[0, 0, 0, :1]), "colour shape (3,)"),
    "shift in place": ("shift", (BATCH, BATCH, np.zeros((2, 2), "i4")), "out images"),
    "shift to fewer": ("shift", (BATCH, FROZEN[:1].copy(), np.zeros((2, 2), "i4")), "out shape"),
    "too far": ("shift", (BATCH, BATCH.copy(), np.full((2, 2), 4, "i4")), "offsets less"),
    "factors": ("scale_pixels", (BATCH, THREE[:2], THREE), "factor shape (3,)"),
    "offsets": ("scale_pixels", (BATCH, THREE, THREE[:1]), "offset shape (3,)"),
    "floats": ("scale_pixels", (THREE, THREE, THREE), "images array uint8"),
    "columns": ("scale_pixels", (BATCH[..., ::2], THREE, THREE), "images array"),
    "a number": ("scale_pixels", (np.array(1, "u1"), THREE, THREE), "images 1 32"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_kernels_refuse_arguments_that_do_not_fit(case):
    name, arguments, text = BAD_CALLS[case]
    with raises_with(ValueError, text):
        getattr(_native, name)(*arguments)
