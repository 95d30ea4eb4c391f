"""Feeds: order, windows, errors, ends, consumers, processes."""

import contextlib
import ctypes
import gc
import itertools
import os
import threading
import time
import traceback
import weakref

import numpy as np
import pytest

from local_threads import local_threads
from penstock.errors import ForkedError
from penstock.foundation import job_window
from penstock.foundation import thread_pool as feeds
from penstock.foundation.thread_pool import Feed, as_jobs
from raising import containing, raises_with

PLENTY = 1 << 40


def feed_of(tickets, make, *options, **named):
    return Feed(tickets, as_jobs(make), *options, **named)


def double(ticket):
    return ticket * 2, 1


def take_all(feed):
    taken = []
    while (item := feed.take()) is not None:
        taken.append(item)
    return taken


def wait_until(condition, seconds=10.0):
    """Look again and again: threads are at work, and nobody knows how fast."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.001)


class Gate:
    """A function that makes tickets only when it is allowed to, and counts those that it has begun."""

    def __init__(self, sizes=None):
        self.open = threading.Semaphore(0)
        self.begun = []
        self._sizes = sizes

    def __call__(self, ticket):
        self.begun.append(ticket)
        self.open.acquire()
        return ticket, 1 if self._sizes is None else self._sizes[ticket]

    def let(self, count):
        self.open.release(count)


@pytest.mark.parametrize("num_threads", [0, 1, 2, 8])
def test_items_come_in_the_order_of_tickets_for_any_threads(num_threads):
    def make(ticket):
        time.sleep(0.0005 * (ticket % 3))  # those behind are ready first
        return ticket, 100

    assert take_all(feed_of(iter(range(1, 61)), make, num_threads, PLENTY)) == list(range(1, 61))
    assert local_threads() == []


class OwnTickets:
    """Tickets that note which thread asks for them."""

    def __init__(self, count):
        self.threads = set()
        self.num_read = 0
        self._count = count

    def __iter__(self):
        return self

    def __next__(self):
        self.threads.add(threading.get_ident())
        if self.num_read == self._count:
            raise StopIteration
        self.num_read += 1
        return self.num_read


@pytest.mark.parametrize("num_threads", [0, 1, 2, 8])
@pytest.mark.parametrize("ahead", [1, 3, 50])
def test_tickets_are_read_in_the_thread_of_the_consumer_where_that_is_asked_for(num_threads, ahead):
    tickets = OwnTickets(60)
    feed = feed_of(tickets, double, num_threads, PLENTY, callers_ahead=ahead)
    assert tickets.num_read == 0
    assert feed.take() == 2
    assert tickets.num_read <= ahead
    assert take_all(feed) == list(range(4, 122, 2))
    assert tickets.threads == {threading.get_ident()}
    assert local_threads() == []


def test_tickets_read_by_the_consumer_wait_for_room():
    tickets = OwnTickets(1000)
    feed = feed_of(tickets, lambda ticket: (ticket, 100), 2, 500, callers_ahead=100)
    for taken in range(1, 100):
        assert feed.take() == taken
        assert tickets.num_read <= taken - 1 + 5  # 500 bytes, and the taken items
    feed.close()
    assert feed.take() is None
    assert local_threads() == []


def test_interrupt_while_the_consumer_reads_tickets_comes_at_once_and_ends_the_threads():
    def tickets():
        yield 1
        raise KeyboardInterrupt

    feed = feed_of(tickets(), double, 2, PLENTY, callers_ahead=3)
    with pytest.raises(KeyboardInterrupt):
        feed.take()
    assert local_threads() == []


@pytest.mark.parametrize("num_threads", [0, 1, 3])
def test_feed_without_tickets_ends_at_once_and_stays_ended(num_threads):
    feed = feed_of(iter(()), double, num_threads, PLENTY)
    assert [feed.take() for _ in range(3)] == [None, None, None]


def test_without_threads_nothing_is_made_ahead_of_its_taking():
    made = []
    feed = feed_of(iter(range(1, 9)), lambda ticket: (made.append(ticket) or ticket, 1), 0, PLENTY)
    assert made == []
    assert (feed.take(), made) == (1, [1])
    assert feed.num_ready == 0


def test_window_is_one_more_than_the_threads_until_a_size_is_known():
    gate = Gate()
    feed = feed_of(iter(range(100)), gate, 3, PLENTY)
    wait_until(lambda: len(gate.begun) == 3)
    assert feed.num_ready == 0
    gate.let(1000)
    feed.close()


@pytest.mark.parametrize(("most_bytes", "ahead"), [(0, 2), (199, 2), (200, 2), (500, 5), (PLENTY, 32)])
def test_window_holds_as_many_as_fit_but_two_at_least_and_32_at_most(most_bytes, ahead):
    feed = feed_of(iter(range(1000)), lambda ticket: (ticket, 100), 2, most_bytes)
    wait_until(lambda: feed.num_ready >= ahead)
    time.sleep(0.02)  # if more were to come, they would now
    first = feed.num_ready
    taken = [feed.take() for _ in range(10)]
    wait_until(lambda: feed.num_ready >= ahead)
    assert (first, feed.num_ready, taken) == (ahead, ahead, list(range(10)))
    feed.close()


def test_window_of_bytes_holds_where_small_things_and_large_ones_take_turns():
    sizes = [10, 10, 10, 4000, 4000, 10] * 40
    alive = weakref.WeakSet()
    peak = []

    class Thing:
        def __init__(self, size):
            self.size = size

    def make(ticket):
        thing = Thing(sizes[ticket])
        alive.add(thing)
        peak.append(sum(each.size for each in list(alive)))
        return thing, thing.size

    feed = feed_of(iter(range(len(sizes))), make, 4, 20_000)
    for _ in sizes:
        assert feed.take() is not None
        time.sleep(0.0005)
    assert feed.take() is None
    # Waiting items, one item per thread, and one item of the consumer.
    assert max(peak) <= 20_000 + (4 + 1) * 4000


def test_threads_that_wait_are_woken_when_smaller_things_make_room():
    gate = Gate(sizes=[1000] + [1] * 99)
    feed = feed_of(iter(range(100)), gate, 4, 4500)
    wait_until(lambda: len(gate.begun) == 4)
    gate.let(1)
    wait_until(lambda: feed.num_ready == 1)  # as large as this one, five are too many: one thread waits
    gate.let(12)
    wait_until(lambda: len(gate.begun) == 13 + 4)  # all are at work again, though nothing was taken
    gate.let(1000)
    assert take_all_numbers(feed, 100) == list(range(100))


def take_all_numbers(feed, count):
    taken = [feed.take() for _ in range(count)]
    assert feed.take() is None
    return taken


@pytest.mark.parametrize("num_threads", [0, 1, 4])
@pytest.mark.parametrize("callers_ahead", [None, 3])
def test_error_comes_in_its_place_with_its_own_traceback_and_ends_the_feed(num_threads, callers_ahead):
    def fail_at_five(ticket):
        if ticket >= 5:
            raise LookupError(f"no {ticket}")
        return ticket, 1

    feed = feed_of(iter(range(1, 100)), fail_at_five, num_threads, PLENTY, callers_ahead=callers_ahead)
    assert [feed.take() for _ in range(4)] == [1, 2, 3, 4]
    with raises_with(LookupError, "5") as caught:
        feed.take()
    assert "fail_at_five" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert feed.take() is None
    assert local_threads() == []


@pytest.mark.parametrize("num_threads", [0, 2])
@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, MemoryError])
def test_exceptions_that_are_no_errors_reach_the_consumer_too(num_threads, kind):
    def leave(ticket):
        raise kind("gone")

    feed = feed_of(iter([1]), leave, num_threads, PLENTY)
    with pytest.raises(kind, match="gone"):
        feed.take()


@pytest.mark.parametrize("num_threads", [0, 1, 3])
@pytest.mark.parametrize("callers_ahead", [None, 2, 9])
def test_error_of_the_tickets_comes_behind_those_that_were_given(num_threads, callers_ahead):
    def tickets():
        yield from (1, 2, 3)
        raise OSError("no more")

    feed = feed_of(tickets(), double, num_threads, PLENTY, callers_ahead=callers_ahead)
    assert [feed.take() for _ in range(3)] == [2, 4, 6]
    with pytest.raises(OSError, match="no more"):
        feed.take()
    assert feed.take() is None


def test_consumer_is_told_where_a_thread_dies_while_it_waits_for_room():
    feed = feed_of(iter(range(1000)), double, 2, 0)
    wait_until(lambda: feed.num_ready == 2)
    threads = local_threads()
    assert len(threads) == 2
    for thread in threads:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
    with pytest.raises(SystemExit):
        take_all(feed)
    assert local_threads() == []


def test_consumer_gets_the_error_of_a_thread_that_fails_to_deliver(monkeypatch):
    def deliver(self, number, made):
        raise MemoryError("no room to put it down")

    monkeypatch.setattr(feeds.Window, "deliver", deliver)
    feed = feed_of(iter(range(10)), double, 2, PLENTY)
    with pytest.raises(MemoryError, match="no room to put it down"):
        feed.take()


def test_close_ends_threads_that_wait_and_does_nothing_twice():
    feed = feed_of(iter(range(1000)), double, 4, 0)
    wait_until(lambda: feed.num_ready == 2)
    feed.close()
    assert (local_threads(), feed.num_ready, feed.take()) == ([], 0, None)
    feed.close()


def test_close_releases_results_that_a_thread_makes_afterwards():
    class Thing:
        pass

    gate = Gate()
    made = []

    def make(ticket):
        thing = Thing()
        made.append(weakref.ref(thing))
        gate(ticket)
        return thing, 1

    feed = feed_of(iter(range(10)), make, 1, PLENTY)
    wait_until(lambda: gate.begun == [0])
    threading.Timer(0.05, gate.let, [100]).start()
    feed.close()
    wait_until(lambda: made[0]() is None)
    assert feed.num_ready == 0


def test_close_does_not_wait_indefinitely_for_endless_work(monkeypatch):
    monkeypatch.setattr(feeds, "_JOIN_SECONDS", 1.0)
    gate = Gate()
    feed = feed_of(iter(range(20)), gate, 10, PLENTY)
    wait_until(lambda: len(gate.begun) == 10)
    begin = time.monotonic()
    feed.close()
    assert 1.0 <= time.monotonic() - begin < 8.0  # all together, not each
    gate.let(100)
    wait_until(lambda: local_threads() == [])


def test_dropping_a_feed_ends_its_threads_and_frees_waiting_items():
    class Thing:
        pass

    made = []

    def make(ticket):
        thing = Thing()
        made.append(weakref.ref(thing))
        return thing, 1

    feed = feed_of(iter(range(1000)), make, 2, PLENTY)
    wait_until(lambda: feed.num_ready == 32)
    feed = None
    assert local_threads() == []
    assert [each() for each in made] == [None] * len(made)


def test_feed_in_a_ring_can_be_collected_by_one_of_its_threads():
    """The garbage collector runs in whatever thread allocates: it may be one that holds the feed's lock."""
    ring = []
    is_dropped = threading.Event()

    def tickets():  # asked under the lock
        for ticket in range(1, 1000):
            if is_dropped.is_set():
                gc.collect()
            yield ticket

    gc.disable()
    try:
        feed = feed_of(tickets(), double, 2, 0)
        ring.append(feed)
        feed.ring = ring
        wait_until(lambda: feed.num_ready == 2)
        gone = weakref.ref(feed)
        window = feed._window
        is_dropped.set()
        feed = None
        ring = None
        with window._lock:  # room for one more: a thread asks for a ticket, and collects
            window._made.pop(0)
            window._num_taken += 1
            window._core.wake()
        wait_until(lambda: gone() is None)
        wait_until(lambda: local_threads() == [])
    finally:
        gc.enable()


def test_error_leaves_no_ring_that_only_the_collector_could_undo():
    class Thing:
        pass

    held = []

    def make(ticket):
        thing = Thing()
        held.append(weakref.ref(thing))
        raise ValueError("bad")

    gc.disable()
    try:
        feed = feed_of(iter([1]), make, 1, PLENTY)
        with contextlib.suppress(ValueError):
            feed.take()
        feed = None
        assert held[0]() is None
    finally:
        gc.enable()


def test_waiting_consumer_is_woken_for_results_that_were_ready_before_its_turn():
    gates = [threading.Event(), threading.Event()]

    def make(ticket):
        assert gates[ticket].wait(20)
        return ticket, 1

    feed = feed_of(iter(range(2)), make, 2, PLENTY)
    taken = []
    consumers = [threading.Thread(target=lambda: taken.append(feed.take())) for _ in range(3)]
    for consumer in consumers:
        consumer.start()
    wait_until(lambda: len(feed._window._ready._waiters) == 3)
    gates[1].set()
    wait_until(lambda: feed.num_ready == 1)
    gates[0].set()
    for consumer in consumers:
        consumer.join(20)
    assert sorted(taken, key=str) == [0, 1, None]


def test_several_consumers_share_the_items_and_all_see_the_end():
    def make(ticket):
        time.sleep(0.0003 * (ticket % 4))
        return ticket, 1

    feed = feed_of(iter(range(1, 401)), make, 3, PLENTY)
    taken = [[], [], [], []]
    consumers = [threading.Thread(target=lambda into=into: into.extend(take_all(feed))) for into in taken]
    for consumer in consumers:
        consumer.start()
    for consumer in consumers:
        consumer.join(20)
    assert not any(consumer.is_alive() for consumer in consumers)
    assert sorted(itertools.chain(*taken)) == list(range(1, 401))
    assert all(into == sorted(into) for into in taken)


@pytest.mark.parametrize("num_threads", [0, 2])
def test_another_process_is_refused_and_can_still_end(num_threads):
    feed = feed_of(iter(range(1, 1000)), double, num_threads, PLENTY)
    assert feed.take() == 2
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        text = "nothing"
        try:
            feed.take()
        except ForkedError as error:
            text = str(error)
        feed.close()
        feed = None
        os.write(writer, text.encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert os.read(reader, 1000).decode() == (containing("process", "for batch in loader"))
    os.close(reader)
    os.close(writer)
    assert feed.take() == 4
    feed.close()


def test_lock_that_a_thread_held_in_the_parent_does_not_stop_a_child_from_ending():
    feed = feed_of(iter(range(1, 1000)), double, 1, 0)
    holds, lets_go = threading.Event(), threading.Event()

    def hold():
        with feed._window._lock:
            holds.set()
            lets_go.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    holds.wait(20)
    child = os.fork()
    if child == 0:
        ending = feed._ending
        feed = None  # whatever ends it here must not ask for that lock
        os._exit(1 if ending.alive else 7)
    lets_go.set()
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    feed.close()


def test_consumer_that_releases_an_item_frees_it():
    class Thing:
        pass

    feed = feed_of(iter(range(100)), lambda ticket: (Thing(), 1), 2, PLENTY)
    held = weakref.ref(feed.take())
    wait_until(lambda: held() is None)
    feed.close()


def test_arrays_are_the_ones_that_were_made():
    made = {}

    def make(ticket):
        made[ticket] = np.full(4, ticket)
        return made[ticket], made[ticket].nbytes

    feed = feed_of(iter(range(1, 5)), make, 2, PLENTY)
    for ticket, array in enumerate(take_all(feed), 1):
        assert array is made[ticket]


class Parts:
    """A job of several parts, which notes who did them."""

    native = None
    is_long_to_finish = False

    def __init__(self, ticket, num_parts, run=None):
        self.num_parts = num_parts
        self._ticket = ticket
        self._run = run
        self._done = set()

    def run(self, part):
        if self._run is not None:
            self._run(self._ticket, part)
        self._done.add(part)

    def finish(self):
        assert self._done == set(range(self.num_parts))
        return (self._ticket, sorted(self._done)), 100


@pytest.mark.parametrize("num_threads", [0, 1, 3, 8])
@pytest.mark.parametrize("num_parts", [1, 2, 7])
def test_all_parts_of_a_job_are_done_before_it_is_finished(num_threads, num_parts):
    feed = Feed(iter(range(1, 30)), lambda ticket: Parts(ticket, num_parts), num_threads, PLENTY)
    assert take_all(feed) == [(ticket, list(range(num_parts))) for ticket in range(1, 30)]


def test_all_threads_work_on_the_parts_of_one_job():
    barrier = threading.Barrier(4, timeout=20)
    feed = Feed(iter([1]), lambda ticket: Parts(ticket, 4, lambda *_: barrier.wait()), 4, PLENTY)
    assert take_all(feed) == [(1, [0, 1, 2, 3])]


@pytest.mark.parametrize("num_threads", [1, 4])
def test_of_several_parts_that_fail_the_first_one_counts(num_threads):
    def run(ticket, part):
        if ticket == 3 and part in (1, 4):
            raise ValueError(part)

    feed = Feed(iter(range(1, 9)), lambda ticket: Parts(ticket, 6, run), num_threads, PLENTY)
    assert [feed.take()[0], feed.take()[0]] == [1, 2]
    with pytest.raises(ValueError, match="1"):
        feed.take()
    assert feed.take() is None


@pytest.mark.parametrize("num_threads", [0, 2])
def test_job_that_cannot_begin_is_an_error_in_its_place(num_threads):
    def begin(ticket):
        if ticket == 2:
            raise LookupError("no such job")
        return Parts(ticket, 3)

    feed = Feed(iter(range(1, 9)), begin, num_threads, PLENTY)
    assert feed.take()[0] == 1
    with pytest.raises(LookupError):
        feed.take()


def test_one_job_is_begun_at_a_time_while_it_has_parts_for_all_threads():
    begun = []
    gate = threading.Event()

    def begin(ticket):
        begun.append(ticket)
        return Parts(ticket, 64, lambda *_: gate.wait(20))

    feed = Feed(iter(range(1, 100)), begin, 8, None)
    wait_until(lambda: begun)
    time.sleep(0.1)
    assert begun == [1]
    gate.set()
    assert feed.take()[0] == 1
    feed.close()


def test_limit_of_bytes_grows_with_the_items_up_to_a_share_of_the_memory(monkeypatch):
    monkeypatch.setattr(job_window, "max_window_bytes", lambda: 1000 << 20)

    def count_ahead(num_bytes):
        feed = feed_of(iter(range(1, 100)), lambda ticket: (ticket, num_bytes), 4, None)
        feed.take()
        wait_until(lambda: feed.num_ready >= 2)
        time.sleep(0.3)
        ready = feed.num_ready
        feed.close()
        return ready

    assert count_ahead(1) == 32
    assert 8 <= count_ahead(50 << 20) <= 12  # enough for four threads, whatever the items take
    assert 2 <= count_ahead(400 << 20) <= 3  # but no more than an eighth of the memory


def test_closed_feed_keeps_no_job_that_was_beginning():
    is_begun, jobs = threading.Event(), []

    def begin(ticket):
        is_begun.set()
        wait_until(lambda: job_window._here.window.is_stopped)
        job = Parts(ticket, 2, lambda *_: None)
        jobs.append(weakref.ref(job))
        return job

    feed = Feed(iter([1]), begin, 1, PLENTY)
    assert is_begun.wait(10)
    feed.close()
    assert [job() for job in jobs] == [None]
    assert feed.take() is None
