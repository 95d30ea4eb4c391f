"""The comparison of a check: what counts as a difference, and which field is named."""

import math

import numpy as np
import pytest

import penstock as ps
from image_files import png, scene
from penstock.errors import ExportError
from penstock.jobs.export.check import _check_images, _compare, _find_input, _find_steps
from penstock.model.task import Task
from penstock.transform.pipeline import without_targets

CHANCE = Task("y", "binary", ("no", "yes"))
NUMBER = Task("y", "regression")


def compare(task, one, other):
    return _compare(task, [np.array(one, np.float32)], [np.array(other, np.float32)])


def test_probabilities_are_compared_as_they_are():
    assert compare(CHANCE, [0.5, 0.25], [0.5, 0.375]) == 0.125


def test_numbers_are_compared_relative_to_their_size():
    assert compare(NUMBER, [1e6, 2e6, 4e6], [1e6, 2e6 + 20, 4e6]) == pytest.approx(1e-5)
    assert compare(NUMBER, [1e-6, 2e-6, 4e-6], [1e-6, 2e-6, 8e-6]) == pytest.approx(1)


def test_small_number_among_large_ones_is_compared_relative_to_the_median():
    assert compare(NUMBER, [0.0, 100, 200], [0.001, 100, 200]) == pytest.approx(1e-5)


def test_large_number_does_not_hide_a_difference_of_the_others():
    assert compare(NUMBER, [1, 2, 3, 1e12], [1.5, 2, 3, 1e12]) == pytest.approx(0.2)


def test_numbers_that_are_all_zero_may_not_differ():
    assert compare(NUMBER, [0, 0], [0, 0]) == 0
    assert compare(NUMBER, [0, 0], [0, 1e-9]) > 1


@pytest.mark.parametrize("task", [CHANCE, NUMBER])
@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([math.nan, 1], [math.nan, 1], 0.0),
        ([math.nan, 1], [0.5, 1], math.inf),
        ([0.5, 1], [math.nan, 1], math.inf),
        ([0.5, 1], [math.inf, 1], math.inf),
        ([0.5, 1], [0.5], math.inf),
        ([], [], 0.0),
    ],
)
def test_value_that_is_not_finite_must_be_the_same(task, one, other, expected):
    assert compare(task, one, other) == expected


def test_output_that_is_missing_differs():
    assert _compare(CHANCE, [np.zeros(1)], None) == math.inf


def answers(**arrays):
    return {f"input/{name}": [np.array(each)] for name, each in arrays.items()}


def test_first_input_that_differs_is_named():
    expected = answers(a=[1.0, 2.0], b=[1, 2], c=[3, 4])
    found = answers(a=[1.0, 2.0], b=[1, 3], c=[9, 9])
    assert _find_input(expected, found, 1e-5, {}) == ("b", 1.0)
    assert _find_input(expected, expected, 1e-5, {}) is None


STEPS = {"photo": np.array(1.0)}


def test_images_that_are_rounded_differently_are_named_last():
    pixels = np.array([[10, 20]], np.uint8)
    expected = answers(photo=pixels, age=[1.0])
    assert _find_input(expected, answers(photo=pixels + 1, age=[2.0]), 1e-3, STEPS) == ("age", 1.0)
    assert _find_input(expected, answers(photo=pixels + 1, age=[1.0]), 1e-3, STEPS) == ("photo", 1.0)
    assert _find_input(expected, answers(photo=pixels + 9, age=[2.0]), 1e-3, STEPS) == ("photo", 9.0)


def test_difference_in_any_batch_counts():
    expected = {"input/photo": [np.zeros((2, 1)), np.ones((2, 1))]}
    found = {"input/photo": [np.zeros((2, 1)), np.full((2, 1), 4.0)]}
    assert _find_input(expected, found, 1e-3, STEPS) == ("photo", 3.0)
    assert _find_input(expected, {"input/photo": found["input/photo"][:1]}, 1e-3, STEPS) == (
        "photo",
        math.inf,
    )


def test_images_are_compared_in_pixels_whatever_the_units_of_the_input(tmp_path):
    rows = [{"photo": png(scene(8, 8, n)), "sold": n} for n in range(4)]
    fields = {"photo": ps.fields.Image()}
    data = ps.convert(rows, tmp_path / "set", fields=fields, target="sold", split="train=1.0")
    photo = ps.transform.Image(
        size=(8, 8), dtype="float32", scale=1 / 255, mean=0.5, deviation=(1, 0.5, 0.25)
    )
    steps = _find_steps(without_targets(ps.Pipeline.fit(data, photo=photo)))
    assert steps["photo"] == pytest.approx(np.array([1, 2, 4]) / 255)
    plain = without_targets(ps.Pipeline.fit(data, photo=ps.transform.Image(size=(8, 8))))
    assert _find_steps(plain) == {"photo": 1.0}
    expected = np.zeros((1, 2, 2, 3))
    found = expected.copy()
    found[0, 0, 0] = np.array([3, 2, 4]) / 255  # pixels that differ by 3, 1 and 1
    assert _find_input(answers(photo=expected), answers(photo=found), 1e-3, steps) == (
        "photo",
        pytest.approx(3),
    )


def test_pixels_that_differ_by_more_than_decoders_do_are_an_error():
    _check_images({"photo": 3.0})
    with pytest.raises(ExportError) as caught:
        _check_images({"scan": 1.0, "photo": 4.0})
    assert (caught.value.field, caught.value.got) == ("photo", "4")
    with pytest.raises(ExportError):
        _check_images({"photo": math.inf})
