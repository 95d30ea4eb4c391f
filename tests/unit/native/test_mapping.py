"""Mapped files: copies end early where a file has shrunk; no signal ends the process.

Calls that may end a process run in a separate one.
"""

import os
import signal
from itertools import pairwise

import numpy as np
import pytest

from penstock import _native
from separate_process import run_apart
from wire.frame import write_record

# Makes a file of frames on many pages, and a segment over it, mapped or not.
PRELUDE = """
import os, sys, signal, threading
import numpy as np
from penstock import _native
from wire.frame import write_record

frames = [write_record(bytes([i % 256]) * 1000) for i in range(200)]
sizes = np.array([len(each) for each in frames], np.uint64)
begins = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.uint64)

def write(path):
    with open(path, "wb") as file:
        file.write(b"".join(frames))
    return os.open(path, os.O_RDONLY)

def fetch(sources, which, rows):
    rows = np.array(rows)
    segment = (sources, np.array(which, np.uint32), begins[rows], sizes[rows], None)
    arena, offsets, faults = _native.fetch([segment])
    return [bytes(arena[a:b]) for a, b in zip(offsets[:-1], offsets[1:])], faults
"""


def status_of_end():
    """Return the number by which the core names a file that ends, found by reading one that does."""
    frame = write_record(b"payload")
    segment = (-1, frame[:-3], 0, np.array([0], np.uint64), np.array([len(frame)], np.uint64), None)
    return _native.fetch([segment])[2][0][1]


@pytest.fixture
def mapped(tmp_path):
    frames = [write_record(bytes([i]) * (i * 7)) for i in range(50)]
    path = tmp_path / "frames"
    path.write_bytes(b"".join(frames))
    sizes = np.array([len(each) for each in frames], np.uint64)
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.uint64)
    fd = os.open(path, os.O_RDONLY)
    yield path, fd, begins, sizes
    os.close(fd)


def fetch(source, begins, sizes):
    segment = ([source], np.zeros(len(begins), np.uint32), begins, sizes, None)
    arena, offsets, faults = _native.fetch([segment])
    return [bytes(arena[a:b]) for a, b in pairwise(offsets.tolist())], faults


def test_mapped_file_reads_as_an_unmapped_one(mapped):
    path, fd, begins, sizes = mapped
    mapping = _native.Mapping(fd, path.stat().st_size)
    order = np.random.default_rng(2).permutation(50)
    for rows in (np.arange(50), order, order[:1], np.repeat(order, 3)):
        expected = fetch((fd, None, 0), begins[rows], sizes[rows])
        assert fetch((fd, mapping, 0), begins[rows], sizes[rows]) == expected
        assert expected[0] == [bytes([i]) * (i * 7) for i in rows.tolist()]


def test_frame_beyond_the_mapping_is_a_fault_and_not_read(mapped):
    _, fd, begins, sizes = mapped
    half = int(begins[25]) + 3
    mapping = _native.Mapping(fd, half)
    payloads, faults = fetch((fd, mapping, 0), begins, sizes)
    assert payloads[:25] == [bytes([i]) * (i * 7) for i in range(25)]
    assert payloads[25:] == [b""] * 25
    assert [fault[:2] for fault in faults] == [(row, status_of_end()) for row in range(25, 50)]


@pytest.mark.parametrize("size", [0, 1 << 50])
def test_file_that_cannot_be_mapped_is_read_as_before(mapped, size):
    _, fd, begins, sizes = mapped
    mapping = _native.Mapping(fd, size)
    assert fetch((fd, mapping, 0), begins, sizes) == fetch((fd, None, 0), begins, sizes)


def test_descriptor_may_be_closed_once_it_is_mapped(tmp_path):
    path = tmp_path / "frame"
    path.write_bytes(write_record(b"still here"))
    fd = os.open(path, os.O_RDONLY)
    mapping = _native.Mapping(fd, path.stat().st_size)
    os.close(fd)
    path.unlink()
    frame = np.array([26], np.uint64)
    payloads, faults = fetch((0, mapping, 0), np.zeros(1, np.uint64), frame)
    assert (payloads, faults) == ([b"still here"], [])


def test_file_that_shrinks_gives_faults_and_no_signal(tmp_path):
    program = f"""{PRELUDE}
fd = write(sys.argv[1])
mapping = _native.Mapping(fd, int(sizes.sum()))
before, faults = fetch([(fd, mapping, 0)], [0] * 200, range(200))
assert faults == [] and before == [bytes([i % 256]) * 1000 for i in range(200)]
for size in (150_000, 100_000, 8192, 4097, 1, 0):
    os.truncate(sys.argv[1], size)
    for rows in (list(range(200)), list(reversed(range(200)))):
        after, faults = fetch([(fd, mapping, 0)], [0] * 200, rows)
        lost = {{rows[fault[0]] for fault in faults}}
        assert lost == {{row for row in rows if int(begins[row] + sizes[row]) > size}}
        for row, payload in zip(rows, after):
            assert payload == (b"" if row in lost else bytes([row % 256]) * 1000)
    assert (len(lost) == 200) == (size < 1000)
print("alive")
"""
    assert run_apart(program, tmp_path / "frames").stdout == "alive\n"


def test_handler_is_installed_for_the_first_mapped_file_of_several(tmp_path):
    program = f"""{PRELUDE}
whole = b"".join(frames)
fd = write(sys.argv[1])
mapping = _native.Mapping(fd, len(whole))
os.truncate(sys.argv[1], 0)
# The first source is memory: the mapped one comes behind it, and nothing was mapped before.
payloads, faults = fetch([(-1, whole, 0), (fd, mapping, 0)], [0, 1], [0, 1])
assert payloads == [bytes([0]) * 1000, b""] and len(faults) == 1
print("alive")
"""
    assert run_apart(program, tmp_path / "frames").stdout == "alive\n"


def test_file_may_grow_shrink_and_grow_while_threads_read_it(tmp_path):
    program = f"""{PRELUDE}
fd = write(sys.argv[1])
mapping = _native.Mapping(fd, int(sizes.sum()))
is_over = threading.Event()
wrong = []

def read(seed):
    dice = np.random.default_rng(seed)
    while not is_over.is_set():
        rows = dice.integers(0, 200, 64)
        payloads, faults = fetch([(fd, mapping, 0)], [0] * 64, rows)
        lost = {{fault[0] for fault in faults}}
        for at, (row, payload) in enumerate(zip(rows.tolist(), payloads)):
            if payload != (b"" if at in lost else bytes([row % 256]) * 1000):
                wrong.append(row)

threads = [threading.Thread(target=read, args=(seed,)) for seed in range(3)]
for thread in threads:
    thread.start()
whole = b"".join(frames)
for i in range(150):
    os.truncate(sys.argv[1], i * 531 % len(whole))
    with open(sys.argv[1], "r+b") as file:
        file.write(whole)
is_over.set()
for thread in threads:
    thread.join()
assert wrong == []
print("alive")
"""
    assert run_apart(program, tmp_path / "frames").stdout == "alive\n"


@pytest.mark.skipif("PENSTOCK_SANITIZED" in os.environ, reason="sanitizers take the signal for themselves")
def test_signal_that_is_not_ours_still_ends_the_process(tmp_path):
    program = f"""{PRELUDE}
import mmap
fd = write(sys.argv[1])
fetch([(fd, _native.Mapping(fd, 1000), 0)], [0], [0])  # now the handler is there
file = open(sys.argv[2], "w+b")
file.truncate(8192)
own = mmap.mmap(file.fileno(), 8192)
file.truncate(0)
print(own[5000], "must not be reached")
"""
    result = run_apart(program, tmp_path / "frames", tmp_path / "own", check=False)
    assert result.returncode == -signal.SIGBUS
    assert result.stdout == ""
    assert "Bus error" in result.stderr  # what faulthandler says: it was asked before


def test_handler_of_the_program_gets_what_is_not_ours(tmp_path):
    program = f"""{PRELUDE}
import mmap
fd = write(sys.argv[1])
mapping = _native.Mapping(fd, int(sizes.sum()))
fetch([(fd, mapping, 0)], [0], [0])
signal.signal(signal.SIGBUS, lambda *_: print("theirs"))  # later than ours
os.kill(os.getpid(), signal.SIGBUS)
os.truncate(sys.argv[1], 0)
payloads, faults = fetch([(fd, mapping, 0)], [0, 0], [3, 4])
assert len(faults) == 2
os.kill(os.getpid(), signal.SIGBUS)
print("alive")
"""
    assert run_apart(program, tmp_path / "frames").stdout == "theirs\ntheirs\nalive\n"
