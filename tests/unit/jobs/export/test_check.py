"""The comparison of a check: what counts as a difference, and which field is named."""

import math

import numpy as np
import pytest

from penstock.jobs.export.check import _compare, _find_input
from penstock.model.task import Task

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
    assert _find_input(expected, found, 1e-5, ()) == ("b", 1.0)
    assert _find_input(expected, expected, 1e-5, ()) is None


def test_images_that_are_rounded_otherwise_are_named_last():
    pixels = np.array([[10, 20]], np.uint8)
    expected = answers(photo=pixels, age=[1.0])
    assert _find_input(expected, answers(photo=pixels + 1, age=[2.0]), 1e-3, ["photo"]) == ("age", 1.0)
    assert _find_input(expected, answers(photo=pixels + 1, age=[1.0]), 1e-3, ["photo"]) == ("photo", 1.0)
    assert _find_input(expected, answers(photo=pixels + 9, age=[2.0]), 1e-3, ["photo"]) == ("photo", 9.0)


def test_only_batches_that_both_have_are_compared():
    expected = {"input/photo": [np.zeros(2), np.ones(2)]}
    assert _find_input(expected, {"input/photo": [np.zeros(2)]}, 1e-3, ["photo"]) is None
