"""Which part of an image is used, and where it goes: the core against the plain version."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from image_files import segment
from penstock import _native
from penstock.transform import Draws
from plain_images import Frame, choose_draft, draw_boxes, make_frame, power

SIDES = st.integers(1, 3000)
RESIZINGS = {"stretch": 0, "pad": 1, "crop": 2}
ALL = ((1.0, 1.0), (1.0, 1.0))


def draws(count, seed=7, epoch=0):
    return Draws(seed, epoch, np.arange(count))


def plan(images, size, resizing="stretch", crop=None, draft=True):
    """Return the plan of JPEGs of some sizes that have nothing but a header."""
    files = [
        b"\xff\xd8" + segment(0xC0, bytes([8, *divmod(height, 256), *divmod(width, 256), 1, 1, 17, 0]))
        for height, width in images
    ]
    sizes = np.array([len(file) for file in files], np.int64)
    stops = np.cumsum(sizes)
    starts = stops - sizes
    arena = np.frombuffer(b"".join(files), np.uint8)
    rules = (1, 2, 10**8, True, *size, RESIZINGS[resizing], True, draft, np.zeros(1, np.uint8))
    return _native.ImagePlan(rules, None, (arena, starts, stops), None, crop, False)


def frame(image, size, resizing="stretch"):
    """Return the frame of one image, and the denominator of its draft."""
    box, window, denominator = plan([image], size, resizing).frame(0)
    return Frame(box, window), denominator


def boxes_of(images, given, purpose, area, aspect):
    """Return the random crops of images."""
    made = plan(images, (8, 8), "crop", (given.keys(purpose), (*area, *aspect)), draft=False)
    assert made.faults() == []
    assert all(made.frame(row)[1] == (0, 0, 8, 8) for row in range(len(images)))
    return np.array([made.frame(row)[0] for row in range(len(images))]).reshape(-1, 4)


def test_stretch_takes_all_and_fills_all():
    assert frame((30, 50), (8, 9))[0] == Frame((0.0, 0.0, 30.0, 50.0), (0, 0, 8, 9))


@pytest.mark.parametrize(
    ("image", "window"),
    [
        ((100, 200), (2, 0, 4, 8)),  # wide: rows are padded above and below
        ((200, 100), (0, 2, 8, 4)),
        ((64, 64), (0, 0, 8, 8)),
        ((2, 2), (0, 0, 8, 8)),  # small ones grow
        ((100, 267), (2, 0, 3, 8)),  # what cannot be halved is one longer below
        ((1, 3000), (3, 0, 1, 8)),  # never nothing
    ],
)
def test_fit_takes_all_in_the_middle_of_the_padding(image, window):
    assert frame(image, (8, 8), "pad")[0] == Frame((0.0, 0.0, float(image[0]), float(image[1])), window)


@pytest.mark.parametrize(
    ("image", "size", "box"),
    [
        ((100, 200), (8, 8), (0, 50, 100, 100)),
        ((200, 100), (8, 8), (50, 0, 100, 100)),
        ((64, 64), (8, 8), (0, 0, 64, 64)),
        ((100, 100), (4, 8), (25, 0, 50, 100)),
        ((100, 101), (8, 8), (0, 0.5, 100, 100)),
    ],
)
def test_cover_takes_the_largest_part_from_the_middle(image, size, box):
    assert frame(image, size, "crop")[0] == Frame(pytest.approx(box), (0, 0, *size))


@given(st.tuples(SIDES, SIDES), st.tuples(st.integers(1, 300), st.integers(1, 300)))
def test_frames_lie_within_image_and_output(image, size):
    for resizing in RESIZINGS:
        found, denominator = frame(image, size, resizing)
        assert (found, denominator) == (make_frame(image, size, resizing), choose_draft(found))
        box, window = found
        for start, length, whole in ((box[0], box[2], image[0]), (box[1], box[3], image[1])):
            assert start >= 0
            assert length > 0
            assert start + length <= whole * (1 + 1e-12)
        for start, length, whole in ((window[0], window[2], size[0]), (window[1], window[3], size[1])):
            assert 0 <= start <= start + length <= whole
            assert length >= 1
    kept = frame(image, size, "crop")[0].box
    assert kept[2] == pytest.approx(image[0]) or kept[3] == pytest.approx(image[1])
    assert kept[3] / kept[2] == pytest.approx(size[1] / size[0])


@pytest.mark.parametrize(
    ("image", "denominator"),
    [((24, 24), 2), ((23, 24), 1), ((47, 48), 2), ((48, 48), 4), ((96, 96), 8), ((5000, 96), 8), ((9, 9), 1)],
)
def test_draft_stays_half_as_large_again_as_the_output(image, denominator):
    assert frame(image, (8, 8))[1] == denominator


def test_draft_goes_by_the_part_that_is_used():
    assert frame((48, 480), (8, 8), "crop")[1] == 4
    assert frame((48, 480), (8, 8), "pad")[1] == 8  # 480 columns become eight, and 48 rows one
    made = plan([(48, 480)], (8, 8), "crop", (draws(1).keys("box"), (1.0, 1.0, 10.0, 10.0)))
    assert made.frame(0) == ((0.0, 0.0, 48.0, 480.0), (0, 0, 8, 8), 4)


def test_draft_is_for_jpegs_that_may_have_one():
    assert plan([(96, 96)], (8, 8), draft=False).frame(0)[2] == 1
    made = _native.ImagePlan(
        (1, 2, 10**8, True, 8, 8, 0, True, True, np.zeros(1, np.uint8)),
        [np.zeros((96, 96, 1), np.uint8)],
        None,
        None,
        (draws(1).keys("box"), (1.0, 1.0, 1.0, 1.0)),
        False,
    )
    assert made.frame(0) == ((0.0, 0.0, 96.0, 96.0), (0, 0, 8, 8), 1)


def test_boxes_are_whole_pixels_within_the_image_and_the_ranges():
    boxes = boxes_of([(300, 400)] * 4000, draws(4000), "box", (0.2, 0.5), (0.5, 2.0))
    assert boxes.shape == (4000, 4)
    assert (boxes == np.rint(boxes)).all()
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 0] + boxes[:, 2] <= 300).all()
    assert (boxes[:, 1] + boxes[:, 3] <= 400).all()
    area = boxes[:, 2] * boxes[:, 3] / (300 * 400)
    ratio = boxes[:, 3] / boxes[:, 2]
    assert 0.195 < area.min() < 0.21
    assert 0.49 < area.max() < 0.505
    assert 0.49 < ratio.min() < 0.52
    assert 1.9 < ratio.max() < 2.02
    # As likely twice as wide as half as wide; and anywhere, also in the last row and column.
    assert np.mean(ratio > 1) == pytest.approx(0.5, abs=0.04)
    assert (boxes[:, 0] == 0).any()
    assert (boxes[:, 0] + boxes[:, 2] == 300).any()
    assert (boxes[:, 1] + boxes[:, 3] == 400).any()


def test_boxes_of_all_of_a_square_are_all_of_it():
    boxes = boxes_of([(17, 17)] * 5, draws(5), "box", *ALL)
    assert boxes.tolist() == [[0, 0, 17, 17]] * 5


@pytest.mark.parametrize(
    ("image", "box"),
    [
        ([10, 1000], [0, 493, 10, 13]),  # four thirds as wide as high, from the middle
        ([1000, 10], [493, 0, 13, 10]),
        ([1, 1], [0, 0, 1, 1]),
        ([1, 3000], [0, 1499, 1, 1]),
    ],
)
def test_box_of_an_image_that_no_try_fits_is_its_middle(image, box):
    boxes = boxes_of([image] * 3, draws(3), "box", (0.9, 1.0), (3 / 4, 4 / 3))
    assert boxes.tolist() == [box] * 3


def test_boxes_depend_on_seed_epoch_record_and_image_alone():
    images = [(30, 40), (50, 20), (300, 400)]
    options = ((0.08, 1.0), (3 / 4, 4 / 3))
    together = boxes_of(images, draws(3), "box", *options)
    for row in (2, 0, 1):
        alone = boxes_of([images[row]], Draws(7, 0, np.array([row])), "box", *options)
        assert alone[0].tolist() == together[row].tolist()
    for other in (draws(3, seed=8), draws(3, epoch=1), draws(3).within("other")):
        assert (boxes_of(images, other, "box", *options) != together).any(axis=1).all()
    assert (boxes_of(images, draws(3), "another", *options) != together).any()


@given(
    st.lists(st.tuples(SIDES, SIDES), max_size=20),
    st.tuples(st.floats(0.001, 1), st.floats(0.001, 1)).map(sorted),
    st.tuples(st.floats(0.001, 1000), st.floats(0.001, 1000)).map(sorted),
    st.integers(0, 2**32),
)
def test_boxes_equal_boxes_of_the_plain_version(images, area, aspect, seed):
    given = draws(len(images), seed=seed)
    wanted = draw_boxes(given, "box", np.array(images, np.int64).reshape(-1, 2), tuple(area), tuple(aspect))
    assert np.array_equal(boxes_of(images, given, "box", area, aspect), wanted)


@given(st.floats(0.001, 1000), st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=9))
def test_ratios_are_powers(base, exponents):
    found = power(base, np.array(exponents))
    assert found == pytest.approx([base**each for each in exponents], rel=abs(math.log(base)) * 2e-5 + 1e-12)
