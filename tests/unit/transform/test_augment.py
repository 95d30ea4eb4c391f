"""Random changes of images: values by their formulas, and independence of everything but the record."""

from dataclasses import replace

import numpy as np
import pytest

from image_files import scene
from penstock.errors import OptionError, SchemaError
from penstock.foundation.json_form import JsonValue
from penstock.transform import Augment, Draws
from penstock.transform.augment import load_augment
from penstock.transform.base import PIPELINE
from plain_images import (
    GREY,
    augment_plainly,
    brightness,
    brightness_of,
    combine,
    contrast,
    saturation,
    scaled_maps,
)
from raising import mentions, raises_with

COUNT = 64
FILL = {1: [9], 3: [9, 8, 7], 4: [9, 8, 7, 6]}


@pytest.fixture(params=[1, 3, 4])
def images(request):
    return np.stack([scene(20, 26, seed, request.param) for seed in range(COUNT)])


def draws(count=COUNT, seed=5, epoch=0, **options):
    return Draws(seed, epoch, np.arange(count), **options)


def run(images, given=None, **options):
    """Return images augmented, those given unchanged; the plain version must give the same."""
    fill = np.array(FILL[images.shape[3]], np.uint8)
    given = given or draws(len(images))
    augment, changed = Augment(**options), images.copy()
    augment.apply(changed, fill, given)
    assert np.array_equal(changed, augment_plainly(images, augment, fill, given))
    return changed


def colours(images, function):
    """Return what a function of colours as floats makes of images, rounded; alpha is no colour."""
    wanted = images.copy()
    count = min(images.shape[3], 3)
    wanted[..., :count] = np.clip(np.rint(function(images[..., :count].astype(np.float64))), 0, 255)
    return wanted


def check_close(found, wanted):
    """Compare pixels; sums in float32 may fall on the other side of a half."""
    difference = np.abs(found.astype(int) - wanted.astype(int))
    assert difference.max() <= 1
    assert difference.mean() < 0.005


def test_nothing_asked_for_changes_nothing(images):
    assert np.array_equal(run(images), images)
    assert np.array_equal(run(images, area=(0.5, 0.6)), images)  # those are for resize="random"


@pytest.mark.parametrize(("name", "axis"), [("flip", 2), ("flip_down", 1)])
def test_flips_mirror_as_often_as_they_are_likely(images, name, axis):
    mirrored = np.flip(images, axis)
    assert np.array_equal(run(images, **{name: 1.0}), mirrored)
    found = run(images, **{name: 0.25})
    is_mirrored = (found == mirrored).all(axis=(1, 2, 3))
    assert ((found == images).all(axis=(1, 2, 3)) ^ is_mirrored).all()
    assert 4 < is_mirrored.sum() < 32


def test_both_flips_are_drawn_apart(images):
    found = run(images, flip=0.5, flip_down=0.5)
    forms = {}
    for down in (1, -1):
        for across in (1, -1):
            same = (found == images[:, ::down, ::across]).all(axis=(1, 2, 3))
            forms[down, across] = int(same.sum())
    assert sum(forms.values()) == COUNT
    assert min(forms.values()) > 4


def test_brightness_adds_the_same_to_every_colour(images):
    added = (2 * draws().uniform("brightness") - 1) * 0.3 * 255
    check_close(run(images, brightness=0.3), colours(images, lambda x: x + added[:, None, None, None]))
    assert added.min() < -60
    assert added.max() > 60


def mean_brightness(images):
    means = images.astype(np.float64).mean(axis=(1, 2))
    return means[:, 0] if images.shape[3] == 1 else means[:, :3] @ [0.299, 0.587, 0.114]


def test_contrast_scales_about_the_mean_brightness_of_the_image(images):
    factors = (1 + (2 * draws().uniform("contrast") - 1) * 0.4)[:, None, None, None]
    middle = mean_brightness(images)[:, None, None, None]
    check_close(run(images, contrast=0.4), colours(images, lambda x: middle + factors * (x - middle)))


def test_saturation_scales_about_the_grey_of_the_pixel(images):
    factors = (1 + (2 * draws().uniform("saturation") - 1) * 0.6)[:, None, None, None]

    def saturate(x):
        if x.shape[3] == 1:
            return x
        own = (x @ [0.299, 0.587, 0.114])[..., None]
        return own + factors * (x - own)

    check_close(run(images, saturation=0.6), colours(images, saturate))


def test_colours_together_are_one_map_rounded_once(images):
    given = draws()
    added = ((2 * given.uniform("brightness") - 1) * 0.2 * 255)[:, None, None, None]
    factors = (1 + (2 * given.uniform("contrast") - 1) * 0.3)[:, None, None, None]
    saturations = (1 + (2 * given.uniform("saturation") - 1) * 0.4)[:, None, None, None]
    middle = mean_brightness(images)[:, None, None, None] + added

    def change(x):
        x = middle + factors * (x + added - middle)
        if x.shape[3] == 1:
            return x
        own = (x @ [0.299, 0.587, 0.114])[..., None]
        return own + saturations * (x - own)

    check_close(run(images, brightness=0.2, contrast=0.3, saturation=0.4), colours(images, change))


def test_crop_moves_each_image_over_its_own_reflection(images):
    height, width = images.shape[1:3]
    reach = [round(height * 0.2), round(width * 0.2)]
    padded = np.pad(images, [(0, 0), (reach[0],) * 2, (reach[1],) * 2, (0, 0)], "reflect")
    offsets = np.floor(draws().uniform("crop", (2,)) * (2 * np.array(reach) + 1)).astype(int)
    found = run(images, crop=0.2)
    for row, (down, across) in enumerate(offsets):
        wanted = padded[row, down : down + height, across : across + width]
        assert np.array_equal(found[row], wanted)
    for axis in (0, 1):  # all the way, both ways
        assert (offsets[:, axis].min(), offsets[:, axis].max()) == (0, 2 * reach[axis])


def test_crop_of_a_whole_side_is_one_pixel_less():
    images = np.stack([scene(3, 4, seed) for seed in range(COUNT)])
    padded = np.pad(images, [(0, 0), (2, 2), (3, 3), (0, 0)], "reflect")
    offsets = np.floor(draws().uniform("crop", (2,)) * [5, 7]).astype(int)
    found = run(images, crop=1.0)
    for row, (down, across) in enumerate(offsets):
        assert np.array_equal(found[row], padded[row, down : down + 3, across : across + 4])


def test_crop_of_one_pixel_changes_nothing():
    images = scene(1, 1)[None].repeat(3, axis=0)
    assert np.array_equal(run(images, crop=1.0, flip=1.0, cutout=0.0), images)


def test_cutout_paints_a_square_whose_middle_is_anywhere(images):
    length = round(0.3 * 20)
    middles = np.floor(draws().uniform("cutout", (2,)) * [20, 26]).astype(int)
    wanted = images.copy()
    for row, (down, across) in enumerate(middles):
        top, left = down - length // 2, across - length // 2
        window = wanted[row, max(0, top) : max(0, top + length), max(0, left) : max(0, left + length)]
        window[:] = FILL[images.shape[3]]
    assert np.array_equal(run(images, cutout=0.3), wanted)
    assert middles.min() == 0  # so some squares are cut off at the edge


def test_all_together_are_done_in_the_documented_order(images):
    everything = {
        "crop": 0.2,
        "flip": 0.5,
        "flip_down": 0.5,
        "brightness": 0.2,
        "contrast": 0.2,
        "saturation": 0.2,
        "cutout": 0.3,
    }
    step = run(images, crop=0.2)
    step = run(step, flip=0.5, flip_down=0.5)
    step = run(step, brightness=0.2, contrast=0.2, saturation=0.2)
    assert np.array_equal(run(images, **everything), run(step, cutout=0.3))


def test_changes_depend_on_seed_epoch_and_record_and_not_on_the_batch(images):
    options = {"crop": 0.3, "flip": 0.5, "brightness": 0.3, "contrast": 0.3, "cutout": 0.3}
    together = run(images, **options)
    order = np.random.default_rng(3).permutation(COUNT)
    shuffled = run(images[order], Draws(5, 0, order), **options)
    assert np.array_equal(shuffled, together[order])
    for start in range(0, COUNT, 7):
        rows = np.arange(start, min(COUNT, start + 7))
        assert np.array_equal(run(images[rows], Draws(5, 0, rows), **options), together[rows])
    for other in (draws(seed=6), draws(epoch=1), draws().within("image")):
        assert not (run(images, other, **options) == together).all(axis=(1, 2, 3)).any()


def test_each_change_has_separate_numbers(images):
    alone = run(images, cutout=0.3)
    both = run(images, flip=0.5, cutout=0.3)
    fill = np.array(FILL[images.shape[3]])
    assert np.array_equal((alone == fill).all(axis=3)[:, 10, 13], (both == fill).all(axis=3)[:, 10, 13])


def test_empty_batch_stays_empty(images):
    everything = Augment(flip=1.0, crop=0.5, brightness=0.5, contrast=0.5, saturation=0.5, cutout=0.5)
    fill = np.array(FILL[images.shape[3]], np.uint8)
    nothing = images[:0].copy()
    everything.apply(nothing, fill, draws(0))
    assert nothing.shape == (0, *images.shape[1:])


def test_maps_of_colours_combine_as_one_after_the_other():
    given = draws(9)
    first, second = brightness(0.4, 3, given), saturation(0.7, given)
    pixel = np.array([10.0, 200.0, 90.0])
    for row in range(9):
        inner = first[row, :, :3] @ pixel + first[row, :, 3]
        outer = second[row, :, :3] @ inner + second[row, :, 3]
        whole = combine(first, second)[row]
        assert whole[:, :3] @ pixel + whole[:, 3] == pytest.approx(outer)


def test_brightness_of_colours_equals_brightness_of_jpeg():
    assert GREY.sum() == pytest.approx(1)
    assert brightness_of(np.array([[255.0, 0, 0], [0, 255.0, 0], [7.0, 7.0, 7.0]])) == pytest.approx(
        [76.245, 149.685, 7.0]
    )
    assert brightness_of(np.array([[12.0], [3.0]])).tolist() == [12.0, 3.0]
    assert scaled_maps(np.array([2.0]), np.array([5.0]), 1).tolist() == [[[2.0, 5.0]]]
    assert contrast(0.0, 1, np.array([50.0] * 4), draws(4))[0].tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"flip": 1.5}, "flip Augment 0 1 1.5"),
        ({"crop": -0.1}, "crop Augment 0 1 -0.1"),
        ({"cutout": "big"}, "cutout Augment 'big'"),
        ({"brightness": True}, "brightness Augment True"),
        ({"contrast": float("nan")}, "contrast Augment nan"),
        ({"area": 0.5}, "area Augment 0.5"),
        ({"area": (0.0, 1.0)}, "area Augment 0 1 (0.0, 1.0)"),
        ({"area": (0.5, 0.4)}, "area Augment 0 1 (0.5, 0.4)"),
        ({"aspect": (0.5, 2e3)}, "aspect Augment 0 1000 (0.5, 2000.0)"),
    ],
)
def test_options_that_cannot_be_are_refused(options, facts):
    with raises_with(OptionError, facts):
        Augment(**options)


def test_options_come_as_a_mapping_true_or_an_object():
    assert load_augment("Image", None) is None
    assert load_augment("Image", False) is None
    assert load_augment("Image", True) == Augment.usual()
    assert load_augment("Image", {"flip": 1, "area": [0.5, 1]}) == Augment(flip=1.0, area=(0.5, 1.0))
    given = Augment(cutout=0.5)
    assert load_augment("Image", given) is given
    with raises_with(OptionError, "Image 'flip'", field="augment", got="'flips'"):
        load_augment("Image", {"flips": 0.5})
    with raises_with(OptionError, "True None", field="augment", got="7"):
        load_augment("Image", 7)


@pytest.mark.parametrize("name", ["area", "aspect"])
def test_range_of_random_parts_is_refused_where_there_are_none(name):
    given = {"flip": 0.5, name: (0.5, 1.0)}
    assert load_augment("Image", given, "random") == Augment(**given)
    for each in (given, Augment(**given)):
        with raises_with(OptionError, f"augment.{name} Image"):
            load_augment("Image", each, "crop")
    assert load_augment("Image", Augment(flip=0.5), "crop") == Augment(flip=0.5)


def test_augment_shows_options_that_differ_from_the_defaults():
    assert repr(Augment()) == "Augment()"
    assert repr(Augment(flip=1, area=(0.5, 1))) == "Augment(flip=1.0, area=(0.5, 1.0))"
    assert not Augment(area=(0.5, 1)).changes
    assert Augment(cutout=0.1).changes


def test_json_has_every_option_and_comes_back():
    for each in (Augment(), Augment.usual(), Augment(flip=1, area=(0.25, 0.5), aspect=(1, 2))):
        form = each.to_json()
        assert list(form) == [
            "flip",
            "flip_down",
            "crop",
            "brightness",
            "contrast",
            "saturation",
            "cutout",
            "area",
            "aspect",
        ]
        assert Augment.load(JsonValue(form, PIPELINE)) == each
    with pytest.raises(SchemaError) as caught:
        Augment.load(JsonValue({"flip": 3}, replace(PIPELINE, root="$.inputs.photo.augment")))
    assert "$.inputs.photo.augment.flip" in str(caught.value)
    assert mentions(caught.value, "0 1 3")
