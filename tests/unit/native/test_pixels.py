"""Kernels for batches of images give what NumPy gives, with and without vector code."""

import numpy as np
import pytest
from PIL import Image, ImageOps

from each_case import each_case
from penstock import _native
from penstock.transform import Augment, Draws
from plain_images import augment_plainly
from raising import raises_with

SHAPES = [(1, 1), (1, 2), (2, 1), (3, 5), (7, 11), (8, 16), (9, 33), (20, 31), (5, 64)]


def images(num, height, width, channels, seed=0):
    rng = np.random.default_rng([seed, num, height, width, channels])
    return rng.integers(0, 256, (num, height, width, channels), np.uint8)


@pytest.mark.parametrize("channels", [1, 3, 4])
@each_case("orientation", range(1, 9))
@each_case(("height", "width"), SHAPES)
def test_orient_undoes_the_exif_orientation_as_pillow_does(orientation, channels, height, width):
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


SHARES = ("crop", "flip", "flip_down", "brightness", "contrast", "saturation", "cutout")
PURPOSES = ("crop", "flip", "brightness", "contrast", "saturation", "cutout")
CHANGES = {
    "shift": {"crop": 0.3},
    "shift by all but a pixel": {"crop": 1.0},
    "flips": {"flip": 0.5, "flip_down": 0.5},
    "brightness": {"brightness": 1.0},
    "contrast": {"contrast": 1.0},
    "colours": {"brightness": 0.3, "contrast": 0.5, "saturation": 1.0},
    "cutout": {"cutout": 0.6},
    "cutout of a side": {"cutout": 1.0},
    "all": dict.fromkeys(SHARES, 0.5),
}


def check_augment(batch, options, by_scalar):
    """Compare the kernel, with or without vector code, with the plain version of the tests."""
    fill = np.arange(50, 50 + batch.shape[3], dtype=np.uint8)
    draws = Draws(3, 1, np.arange(len(batch)))
    expected = augment_plainly(batch, Augment(**options), fill, draws)
    changes = tuple(options.get(name, 0.0) for name in SHARES)
    _native.augment(batch, changes, fill, draws.keys(*PURPOSES), by_scalar=by_scalar)
    np.testing.assert_array_equal(batch, expected)


@pytest.mark.parametrize("by_scalar", [False, True])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("changes", CHANGES)
def test_augment_is_the_plain_version_at_every_size(changes, channels, by_scalar):
    for height, width in [*SHAPES, *((5, width) for width in range(1, 45)), (60, 61), (5, 224)]:
        check_augment(images(6, height, width, channels), CHANGES[changes], by_scalar)


@pytest.mark.parametrize("by_scalar", [False, True])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_contrast_of_large_and_bright_images_is_about_their_mean(channels, by_scalar):
    for batch in (images(3, 300, 301, channels), np.full((3, 300, 301, channels), 255, np.uint8)):
        batch[0, :150] = 254
        check_augment(batch, CHANGES["contrast"], by_scalar)


def test_colours_leave_the_fourth_channel():
    batch = images(2, 9, 9, 4)
    alpha = batch[..., 3].copy()
    check_augment(batch, CHANGES["colours"], by_scalar=False)
    np.testing.assert_array_equal(batch[..., 3], alpha)


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


def test_augment_takes_batches_without_images():
    check_augment(np.zeros((0, 4, 4, 3), np.uint8), CHANGES["all"], by_scalar=False)


BATCH = np.zeros((2, 4, 5, 3), np.uint8)
FROZEN = np.zeros((2, 4, 5, 3), np.uint8)
FROZEN.flags.writeable = False
SHARE = (0.5,) * 7
KEYS = (7, 0, (1, 2, 3, 4, 5, 6), np.arange(2))
THREE = np.ones(3, np.float32)
BAD_CALLS = {
    "orientation 0": ("orient", (BATCH[0], BATCH[1], 0), "orientation 1 8 0"),
    "orientation 9": ("orient", (BATCH[0], BATCH[1], 9), "orientation 1 8 9"),
    "sides not swapped": ("orient", (BATCH[0], BATCH[1], 5), "out shape (5, 4, 3)"),
    "orient in place": ("orient", (BATCH[0], BATCH[0], 2), "out source"),
    "frozen images": ("augment", (FROZEN, SHARE, BATCH[0, 0, 0], KEYS), "images array"),
    "two channels": (
        "augment",
        (BATCH[..., :2].copy(), SHARE, BATCH[0, 0, 0], KEYS),
        "images 1 3 4 channels",
    ),
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
