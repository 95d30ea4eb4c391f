"""Locks that are free in a forked process, whichever thread held them in the parent; usable memory."""

import gc
import os
import pickle
import threading
from types import SimpleNamespace

import pytest

from penstock.foundation import process
from penstock.foundation.process import ProcessLock, paused_collection, usable_memory
from penstock.jobs.predict.new_rows import choose_num_threads
from penstock.options import LoadOptions
from raising import raises_with


def in_child(action) -> int:
    """Run something in a forked process and return its exit status."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            status = action()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_lock_lets_one_in_at_a_time():
    lock, inside, most = ProcessLock(), [], []

    def enter():
        for _ in range(200):
            with lock:
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1


def test_error_inside_lets_go():
    lock = ProcessLock()
    with pytest.raises(ValueError, match="inside"), lock:
        raise ValueError("inside")
    with lock:
        pass


@pytest.mark.timeout(30)
def test_lock_held_by_another_thread_is_free_in_the_child():
    lock = ProcessLock()
    holds, lets_go = threading.Event(), threading.Event()

    def hold():
        with lock:
            holds.set()
            lets_go.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    holds.wait(20)

    def enter():
        with lock:
            return 7

    assert in_child(enter) == 7
    assert not lets_go.is_set()  # in the parent it is held as before
    assert not lock._lock.acquire(blocking=False)
    lets_go.set()
    thread.join()
    with lock:
        pass


def test_locks_without_a_reference_are_forgotten():
    gc.collect()
    before = len(process._locks)
    locks = [ProcessLock() for _ in range(10)]
    assert len(process._locks) == before + 10
    del locks
    gc.collect()
    assert len(process._locks) == before


def test_lock_cannot_be_sent_to_another_process():
    with raises_with(TypeError, "process path"):
        pickle.dumps(ProcessLock())


MACHINE = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_memory_is_the_limit_of_the_container_where_there_is_one(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(process, "_LIMITS", (str(tmp_path / "none"), str(limit)))
    assert usable_memory() == MACHINE
    for text, expected in (("max\n", MACHINE), ("1048576\n", 1 << 20), (f"{MACHINE * 2}", MACHINE)):
        limit.write_text(text)
        assert usable_memory() == expected


@pytest.mark.parametrize("is_enabled", [True, False])
def test_collection_is_paused_and_then_as_before(is_enabled):
    before = gc.isenabled()
    try:
        gc.enable() if is_enabled else gc.disable()
        with paused_collection():
            assert not gc.isenabled()
        assert gc.isenabled() == is_enabled
    finally:
        gc.enable() if before else gc.disable()


def test_cores_on_a_system_that_pins_no_process_are_all_of_them(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 5)
    assert process.count_cores() == 5
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert process.count_cores() == 1


def test_options_on_a_system_that_pins_no_process_use_all_cores(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert LoadOptions().count_threads() == 3
    assert choose_num_threads(None) == 3


@pytest.mark.parametrize(("platform", "factor"), [("linux", 1024), ("darwin", 1)])
def test_peak_memory_without_proc_has_the_unit_of_the_system(platform, factor, monkeypatch):
    monkeypatch.setattr(process, "_read_number", lambda path, name: None)
    monkeypatch.setattr(process.sys, "platform", platform)
    monkeypatch.setattr(process.resource, "getrusage", lambda who: SimpleNamespace(ru_maxrss=3000))
    assert process.find_peak_bytes() == 3000 * factor


def test_limit_of_open_files_that_is_infinite_is_a_large_number(monkeypatch):
    infinite = process.resource.RLIM_INFINITY
    monkeypatch.setattr(process.resource, "getrlimit", lambda which: (infinite, infinite))
    assert process.find_most_files() == 1 << 20
    monkeypatch.setattr(process.resource, "getrlimit", lambda which: (256, infinite))
    assert process.find_most_files() == 256
