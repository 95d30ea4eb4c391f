"""Buckets: batches of like lengths, cut inside fixed windows of the order."""

import threading

import numpy as np
import pytest

from penstock.batch.batch_plan import BucketPlan, Ticket
from penstock.read.order import MixedOrder, SplitOrder
from raising import raises_with

LENGTHS = np.random.default_rng(5).integers(0, 40, 500).astype(np.int32)


def make_plan(order=None, lengths=LENGTHS, batch_size=8, max_tokens=None, window=100, **more):
    order = order or SplitOrder(len(lengths), shuffle="global", seed=2)
    return BucketPlan(order, [lengths], batch_size, max_tokens, window, **{"seed": 2, **more})


def rows_of(plan, epoch=0, start=0):
    return [ticket.picks.rows.tolist() for ticket in plan.tickets(epoch, start)]


def test_epoch_holds_every_record_once():
    rows = rows_of(make_plan())
    assert sorted(np.concatenate(rows).tolist()) == list(range(500))
    assert max(map(len, rows)) == 8


def test_batches_stay_inside_their_window_of_the_order():
    order = SplitOrder(500, shuffle="global", seed=2)
    plan = make_plan(order)
    at = 0
    for window in range(5):
        wanted = sorted(order.pick(0, window * 100, window * 100 + 100).rows.tolist())
        found = []
        while len(found) < 100:
            found += rows_of(plan)[at]
            at += 1
        assert sorted(found) == wanted


def test_little_is_padded():
    rows = rows_of(make_plan(batch_size=10))
    padded = sum(len(each) * LENGTHS[each].max() for each in rows)
    fixed = sum(10 * LENGTHS[i : i + 10].max() for i in range(0, 500, 10))
    assert padded < 0.65 * fixed
    assert padded >= LENGTHS.sum()


def test_tokens_with_padding_stay_within_the_budget():
    rows = rows_of(make_plan(batch_size=50, max_tokens=120))
    sizes = [len(each) * int(LENGTHS[each].max()) for each in rows]
    assert max(sizes) <= 120
    assert len(rows) < 150  # and they are not cut finer than the budget asks for


def test_record_longer_than_the_budget_is_a_separate_batch():
    lengths = np.array([3, 500, 2, 3, 600, 0, 0], np.int32)
    plan = make_plan(SplitOrder(7), lengths, batch_size=4, max_tokens=9, window=7, seed=None)
    assert rows_of(plan) == [[5, 6, 2], [0, 3], [1], [4]]


def test_records_without_length_count_the_one_value_that_they_are_padded_to():
    plan = make_plan(SplitOrder(9), np.zeros(9, np.int32), batch_size=4, max_tokens=2, window=9, seed=None)
    assert [len(each) for each in rows_of(plan)] == [2, 2, 2, 2, 1]


def test_without_a_seed_short_ones_come_first_and_equals_keep_their_order():
    lengths = np.array([2, 1, 2, 1, 3, 1], np.int32)
    plan = make_plan(SplitOrder(6), lengths, batch_size=2, window=6, seed=None)
    assert rows_of(plan) == [[1, 3], [5, 0], [2, 4]]


def test_batches_of_a_window_are_shuffled_anew_in_each_epoch():
    order = SplitOrder(500)  # the same records in every window
    plan = make_plan(order)
    first, second = rows_of(plan, 0), rows_of(plan, 1)
    assert first != second
    assert sorted(first) == sorted(second)


@pytest.mark.parametrize("epoch", [0, 3])
def test_every_step_is_found_from_anywhere(epoch):
    whole = rows_of(make_plan(max_tokens=100), epoch)
    for start in range(len(whole) + 2):
        assert rows_of(make_plan(max_tokens=100), epoch, start) == whole[start:]
    fresh = make_plan(max_tokens=100)
    for step in reversed(range(len(whole))):
        assert fresh.picks(Ticket(epoch, step)).rows.tolist() == whole[step]
        assert [ticket.step for ticket in fresh.tickets(epoch, step)] == list(range(step, len(whole)))


def test_number_of_steps_equals_the_number_of_tickets_in_any_epoch_and_order():
    plan = make_plan(max_tokens=90)
    for epoch in (0, 5, 1, 4, 0, 7, 7, 2):
        assert plan.num_steps(epoch) == len(rows_of(make_plan(max_tokens=90), epoch))
        assert len(rows_of(plan, epoch)) == plan.num_steps(epoch)


def test_step_that_is_not_there_is_refused():
    plan = make_plan()
    num_steps = plan.num_steps(0)
    with raises_with(IndexError, f"epoch 0 batch {num_steps}"):
        plan.picks(Ticket(0, num_steps))


@pytest.mark.parametrize("world", [2, 3, 9])
def test_ranks_together_take_the_same_as_one_alone(world):
    alone = rows_of(make_plan())
    ranks = [rows_of(make_plan(shard=(rank, world))) for rank in range(world)]
    assert {len(rows) for rows in ranks} == {len(alone)}
    for step, rows in enumerate(alone):
        assert np.concatenate([each[step] for each in ranks]).tolist() == rows


def test_mixture_takes_the_lengths_of_each_source():
    lengths = [np.full(30, 2, np.int32), np.full(50, 9, np.int32)]
    order = MixedOrder([SplitOrder(30), SplitOrder(50)], [1, 1], seed=1)
    plan = BucketPlan(order, lengths, 5, 30, 80, seed=4)
    for ticket in plan.tickets(0, 0):
        total = [lengths[source][row] for row, source in zip(*ticket.picks[:2], strict=True)]
        assert len(total) * max(total) <= 30
        assert len(ticket.picks.turns) == len(total)


def test_epochs_can_be_counted_while_they_are_iterated():
    """Other threads ask for the number of steps while one iterates: nothing may be counted twice."""
    expected = {epoch: len(rows_of(make_plan(window=10), epoch)) for epoch in range(4)}
    for _ in range(20):
        plan = make_plan(window=10)
        found = []

        def count(plan=plan, found=found):
            found.extend((epoch, plan.num_steps(epoch)) for epoch in range(4))

        def walk(plan=plan, found=found):
            found.extend((epoch, sum(1 for _ in plan.tickets(epoch, 30)) + 30) for epoch in range(4))

        threads = [threading.Thread(target=each) for each in (count, walk, count, walk)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(expected[epoch] == number for epoch, number in found)
        assert len(found) == 16


def test_windows_of_a_huge_epoch_have_different_orders():
    # More windows than 16 bits can count: each still has a different key.
    order = SplitOrder(1 << 40)
    plan = make_plan(order, batch_size=4, window=16)
    plan._lengths_of = lambda picks: np.zeros(len(picks.rows), np.int32)
    cuts = [
        tuple(int(batch[0]) for batch in plan._cut(0, window)[1])
        for window in (0, 1, 2, (1 << 16), (1 << 16) + 1, (1 << 32) + 1)
    ]
    assert all(sorted(cut) == [0, 4, 8, 12] for cut in cuts)
    assert len(set(cuts)) > 2
