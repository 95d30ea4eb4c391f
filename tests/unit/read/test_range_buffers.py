"""Ranges of objects that are read ahead: which are requested, when they are released, how many are held."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from penstock.errors import StoreError
from penstock.read import range_buffers
from penstock.read.range_buffers import Frames, RangeBuffers

FRAME = 1000


class FakeObject:
    """An object in memory that records its requests."""

    def __init__(self, num_frames):
        self.data = np.random.default_rng(num_frames).bytes(num_frames * FRAME)
        self.requests = []
        self.error = None

    def fetch(self, start, stop):
        self.requests.append((start, stop))
        if self.error is not None:
            raise self.error
        return memoryview(self.data)[start:stop]


def frames(numbers, files=0):
    numbers = np.asarray(numbers, np.int64)
    begins = (numbers * FRAME).astype(np.uint64)
    return Frames.at(np.full(len(numbers), files, np.int64), begins, np.full(len(numbers), FRAME, np.uint64))


def read(buffers, numbers):
    """Return the bytes of frames of the first object."""
    pieces, which = buffers.take(frames(numbers))
    found = []
    for number, piece in zip(numbers, which, strict=True):
        start = number * FRAME - pieces[piece].offset
        found.append(bytes(buffers.wait_for(pieces[piece])[start : start + FRAME]))
    return found


@pytest.fixture
def file():
    return FakeObject(4000)


def expected(file, numbers):
    return [file.data[number * FRAME : (number + 1) * FRAME] for number in numbers]


def test_announced_frames_are_read_by_one_request_and_released_with_the_last(file):
    buffers = RangeBuffers([file])
    buffers.announce(frames(range(10, 20)))
    assert read(buffers, [12, 10, 19]) == expected(file, [12, 10, 19])
    assert buffers._num_bytes == 10 * FRAME
    rest = [11, 13, 14, 15, 16, 17, 18]
    assert read(buffers, rest) == expected(file, rest)
    assert buffers._num_bytes == 0
    assert file.requests == [(10 * FRAME, 20 * FRAME)]


def test_a_released_frame_is_requested_again(file):
    buffers = RangeBuffers([file])
    buffers.announce(frames([1, 2]))
    assert read(buffers, [1, 2, 1]) == expected(file, [1, 2, 1])
    assert read(buffers, [2]) == expected(file, [2])
    assert file.requests == [(FRAME, 3 * FRAME), (2 * FRAME, 3 * FRAME)]


def test_frames_that_are_announced_twice_stay_until_both_are_read(file):
    buffers = RangeBuffers([file])
    buffers.announce(frames([5]))
    buffers.announce(frames([5]))
    assert read(buffers, [5]) == read(buffers, [5]) == expected(file, [5])
    assert buffers._num_bytes == 0
    assert len(file.requests) == 1


def test_frames_far_from_each_other_are_read_by_several_requests(file, monkeypatch):
    monkeypatch.setattr(range_buffers, "GAP_BYTES", 5 * FRAME)
    buffers = RangeBuffers([file])
    buffers.announce(frames([1, 4, 11, 30]))
    assert read(buffers, [30, 1, 11, 4]) == expected(file, [30, 1, 11, 4])
    assert sorted(file.requests) == [(FRAME, 5 * FRAME), (11 * FRAME, 12 * FRAME), (30 * FRAME, 31 * FRAME)]


def test_what_is_held_is_bounded_if_announced_frames_are_never_read(file, monkeypatch):
    monkeypatch.setattr(range_buffers, "_LEAST_KEPT", 100 * FRAME)
    buffers = RangeBuffers([file])
    for start in range(0, 4000, 50):
        buffers.announce(frames(range(start, start + 50)))
        assert buffers._num_bytes <= 150 * FRAME
        assert buffers._num_bytes == sum(piece.num_bytes for piece in buffers._pieces.values())
    assert read(buffers, [0, 3999]) == expected(file, [0, 3999])


def test_an_iteration_holds_the_current_and_the_next_window(file):
    buffers = RangeBuffers([file])
    buffers.announce(frames(range(100)))
    for start in range(0, 3900, 100):
        buffers.announce(frames(range(start + 100, start + 200)))
        assert buffers._num_bytes <= 200 * FRAME
        assert read(buffers, list(range(start, start + 100))) == expected(file, range(start, start + 100))
    assert buffers._num_bytes == 100 * FRAME
    assert len(file.requests) == 40


def test_a_failed_request_is_raised_and_sent_again_at_the_next_attempt(file):
    buffers = RangeBuffers([file])
    file.error = StoreError("no answer")
    buffers.announce(frames([7]))
    with pytest.raises(StoreError):
        read(buffers, [7])
    file.error = None
    assert read(buffers, [7]) == expected(file, [7])


def test_threads_read_different_frames_at_once(file):
    buffers = RangeBuffers([file])
    buffers.announce(frames(range(1000)))
    wrong = []

    def work(first):
        for start in range(first, 1000, 40):
            numbers = list(range(start, start + 10))
            if read(buffers, numbers) != expected(file, numbers):
                wrong.append(start)

    threads = [threading.Thread(target=work, args=(first,)) for first in (0, 10, 20, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert buffers._num_bytes == 0
