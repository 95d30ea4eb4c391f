"""Where the iterations of a bridge begin, whatever a framework does with them."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.bridge.position import Course, course_of


class Reading:
    """The batches of an epoch: epoch and step of each."""

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
    """A loader as far as a course knows it: epochs of `num_batches`, or one more in odd epochs."""

    def __init__(self, num_batches: int = 3, repeat: int | None = 1, more: int = 0) -> None:
        self.num_batches, self.more = num_batches, more
        self.options = SimpleNamespace(repeat=repeat)
        self.is_endless = repeat is None
        self.position = (0, 0)

    def num_steps(self, epoch: int) -> int:
        return self.num_batches + self.more * (epoch % 2)

    def seek(self, epoch: int, step: int) -> None:
        self.position = (epoch, step)

    def read(self, epoch: int, start: int = 0) -> Reading:
        return Reading([(epoch, step) for step in range(start, self.num_steps(epoch))])


def take(course: Course, loader: Any, count: int | None = None, **how: bool) -> list[Any]:
    """Return some batches of a new iteration, or all; it is dropped then."""
    batches = course.read(loader, course.begin(**how))
    return list(batches) if count is None else [next(batches) for _ in range(count)]


@pytest.fixture
def loader() -> Any:
    return FakeLoader()


def test_iterations_read_to_their_end_are_epochs(loader) -> None:
    course = course_of(loader)
    assert [take(course, loader) for _ in range(2)] == [[(e, s) for s in range(3)] for e in range(2)]
    assert loader.position == (1, 3)
    assert take(course, loader, 3) == [(2, 0), (2, 1), (2, 2)]  # all, though its end was not asked for
    assert take(course, loader, 1) == [(3, 0)]


def test_dropped_iteration_does_not_count(loader) -> None:
    course = course_of(loader)
    assert take(course, loader, 2) == take(course, loader, 2) == [(0, 0), (0, 1)]
    assert loader.position == (0, 2)
    course.begin()
    assert take(course, loader) == [(0, 0), (0, 1), (0, 2)]


def test_bridges_of_one_loader_share_a_course(loader) -> None:
    assert course_of(loader) is course_of(loader)
    assert course_of(loader) is not course_of(FakeLoader())


def test_moved_loader_decides_where_the_next_begins(loader) -> None:
    course = course_of(loader)
    take(course, loader, 1)
    loader.seek(4, 2)
    assert take(course, loader) == [(4, 2)]
    loader.seek(7, 3)
    assert take(course, loader) == [(8, 0), (8, 1), (8, 2)]


def test_whole_iteration_is_a_multiple_of_repeat_wherever_it_begins() -> None:
    loader: Any = FakeLoader(repeat=2)
    course = course_of(loader)
    loader.seek(3, 1)
    assert take(course, loader) == [(3, 1), (3, 2)]
    assert take(course, loader)[-1] == (5, 2)


def test_endless_iterations_go_on_behind_what_was_read() -> None:
    loader: Any = FakeLoader(repeat=None)
    course = course_of(loader)
    taken = [batch for count in (2, 2, 3) for batch in take(course, loader, count)]
    assert taken == [(number // 3, number % 3) for number in range(7)]


def test_flowing_iterations_read_uneven_epochs_once() -> None:
    loader: Any = FakeLoader(more=1)
    course = course_of(loader)
    taken = [batch for _ in range(3) for batch in take(course, loader, 3, flows=True)]
    assert taken == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3), (2, 0), (2, 1)]


@pytest.mark.parametrize("num_batches", [1, 2])
def test_iteration_that_built_a_model_does_not_count(num_batches) -> None:
    loader: Any = FakeLoader(num_batches)
    course = course_of(loader)
    take(course, loader, num_batches)
    course.doubt()
    assert take(course, loader, num_batches)[0] == (0, 0)
    course.begin()  # what Keras asks for behind an epoch, before it says that it is over
    course.doubt()
    assert take(course, loader, num_batches)[0] == (1, 0)
    course.forget()
    assert take(course, loader, num_batches)[0] == (1, 0)


def test_followed_consumer_decides_where_it_is(loader) -> None:
    course = course_of(loader)
    take(course, loader, 1)  # built a model
    assert course.follow(flows=False) == (0, 0)
    batches = course.read(loader, course.begin())
    assert [next(batches) for _ in range(3)][-1] == (0, 2)  # fetched ahead
    assert loader.position == (0, 0)
    assert [course.advance(1), loader.position] == [False, (0, 1)]
    assert [course.advance(5), loader.position] == [True, (0, 3)]  # no more than there is
    assert take(course, loader, 2) == [(1, 0), (1, 1)]
    course.advance(1)
    course.leave()
    assert loader.position == (1, 1)
    assert take(course, loader) == [(1, 1), (1, 2)]


def test_left_iteration_is_closed(loader) -> None:
    course = course_of(loader)
    course.follow(flows=True)
    batches = course.read(loader, course.begin())
    next(batches)
    course.leave()
    assert list(batches) == []


def test_new_run_counts_what_an_error_left(loader) -> None:
    course = course_of(loader)
    course.follow(flows=False)
    take(course, loader, 2)
    course.advance(2)
    course.settle()
    assert take(course, loader) == [(0, 2)]
    course.settle()
    assert take(course, loader, 1) == [(1, 0)]
