"""The k-th one of a bitmap is where NumPy finds it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from each_case import each_case
from penstock import _native
from raising import raises_with


def ranks_of(bits: np.ndarray, with_total: bool = False) -> np.ndarray:
    """Count the ones before every 512 bits."""
    before = np.concatenate([[0], np.cumsum(bits)])
    ranks = before[: len(bits) : 512] if len(bits) else before[:0]
    return np.append(ranks, before[-1]) if with_total else ranks.copy()


def packed(bits: np.ndarray) -> np.ndarray:
    return np.packbits(bits, bitorder="little")


def select_all(bits: np.ndarray, with_total: bool = False) -> np.ndarray:
    return _native.select_bits(packed(bits), ranks_of(bits, with_total), np.arange(bits.sum()))


@each_case("share", [0.0, 0.001, 0.01, 0.3, 0.5, 0.97, 1.0])
@each_case("size", [0, 1, 7, 8, 63, 64, 65, 511, 512, 513, 5000, 100_003])
def test_every_one_is_found(size, share):
    bits = np.random.default_rng(size).random(size) < share
    for with_total in (False, True):
        assert select_all(bits, with_total).tolist() == np.flatnonzero(bits).tolist()


@settings(max_examples=100)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 900)), max_size=10))
def test_ones_between_long_runs_of_zeros_are_found(runs):
    bits = np.repeat([bit for bit, _ in runs], [count for _, count in runs]).astype(bool)
    assert select_all(bits).tolist() == np.flatnonzero(bits).tolist()


def test_ones_are_found_in_any_order():
    bits = np.random.default_rng(0).random(50_000) < 0.2
    wanted = np.random.default_rng(1).integers(0, bits.sum(), 1001)
    got = _native.select_bits(packed(bits), ranks_of(bits), wanted)
    assert (got == np.flatnonzero(bits)[wanted]).all()


@pytest.mark.parametrize("k", [-1, -(2**63), 10, 2**62])
def test_set_bit_that_does_not_exist_is_refused(k):
    bits = np.zeros(2000, bool)
    bits[::200] = True
    with raises_with(ValueError, "k bitmap"):
        _native.select_bits(packed(bits), ranks_of(bits), np.array([k]))


def test_selecting_from_nothing_is_refused_unless_nothing_is_wanted():
    none, nothing = np.zeros(0, np.int64), np.zeros(0, np.uint8)
    assert _native.select_bits(nothing, none, none).tolist() == []
    for ranks in (none, np.zeros(1, np.int64)):
        with raises_with(ValueError, "k"):
            _native.select_bits(nothing, ranks, np.array([0]))


@settings(max_examples=200)
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2000), min_size=4, max_size=5),
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2000), max_size=12),
)
def test_ranks_that_do_not_fit_never_lead_out_of_the_bitmap(ranks, wanted):
    bitmap = np.full(250, 255, np.uint8)
    for k in wanted:
        try:
            (got,) = _native.select_bits(bitmap, np.array(ranks, np.int64), np.array([k]))
        except ValueError:
            continue
        assert 0 <= got < 2000


BITMAP = np.full(100, 255, np.uint8)
K = np.zeros(1, np.int64)
BAD_CALLS = {
    "a rank too few": ("ranks 64 bytes", (BITMAP, np.zeros(1, np.int64), K)),
    "two ranks too many": ("ranks 64 bytes", (BITMAP, np.zeros(4, np.int64), K)),
    "ranks of int32": ("ranks array int64 int32", (BITMAP, np.zeros(2, np.int32), K)),
    "bits as bools": ("bitmap uint8 bool", (BITMAP.view(np.bool_), np.zeros(2, np.int64), K)),
    "a bitmap with gaps": ("bitmap array", (BITMAP[::2], np.zeros(1, np.int64), K)),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_select_refuses_arguments_that_do_not_fit(case):
    text, arguments = BAD_CALLS[case]
    with raises_with(ValueError, text):
        _native.select_bits(*arguments)
