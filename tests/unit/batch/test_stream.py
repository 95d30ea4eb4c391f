"""Batches of a stream: how blocks are cut, order, rows that do not fit, bounds, ends."""

import threading
from dataclasses import dataclass
from itertools import count, islice

import numpy as np
import pytest

from local_threads import local_threads
from penstock.batch.stream import cut_batches, stream_batches
from penstock.columns import Dense
from penstock.errors import FieldError
from penstock.transform.builder import WholeBatch

NO_FAULTS = 1 << 30


@dataclass(frozen=True)
class Rows:
    """A block whose only column numbers the rows."""

    numbers: np.ndarray

    def __len__(self):
        return len(self.numbers)

    @property
    def columns(self):
        return {"x": Dense(self.numbers)}


class Doubling:
    """A pipeline that doubles numbers, and refuses some: at once in `prepare`, one by one in `apply`."""

    def __init__(self, prepare=(), apply=(), fail=None):
        self.targets, self.weights = {}, {}
        self._prepare, self._apply, self._fail = set(prepare), set(apply), fail
        self.num_applied = 0

    def begin(self, num_rows, num_parts):
        return WholeBatch(self, num_parts)

    def prepare(self, columns, draws):
        assert draws is None
        numbers = columns["x"].values.tolist()
        return columns, {at: error(at) for at, x in enumerate(numbers) if x in self._prepare}

    def apply(self, columns, num_rows, draws):
        self.num_applied += 1
        numbers = columns["x"].values
        assert len(numbers) == num_rows > 0
        if self._fail in numbers.tolist():
            raise LookupError("broken")
        for at, x in enumerate(numbers.tolist()):
            if x in self._apply:
                raise error(at)
        return {"x": 2 * numbers}, {}, {}


def error(at):
    return FieldError("field 'x'", field="x", record=at)


def make_blocks(*sizes):
    ends = np.cumsum(sizes)
    return [Rows(np.arange(end - size, end)) for size, end in zip(sizes, ends, strict=True)]


def calls(blocks):
    for block in blocks:
        yield lambda block=block: block


def ranges(ticket):
    return [
        (int(block.numbers[0]) if len(block) else None, start, stop) for block, start, stop in ticket.ranges
    ]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((), []),
        ((4,), [[(0, 0, 3)], [(0, 3, 4)]]),
        ((3, 3), [[(0, 0, 3)], [(3, 0, 3)]]),
        ((2, 5), [[(0, 0, 2), (2, 0, 1)], [(2, 1, 4)], [(2, 4, 5)]]),
        ((1, 1, 1, 1), [[(0, 0, 1), (1, 0, 1), (2, 0, 1)], [(3, 0, 1)]]),
        ((0, 4), [[(None, 0, 0)], [(0, 0, 3)], [(0, 3, 4)]]),
        ((2, 0, 1), [[(0, 0, 2), (None, 0, 0), (2, 0, 1)]]),
        ((3, 0, 0), [[(0, 0, 3)], [(None, 0, 0)], [(None, 0, 0)]]),
    ],
)
def test_blocks_are_cut_into_batches_of_three_and_each_block_is_in_one(sizes, expected):
    assert [ranges(ticket) for ticket in cut_batches(iter(make_blocks(*sizes)), 3)] == expected


@pytest.mark.parametrize("num_threads", [1, 4])
@pytest.mark.parametrize("batch_size", [1, 7, 64, 1000])
def test_batches_have_the_rows_of_the_stream_in_order(num_threads, batch_size):
    blocks = make_blocks(5, 0, 40, 1, 1, 33)
    made = list(stream_batches(calls(blocks), Doubling(), batch_size, num_threads, NO_FAULTS))
    filled = [batch for batch in made if batch.inputs is not None]
    assert np.concatenate([batch.inputs["x"] for batch in filled]).tolist() == list(range(0, 160, 2))
    assert {len(batch.chosen) for batch in filled[:-1]} <= {batch_size}
    assert local_threads() == []


def test_rows_that_do_not_fit_are_left_out_and_numbered_in_their_batch():
    pipeline = Doubling(prepare=[1, 10], apply=[2, 3])
    first, second = stream_batches(calls(make_blocks(5, 7)), pipeline, 8, 2, NO_FAULTS)
    assert first.inputs["x"].tolist() == [0, 8, 10, 12, 14]
    assert (first.chosen.tolist(), sorted(first.faults)) == ([0, 4, 5, 6, 7], [1, 2, 3])
    assert (second.chosen.tolist(), sorted(second.faults)) == ([0, 1, 3], [2])


def test_rows_and_faults_of_a_batch_are_found_in_their_blocks():
    pipeline = Doubling(prepare=[6], apply=[3, 8])
    first, second = stream_batches(calls(make_blocks(2, 0, 3, 5)), pipeline, 7, 2, NO_FAULTS)
    found = [
        (each.start, each.stop, chosen.tolist(), sorted(faults))
        for batch in (first, second)
        for each, chosen, faults in batch.by_block()
    ]
    assert found == [
        (0, 2, [0, 1], []),
        (0, 0, [], []),
        (0, 3, [0, 2], [1]),
        (0, 2, [0], [1]),
        (2, 5, [2, 4], [3]),
    ]


@pytest.mark.parametrize(("most_faults", "num_faults", "num_applied"), [(0, 1, 1), (2, 3, 3), (8, 8, 8)])
def test_batch_is_given_up_when_more_rows_do_not_fit_than_may(most_faults, num_faults, num_applied):
    pipeline = Doubling(apply=range(8))
    (batch,) = stream_batches(calls(make_blocks(8)), pipeline, 8, 1, most_faults)
    assert batch.inputs is None
    assert (len(batch.chosen), len(batch.faults), pipeline.num_applied) == (0, num_faults, num_applied)


@pytest.mark.parametrize("num_threads", [1, 3])
def test_error_of_a_pipeline_comes_after_the_batches_before_it(num_threads):
    batches = stream_batches(calls(make_blocks(50)), Doubling(fail=23), 10, num_threads, NO_FAULTS)
    assert [next(batches).inputs["x"][0] for _ in range(2)] == [0, 20]
    with pytest.raises(LookupError, match="broken"):
        next(batches)
    assert local_threads() == []


def test_error_of_a_block_comes_after_the_rows_before_it():
    def fail():
        raise OSError("unreadable")

    def blocks():
        yield from calls(make_blocks(4, 4))
        yield fail

    batches = stream_batches(blocks(), Doubling(), 4, 2, NO_FAULTS)
    assert [len(next(batches).chosen) for _ in range(2)] == [4, 4]
    with pytest.raises(OSError, match="unreadable"):
        next(batches)


def test_stream_without_an_end_is_read_in_the_thread_of_the_consumer_and_little_ahead():
    threads, num_read = set(), 0

    def blocks():
        nonlocal num_read
        for start in count(step=10):
            threads.add(threading.get_ident())
            num_read += 1
            yield lambda start=start: Rows(np.arange(start, start + 10))

    batches = stream_batches(blocks(), Doubling(), 10, 2, NO_FAULTS)
    for taken, batch in enumerate(islice(batches, 50), 1):
        assert batch.inputs["x"][0] == 20 * (taken - 1)
        assert num_read <= taken + 8  # three blocks and four batches ahead
    assert threads == {threading.get_ident()}
    batches.close()
    assert local_threads() == []
