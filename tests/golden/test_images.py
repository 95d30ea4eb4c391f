"""Pixels of images as they are, for ever: in every size, and under the random changes of training.

A digest here that has to change means that a run which is resumed sees other images than it would have seen,
and that a fitted pipeline gives a model other pixels than it was trained on. Do not change one. JPEGs are not
here: their pixels are the decoder's, and may differ by 1 from one version of it to another.
"""

import hashlib

import numpy as np
import pytest

from fit_sources import fit, strings
from image_files import png
from penstock.fields import Image as ImageField
from penstock.transform import Draws, Image

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
    "stretch": "c3ee2868eae7a1ac4e05e938c909421e87a61695ad494bc7fc309cb10c0480b2",
    "pad": "12614b44fddf9febdc485fff558a9288eb915e09bd0dd558e8d3d413513c96e8",
    "crop": "8eb8de02d0e72655380ebe764d3d9ec37f233e72597f7383ad69e447d2927fbe",
    "random": "973e1a4f712eec4dc8d5b415bbae0d65fb49247e202247ad2b3c59b2092ad67d",
    "larger": "87be5062a4dd4f170610837781e03e6412f9998074ee8227e931f723f08db937",
    "aliased": "fcc99e1646b6031561fc95af732ca37a58e181d2fd79fd7d472d35786411a900",
    "grey": "e2b88cb95f653d8fd2278a9a9f03ac60062341d5cb6acfad6a799dab98b5f40b",
    "changed": "b812b3bc2c2562b78f75f1595c37ee7b4606576898602e9dcd307b5c4b006010",
    "drawn and changed": "3ea4ccc622341241b4aad540373831cb68e7bd8034a7c2fcfa7dda2b51dabac0",
    "floats": "135aa5b5c727965333544a98dbf2f9449a0b7976036f4a2cf95196a9d763f50c",
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
def test_pixels_do_not_change(form):
    transform = fit(Image(**{"size": (24, 28), **OPTIONS[form]}), ImageField(), IMAGES)
    arrays = [transform.apply("x", IMAGES, Draws(17, epoch, np.arange(6)))["x"] for epoch in range(4)]
    found = hashlib.sha256(b"".join(each.tobytes() for each in arrays)).hexdigest()
    assert found == DIGESTS[form]
