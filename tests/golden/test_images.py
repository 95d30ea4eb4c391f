"""Pixels of images as they are, for ever: in every size, and under the random changes of training.

A digest here that has to change means that a run which is resumed sees other images than it would have seen,
and that a fitted pipeline gives a model other pixels than it was trained on. Do not change one. JPEGs are not
here: their pixels are the decoder's, and may differ by 1 from one version of it to another.
"""

import hashlib

import numpy as np
import pytest

from fit_sources import fit, strings
from penstock.fields import Image as ImageField
from penstock.transform import Draws, Image
from pictures import png

EVERYTHING = {
    "flip": 0.5,
    "flip_down": 0.3,
    "crop": 0.2,
    "brightness": 0.3,
    "contrast": 0.4,
    "saturation": 0.5,
    "cutout": 0.3,
}


def picture(height: int, width: int, number: int):
    """Return a picture of whole numbers alone: ramps, and stripes that are hard to shrink."""
    down, across = np.mgrid[0:height, 0:width]
    red = down * 255 // height
    green = (across * across // 7 + 40 * number) % 256
    blue = (down * across + 31 * number) // 3 % 256
    return np.stack([red, green, blue], axis=2).astype(np.uint8)


IMAGES = strings([png(picture(40 + 9 * n, 90 - 7 * n, n)) for n in range(6)])

DIGESTS = {
    "stretch": "1846c07a1e357f94225fb566e61d50c795ea3dbe5c9f0001fb2f70203775ce8d",
    "pad": "9b1e4dbc31c970e0ddcca0aa964b788852690f1692ba73c5299b4ae466a7ff58",
    "crop": "c3de55898d0d3b5e8eea3fd475b4279e41e85c8c0df68a31e8953ef5eb6068e8",
    "random": "0adba62251d848e2a3be92cc7a855934d1b2031354627456ee3a388e585abd81",
    "larger": "3cfd5771caf0144e5ed9b1ebf01335c1d6624f1f963fdb891c3808efdb48d47f",
    "aliased": "67859481186a3ab650338de34dab78f463bf9ab6abdcc4c721a0ccc72f2ff54e",
    "grey": "e7a0603fb8b2e409b975e1e4070b455ae83dece1fe517b4f782c84a94333631a",
    "changed": "6f199bff87b1c25e996078f6459e84d6914122560f4e96b1016d56eead8a2b91",
    "drawn and changed": "3335e1f361faa1d2c8a3b7a891fe478a6709ba2cc4161dda25e8010611c832a5",
    "floats": "01af586d1f45dc2c7d5ad25f4618e28cc81ee056723dbd12f8a86d6a54b8a2c1",
}
OPTIONS = {
    "stretch": {},
    "pad": {"resize": "pad", "fill": (1, 2, 3)},
    "crop": {"resize": "crop"},
    "random": {"resize": "random"},
    "larger": {"size": (150, 133)},
    "aliased": {"antialias": False},
    "grey": {"channels": 1},
    "changed": {"augment": EVERYTHING, "fill": 100},
    "drawn and changed": {"resize": "random", "augment": EVERYTHING},
    "floats": {"dtype": "float32", "scale": 1 / 255, "mean": (0.5, 0.25, 0.125), "deviation": 0.5},
}


@pytest.mark.parametrize("form", OPTIONS)
def test_pixels_are_the_same_for_ever(form):
    transform = fit(Image(**{"size": (24, 28), **OPTIONS[form]}), ImageField(), IMAGES)
    arrays = [transform.apply("x", IMAGES, Draws(17, epoch, np.arange(6)))["x"] for epoch in range(4)]
    found = hashlib.sha256(b"".join(each.tobytes() for each in arrays)).hexdigest()
    assert found == DIGESTS[form]
