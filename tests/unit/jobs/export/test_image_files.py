"""Files that the check of an export makes: sound, of the kind that their description names, all different."""

import io
import re

import numpy as np
import pytest
from PIL import Image

from penstock.jobs.export.check_rows import CheckImages
from penstock.jobs.export.image_files import make_jpegs, make_pngs

pytest.importorskip("simplejpeg")
FILES = dict([*make_pngs(), *make_jpegs((125, 95))])
MODES = {"gray with alpha, 8": "LA", "RGB with alpha, 8": "RGBA", "palette, 4": "P", "RGB, 8": "RGB"}


def test_every_kind_is_made_once():
    assert len(FILES) == len([*make_pngs(), *make_jpegs((125, 95))]) == 79
    assert len(set(FILES.values())) == 79
    assert len(dict(make_jpegs(None))) == len(dict(make_jpegs((125, 95)))) - 3


@pytest.mark.parametrize("kind", FILES)
def test_file_is_of_the_kind_that_its_description_names(kind):
    with Image.open(io.BytesIO(FILES[kind])) as image:
        image.load()
        assert image.format == ("PNG" if "PNG" in kind else "JPEG")
        assert image.size == ((95, 125) if "large" in kind else (24, 16))
        orientation = re.search(r"orientation (\d)", kind)
        assert image.getexif().get(0x0112) == (int(orientation[1]) if orientation else None)
        assert bool(image.info.get("interlace")) == ("interlaced" in kind)
        assert ("transparency" in image.info) == ("transparent" in kind)
        assert (image.mode == "CMYK") == ("CMYK" in kind or "YCCK" in kind)
        for part, mode in MODES.items():
            assert f"({part} bits" not in kind or image.mode == mode


def test_kind_that_differs_most_is_found_in_any_batch():
    images = CheckImages(None, {"photo": ["one", "two", "three"]})
    batches = [np.zeros((2, 1, 1, 3), np.uint8), np.zeros((1, 1, 1, 3), np.uint8)]
    found = [each.copy() for each in batches]
    assert images.find_worst("photo", batches, found, 1.0) == ("one", 0.0)
    found[0][1, 0, 0, 2], found[1][0, 0, 0, 0] = 3, 200
    assert images.find_worst("photo", batches, found, 1.0) == ("three", 200.0)
    assert images.find_worst("photo", batches, found, np.array([100, 1, 0.01])) == ("two", 300.0)
    assert images.find_worst("photo", batches, found[:1], 1.0) == ("one", np.inf)
