"""Ctrl-C, forks, and processes that are started: L6 and L7 of the fault table, all in processes apart."""

import json
import os
import pickle
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from loaded_batches import open_numbers, write_shards
from penstock.errors import NotPicklableError
from separate_process import TESTS, run_apart

MOST_SECONDS = 5.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("processes") / "data"
    write_shards(path, [40, 60])
    return path


def start(program, *arguments):
    """Start a program in a new session, so that processes that it leaves behind can be found."""
    return subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", program, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )


def interrupt(process):
    """Press Ctrl-C, and wait until the program says something, or ends.

    Python loses an interrupt that comes while it runs a finalizer, and prints a note.
    Then it is pressed once more, as anybody would; but not where it was heard and nothing came of it.
    """
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    if not select.select([process.stdout], [], [], 2.0)[0]:
        os.set_blocking(process.stderr.fileno(), False)
        assert "Exception ignored in" in (process.stderr.read() or ""), "it hangs"
        os.set_blocking(process.stderr.fileno(), True)
        process.send_signal(signal.SIGINT)
        assert select.select([process.stdout], [], [], MOST_SECONDS - 2)[0], "it hangs"
    assert time.monotonic() - begin < MOST_SECONDS


def assert_nothing_left(process, before):
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    left = {path.name for path in Path("/dev/shm").iterdir()} - before  # noqa: S108
    # Other tests, which run beside this one, have folders of their own there (conftest.py).
    assert {name for name in left if not name.startswith("penstock-")} == set()


# Takes batches; says when it is interrupted and whether threads are left; the last interrupt ends it.
INTERRUPTED = """
import sys, threading, time
import numpy as np
import penstock as ps
from loaded_batches import open_numbers
from penstock.transform import Output

folder, times, num_threads, place = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]

def work(columns):
    if place == "map":
        time.sleep(0.003)
    return {"mapped": columns["n"].values.astype(np.float32)}

split = open_numbers(folder)
pipeline = ps.Pipeline.fit(split, x=None, s=None, w=None)
pipeline = pipeline.map(work, fields=["n"], outputs=[Output("mapped", "float32")])
choices = {"batch_size": 3, "shuffle": True, "repeat": None, "num_threads": num_threads}

def load():
    if place == "beginning":  # iterations that have hardly begun, each with a cache to be filled
        while True:
            next(iter(split.loader(pipeline, cache="memory", **choices)))
    for inputs, targets in split.loader(pipeline, **choices):
        if place == "consumer":
            time.sleep(0.002)

def threads_left():
    # A thread whose start was interrupted is listed for ever, but was never alive.
    names = [thread.name for thread in threading.enumerate() if thread.is_alive()]
    return [name for name in names if name.startswith("penstock-")]

print("ready", flush=True)
for _ in range(times):
    try:
        load()
    except KeyboardInterrupt:
        pass
    deadline = time.monotonic() + 4
    while (left := threads_left()) and time.monotonic() < deadline:
        time.sleep(0.001)  # one that was just being started ends by itself
    print("interrupted", left, flush=True)
load()
"""

CASES = [("map", 2), ("consumer", 4), ("anywhere", 0), ("beginning", 2)]


@pytest.mark.parametrize(
    ("place", "num_threads", "times"),
    [(*case, 1) for case in CASES]
    + [("anywhere", 2, 9)]
    + [pytest.param(*case, 50, marks=pytest.mark.long) for case in CASES],
)
def test_l06_interrupt_at_any_time_ends_at_once_and_leaves_nothing(folder, place, num_threads, times):
    dice = np.random.default_rng([times, num_threads, len(place)])
    before = {path.name for path in Path("/dev/shm").iterdir()}  # noqa: S108
    process = start(INTERRUPTED, folder, times, num_threads, place)
    try:
        assert process.stdout.readline() == "ready\n"
        for _ in range(times):
            time.sleep(dice.uniform(0.0, 0.06))
            interrupt(process)
            assert process.stdout.readline() == "interrupted []\n"
        time.sleep(dice.uniform(0.0, 0.06))
        interrupt(process)
        out, err = process.communicate(timeout=MOST_SECONDS)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGINT
    assert err.strip().endswith("KeyboardInterrupt")
    assert "Fatal" not in err
    assert out == ""
    assert_nothing_left(process, before)


def test_l06_interrupt_while_a_map_never_returns_still_ends_in_time(folder):
    program = """
import sys, time
import numpy as np
import penstock as ps
from loaded_batches import open_numbers
from penstock.transform import Output

def hang(columns):
    if columns["n"].values[0] == 0:
        print("ready", flush=True)
    time.sleep(1000)

split = open_numbers(sys.argv[1])
pipeline = ps.Pipeline.fit(split, x=None, s=None, w=None)
pipeline = pipeline.map(hang, fields=["n"], outputs=[Output("mapped", "float32")])
for batch in split.loader(pipeline, batch_size=3, num_threads=4):
    pass
"""
    process = start(program, folder)
    try:
        assert process.stdout.readline() == "ready\n"
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert time.monotonic() - begin < MOST_SECONDS
    finally:
        process.kill()
        process.communicate()
    assert err.strip().endswith("KeyboardInterrupt")


ENDS = {"pass": 0, "1 / 0": 1, "sys.exit(3)": 3}


@pytest.mark.parametrize("end", ENDS)
def test_l06_program_that_ends_in_the_middle_of_an_epoch_ends_at_once(folder, end):
    program = f"""
import sys, time
from loaded_batches import open_numbers
loader = open_numbers(sys.argv[1]).loader(batch_size=2, repeat=None, shuffle=True, num_threads=4)
batches = iter(loader)
for _ in range(20):
    next(batches)
print(time.time(), flush=True)
{end}
"""
    result = run_apart(program, folder, check=False, timeout=30)
    assert time.time() - float(result.stdout) < MOST_SECONDS
    assert result.returncode == ENDS[end]
    assert "Fatal" not in result.stderr


# Forks again and again while threads load; every child loads by itself, and so does the parent.
FORKING = """
import contextlib, faulthandler, json, os, signal, sys, threading, time
import penstock as ps
from penstock.errors import ForkedError
from penstock.foundation import process
from loaded_batches import open_numbers

folder, times, choices = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
faulthandler.register(signal.SIGALRM, chain=True)  # what hangs says where, and ends
signal.alarm(20 + times)

def numbers(batches):
    return [n for inputs, _ in batches for n in inputs["n"].tolist()]

split = open_numbers(folder)
pipeline = ps.Pipeline.fit(split, n={"kind": "keep"})
def make():
    return split.loader(pipeline, batch_size=3, shuffle=True, seed=5, num_threads=3, **choices)
loader = make()
expected = numbers(open_numbers(folder).loader(pipeline, batch_size=3, shuffle=True, seed=5).read(0))
batches = iter(loader)
taken = numbers([next(batches)])
statuses = []

def hold(locks, holds, lets_go):
    with contextlib.ExitStack() as held:
        for lock in locks:
            held.enter_context(lock)
        holds.set()
        lets_go.wait()

for number in range(times):
    holds, lets_go = threading.Event(), threading.Event()
    if number == 0:  # by chance a thread has one of them; here another has them all
        threading.Thread(target=hold, args=(list(process._locks), holds, lets_go)).start()
        holds.wait()
    child = os.fork()
    lets_go.set()
    if child == 0:
        signal.alarm(15)
        try:
            next(batches)
            os._exit(11)
        except ForkedError:
            pass
        if numbers(loader.read(0)) != expected:
            os._exit(12)
        if numbers(make().read(0)) != expected:
            os._exit(13)
        loader.stats()
        if numbers(open_numbers(folder).loader(pipeline, batch_size=3, shuffle=True, seed=5)) != expected:
            os._exit(14)
        if number % 2:
            os._exit(0)
        del batches
        sys.exit(0)  # with all that is done at exit
    while True:  # goes on loading meanwhile
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        made = numbers(loader.read(number + 1))
        assert sorted(made) == list(range(100))
    statuses.append(os.waitstatus_to_exitcode(status))
taken += numbers(batches)
assert taken == expected
print(json.dumps(statuses))
"""


@pytest.mark.parametrize("choices", [{}, {"cache": "memory"}])
@pytest.mark.parametrize("times", [6, pytest.param(300, marks=pytest.mark.long)])
def test_l07_processes_that_are_forked_while_threads_load_can_load_themselves(folder, choices, times):
    result = run_apart(FORKING, folder, times, json.dumps(choices), timeout=60 + times)
    assert json.loads(result.stdout) == [0] * times
    assert "Traceback" not in result.stderr


STARTED = """
import multiprocessing, sys
from loaded_batches import open_numbers

def load(folder, state, results):
    loader = open_numbers(folder).loader(batch_size=7, shuffle=True, seed=4, num_threads=2)
    loader.load_state_dict(state)
    results.put([n for inputs, _ in loader for n in inputs["n"].tolist()])

if __name__ == "__main__":
    folder, way = sys.argv[1:]
    context = multiprocessing.get_context(way)
    loader = open_numbers(folder).loader(batch_size=7, shuffle=True, seed=4, num_threads=2)
    batches = iter(loader)
    next(batches)
    results = context.Queue()
    children = [
        context.Process(target=load, args=(folder, loader.state_dict(), results)) for _ in range(2)
    ]
    for child in children:
        child.start()
    found = [results.get(timeout=60) for _ in children]
    for child in children:
        child.join()
    rest = [n for inputs, _ in batches for n in inputs["n"].tolist()]
    print(found == [rest, rest], [child.exitcode for child in children], len(rest))
"""


@pytest.mark.parametrize("way", ["spawn", "forkserver", "fork"])
def test_l07_processes_that_are_started_resume_from_a_state(folder, tmp_path, way):
    path = tmp_path / "started.py"
    path.write_text(STARTED)
    result = subprocess.run(
        [sys.executable, path, folder, way],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
    )
    assert result.stdout == "True [0, 0] 93\n"


def test_l07_what_has_open_files_or_threads_refuses_to_be_sent(folder):
    split = open_numbers(folder)
    loader = split.loader(batch_size=4)
    batches = iter(loader)
    for thing in (loader, batches):
        with pytest.raises(NotPicklableError) as caught:
            pickle.dumps(thing)
        assert "state_dict()" in caught.value.advice
    with pytest.raises(NotPicklableError):
        pickle.dumps(ps.mix([split]))
    batches.close()
    state = loader.state_dict()
    assert pickle.loads(pickle.dumps(state)) == state  # noqa: S301 - our own, of a moment ago


def test_l07_loader_works_outside_the_main_thread_and_under_an_event_loop(folder):
    program = """
import asyncio, sys, threading
from loaded_batches import open_numbers
loader = open_numbers(sys.argv[1]).loader(batch_size=7, shuffle=True, num_threads=2)

def load():
    return sorted(n for inputs, _ in loader for n in inputs["n"].tolist())

found = []
thread = threading.Thread(target=lambda: found.append(load()))
thread.start()
thread.join(30)

async def cell():  # as a notebook runs its cells
    found.append(load())
    found.append(await asyncio.to_thread(load))

asyncio.run(cell())
print([each == list(range(100)) for each in found])
"""
    assert run_apart(program, folder).stdout == "[True, True, True]\n"
