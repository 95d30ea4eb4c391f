"""Mixtures of several splits: shares, what never changes, refused mixtures."""

import json
import time

import numpy as np
import pytest

from penstock.errors import OptionError
from penstock.read.bitmap import Bitmap
from penstock.read.order import MixedOrder, SplitOrder
from raising import raises_with


def test_epoch_has_all_records_or_as_many_as_requested():
    orders = [SplitOrder(10), SplitOrder(20)]
    assert len(MixedOrder(orders, [1, 1])) == 30
    assert len(MixedOrder(orders, [1, 1], num_records=7)) == 7


def test_shares_are_met_whatever_the_sizes():
    mixed = MixedOrder([SplitOrder(5), SplitOrder(10**9, shuffle="global")], [3, 1], seed=2, num_records=4096)
    picks = mixed.pick(0, 0, 4096)
    assert np.bincount(picks.sources).tolist() == [3072, 1024]
    small = picks.rows[picks.sources == 0]
    assert small.tolist() == [i % 5 for i in range(3072)]
    assert picks.turns[picks.sources == 0].tolist() == [i // 5 for i in range(3072)]


def test_positions_continue_from_epoch_to_epoch():
    orders = [SplitOrder(7, shuffle="global"), SplitOrder(3)]
    long = MixedOrder(orders, [1, 2], seed=4, num_records=3000).pick(0, 0, 3000)
    short = [MixedOrder(orders, [1, 2], seed=4, num_records=100).pick(epoch, 0, 100) for epoch in range(30)]
    for i, column in enumerate(long):
        assert np.concatenate([picks[i] for picks in short]).tolist() == column.tolist()


def test_sources_are_mixed_and_not_in_turn():
    mixed = MixedOrder([SplitOrder(10), SplitOrder(10)], [1, 1], num_records=10240)
    sources = mixed.pick(0, 0, 10240).sources
    assert np.bincount(sources).tolist() == [5120, 5120]
    changes = (np.diff(sources) != 0).sum()
    assert 4800 < changes < 5440


def test_position_far_out_is_found_at_once():
    mixed = MixedOrder([SplitOrder(10**9, shuffle="global"), SplitOrder(10**6)], [1, 1], num_records=10**9)
    began = time.thread_time()
    picks = mixed.pick(10**6, 10**9 - 10, 10**9)
    assert time.thread_time() - began < 1
    # Source 0 has had half of 10^15 positions: it is in its pass 500 000.
    assert set(picks.turns[picks.sources == 0].tolist()) <= {500_000, 500_001}


def test_mixture_of_a_seed_never_changes():
    mixed = MixedOrder([SplitOrder(4), SplitOrder(9, shuffle="global", seed=1)], [1, 2], seed=7)
    picks = mixed.pick(2, 0, 13)
    assert picks.sources.tolist() == SOURCES
    assert picks.rows.tolist() == ROWS
    assert picks.turns.tolist() == PASSES


SOURCES = [1, 1, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 0]
ROWS = [3, 6, 8, 1, 0, 0, 1, 7, 2, 4, 5, 8, 2]
PASSES = [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2]


def test_description_is_small_and_distinguishes_mixtures():
    bitmap = Bitmap.from_mask(np.array([True, False]))
    mixtures = [
        MixedOrder([SplitOrder(2), SplitOrder(2)], [1, 1]),
        MixedOrder([SplitOrder(2), SplitOrder(2)], [1, 2]),
        MixedOrder([SplitOrder(2), SplitOrder(2)], [1, 1], seed=1),
        MixedOrder([SplitOrder(2), SplitOrder(2)], [1, 1], num_records=3),
        MixedOrder([SplitOrder(2), SplitOrder(3)], [1, 1], num_records=4),
        MixedOrder([SplitOrder(2, bitmap=bitmap), SplitOrder(2)], [1, 1], num_records=4),
    ]
    texts = {json.dumps(mixed.describe()) for mixed in mixtures}
    assert len(texts) == len(mixtures)
    assert max(map(len, texts)) < 250


@pytest.mark.parametrize(
    ("sizes", "shares", "options", "facts"),
    [
        ([], [], {}, "shares 0"),
        ([1, 2], [1], {}, "shares 2 1"),
        ([1, 0], [1, 1], {}, "1"),
        ([1, 2], [1, 0], {}, "shares[1] 0 0"),
        ([1, 2], [float("nan"), 1], {}, "shares[0] 0 nan"),
        ([1, 2], [float("inf"), 1], {}, "shares[0] 0 inf"),
        ([1, 2], ["1", 1], {}, "shares[0] 0 '1'"),
        ([1], [1], {"seed": -1}, "seed 0 2**64 1 -1"),
        ([1], [1], {"num_records": 0}, "num_records 1 0"),
    ],
)
def test_mixture_that_cannot_be_is_refused(sizes, shares, options, facts):
    with raises_with(OptionError, facts):
        MixedOrder([SplitOrder(size) for size in sizes], shares, **options)


def test_mixture_of_mixtures_is_refused():
    with raises_with(OptionError, "0"):
        MixedOrder([MixedOrder([SplitOrder(1)], [1])], [1])


def test_positions_that_an_epoch_does_not_have_are_refused():
    with raises_with(IndexError, "3 2 4"):
        MixedOrder([SplitOrder(3)], [1]).pick(0, 2, 4)
