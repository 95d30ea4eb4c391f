"""Keyed permutations are bijections at every size, well mixed, and equal to their plain form."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import core_reference as plain
from each_case import each_case
from penstock import _native
from raising import raises_with

WORDS = st.integers(0, 2**64 - 1)


def permuted(size: int, seed: int = 0, epoch: int = 0, purpose: int = 0) -> np.ndarray:
    return _native.permute(seed, epoch, purpose, size, np.arange(size))


def many(size: int, count: int) -> np.ndarray:
    """Return the permutations of some seeds, one a row."""
    return np.stack([permuted(size, seed) for seed in range(count)])


def is_odd(permutation: np.ndarray) -> bool:
    """Say whether a permutation is an odd number of exchanges."""
    left, num_cycles = set(range(len(permutation))), 0
    while left:
        num_cycles, place = num_cycles + 1, left.pop()
        while (place := int(permutation[place])) in left:
            left.remove(place)
    return (len(permutation) - num_cycles) % 2 == 1


@each_case("size", [*range(1, 201), 255, 256, 1000, 4096, 65_537, 99_856, 1_000_001])
def test_permutation_takes_every_value_once_and_back(size):
    for seed in (0, 1):
        values = permuted(size, seed, epoch=3, purpose=1)
        assert values.dtype == np.int64
        assert np.bincount(values, minlength=size).tolist() == [1] * size
        assert (_native.unpermute(seed, 3, 1, size, values) == np.arange(size)).all()


@settings(max_examples=200)
@given(WORDS, WORDS, WORDS, st.integers(1, 300) | st.integers(1, 2**62), st.data())
@example(0, 0, 0, 2**62, None)
@example(2**64 - 1, 2**64 - 1, 2**64 - 1, 2**62 - 1, None)
@example(0, 0, 0, (2**31 - 1) ** 2, None)
@example(0, 0, 0, (2**31 - 1) ** 2 + 1, None)
def test_permutation_of_any_size_equals_the_plain_form(seed, epoch, purpose, size, data):
    places = st.lists(st.integers(0, size - 1), max_size=9)
    positions = [0, size - 1, size // 2] if data is None else data.draw(places)
    got = _native.permute(seed, epoch, purpose, size, np.array(positions, np.int64))
    assert got.tolist() == [plain.permute(seed, epoch, purpose, size, place) for place in positions]
    assert _native.unpermute(seed, epoch, purpose, size, got).tolist() == positions


@pytest.mark.parametrize(("size", "count"), [(2, 4000), (3, 6000), (4, 24_000), (5, 60_000)])
def test_small_permutations_are_all_equally_likely(size, count):
    digits = many(size, count) @ (size ** np.arange(size))
    _, seen = np.unique(digits, return_counts=True)
    num_all = math.factorial(size)
    assert len(seen) == num_all
    expected = count / num_all
    chi_square = float(((seen - expected) ** 2 / expected).sum())
    assert abs(chi_square - (num_all - 1)) < 6 * np.sqrt(2 * (num_all - 1))


@pytest.mark.parametrize(
    ("size", "count"),
    [(3, 20_000), (5, 20_000), (10, 20_000), (64, 5000), (65, 5000), (73, 5000), (100, 5000), (1000, 4000)],
)
def test_every_value_stands_at_every_position_equally_often(size, count):
    permutations = many(size, count)
    cells = permutations + size * np.arange(size)
    seen = np.bincount(cells.ravel(), minlength=size * size)
    chi_square = float(((seen - count / size) ** 2 / (count / size)).sum())
    degrees = (size - 1) ** 2
    assert abs(chi_square - degrees) < 6 * np.sqrt(2 * degrees)


@pytest.mark.parametrize(("size", "count"), [(10, 20_000), (65, 10_000), (100, 10_000), (1000, 3000)])
def test_neighbours_and_columns_of_the_grid_part_as_in_a_fair_shuffle(size, count):
    permutations = many(size, count)
    width = -(-size // (math.isqrt(size - 1) + 1))
    for lag in (1, 2, width, width + 1):
        # In a fair shuffle each difference of two places is as likely as its chance among all pairs.
        steps = permutations[:, lag:] - permutations[:, :-lag]
        for step in (1, -1, width, -width):
            chance = (size - abs(step)) / (size * (size - 1))
            wanted = chance * (size - lag) * count
            assert abs((steps == step).sum() - wanted) < 6 * np.sqrt(wanted)


@pytest.mark.parametrize("size", [9, 25, 81, 121, 169, 100, 99])
def test_even_and_odd_permutations_are_equally_likely(size):
    count = 1000
    odd = sum(is_odd(permutation) for permutation in many(size, count))
    assert abs(odd - count / 2) < 6 * np.sqrt(count) / 2


def test_fixed_points_are_as_many_as_in_a_fair_shuffle():
    for size in (64, 65, 500):
        fixed = (many(size, 5000) == np.arange(size)).sum(1)
        assert abs(fixed.mean() - 1) < 6 / np.sqrt(5000)
        assert abs(fixed.var() - 1) < 0.2


@pytest.mark.parametrize("size", [1_000_000, 999_999])
def test_large_permutation_has_no_serial_correlation(size):
    for seed in (0, 1):
        places = permuted(size, seed) / size
        for lag in (1, 2, 7, 999, 1000, 1001, 1024, 500_000):
            assert abs(np.corrcoef(places[:-lag], places[lag:])[0, 1]) < 6 / np.sqrt(size - lag)
        assert abs(np.corrcoef(places, np.arange(size))[0, 1]) < 6 / np.sqrt(size)


@pytest.mark.parametrize("size", [10**9, 2**40 + 1, 2**62])
def test_window_of_a_huge_permutation_is_spread_over_all_of_it(size):
    count = 200_000
    for start in (0, size // 3, size - count):
        positions = np.arange(start, start + count)
        values = _native.permute(11, 0, 0, size, positions)
        assert np.diff(np.sort(values)).min() > 0
        seen = np.bincount((values / (size / 1000)).astype(np.int64), minlength=1000)
        assert abs(float(((seen - count / 1000) ** 2 / (count / 1000)).sum()) - 999) < 6 * np.sqrt(2 * 999)
        lowest = np.bincount(values % 256, minlength=256)
        assert abs(float(((lowest - count / 256) ** 2 / (count / 256)).sum()) - 255) < 6 * np.sqrt(2 * 255)
        assert (_native.unpermute(11, 0, 0, size, values) == positions).all()


def test_epochs_seeds_and_purposes_have_nothing_in_common():
    size = 10_000
    orders = [
        permuted(size, seed, epoch, purpose) for seed in (0, 1) for epoch in (0, 1) for purpose in (0, 1)
    ]
    for number, first in enumerate(orders):
        for second in orders[:number]:
            assert (first == second).sum() < 12  # one is expected; twelve come up once in 10⁹ tries
            assert abs(np.corrcoef(first, second)[0, 1]) < 6 / np.sqrt(size)


def test_permutation_does_not_depend_on_other_requested_positions():
    whole = permuted(1000, 7)
    positions = np.array([999, 0, 5, 5, 500])
    assert (_native.permute(7, 0, 0, 1000, positions) == whole[positions]).all()
    for stop in range(10):
        assert (_native.permute(7, 0, 0, 1000, np.arange(stop)) == whole[:stop]).all()


def test_permutation_of_nothing_is_nothing():
    none = np.zeros(0, np.int64)
    assert _native.permute(0, 0, 0, 0, none).tolist() == []
    assert _native.unpermute(0, 0, 0, 0, none).tolist() == []


POSITIONS = np.zeros(2, np.int64)
OUTSIDE = "positions: one is not from 0 to below size"
BAD_CALLS = {
    "a position behind the last": (
        ValueError,
        OUTSIDE,
        (0, 0, 0, 5, POSITIONS + 5),
    ),
    "a negative position": (
        ValueError,
        OUTSIDE,
        (0, 0, 0, 5, POSITIONS - 1),
    ),
    "a position of nothing": (
        ValueError,
        OUTSIDE,
        (0, 0, 0, 0, POSITIONS),
    ),
    "a negative size": (ValueError, "size 0 2^62", (0, 0, 0, -1, POSITIONS)),
    "a size too large": (ValueError, "size 0 2^62", (0, 0, 0, 2**62 + 1, POSITIONS)),
    "a negative seed": (TypeError, "incompatible", (-1, 0, 0, 5, POSITIONS)),
    "a negative epoch": (TypeError, "incompatible", (0, -1, 0, 5, POSITIONS)),
    "positions of int32": (ValueError, "positions int32", (0, 0, 0, 5, POSITIONS.astype(np.int32))),
    "positions of floats": (ValueError, "positions float64", (0, 0, 0, 5, POSITIONS.astype(float))),
    "positions with gaps": (ValueError, "positions", (0, 0, 0, 5, np.zeros(4, np.int64)[::2])),
}


@pytest.mark.parametrize("function", [_native.permute, _native.unpermute])
@pytest.mark.parametrize("case", BAD_CALLS)
def test_permutation_refuses_arguments_that_do_not_fit(case, function):
    error, text, arguments = BAD_CALLS[case]
    with raises_with(error, text):
        function(*arguments)
