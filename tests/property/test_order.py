"""Laws of the order: an epoch is a permutation, any way to cut it gives the same, and it is well mixed."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.read.bitmap import Bitmap
from penstock.read.order import MixedOrder, SplitOrder, shard_slice

SEEDS = st.integers(0, 2**64 - 1)
EPOCHS = st.integers(0, 2**31)
MODES = st.sampled_from(["none", "global", "block"])
LOOSE = 6  # standard deviations: a sound shuffle never comes here


@st.composite
def orders(draw: st.DrawFn, most_rows: int = 400) -> SplitOrder:
    """Draw an order of any mode over some of the rows of a split."""
    num_rows = draw(st.integers(0, most_rows))
    is_filtered = draw(st.booleans())
    mask = np.array(draw(st.lists(st.booleans(), min_size=num_rows, max_size=num_rows)), np.bool_)
    return SplitOrder(
        num_rows,
        shuffle=draw(MODES),
        seed=draw(SEEDS),
        block_records=draw(st.integers(1, 50)),
        window_blocks=draw(st.integers(1, 9)),
        bitmap=Bitmap.from_mask(mask) if is_filtered else None,
        skip=draw(st.integers(0, 20)),
        take=draw(st.none() | st.integers(0, most_rows)),
    )


def wanted_rows(order: SplitOrder) -> list[int]:
    """Return the rows that an epoch must have, counted by hand."""
    rows = list(range(order.num_rows))
    if order.bitmap is not None:
        rows = np.flatnonzero(order.bitmap.to_mask()).tolist()
    rows = rows[order.skip :]
    return rows if order.take is None else rows[: order.take]


def cut(draw: st.DrawFn, size: int) -> list[tuple[int, int]]:
    """Draw ranges that cover some positions one behind the other."""
    cuts = draw(st.lists(st.integers(0, size), max_size=8))
    return list(pairwise([0, *sorted(cuts), size]))


def epoch_rows(order: SplitOrder, epoch: int) -> np.ndarray:
    return order.pick(epoch, 0, len(order)).rows


@given(orders(), EPOCHS)
def test_epoch_is_a_permutation_of_the_rows_that_are_wanted(order, epoch):
    rows = epoch_rows(order, epoch).tolist()
    assert sorted(rows) == wanted_rows(order)
    if order.shuffle == "none":
        assert rows == wanted_rows(order)


@given(orders(), EPOCHS, st.data())
def test_epoch_cut_into_any_ranges_is_the_same(order, epoch, data):
    whole = epoch_rows(order, epoch).tolist()
    pieces = [order.pick(epoch, *each).rows.tolist() for each in cut(data.draw, len(order))]
    assert [row for piece in pieces for row in piece] == whole


@given(st.integers(0, 1000), st.integers(1, 64), st.integers(1, 17))
def test_ranks_together_take_each_position_of_every_batch_once(size, batch_size, world):
    taken = []
    for start in range(0, size, batch_size):
        batch = range(start, min(size, start + batch_size))
        slices = [shard_slice(batch, rank, world) for rank in range(world)]
        assert [position for each in slices for position in each] == list(batch)
        assert max(map(len, slices)) - min(map(len, slices)) <= 1
        taken += [position for each in slices for position in each]
    assert taken == list(range(size))


@given(orders(), EPOCHS, st.integers(1, 64), st.integers(1, 5))
def test_ranks_together_read_every_record_once(order, epoch, batch_size, world):
    rows = []
    for start in range(0, len(order), batch_size):
        batch = range(start, min(len(order), start + batch_size))
        for rank in range(world):
            mine = shard_slice(batch, rank, world)
            rows += order.pick(epoch, mine.start, mine.stop).rows.tolist()
    assert rows == epoch_rows(order, epoch).tolist()


@pytest.mark.parametrize("shuffle", ["global", "block"])
def test_epochs_and_seeds_differ(shuffle):
    orders = {
        (seed, epoch): tuple(
            SplitOrder(500, shuffle=shuffle, seed=seed, block_records=10, window_blocks=5)
            .pick(epoch, 0, 500)
            .rows.tolist()
        )
        for seed in (0, 1, 2**63)
        for epoch in range(5)
    }
    assert len(set(orders.values())) == len(orders)
    rows = np.array(list(orders.values()))
    # In two random orders of 500, one row stands at the same position on average.
    same = [(a == b).sum() for i, a in enumerate(rows) for b in rows[:i]]
    assert 0.5 < np.mean(same) < 1.5


@pytest.mark.parametrize("shuffle", ["global", "block"])
@pytest.mark.parametrize("size", [3, 10, 97])
def test_every_row_stands_at_every_position_equally_often(shuffle, size):
    num_epochs = 100 * size
    order = SplitOrder(size, shuffle=shuffle, seed=5, block_records=4, window_blocks=3)
    counts = np.zeros((size, size))
    positions = np.arange(size)
    for epoch in range(num_epochs):
        counts[positions, epoch_rows(order, epoch)] += 1
    expected = num_epochs / size
    statistic = ((counts - expected) ** 2 / expected).sum()
    freedom = (size - 1) ** 2
    assert abs(statistic - size * (size - 1)) < LOOSE * np.sqrt(2 * freedom) * size / (size - 1)


def test_global_shuffle_shows_no_serial_correlation():
    size = 20_000
    for epoch in range(5):
        rows = epoch_rows(SplitOrder(size, shuffle="global", seed=11), epoch)
        for lag in (1, 2, 3, 141, 142, 1000):  # 142: a side of the grid that the permutation works on
            correlation = np.corrcoef(rows[:-lag], rows[lag:])[0, 1]
            assert abs(correlation) < LOOSE / np.sqrt(size)
        # Rows that are neighbours on disk stand as far apart as any two: by a third of the whole on average.
        places = np.argsort(rows)
        gap = np.abs(np.diff(places)).mean() / size
        assert abs(gap - 1 / 3) < LOOSE * 0.24 / np.sqrt(size)


def test_block_shuffle_is_correlated_no_more_than_windows_of_blocks_must_be():
    order = SplitOrder(64_000, shuffle="block", seed=3, block_records=100, window_blocks=32)
    rows = epoch_rows(order, 0)
    # Two rows of a window are in the same block once in 32 times.
    assert abs(np.corrcoef(rows[:-1], rows[1:])[0, 1]) < 1 / 32 + LOOSE / np.sqrt(640)
    order_inside = rows[:3200] % 100
    assert abs(np.corrcoef(order_inside[:-1], order_inside[1:])[0, 1]) < LOOSE / np.sqrt(3200)


@given(st.integers(1, 3000), SEEDS, EPOCHS, st.integers(10, 40), st.integers(1, 8))
def test_block_window_reads_few_stretches_of_storage(size, seed, epoch, block_records, window_blocks):
    order = SplitOrder(
        size, shuffle="block", seed=seed, block_records=block_records, window_blocks=window_blocks
    )
    window = block_records * window_blocks
    for start in range(0, size - 2 * window, window):
        rows = np.sort(order.pick(epoch, start, start + window).rows)
        # The end of the split and its beginning may be parts of one block, which is then two stretches.
        assert (np.diff(rows) > 1).sum() + 1 <= window_blocks + 1


@st.composite
def mixtures(draw: st.DrawFn) -> tuple[MixedOrder, list[SplitOrder]]:
    """Draw a mixture and its parts."""
    sizes = draw(st.lists(st.integers(5, 300), min_size=1, max_size=6))
    sources = [SplitOrder(size, shuffle=draw(MODES), seed=draw(SEEDS), block_records=7) for size in sizes]
    shares = draw(st.lists(st.floats(1e-6, 1e6), min_size=len(sizes), max_size=len(sizes)))
    num_records = draw(st.none() | st.integers(1, 3000))
    return MixedOrder(sources, shares, draw(SEEDS), num_records), sources


@given(mixtures(), st.integers(1, 5))
def test_mixture_takes_the_records_of_each_source_one_after_the_other(mixture, num_epochs):
    mixed, sources = mixture
    epochs = [mixed.pick(epoch, 0, len(mixed)) for epoch in range(num_epochs)]
    rows, numbers, passes = (np.concatenate([[], *each]) for each in zip(*epochs, strict=True))
    for number, order in enumerate(sources):
        mine = numbers == number
        num_passes = -(-int(mine.sum()) // len(order))
        whole = np.concatenate([[], *(epoch_rows(order, epoch) for epoch in range(num_passes))])
        assert rows[mine].tolist() == whole[: mine.sum()].tolist()
        assert passes[mine].tolist() == np.repeat(np.arange(num_passes), len(order))[: mine.sum()].tolist()


@given(mixtures(), st.integers(0, 2**20), st.data())
def test_mixture_cut_into_any_ranges_is_the_same(mixture, epoch, data):
    mixed, _ = mixture
    whole = mixed.pick(epoch, 0, len(mixed))
    pieces = [mixed.pick(epoch, *each) for each in cut(data.draw, len(mixed))]
    for i, column in enumerate(whole):
        assert np.concatenate([piece[i] for piece in pieces]).tolist() == column.tolist()


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=8), st.integers(0, 2**30), SEEDS)
def test_mixture_keeps_the_shares_in_every_stretch(shares, window, seed):
    mixed = MixedOrder([SplitOrder(50) for _ in shares], shares, seed, num_records=2**42)
    picks = mixed.pick(0, window * 1024, (window + 4) * 1024)
    counts = np.bincount(picks.sources, minlength=len(shares))
    ideal = np.array(shares) / sum(shares) * 4096
    # Two roundings, and what they pass on to the sources behind.
    assert np.abs(counts - ideal).max() <= 2 + 2 * np.log(len(shares))


@given(st.lists(st.booleans(), max_size=3000), st.data())
def test_bitmap_finds_each_chosen_row_at_its_position(chosen, data):
    mask = np.array(chosen, np.bool_)
    pieces = [mask[a:b] for a, b in cut(data.draw, len(mask))]
    bitmap = Bitmap.from_masks(pieces, len(mask))
    rows = np.flatnonzero(mask)
    assert len(bitmap) == len(rows)
    assert bitmap.to_mask().tolist() == chosen
    assert bitmap.select(np.arange(len(rows))).tolist() == rows.tolist()


@given(
    st.lists(st.sampled_from([0.0, 0.25, 1.0, 1e-300, 1e300]), min_size=1, max_size=40).filter(any),
    SEEDS,
    EPOCHS,
    st.data(),
)
def test_weighted_draws_are_of_rows_that_have_a_weight_and_the_same_however_cut(weights, seed, epoch, data):
    order = SplitOrder(len(weights), weights=np.array(weights), seed=seed)
    rows = epoch_rows(order, epoch).tolist()
    assert len(rows) == len(weights)
    assert all(weights[row] > 0 for row in rows)
    pieces = [order.pick(epoch, *each).rows.tolist() for each in cut(data.draw, len(order))]
    assert [row for piece in pieces for row in piece] == rows
