"""Items of an iterator that a thread reads: the same, in order, and no thread that stays."""

import threading

import pytest

from penstock.source.read_ahead import read_ahead


def count_threads():
    return sum(each.name.startswith("penstock-") for each in threading.enumerate())


@pytest.mark.parametrize("num_items", [2, 16])
def test_items_are_the_same_in_order(num_items):
    assert list(read_ahead(iter(range(100)), num_items)) == list(range(100))
    assert list(read_ahead(iter(()), num_items)) == []
    assert list(read_ahead(iter([None, 0, ""]), num_items)) == [None, 0, ""]


def test_error_comes_after_the_items_before_it():
    def read():
        yield 1
        yield 2
        raise ValueError("3")

    found = read_ahead(read(), 2)
    assert (next(found), next(found)) == (1, 2)
    with pytest.raises(ValueError, match="3"):
        next(found)


def test_no_more_items_are_read_than_may_wait_and_the_thread_ends_with_the_iterator():
    before, read = count_threads(), []

    def count():
        for number in range(1000):
            read.append(number)
            yield number

    found = read_ahead(count(), 4)
    assert [next(found) for _ in range(50)] == list(range(50))
    found.close()
    assert count_threads() == before
    assert len(read) <= 50 + 5
