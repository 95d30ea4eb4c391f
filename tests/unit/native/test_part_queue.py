"""Parts of jobs that threads run in the core, and slices of a batch as such jobs."""

import threading
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from loaded_batches import open_numbers, write_shards
from penstock import _native
from penstock.batch.supply import DiskStore

NUM_ROWS = 100


@pytest.fixture
def split(tmp_path):
    write_shards(tmp_path / "data", [30, 70])
    return open_numbers(tmp_path / "data")


def begin_batches(split, count, batch_size=20, **choices):
    """Begin batches of a loader whose files are open, so that the core can make them."""
    loader = split.loader(ps.Pipeline.fit(split), batch_size=batch_size, num_threads=0, **choices)
    list(loader)
    loader._maker.slice_rows = 7
    tickets = list(loader._parts.plan.tickets(0, 0))[:count]
    return [loader._maker.begin(ticket) for ticket in tickets]


def work_in_threads(queue, num_threads, seen=0):
    """Return what each thread was returned until nothing was left."""
    found = [[] for _ in range(num_threads)]

    def work(mine):
        while (outcome := queue.work(seen, True)) is not None:
            mine.append(outcome)
        queue.release()

    threads = [threading.Thread(target=work, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    return [outcome for mine in found for outcome in mine]


def test_slices_of_the_core_equal_slices_of_python(split):
    by_core = begin_batches(split, 1, seed=3, shuffle=True)[0]
    by_python = begin_batches(split, 1, seed=3, shuffle=True)[0]
    assert by_core.native is not None
    for part in range(by_core.num_parts):
        assert by_core.native.run(part)
        by_python.run(part)
    made, expected = by_core.finish()[0], by_python.finish()[0]
    for part, other in zip(made.batch, expected.batch, strict=True):
        assert part.keys() == other.keys()
        for name in part:
            np.testing.assert_array_equal(part[name], other[name], strict=True)


@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_threads_end_every_job_once_after_all_its_parts(split, num_threads):
    jobs = begin_batches(split, 5)
    queue = _native.PartQueue()
    for number, job in enumerate(jobs):
        queue.add(number, job.native)
    assert queue.has_work
    assert sorted(work_in_threads(queue, num_threads)) == [(number, None) for number in range(5)]
    assert not queue.has_work
    values = [value for job in jobs for value in job.finish()[0].batch[0]["n"].tolist()]
    assert len(values) == NUM_ROWS


def test_part_that_the_core_cannot_make_is_returned_to_its_thread(split):
    (job,) = begin_batches(split, 1)
    path = job._maker.source._supply.sources[0].scatter.rows.shards[0].path
    with Path(path).open("r+b") as file:
        file.seek(40)
        file.write(b"\xff")
    queue = _native.PartQueue()
    queue.add(7, job.native)
    outcomes = work_in_threads(queue, 2)
    assert {number for number, _ in outcomes} == {7}
    assert all(part is not None for _, part in outcomes)
    closed = [queue.close_part(7) for _ in outcomes]
    assert closed == [False] * (len(outcomes) - 1) + [True]


def test_one_thread_at_a_time_is_away_with_the_end_of_a_job(split):
    queue = _native.PartQueue()
    for number, job in enumerate(begin_batches(split, 3)):
        queue.add(number, job.native)
    first = queue.work(0, True)
    assert first == (0, None)
    others = []

    def work():
        others.append(queue.work(0, False))
        queue.release()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()  # it has made all other parts, and waits
    queue.release()
    thread.join(20)
    assert others == [(1, None)]
    assert queue.work(0, True) == (2, None)
    assert queue.work(0, True) is None


def test_woken_and_stopped_threads_return(split):
    queue = _native.PartQueue()
    found = []
    thread = threading.Thread(target=lambda: found.append(queue.work(0, False)))
    thread.start()
    queue.wake()
    thread.join(20)
    assert found == [None]
    queue.wake_all()
    assert queue.num_wake_ups == 1
    assert queue.work(0, False) is None  # it was woken before it came
    queue.stop()
    assert queue.work(1, False) is None
    queue.clear()


def test_number_of_a_job_is_used_once(split):
    first, second = begin_batches(split, 2)
    queue = _native.PartQueue()
    queue.add(1, first.native)
    with pytest.raises(ValueError, match="number"):
        queue.add(1, second.native)


def test_rows_that_do_not_exist_are_not_made(split):
    (job,) = begin_batches(split, 1)
    store = DiskStore(job._maker.source._supply.sources[0])
    rows = np.array([0, NUM_ROWS], np.int64)
    native = store.native_rows(rows)
    assert native.source.read(rows) is None
    assert len(native.source.read(rows[:1])) == len(native.names)
    with pytest.raises(IndexError):
        job.native.run(job.num_parts)
