"""The order of one split: what it costs, what it is for ever, what it refuses."""

import json
import time
import tracemalloc

import numpy as np
import pytest

from penstock.errors import OptionError
from penstock.read.bitmap import Bitmap
from penstock.read.order import SplitOrder, shard_slice
from raising import containing, raises_with


@pytest.mark.parametrize("shuffle", ["none", "global", "block"])
def test_picking_from_a_billion_records_takes_no_array_of_that_size(shuffle):
    order = SplitOrder(10**9, shuffle=shuffle)
    order.pick(0, 0, 1)
    tracemalloc.start()
    try:
        began = time.thread_time()
        rows = order.pick(0, 10**8, 10**8 + 1024).rows
        elapsed = time.thread_time() - began
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(set(rows.tolist())) == 1024
    assert rows.min() >= 0
    assert rows.max() < 10**9
    assert peak < 1 << 20
    assert elapsed < 1


@pytest.mark.parametrize("shuffle", ["none", "global", "block"])
def test_position_deep_in_an_epoch_takes_no_longer_than_the_first(shuffle):
    order = SplitOrder(2**61, shuffle=shuffle, seed=3)

    def seconds(start: int) -> float:
        began = time.thread_time()
        for _ in range(20):
            order.pick(7, start, start + 256)
        return time.thread_time() - began

    seconds(0)
    # The quickest of some trials, and a bound with room: walking there would take years.
    first = min(seconds(0) for _ in range(3))
    assert min(seconds(2**61 - 256) for _ in range(3)) < 20 * first + 0.01


@pytest.mark.parametrize("shuffle", ["global", "block"])
def test_deep_range_is_the_range_of_its_pieces(shuffle):
    order = SplitOrder(2**61 - 1, shuffle=shuffle, seed=3)
    start = 2**60 + 12345
    whole = order.pick(2**31, start, start + 100).rows.tolist()
    assert [int(order.pick(2**31, start + i, start + i + 1).rows[0]) for i in range(100)] == whole


def test_order_of_a_seed_never_changes():
    # States that were saved count on these.
    blocks = {"block_records": 4, "window_blocks": 2}
    assert SplitOrder(20, shuffle="global", seed=7).pick(0, 0, 20).rows.tolist() == GLOBAL
    assert SplitOrder(20, shuffle="block", seed=7, **blocks).pick(3, 0, 20).rows.tolist() == BLOCK
    weights = np.arange(20, dtype=np.float64)
    assert SplitOrder(20, weights=weights, seed=7).pick(1, 0, 20).rows.tolist() == WEIGHTED
    deep = SplitOrder(10**12, shuffle="global", seed=2**64 - 1).pick(5, 10**11, 10**11 + 3)
    assert deep.rows.tolist() == DEEP


GLOBAL = [9, 0, 4, 15, 11, 12, 1, 7, 14, 5, 2, 3, 16, 19, 8, 10, 6, 17, 13, 18]
BLOCK = [16, 14, 17, 11, 13, 10, 15, 12, 9, 19, 5, 6, 2, 1, 4, 8, 18, 7, 0, 3]
WEIGHTED = [10, 3, 17, 9, 3, 15, 13, 17, 15, 4, 18, 14, 10, 5, 7, 19, 8, 15, 17, 7]
DEEP = [288245207707, 93562035507, 487623651537]


def test_rows_are_filtered_then_skipped_then_taken_then_shuffled():
    mask = np.arange(100) % 3 == 0  # 0, 3, …, 99: 34 of them
    options = {"bitmap": Bitmap.from_mask(mask), "skip": 4, "take": 10}
    stored = SplitOrder(100, **options)
    assert stored.pick(0, 0, 10).rows.tolist() == list(range(12, 42, 3))
    shuffled = SplitOrder(100, shuffle="global", **options)
    assert shuffled.pick(0, 0, 10).rows.tolist() != list(range(12, 42, 3))
    assert sorted(shuffled.pick(0, 0, 10).rows.tolist()) == list(range(12, 42, 3))


@pytest.mark.parametrize(
    ("options", "size"),
    [({"skip": 5}, 0), ({"skip": 3}, 2), ({"skip": 9}, 0), ({"take": 0}, 0), ({"take": 9}, 5)],
)
def test_epoch_has_as_many_positions_as_rows_are_left(options, size):
    order = SplitOrder(5, shuffle="global", **options)
    assert len(order) == size
    assert len(order.pick(0, 0, size).rows) == size


def test_weights_are_weights_of_the_rows_that_are_left():
    # Row 1 is filtered out, row 0 skipped, row 5 beyond the taken rows: only rows 3 and 4 may come.
    mask = np.array([True, False, True, True, True, True])
    weights = np.array([100.0, 100.0, 0.0, 1.0, 3.0, 100.0])
    order = SplitOrder(6, bitmap=Bitmap.from_mask(mask), skip=1, take=3, weights=weights)
    counts = np.bincount(np.concatenate([order.pick(epoch, 0, 3).rows for epoch in range(4000)]), minlength=6)
    assert counts[[0, 1, 2, 5]].sum() == 0
    assert abs(counts[4] / counts.sum() - 0.75) < 0.02


def test_weighted_draws_follow_the_weights():
    weights = np.array([0, 1, 2, 3, 4, 0], np.float64)
    order = SplitOrder(6, weights=weights, seed=1)
    rows = np.concatenate([order.pick(epoch, 0, 6).rows for epoch in range(5000)])
    counts = np.bincount(rows, minlength=6)
    expected = weights / weights.sum() * len(rows)
    drawn = weights > 0
    assert counts[~drawn].sum() == 0
    assert (((counts - expected)[drawn]) ** 2 / expected[drawn]).sum() < 25


def test_description_distinguishes_orders_and_is_small():
    masks = np.array([True, False, True]), np.array([True, True, False])
    orders = [
        SplitOrder(3),
        SplitOrder(4),
        SplitOrder(3, skip=1),
        SplitOrder(3, take=1),
        SplitOrder(3, shuffle="global"),
        SplitOrder(3, shuffle="global", seed=1),
        SplitOrder(3, shuffle="block"),
        SplitOrder(3, shuffle="block", block_records=2),
        SplitOrder(3, shuffle="block", window_blocks=2),
        *(SplitOrder(3, bitmap=Bitmap.from_mask(mask)) for mask in masks),
        SplitOrder(3, weights=np.ones(3)),
        SplitOrder(3, weights=np.arange(3.0)),
        SplitOrder(3, weights=np.ones(3), seed=1),
    ]
    texts = [json.dumps(order.describe()) for order in orders]
    assert len(set(texts)) == len(orders)
    assert max(map(len, texts)) < 200
    assert SplitOrder(3, seed=1).describe() == SplitOrder(3, seed=2).describe()  # not shuffled: no seed


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"shuffle": "yes"}, "shuffle 'none' 'global' 'block' 'yes'"),
        ({"seed": -1}, "seed 0 2**64 1 -1"),
        ({"seed": 2**64}, "seed 0 2**64 1 18446744073709551616"),
        ({"seed": 1.5}, "seed 0 2**64 1 1.5"),
        ({"block_records": 0}, "block_records 1 0"),
        ({"window_blocks": True}, "window_blocks 1 True"),
        ({"skip": -1}, "skip 0 -1"),
        ({"take": "all"}, "take 0 'all'"),
        ({"bitmap": Bitmap.from_mask(np.ones(3, np.bool_))}, "bitmap 4 3"),
        ({"weights": np.ones((4, 1))}, "weights (4,) (4, 1)"),
        ({"weights": np.zeros(4)}, "weights 0"),
        ({"weights": np.array([1, -2.5, 1, 1])}, "weights 0 -2.5"),
        ({"weights": np.array([1, np.nan, 1, 1])}, "weights 0 nan"),
        ({"weights": np.full(4, 1e308)}, "weights 0"),
    ],
)
def test_order_that_cannot_be_is_refused(options, facts):
    with raises_with(OptionError, facts):
        SplitOrder(4, **options)


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (3, 2), (0, 6), (6, 6)])
def test_positions_that_an_epoch_does_not_have_are_refused(start, stop):
    with raises_with(IndexError, f"5 {start} {stop}"):
        SplitOrder(5).pick(0, start, stop)


def test_ranks_take_slices_of_a_batch():
    assert [list(shard_slice(range(8), rank, 4)) for rank in range(4)] == [[0, 1], [2, 3], [4, 5], [6, 7]]
    # A short one at the end: nobody has more than one more than another, and some may have none.
    assert [list(shard_slice(range(100, 103), rank, 4)) for rank in range(4)] == [[], [100], [101], [102]]


@pytest.mark.parametrize(("rank", "world"), [(2, 2), (-1, 2)])
def test_rank_outside_its_world_is_refused(rank, world):
    with raises_with(OptionError, "shard", expected=containing(0, 1, 2), got=containing(f"{rank}")):
        shard_slice(range(8), rank, world)
