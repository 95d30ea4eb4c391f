"""Errors in threads, consumers that are slow or leave: L4, L5, L8 and L9 of the fault table."""

import ctypes
import gc
import json
import os
import threading
import time
import traceback
from pathlib import Path

import numpy as np
import pytest

import penstock as ps
from loaded_batches import open_numbers, write_shards
from local_threads import local_threads
from penstock import _native
from penstock.batch.maker import Maker
from penstock.errors import FieldError
from penstock.transform import Output
from raising import containing
from record_files import example, write_plain
from separate_process import run_apart

THREADS = pytest.mark.parametrize("num_threads", [0, 1, 2, 8])


@pytest.fixture
def split(tmp_path):
    write_shards(tmp_path / "data", [6, 14])
    return open_numbers(tmp_path / "data")


def map_of(split, function):
    """Return a pipeline that feeds the numbers of records, and calls a function on each batch."""
    pipeline = ps.Pipeline.fit(split, n={"kind": "keep"}, x=None, s=None, l=None, w=None)
    return pipeline.map(function, fields=["n"], outputs=[Output("mapped", "float32")], keep=True)


def take_numbers(loader, into):
    """Take all batches, and put down which records they held."""
    for inputs, _ in loader:
        into += inputs["n"].tolist()


class OddError(Exception):
    """An error of a user's own, which takes two arguments."""

    def __init__(self, number, reason):
        super().__init__(number, reason)
        self.number = number


def fail_at_five(columns):
    values = columns["n"].values
    if 5 in values:
        raise OddError(5, "cannot be mapped")  # the line that a traceback must show
    return {"mapped": values.astype(np.float32)}


@THREADS
@pytest.mark.parametrize("batch_size", [1, 2])
def test_l04_error_in_a_map_comes_as_it_was_raised(split, num_threads, batch_size):
    loader = split.loader(map_of(split, fail_at_five), batch_size=batch_size, num_threads=num_threads)
    taken = []
    begin = time.monotonic()
    with pytest.raises(OddError) as caught:
        take_numbers(loader, taken)
    assert time.monotonic() - begin < 5
    assert local_threads() == []
    assert taken == [0, 1, 2, 3, 4][: 5 // batch_size * batch_size]  # all that came before it
    error = caught.value
    assert (type(error), error.args, error.number) == (OddError, (5, "cannot be mapped"), 5)
    frames = traceback.extract_tb(error.__traceback__)
    assert frames[-1].name == "fail_at_five"
    assert frames[-1].line == 'raise OddError(5, "cannot be mapped")  # the line that a traceback must show'
    path = split.paths[0]
    step = 5 // batch_size
    first = step * batch_size
    assert error.__notes__[-1] == containing(
        f"batch {step}", "epoch 0", f"{batch_size} record", f"record {first} ", path
    )
    assert loader.position == (0, step)  # what was not taken does not count
    assert [place.record for place in loader.where(step)] == list(range(first, first + batch_size))


@THREADS
def test_l04_error_in_a_shuffled_epoch_is_the_same_for_any_number_of_threads(split, num_threads):
    def fail(columns):
        bad = columns["n"].values[columns["n"].values % 5 == 3]
        if len(bad):
            raise ValueError(f"records {bad.tolist()}")
        return {"mapped": columns["n"].values.astype(np.float32)}

    found = []
    for threads in (0, num_threads):
        loader = split.loader(map_of(split, fail), batch_size=2, shuffle=True, seed=5, num_threads=threads)
        taken = []
        with pytest.raises(ValueError, match="records") as caught:
            take_numbers(loader, taken)
        found.append((taken, str(caught.value), caught.value.__notes__))
    assert found[0] == found[1]


@THREADS
def test_l04_map_with_undeclared_output_is_named_with_its_batch(split, num_threads):
    def return_other_output(columns):
        return {"mapped": np.zeros(3, np.int64)}

    loader = split.loader(map_of(split, return_other_output), batch_size=4, num_threads=num_threads)
    with pytest.raises(FieldError, match="return_other_output") as caught:
        next(iter(loader))
    assert containing("batch 0", "epoch 0") in caught.value.__notes__


def test_l04_loader_can_be_used_again_after_an_error(split):
    is_broken = [True]

    def sometimes(columns):
        if is_broken[0]:
            raise OSError("not now")
        return {"mapped": columns["n"].values.astype(np.float32)}

    loader = split.loader(map_of(split, sometimes), batch_size=5, num_threads=2)
    state = loader.state_dict()
    with pytest.raises(OSError, match="not now"):
        list(loader)
    is_broken[0] = False
    loader.load_state_dict(state)
    assert [len(inputs["n"]) for inputs, _ in loader] == [5, 5, 5, 5]


def test_l04_threads_that_are_in_a_slow_map_are_not_waited_for(split):
    started, release = threading.Event(), threading.Event()

    def slow(columns):
        if columns["n"].values[0] == 0:
            assert started.wait(20)
            raise OddError(0, "while another is at work")
        started.set()
        release.wait(20)
        return {"mapped": columns["n"].values.astype(np.float32)}

    loader = split.loader(map_of(split, slow), batch_size=5, num_threads=3)
    begin = time.monotonic()
    threading.Timer(0.3, release.set).start()
    with pytest.raises(OddError):
        list(loader)
    assert time.monotonic() - begin < 5
    assert local_threads() == []


@THREADS
@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, MemoryError, RecursionError])
def test_l05_worker_that_must_end_ends_the_consumer_too(split, num_threads, kind):
    """Workers are threads of this process: kill -9 of one ends all of it, and there is nobody left to hang.

    What can still end one thread alone is an exception that is no error, from a map or from outside.
    """

    def leave(columns):
        if 10 in columns["n"].values:
            raise kind("enough")
        return {"mapped": columns["n"].values.astype(np.float32)}

    loader = split.loader(map_of(split, leave), batch_size=4, num_threads=num_threads)
    taken = []
    begin = time.monotonic()
    with pytest.raises(kind, match="enough"):
        take_numbers(loader, taken)
    assert time.monotonic() - begin < 10
    assert taken == list(range(8))
    assert local_threads() == []


@pytest.mark.parametrize("moment", ["at work", "waiting"])
def test_l05_thread_that_is_ended_from_outside_does_not_hang_the_consumer(split, moment):
    def map_slowly(columns):
        deadline = time.monotonic() + (0.2 if moment == "at work" else 0)
        while time.monotonic() < deadline:
            pass  # an exception from outside is seen between two lines of Python
        return {"mapped": columns["n"].values.astype(np.float32)}

    loader = split.loader(map_of(split, map_slowly), batch_size=2, num_threads=2, prefetch_bytes=0)
    batches = iter(loader)
    if moment == "waiting":
        next(batches)
        deadline = time.monotonic() + 10
        while loader.stats().num_ready < 2:
            assert time.monotonic() < deadline
            time.sleep(0.001)
    for thread in local_threads():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
    begin = time.monotonic()
    with pytest.raises(SystemExit):
        list(batches)
    assert time.monotonic() - begin < 10
    assert local_threads() == []


@pytest.mark.skipif("PENSTOCK_SANITIZED" in os.environ, reason="sanitizers take memory of their own")
def test_l05_memory_that_runs_out_in_a_worker_is_an_error(tmp_path):
    program = """
import resource, sys
import numpy as np
import penstock as ps
from loaded_batches import open_numbers
from penstock.transform import Output

def grow(columns):
    values = columns["n"].values
    if 10 in values:
        np.ones(1 << 40, np.uint8)
    return {"mapped": values.astype(np.float32)}

split = open_numbers(sys.argv[1])
pipeline = ps.Pipeline.fit(split, n={"kind": "keep"}, x=None, s=None, l=None, w=None)
pipeline = pipeline.map(grow, fields=["n"], outputs=[Output("mapped", "float32")], keep=True)
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
taken = []
try:
    for inputs, _ in split.loader(pipeline, batch_size=4, num_threads=2):
        taken += inputs["n"].tolist()
except MemoryError as error:
    print(taken, error.__notes__[-1])
"""
    write_shards(tmp_path / "data", [6, 14])
    result = run_apart(program, tmp_path / "data")
    assert result.stdout == containing("[0, 1, 2, 3, 4, 5, 6, 7]", "batch 2", "epoch 0")


@pytest.mark.parametrize(("num_threads", "prefetch_bytes", "most"), [(1, 0, 2), (4, 0, 2), (4, 1 << 40, 32)])
def test_l08_batches_that_wait_are_bounded_however_slow_the_consumer(
    split, monkeypatch, num_threads, prefetch_bytes, most
):
    made = []
    begin = Maker.begin
    monkeypatch.setattr(Maker, "begin", lambda maker, ticket: made.append(ticket) or begin(maker, ticket))
    loader = split.loader(batch_size=1, repeat=None, num_threads=num_threads, prefetch_bytes=prefetch_bytes)
    batches = iter(loader)
    for taken in range(1, 41):
        next(batches)
        time.sleep(0.002)
        # What waits; before the size of a batch is known, as many as there are threads, and one.
        assert len(made) <= taken + max(most, num_threads + 1 if taken <= num_threads + 1 else 0)
    assert loader.stats().num_ready <= most
    batches.close()


# Loads large batches, slowly; prints the memory in use as time goes by.
SLOW_CONSUMER = """
import gc, json, sys, time
import numpy as np
import penstock as ps

folder, seconds, pause = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
split = ps.open(folder, fields={"t": ps.fields.Tensor((4096,), "float32")})["train"]
loader = split.loader(batch_size=64, shuffle=True, repeat=None, num_threads=4, prefetch_bytes=16 << 20)

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

end = time.monotonic() + seconds
sizes = []
for number, (inputs, _) in enumerate(loader):
    assert inputs["t"].shape == (64, 4096)
    time.sleep(pause)
    sizes.append(resident())
    if time.monotonic() > end:
        break
print(json.dumps(sizes))
"""


@pytest.mark.skipif("PENSTOCK_SANITIZED" in os.environ, reason="sanitizers take memory of their own")
@pytest.mark.parametrize(("seconds", "pause"), [(1, 0.005), pytest.param(600, 1.0, marks=pytest.mark.long)])
def test_l08_memory_is_flat_while_a_slow_consumer_takes_its_time(tmp_path, seconds, pause):
    records = [example(t=np.full(4096, i, np.float32).tolist(), y=i) for i in range(256)]
    write_plain(tmp_path / "train-00000-of-00001.tfrecord", records)
    result = run_apart(SLOW_CONSUMER, tmp_path, seconds, pause, timeout=seconds + 60)
    sizes = json.loads(result.stdout)
    assert len(sizes) > 20
    settled = sizes[len(sizes) // 4 :]
    assert max(settled) - settled[0] < 12 << 20  # a batch is 1 MiB, as read and as decoded
    assert max(sizes) - min(sizes[5:]) < 64 << 20


def open_files():
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("times", [100, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("way", ["dropped", "closed", "left by an error", "held in a ring"])
def test_l09_iterations_that_are_abandoned_leave_nothing_behind(split, times, way):
    loader = split.loader(ps.Pipeline.fit(split), batch_size=2, shuffle=True, num_threads=2)

    def abandon():
        batches = iter(loader)
        next(batches)
        if way == "closed":
            batches.close()
        elif way == "held in a ring":
            ring = [batches]
            ring.append(ring)
        elif way == "left by an error":
            with pytest.raises(ZeroDivisionError), batches:
                raise ZeroDivisionError

    def repeat(times):
        for number in range(times):
            abandon()
            if number % 10 == 9:
                gc.collect()  # how many rings are left to Python's own collections depends on earlier tests
        deadline = time.monotonic() + 5
        while local_threads() and time.monotonic() < deadline:
            time.sleep(0.01)  # threads of a collected ring end by themselves shortly after
        return open_files(), set(threading.enumerate()), resident_bytes(), _native.pooled_bytes()

    before = repeat(10)
    after = repeat(times)
    assert after[0] <= before[0]
    assert after[1] <= before[1]
    assert after[2] - before[2] < 8 << 20
    assert after[3] - before[3] < 4 << 20
    assert local_threads() == []


def test_l09_loader_and_data_set_that_are_dropped_close_their_files(tmp_path):
    write_shards(tmp_path / "data", [3] * 20)
    before = open_files()
    for _ in range(5):
        split = open_numbers(tmp_path / "data")
        loader = split.loader(batch_size=4, shuffle=True, num_threads=2)
        next(iter(loader))
        assert open_files() > before
        del split, loader
    assert open_files() == before
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()
    assert local_threads() == []


def test_l09_iteration_that_is_never_begun_leaves_nothing_behind(split):
    loader = split.loader(batch_size=2, num_threads=4)
    for _ in range(50):
        iter(loader)
    gc.collect()
    assert local_threads() == []
