"""Fixed batches: how an epoch is cut, what each rank takes, what does not fill a batch."""

import numpy as np
import pytest

from each_case import each_case
from penstock.batch.batch_plan import FixedPlan, Ticket, cut_picks
from penstock.read.order import Picks, SplitOrder


def rows_of(plan, epoch=0):
    return [plan.picks(ticket).rows.tolist() for ticket in plan.tickets(epoch, 0)]


@pytest.mark.parametrize(
    ("num_rows", "last", "sizes"),
    [
        (10, "short", [4, 4, 2]),
        (10, "pad", [4, 4, 2]),
        (10, "drop", [4, 4]),
        (8, "short", [4, 4]),
        (8, "pad", [4, 4]),
        (8, "drop", [4, 4]),
        (3, "short", [3]),
        (3, "pad", [3]),
        (3, "drop", []),
        (1, "short", [1]),
    ],
)
def test_epoch_is_cut_into_whole_batches_and_the_rest(num_rows, last, sizes):
    plan = FixedPlan(SplitOrder(num_rows), 4, last)
    rows = rows_of(plan)
    assert [len(each) for each in rows] == sizes
    assert plan.num_steps(0) == len(sizes)
    assert sum(rows, []) == list(range(sum(sizes)))  # noqa: RUF017


def test_tickets_begin_at_any_step_and_name_epoch_and_step():
    plan = FixedPlan(SplitOrder(10), 4, "short")
    assert list(plan.tickets(7, 1)) == [Ticket(7, 1), Ticket(7, 2)]
    assert list(plan.tickets(7, 3)) == []
    assert list(plan.tickets(7, 300)) == []


def test_slots_are_known_where_every_batch_is_full():
    order = SplitOrder(10)
    assert FixedPlan(order, 4, "short").slots is None
    assert FixedPlan(order, 4, "drop").slots == 4
    assert FixedPlan(order, 4, "pad").slots == 4
    assert [FixedPlan(order, 7, "drop", (rank, 3)).slots for rank in range(3)] == [2, 2, 3]


@pytest.mark.parametrize("last", ["short", "pad", "drop"])
@each_case("num_rows", [1, 5, 12, 13, 23])
@each_case("world", [1, 2, 3, 5, 8])
def test_ranks_together_take_the_same_as_one_alone(last, num_rows, world):
    order = SplitOrder(num_rows, shuffle="global", seed=3)
    alone = rows_of(FixedPlan(order, 6, last), epoch=2)
    ranks = [rows_of(FixedPlan(order, 6, last, (rank, world)), epoch=2) for rank in range(world)]
    assert {len(rows) for rows in ranks} == {len(alone)}
    for step, rows in enumerate(alone):
        parts = [each[step] for each in ranks]
        assert sum(parts, []) == rows  # noqa: RUF017
        if last != "pad":
            lengths = [len(part) for part in parts]
            assert max(lengths) - min(lengths) <= 1


def test_padded_batch_is_cut_for_ranks_as_if_it_were_full():
    plans = [FixedPlan(SplitOrder(7), 6, "pad", (rank, 3)) for rank in range(3)]
    assert [rows_of(plan) for plan in plans] == [[[0, 1], [6]], [[2, 3], []], [[4, 5], []]]
    assert [plan.slots for plan in plans] == [2, 2, 2]


def test_every_epoch_has_its_own_order_of_the_same_records():
    plan = FixedPlan(SplitOrder(20, shuffle="global", seed=1), 6, "short")
    first, second = rows_of(plan, 0), rows_of(plan, 1)
    assert first != second
    assert sorted(sum(first, [])) == sorted(sum(second, [])) == list(range(20))  # noqa: RUF017
    assert rows_of(plan, 0) == first


def test_batch_far_out_in_a_huge_epoch_costs_no_more_than_the_first():
    plan = FixedPlan(SplitOrder(10**12, shuffle="global", seed=1), 128, "short")
    assert plan.num_steps(0) == 7812500000
    ticket = next(plan.tickets(3, 7_000_000_000))
    assert len(plan.picks(ticket).rows) == 128


def test_cut_picks_keeps_sources_and_passes_beside_their_rows():
    rows = np.arange(5, dtype=np.int64)
    picks = Picks(rows, rows.astype(np.int32) * 10, rows * 100)
    chosen = cut_picks(picks, np.array([3, 1]))
    assert [each.tolist() for each in chosen] == [[3, 1], [30, 10], [300, 100]]
    assert cut_picks(Picks(rows), slice(1, 3)).rows.tolist() == [1, 2]
    assert cut_picks(Picks(rows), slice(1, 3)).sources is None


def list_announced(plan, epochs, *, continues=False, start=0):
    """Return the steps that announce windows, and the rows of each window, over several epochs."""
    steps, windows = [], []
    for epoch in epochs:
        for ticket in plan.tickets(epoch, start if epoch == epochs[0] else 0):
            is_first = (epoch, ticket.step) == (epochs[0], start)
            is_followed = continues or epoch != epochs[-1]
            found = plan.ahead(ticket._replace(continues=is_followed), is_first=is_first)
            steps += [ticket.step] if found else []
            windows += [picks.rows for picks in found]
    return steps, windows


def test_reads_of_an_order_of_blocks_are_announced_window_by_window():
    order = SplitOrder(1000, shuffle="block", seed=1, block_records=10, window_blocks=10)
    plan = FixedPlan(order, 40, "short")
    assert plan.reads_stretches
    steps, windows = list_announced(plan, [0])
    # The first batch announces two windows; the last window announces none.
    assert steps == [100 * window // 40 for window in range(9)]
    assert [sorted(rows) for rows in windows] == [
        sorted(order.pick(0, start, start + 100).rows) for start in range(0, 1000, 100)
    ]
    # Blocks are contiguous, except where one meets the end.
    assert all(np.count_nonzero(np.diff(rows) != 1) <= 11 for rows in windows)


@pytest.mark.parametrize("num_rows", [95, 100, 199, 250, 1000])
def test_windows_are_announced_once_each_over_the_end_of_an_epoch(num_rows):
    order = SplitOrder(num_rows, shuffle="block", seed=1, block_records=10, window_blocks=10)
    plan = FixedPlan(order, 40, "short")
    rows = np.concatenate(list_announced(plan, [0, 1, 2])[1])
    assert np.bincount(rows).tolist() == [3] * num_rows
    # The next epoch is announced with the last window of an epoch.
    rows = list_announced(plan, [4], continues=True)[1][-1]
    first = order.pick(5, 0, 100 if num_rows >= 200 else num_rows).rows
    assert rows.tolist() == sorted(first.tolist())


def test_the_rest_after_the_last_whole_window_is_announced_with_it():
    order = SplitOrder(190, shuffle="block", seed=1, block_records=10, window_blocks=10)
    (rows,) = list_announced(FixedPlan(order, 40, "short"), [0])[1]
    assert rows.tolist() == list(range(190))


def test_batches_larger_than_a_window_announce_all_their_windows():
    order = SplitOrder(1000, shuffle="block", seed=1, block_records=10, window_blocks=10)
    rows = np.concatenate(list_announced(FixedPlan(order, 250, "short"), [0, 1])[1])
    assert np.bincount(rows).tolist() == [2] * 1000


def test_records_of_a_batch_that_is_left_out_are_not_announced():
    order = SplitOrder(190, shuffle="block", seed=1, block_records=10, window_blocks=10)
    (rows,) = list_announced(FixedPlan(order, 100, "drop"), [0])[1]
    assert rows.tolist() == sorted(order.pick(0, 0, 100).rows.tolist())
    order = SplitOrder(299, shuffle="block", seed=1, block_records=10, window_blocks=5)
    windows = list_announced(FixedPlan(order, 150, "drop"), [0, 1])[1]
    read = [*order.pick(0, 0, 150).rows.tolist(), *order.pick(1, 0, 150).rows.tolist()]
    assert sorted(np.concatenate(windows).tolist()) == sorted(read)


def test_an_iteration_from_the_middle_announces_the_rest_of_its_window():
    order = SplitOrder(1000, shuffle="block", seed=1, block_records=10, window_blocks=10)
    plan = FixedPlan(order, 40, "short")
    windows = list_announced(plan, [0], start=6)[1]
    assert windows[0].tolist() == sorted(order.pick(0, 240, 300).rows.tolist())
    assert sorted(np.concatenate(windows).tolist()) == sorted(order.pick(0, 240, 1000).rows.tolist())


def test_reads_of_other_orders_are_announced_some_batches_ahead():
    plan = FixedPlan(SplitOrder(100, shuffle="global", seed=1), 10, "short")
    assert not plan.reads_stretches
    (ahead,) = plan.ahead(Ticket(0, 1))
    assert ahead.rows.tolist() == plan.picks(Ticket(0, 9)).rows.tolist()
    assert plan.ahead(Ticket(0, 2)) == []
    (ahead,) = plan.ahead(Ticket(0, 2, continues=True))
    assert ahead.rows.tolist() == plan.picks(Ticket(1, 0)).rows.tolist()
