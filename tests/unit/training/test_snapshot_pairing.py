"""Weights find their arrays by name."""

import pytest

from penstock.errors import StateError
from penstock.training.snapshot import pair_weights
from raising import raises_with


@pytest.mark.parametrize(
    ("stored", "wanted", "numbers"),
    [
        (["a/kernel", "c/kernel"], ["a/kernel", "c/kernel"], [0, 1]),
        (["a/kernel", "c/kernel"], ["c/kernel", "a/kernel"], [1, 0]),  # branches built in another order
        (["dense/kernel", "dense_1/kernel"], ["dense_7/kernel", "dense_8/kernel"], [0, 1]),
        (["branch_1/kernel", "branch_2/kernel"], ["branch_2/kernel", "branch_1/kernel"], [1, 0]),
        (["a_3/kernel", "c/bias"], ["c/bias", "a/kernel"], [1, 0]),
    ],
)
def test_weights_are_paired_by_name(stored, wanted, numbers):
    assert pair_weights(stored, wanted) == numbers


@pytest.mark.parametrize(
    ("stored", "wanted", "facts"),
    [
        (["a/kernel"], ["a/kernel", "a/bias"], "weights 1 2"),
        (["a/kernel", "c/kernel"], ["a/kernel", "d/kernel"], "1 'c/kernel' 'd/kernel'"),
    ],
)
def test_weights_that_fit_nowhere_are_refused(stored, wanted, facts):
    with raises_with(StateError, facts):
        pair_weights(stored, wanted)
