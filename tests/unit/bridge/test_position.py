"""Where the iterations of a bridge start, whatever a framework does with them."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import penstock as ps
from penstock.bridge.position import PositionTracker, get_tracker


class Reading:
    """Batches: epoch and step of each."""

    def __init__(self, batches: list[tuple[int, int]]) -> None:
        self.batches, self.is_closed = batches, False

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self.is_closed = True

    def close(self) -> None:
        self.is_closed = True

    def __iter__(self) -> Iterator[tuple[int, int]]:
        while self.batches and not self.is_closed:
            yield self.batches.pop(0)


class FakeLoader:
    """The part of a loader that a tracker uses: epochs of `num_batches`, plus `more` in odd ones."""

    def __init__(self, num_batches: int = 3, repeat: int | None = 1, more: int = 0) -> None:
        self.num_batches, self.more = num_batches, more
        self.options = SimpleNamespace(repeat=repeat)
        self.is_endless = repeat is None
        self.position = (0, 0)

    @property
    def next_start(self) -> tuple[int, int]:
        epoch, step = self.position
        return (epoch + 1, 0) if step and step >= self.num_steps(epoch) else self.position

    def num_steps(self, epoch: int) -> int:
        return self.num_batches + self.more * (epoch % 2)

    def seek(self, epoch: int, step: int) -> None:
        self.position = (epoch, step)

    def read_epochs(self, epoch: int, step: int, stop: float, convert: Any = None) -> Reading:
        epochs = range(epoch, int(min(stop, epoch + 4)))
        batches = [(each, number) for each in epochs for number in range(self.num_steps(each))]
        return Reading(batches[step:])


def take(tracker: PositionTracker, loader: Any, count: int | None = None, **how: bool) -> list[Any]:
    """Return `count` batches of a new iteration, or all of them; then drop the iteration."""
    batches = tracker.read(loader, tracker.begin(**how))
    return list(batches) if count is None else [next(batches) for _ in range(count)]


@pytest.fixture
def loader() -> Any:
    return FakeLoader()


def test_iterations_read_to_their_end_are_epochs(loader) -> None:
    tracker = get_tracker(loader)
    assert [take(tracker, loader) for _ in range(2)] == [[(e, s) for s in range(3)] for e in range(2)]
    assert loader.position == (1, 3)
    assert take(tracker, loader, 3) == [
        (2, 0),
        (2, 1),
        (2, 2),
    ]  # all of its batches, without asking for its end
    assert take(tracker, loader, 1) == [(3, 0)]


def test_dropped_iteration_does_not_count(loader) -> None:
    tracker = get_tracker(loader)
    assert take(tracker, loader, 2) == take(tracker, loader, 2) == [(0, 0), (0, 1)]
    assert loader.position == (0, 2)
    tracker.begin()
    assert take(tracker, loader) == [(0, 0), (0, 1), (0, 2)]


def test_bridges_of_one_loader_share_a_tracker(loader) -> None:
    assert get_tracker(loader) is get_tracker(loader)
    assert get_tracker(loader) is not get_tracker(FakeLoader())


def test_next_iteration_starts_at_the_position_of_a_moved_loader(loader) -> None:
    tracker = get_tracker(loader)
    take(tracker, loader, 1)
    loader.seek(4, 2)
    assert take(tracker, loader) == [(4, 2)]
    loader.seek(7, 3)
    assert take(tracker, loader) == [(8, 0), (8, 1), (8, 2)]


def test_whole_iteration_is_a_multiple_of_repeat_wherever_it_begins() -> None:
    loader: Any = FakeLoader(repeat=2)
    tracker = get_tracker(loader)
    loader.seek(3, 1)
    assert take(tracker, loader) == [(3, 1), (3, 2)]
    assert take(tracker, loader)[-1] == (5, 2)


def test_endless_iterations_continue_after_the_last_batch() -> None:
    loader: Any = FakeLoader(repeat=None)
    tracker = get_tracker(loader)
    taken = [batch for count in (2, 2, 3) for batch in take(tracker, loader, count)]
    assert taken == [(number // 3, number % 3) for number in range(7)]


def test_continuous_iterations_read_uneven_epochs_once() -> None:
    loader: Any = FakeLoader(more=1)
    tracker = get_tracker(loader)
    taken = [batch for _ in range(3) for batch in take(tracker, loader, 3, is_continuous=True)]
    assert taken == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3), (2, 0), (2, 1)]


@pytest.mark.parametrize("num_batches", [1, 2])
def test_iteration_that_built_a_model_does_not_count(num_batches) -> None:
    loader: Any = FakeLoader(num_batches)
    tracker = get_tracker(loader)
    take(tracker, loader, num_batches)
    tracker.mark_epoch_end()
    assert take(tracker, loader, num_batches)[0] == (0, 0)
    tracker.begin()  # Keras starts the next iteration before it reports the end of an epoch
    tracker.mark_epoch_end()
    assert take(tracker, loader, num_batches)[0] == (1, 0)
    tracker.discard_iteration()
    assert take(tracker, loader, num_batches)[0] == (1, 0)


def test_position_follows_the_consumer(loader) -> None:
    tracker = get_tracker(loader)
    take(tracker, loader, 1)  # built a model
    assert tracker.follow_consumer(is_continuous=False) == (0, 0)
    batches = tracker.read(loader, tracker.begin())
    assert [next(batches) for _ in range(3)][-1] == (0, 2)  # fetched ahead
    assert loader.position == (0, 0)
    tracker.advance(1)
    assert loader.position == (0, 1)
    tracker.advance(5)
    assert loader.position == (0, 3)  # stops at the end of the epoch
    assert take(tracker, loader, 2) == [(1, 0), (1, 1)]
    tracker.advance(1)
    tracker.stop_following()
    assert loader.position == (1, 1)
    assert take(tracker, loader) == [(1, 1), (1, 2)]


def test_stop_following_closes_the_iteration(loader) -> None:
    tracker = get_tracker(loader)
    tracker.follow_consumer(is_continuous=True)
    batches = tracker.read(loader, tracker.begin())
    next(batches)
    tracker.stop_following()
    assert list(batches) == []


def test_new_run_continues_where_an_error_ended_the_last(loader) -> None:
    tracker = get_tracker(loader)
    tracker.follow_consumer(is_continuous=False)
    take(tracker, loader, 2)
    tracker.advance(2)
    tracker.start_run()
    assert take(tracker, loader) == [(0, 2)]
    tracker.start_run()
    assert take(tracker, loader, 1) == [(1, 0)]


def test_bridges_begin_the_next_epoch_after_an_iteration_of_the_loader_that_was_left(tmp_path) -> None:
    split = ps.convert([{"x": row} for row in range(8)], tmp_path / "out", split="train=1")["train"]
    for is_before in (True, False):
        loader = split.loader(batch_size=2)
        if is_before:
            get_tracker(loader)
        next(iter(loader))
        state = loader.state_dict()
        tracker = get_tracker(loader)
        assert tracker.next_position() == (1, 0)
        assert len(list(tracker.read(loader, tracker.begin()))) == 4
        assert loader.position == (1, 4)
        # An exact state continues its epoch, in this loader and in another one.
        for resumed in (loader, split.loader(batch_size=2)):
            resumed.load_state_dict(state)
            follower = get_tracker(resumed)
            assert follower.follow_consumer(is_continuous=False) == (0, 1)
            assert follower.begin().start == (0, 1)
            follower.stop_following()
