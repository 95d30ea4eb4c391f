"""Threads that send requests: how many there are, their order, and errors."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future

import pytest

from penstock.storage.request_threads import RequestThreads, call_all, wait


def test_calls_run_at_the_same_time_even_if_a_few_threads_are_idle():
    threads = RequestThreads(most=8)
    assert wait(threads.submit(lambda: 1)) == 1
    while not threads._num_idle:  # its thread waits for the next call
        time.sleep(0.001)
    barrier = threading.Barrier(8)
    futures = [threads.submit(lambda: barrier.wait(30)) for _ in range(8)]
    assert sorted(wait(future) for future in futures) == list(range(8))


def test_threads_are_no_more_than_the_limit_and_every_call_is_made():
    threads = RequestThreads(most=3)
    running, seen = [], []
    lock = threading.Lock()

    def call(number):
        with lock:
            running.append(number)
            seen.append(len(running))
        time.sleep(0.002)
        with lock:
            running.remove(number)
        return number

    futures = [threads.submit(lambda number=number: call(number)) for number in range(40)]
    assert [wait(future) for future in futures] == list(range(40))
    assert max(seen) <= 3


def test_urgent_calls_come_before_those_that_wait():
    threads = RequestThreads(most=1)
    gate = threading.Event()
    order = []
    first = threads.submit(lambda: gate.wait(30))
    futures = [threads.submit(lambda number=number: order.append(number)) for number in range(3)]
    futures.append(threads.submit(lambda: order.append("urgent"), is_urgent=True))
    gate.set()
    for future in [first, *futures]:
        wait(future)
    assert order == ["urgent", 0, 1, 2]


def test_the_first_error_is_raised_and_calls_that_wait_are_cancelled():
    def fail():
        raise ValueError("no answer")

    with pytest.raises(ValueError, match="no answer"):
        list(call_all([fail, lambda: 1]))


class _LateFuture(Future):
    """A future that is set between the end of the first wait and the check whether it is done."""

    def result(self, timeout=None):
        if not self.done():
            self.finish()
            raise TimeoutError
        return super().result(timeout)


def test_result_that_arrives_just_after_a_wait_ended_is_returned():
    future = _LateFuture()
    future.finish = lambda: future.set_result(b"range")
    assert wait(future) == b"range"


def test_timeout_of_the_call_itself_is_raised():
    future = _LateFuture()
    future.finish = lambda: future.set_exception(TimeoutError("the call itself"))
    with pytest.raises(TimeoutError, match="the call itself"):
        wait(future)


def test_calls_that_wait_for_others_end_though_all_threads_have_one():
    threads = RequestThreads(most=2)
    barrier = threading.Barrier(2)

    def outer(number):
        barrier.wait(30)  # all threads are taken
        return sum(wait(threads.submit(lambda each=each: each * number)) for each in range(3))

    futures = [threads.submit(lambda number=number: outer(number)) for number in (1, 10)]
    assert [future.result(30) for future in futures] == [3, 30]
