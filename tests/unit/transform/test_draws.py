"""Randomness that depends on seed, epoch, record and purpose alone."""

from statistics import NormalDist

import numpy as np
import pytest

from penstock.errors import OptionError
from penstock.transform import Draws
from penstock.transform.draws import normal_quantile
from raising import containing, raises_with

WORDS = [[238870607, 836053554], [2181470762, 2401014790], [406372745, 4184535597]]
INTEGERS = [55, 507, 94]
NORMALS = ["-0x1.97b9a4bb4a784p+0", "0x1.4501ce67bba19p-6", "-0x1.501737cd82561p+0"]


def draws(count: int = 1000, seed: int = 7, epoch: int = 0) -> Draws:
    return Draws(seed, epoch, np.arange(count))


def test_draws_of_a_record_do_not_depend_on_its_batch():
    whole = draws(100).uniform("noise", (3,))
    part = Draws(7, 0, np.array([40, 3, 99])).uniform("noise", (3,))
    assert np.array_equal(whole[[40, 3, 99]], part)


def test_draws_differ_by_seed_epoch_purpose_and_scope():
    first = draws().uniform("noise")
    others = [
        draws(seed=8).uniform("noise"),
        draws(epoch=1).uniform("noise"),
        draws().uniform("crop"),
        draws().within("flip").uniform("noise"),
    ]
    assert all(not np.array_equal(first, other) for other in others)
    assert np.array_equal(first, draws().uniform("noise"))


def test_draws_equal_earlier_versions():
    # Golden: a resumed run draws as the one that was cut off, with whatever version.
    given = Draws(7, 2, np.array([0, 5, 2**40]))
    assert given.words("noise", 2).tolist() == WORDS
    assert given.integers("noise", 0, 1000).tolist() == INTEGERS
    assert [number.hex() for number in given.normal("noise")] == NORMALS


def test_uniform_numbers_fill_the_unit_interval():
    numbers = draws(100_000).uniform("noise")
    assert 0 <= numbers.min() < 1e-4
    assert 1 - 1e-4 < numbers.max() < 1
    assert abs(numbers.mean() - 0.5) < 0.005


def test_integers_are_between_their_bounds_and_even():
    numbers = draws(60_000).integers("die", 1, 7)
    counts = np.bincount(numbers, minlength=7)
    assert counts[0] == 0
    assert len(counts) == 7
    assert abs(counts[1:] - 10_000).max() < 400
    assert draws(5).integers("one", -3, -2, (2,)).tolist() == [[-3, -3]] * 5


@pytest.mark.parametrize(("low", "high"), [(3, 3), (4, 3), (0, 2**53 + 1)])
def test_integers_of_no_range_are_refused(low, high):
    with raises_with(OptionError, "'die'", expected=containing(1, "2^53")):
        draws().integers("die", low, high)


def test_draws_of_more_than_a_record_has_are_refused():
    with raises_with(OptionError, "'noise'", expected=containing(262144, 32)):
        draws(1).uniform("noise", (1 << 18,))


def test_normal_numbers_are_normal():
    numbers = draws(100_000).normal("noise")
    assert abs(numbers.mean()) < 0.02
    assert abs(numbers.std() - 1) < 0.01
    assert abs((numbers**4).mean() - 3) < 0.1


def test_normal_quantile_equals_the_standard_library():
    shares = [1e-300, 1e-20, 2.0**-53, 1e-5, 0.0749, 0.0751, 0.3, 0.5, 0.9249, 0.9251, 0.999, 1 - 2.0**-53]
    expected = [NormalDist().inv_cdf(share) for share in shares]
    assert normal_quantile(np.array(shares)) == pytest.approx(expected, rel=1e-15, abs=1e-16)
