"""Ranges of objects that are read ahead: which are requested, when they are released, how many are held."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Sequence

import numpy as np
import pytest

from penstock.errors import StoreError
from penstock.read import range_buffers
from penstock.read.range_buffers import RangeBuffers

FRAME = 1000


class FakeObject:
    """An object in memory that records its requests."""

    def __init__(self, num_frames):
        self.data = np.random.default_rng(num_frames).bytes(num_frames * FRAME)
        self.requests = []
        self.error = None
        self._answers = []

    def fetch(self, start, stop):
        self.requests.append((start, stop))
        if self.error is not None:
            raise self.error
        answer = np.frombuffer(self.data, np.uint8)[start:stop].copy()
        self._answers.append((weakref.ref(answer), stop - start))
        return memoryview(answer)

    @property
    def num_alive(self):
        """Number of bytes of all answers that are still in memory, with any owner."""
        return sum(size for answer, size in self._answers if answer() is not None)


def make_buffers(files):
    return RangeBuffers(files.__getitem__, np.array([len(file.data) for file in files], np.int64))


def frames(buffers, numbers, file=0):
    begins = (np.asarray(numbers, np.int64) * FRAME).astype(np.uint64)
    return buffers.locate(
        np.full(len(begins), file, np.int64), begins, np.full(len(begins), FRAME, np.uint64)
    )


def read(buffers, numbers, file=0):
    """Return the bytes of frames of an object."""
    pieces, which = buffers.take(frames(buffers, numbers, file))
    found = []
    for number, piece in zip(numbers, which, strict=True):
        start = number * FRAME - pieces[piece].offset
        found.append(bytes(buffers.wait_for(pieces[piece])[start : start + FRAME]))
    return found


def is_freed(file, most=0):
    """Return whether at most `most` bytes stay in memory; a thread may hold its last answer for a moment."""
    limit = time.monotonic() + 10
    while file.num_alive > most and time.monotonic() < limit:
        time.sleep(0.001)
    return file.num_alive <= most


@pytest.fixture
def file():
    return FakeObject(4000)


def expected(file, numbers):
    return [file.data[number * FRAME : (number + 1) * FRAME] for number in numbers]


def test_announced_frames_are_read_by_one_request_and_released_with_the_last(file):
    buffers = make_buffers([file])
    buffers.announce(frames(buffers, range(10, 20)))
    assert read(buffers, [12, 10, 19]) == expected(file, [12, 10, 19])
    assert buffers._num_bytes == file.num_alive == 10 * FRAME
    rest = [11, 13, 14, 15, 16, 17, 18]
    assert read(buffers, rest) == expected(file, rest)
    assert buffers._num_bytes == 0
    assert is_freed(file)
    assert file.requests == [(10 * FRAME, 20 * FRAME)]


def test_a_released_frame_is_requested_again(file):
    buffers = make_buffers([file])
    buffers.announce(frames(buffers, [1, 2]))
    assert read(buffers, [1, 2, 1]) == expected(file, [1, 2, 1])
    assert read(buffers, [2]) == expected(file, [2])
    assert file.requests == [(FRAME, 3 * FRAME), (2 * FRAME, 3 * FRAME)]


def test_frames_that_are_announced_twice_stay_until_both_are_read(file):
    buffers = make_buffers([file])
    buffers.announce(frames(buffers, [5]))
    buffers.announce(frames(buffers, [5]))
    assert read(buffers, [5]) == read(buffers, [5]) == expected(file, [5])
    assert buffers._num_bytes == 0
    assert len(file.requests) == 1


def test_bytes_are_freed_with_each_released_buffer_although_no_other_is_announced(file, monkeypatch):
    monkeypatch.setattr(range_buffers, "GAP_BYTES", 0)
    buffers = make_buffers([file])
    buffers.announce(frames(buffers, range(0, 40, 2)))
    for number in range(0, 40, 2):
        assert read(buffers, [number]) == expected(file, [number])
        assert is_freed(file, (20 - number // 2 - 1) * FRAME)
    assert len(file.requests) == 20
    assert buffers._num_bytes == 0
    assert is_freed(file)


def test_clearing_frees_all_bytes(file):
    buffers = make_buffers([file])
    buffers.announce(frames(buffers, range(100)))
    assert read(buffers, [5]) == expected(file, [5])
    assert file.num_alive == 100 * FRAME
    buffers.clear()
    assert buffers._num_bytes == 0
    assert is_freed(file)


def test_frames_far_from_each_other_are_read_by_several_requests(file, monkeypatch):
    monkeypatch.setattr(range_buffers, "GAP_BYTES", 5 * FRAME)
    buffers = make_buffers([file])
    buffers.announce(frames(buffers, [1, 4, 11, 30]))
    assert read(buffers, [30, 1, 11, 4]) == expected(file, [30, 1, 11, 4])
    assert sorted(file.requests) == [(FRAME, 5 * FRAME), (11 * FRAME, 12 * FRAME), (30 * FRAME, 31 * FRAME)]


def test_held_bytes_are_bounded_if_announced_frames_are_never_read(file, monkeypatch):
    monkeypatch.setattr(range_buffers, "_LEAST_KEPT", 100 * FRAME)
    buffers = make_buffers([file])
    for start in range(0, 4000, 50):
        buffers.announce(frames(buffers, range(start, start + 50)))
        assert buffers._num_bytes <= 150 * FRAME
        assert buffers._num_bytes == sum(piece.num_bytes for piece in buffers._pieces.values())
        for piece in list(buffers._pieces.values()):
            buffers.wait_for(piece)
        del piece
        assert is_freed(file, buffers._num_bytes)
    assert read(buffers, [0, 3999]) == expected(file, [0, 3999])


def test_an_iteration_holds_the_current_and_the_next_window(file):
    buffers = make_buffers([file])
    buffers.announce(frames(buffers, range(100)))
    for start in range(0, 3900, 100):
        buffers.announce(frames(buffers, range(start + 100, start + 200)))
        assert buffers._num_bytes <= 200 * FRAME
        assert is_freed(file, 200 * FRAME)
        assert read(buffers, list(range(start, start + 100))) == expected(file, range(start, start + 100))
    assert buffers._num_bytes == 100 * FRAME
    assert is_freed(file, 100 * FRAME)
    assert read(buffers, [3999]) == expected(file, [3999])  # now all requests are sent
    assert len(file.requests) == 40


def test_a_failed_request_is_raised_and_sent_again_at_the_next_attempt(file):
    buffers = make_buffers([file])
    file.error = StoreError("no answer")
    buffers.announce(frames(buffers, [7]))
    with pytest.raises(StoreError):
        read(buffers, [7])
    file.error = None
    assert read(buffers, [7]) == expected(file, [7])


def wait_for_all(buffers):
    for piece in list(buffers._pieces.values()):
        buffers.wait_for(piece)


def test_frames_are_taken_at_once_only_if_all_have_arrived(file):
    buffers = make_buffers([file])
    assert buffers.take_ready(frames(buffers, [3, 1])) is None  # never requested
    assert not file.requests
    buffers.announce(frames(buffers, range(10)))
    wait_for_all(buffers)
    assert buffers.take_ready(frames(buffers, [3, 3000])) is None
    pieces, which = buffers.take_ready(frames(buffers, [3, 1]))
    assert [piece.offset for piece in pieces] == [0]
    assert which.tolist() == [0, 0]
    assert bytes(buffers.wait_for(pieces[0])[: 2 * FRAME]) == file.data[: 2 * FRAME]
    assert read(buffers, [0, 2, *range(4, 10)]) == expected(file, [0, 2, *range(4, 10)])
    assert len(file.requests) == 1
    assert not buffers._pieces  # what was taken at once counts as read


def test_frames_whose_request_failed_are_not_taken_at_once(file):
    buffers = make_buffers([file])
    file.error = StoreError("no answer", path="s3://a/b")
    buffers.announce(frames(buffers, range(10)))
    piece = next(iter(buffers._pieces.values()))
    assert isinstance(piece.future.exception(timeout=10), StoreError)
    assert buffers.take_ready(frames(buffers, [1])) is None


def test_threads_read_different_frames_at_once(file):
    buffers = make_buffers([file])
    buffers.announce(frames(buffers, range(1000)))
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


class ManyObjects(Sequence):
    """Objects that are made when they are read, each with two frames that hold its number."""

    def __init__(self, num_files):
        self._num_files = num_files

    def __len__(self):
        return self._num_files

    def __getitem__(self, number):
        file = FakeObject(0)
        file.data = number.to_bytes(8, "little") * (2 * FRAME // 8)
        return file


@pytest.mark.parametrize("number", [0, 524_287, 524_288, 524_289, 1_500_000, 2_999_999])
def test_every_one_of_millions_of_objects_has_its_own_address(number):
    files = ManyObjects(3_000_000)
    buffers = RangeBuffers(files.__getitem__, np.full(len(files), 2 * FRAME, np.int64))
    buffers.announce(frames(buffers, [0, 1], number))
    assert read(buffers, [1, 0], number) == [number.to_bytes(8, "little") * (FRAME // 8)] * 2


def test_offsets_beyond_16_tib_equal_offsets_of_their_object():
    requests = []

    class Huge:
        def fetch(self, start, stop):
            requests.append((start, stop))
            return memoryview(bytes(stop - start))

    buffers = RangeBuffers([Huge(), Huge()].__getitem__, np.array([2**50, 2**50], np.int64))
    for number in (0, 1):
        at = buffers.locate(np.array([number]), np.array([2**49], np.uint64), np.array([8], np.uint64))
        pieces, _ = buffers.take(at)
        buffers.wait_for(pieces[0])
        assert pieces[0].offset == 2**49
    assert requests == [(2**49, 2**49 + 8)] * 2


def test_frames_of_neighbouring_objects_are_not_joined():
    files = [FakeObject(2), FakeObject(0), FakeObject(3)]
    buffers = make_buffers(files)
    at = buffers.locate(
        np.array([2, 0]), np.array([0, FRAME], np.uint64), np.array([FRAME, FRAME], np.uint64)
    )
    pieces, which = buffers.take(at)
    found = [bytes(buffers.wait_for(pieces[piece])) for piece in which]
    assert found == [files[2].data[:FRAME], files[0].data[FRAME:]]
    assert [file.requests for file in files] == [[(FRAME, 2 * FRAME)], [], [(0, FRAME)]]


@pytest.mark.parametrize(("begin", "size"), [(1999, 2), (2**64 - 8, 16), (2**63, 1)])
def test_a_frame_outside_its_object_is_refused(begin, size):
    buffers = make_buffers([FakeObject(2), FakeObject(2)])
    with pytest.raises(ValueError):
        buffers.locate(np.array([0]), np.array([begin], np.uint64), np.array([size], np.uint64))


def test_more_bytes_than_there_are_addresses_are_refused():
    with pytest.raises(OverflowError):
        RangeBuffers([None].__getitem__, np.full(4, 2**61, np.int64))
