"""Background work: done once, its result kept up to a size, given up when no one asks for it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from penstock.view import scan_jobs as module
from penstock.view.scan_jobs import Progress, ScanJobs, SerialWork


@dataclass
class Result:
    name: str
    nbytes: int = 1


@pytest.fixture
def jobs():
    made = ScanJobs()
    yield made
    made.close()


def test_result_is_computed_once_and_kept(jobs):
    calls = []

    def work(watch):
        calls.append(1)
        return Result("a")

    first = jobs.ask("key", work, 10)
    assert first == Result("a")
    assert jobs.ask("key", work, 10) is first
    assert calls == [1]


def test_slow_work_gives_its_progress_first_and_its_result_later(jobs):
    can_end, has_begun = threading.Event(), threading.Event()

    def work(watch):
        watch.report(3, 10)
        has_begun.set()
        can_end.wait(30)
        return Result("slow")

    jobs.ask("key", work, 0.0)
    assert has_begun.wait(30)
    found = jobs.ask("key", work, 0.0)
    assert found == Progress(3, 10)
    assert found.share == 0.3
    can_end.set()
    assert jobs.ask("key", work, 30) == Result("slow")


def test_error_of_the_work_is_raised_and_the_next_request_tries_again(jobs):
    def fail(watch):
        raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        jobs.ask("key", fail, 10)
    assert jobs.ask("key", lambda watch: Result("second"), 10) == Result("second")


def test_work_that_no_request_asks_for_is_given_up():
    now = [0.0]
    jobs = ScanJobs(clock=lambda: now[0])
    has_begun, can_go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def work(watch):
        try:
            watch.report(1, 2)
            has_begun.set()
            can_go_on.wait(30)
            watch.report(2, 2)
        finally:
            ended.set()
        return Result("never")

    jobs.ask("key", work, 0.0)
    assert has_begun.wait(30)
    now[0] = module.GIVE_UP_SECONDS + 1
    can_go_on.set()
    assert ended.wait(30)
    jobs.close()
    assert jobs.ask is not None
    assert jobs._results == {}


def test_results_beyond_the_limit_are_forgotten_the_oldest_first(jobs, monkeypatch):
    monkeypatch.setattr(module, "MAX_RESULT_BYTES", 10)
    for name in "abc":
        jobs.ask(name, lambda watch, name=name: Result(name, 4), 10)
    assert jobs.ask("a", lambda watch: Result("again", 4), 10) == Result("again", 4)
    assert jobs.ask("c", lambda watch: Result("other", 4), 10) == Result("c", 4)


def test_too_much_work_stops_the_oldest(jobs, monkeypatch):
    monkeypatch.setattr(module, "_MOST_JOBS", 2)
    go_on = threading.Event()
    stopped = []

    def make(name):
        def work(watch):
            while not go_on.wait(0.01):
                try:
                    watch.report(0, 1)
                except module.GivenUpError:
                    stopped.append(name)
                    raise
            return Result(name)

        return work

    for name in ("first", "second", "third"):
        jobs.ask(name, make(name), 0.05)
    go_on.set()
    assert jobs.ask("third", make("third"), 30) == Result("third")
    assert stopped == ["first"]


def test_work_that_needs_memory_runs_in_one_thread():
    work = SerialWork()
    running, most, threads = [], [], set()

    def use_memory():
        running.append(1)
        most.append(len(running))
        threads.add(threading.get_ident())
        running.pop()

    with ThreadPoolExecutor(8) as requests:
        for answer in [requests.submit(work.run, use_memory) for _ in range(50)]:
            answer.result()
    assert (set(most), len(threads)) == ({1}, 1)

    def fail():
        raise ValueError("of the work")

    with pytest.raises(ValueError, match="of the work"):
        work.run(fail)
    work.close()
