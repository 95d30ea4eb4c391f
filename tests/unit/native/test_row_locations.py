"""Places: of any row, the file that it is in and its frame there."""

import threading

import numpy as np
import pytest

from penstock import _native
from raising import raises_with

STARTS = [0, 3, 3, 4, 9]
OFFSETS = [
    np.array([0, 20, 41, 63], np.uint64),
    np.array([0], np.uint64),
    np.array([5, 105], np.uint64),
    np.array([0, 16, 32, 48, 64, 2**49], np.uint64),
]


def make_places():
    places = _native.RowLocations(STARTS)
    for number, offsets in enumerate(OFFSETS):
        places.set(number, offsets)
    return places


def find(places, rows):
    rows = np.array(rows, np.int64)
    which, files = places.find_files(rows)
    begins, sizes = places.find_frames(rows, which, files)
    return [files[each] for each in which.tolist()], begins.tolist(), sizes.tolist()


def expect(rows):
    files = [int(np.searchsorted(STARTS, row, side="right")) - 1 for row in rows]
    begins = [int(OFFSETS[file][row - STARTS[file]]) for file, row in zip(files, rows, strict=True)]
    ends = [int(OFFSETS[file][row - STARTS[file] + 1]) for file, row in zip(files, rows, strict=True)]
    return files, begins, [end - begin for begin, end in zip(begins, ends, strict=True)]


@pytest.mark.parametrize(
    "rows",
    [[], [0], [8], [2, 3, 4], list(range(9)), list(reversed(range(9))), [3, 3, 3], [8, 0, 8, 0]],
)
def test_frames_of_rows_in_any_order(rows):
    assert find(make_places(), rows) == expect(rows)


def test_frames_of_many_rows_at_random():
    rows = np.random.default_rng(4).integers(0, 9, 10_000).tolist()
    assert find(make_places(), rows) == expect(rows)


def test_files_are_listed_in_the_order_in_which_they_are_met():
    which, files = make_places().find_files(np.array([8, 0, 3, 7, 1], np.int64))
    assert files == [3, 0, 2]
    assert which.tolist() == [0, 1, 2, 0, 1]
    assert which.dtype == np.uint32


@pytest.mark.parametrize("row", [-1, 9, 2**62, -(2**63)])
def test_row_that_does_not_exist_is_refused(row):
    with raises_with(IndexError, "row"):
        make_places().find_files(np.array([0, row], np.int64))


def test_frames_of_a_file_whose_offsets_are_not_known_are_refused():
    places = _native.RowLocations(STARTS)
    places.set(0, OFFSETS[0])
    rows = np.array([0, 5], np.int64)
    which, files = places.find_files(rows)
    with raises_with(ValueError, "offsets"):
        places.find_frames(rows, which, files)


def test_offsets_that_fall_are_refused():
    places = _native.RowLocations([0, 2])
    places.set(0, np.array([0, 50, 20], np.uint64))
    which, files = places.find_files(np.array([0, 1], np.int64))
    with raises_with(ValueError, "offsets"):
        places.find_frames(np.array([0, 1], np.int64), which, files)


@pytest.mark.parametrize(
    ("rows", "which", "files"),
    [
        ([0, 1], [0, 1], [0]),  # a number that is not in the list
        ([0], [0], [4]),  # a file that is not there
        ([5], [0], [0]),  # a row of another file
        ([0], [0], [3]),
        ([-1], [0], [0]),
    ],
)
def test_files_that_differ_from_the_files_of_the_rows_are_refused(rows, which, files):
    with raises_with(ValueError, "offsets"):
        make_places().find_frames(np.array(rows, np.int64), np.array(which, np.uint32), files)


def test_lengths_that_differ_are_refused():
    with raises_with(ValueError, "rows files length"):
        make_places().find_frames(np.array([0, 1], np.int64), np.array([0], np.uint32), [0])


@pytest.mark.parametrize("starts", [[], [1, 2], [0, 5, 3]])
def test_starts_that_cannot_be_are_refused(starts):
    with raises_with(ValueError, "starts"):
        _native.RowLocations(starts)


@pytest.mark.parametrize(("file", "count"), [(0, 3), (0, 5), (1, 2), (4, 1), (10**9, 4)])
def test_offsets_that_do_not_fit_their_file_are_refused(file, count):
    with raises_with(ValueError, "offsets rows"):
        _native.RowLocations(STARTS).set(file, np.zeros(count, np.uint64))


def test_offsets_that_are_set_twice_are_refused():
    places = make_places()
    with pytest.raises(ValueError, match="set twice"):
        places.set(0, OFFSETS[0])


@pytest.mark.parametrize("dtype", [np.int64, np.uint32, np.float64])
def test_offsets_of_another_dtype_are_refused(dtype):
    with pytest.raises(TypeError):
        _native.RowLocations([0, 2]).set(0, np.array([7, 30, 60], dtype))


def test_split_without_files_has_no_rows():
    places = _native.RowLocations([0])
    assert find(places, []) == ([], [], [])
    with pytest.raises(IndexError):
        places.find_files(np.array([0], np.int64))


def test_offsets_are_held_and_not_copied():
    places = _native.RowLocations([0, 2])
    places.set(0, np.array([7, 30, 60], np.uint64))
    np.full(3, 99, np.uint64)  # what would lie where the array was, if nobody held it
    assert find(places, [1, 0]) == ([0, 0], [30, 7], [30, 23])


def test_threads_find_at_once():
    places = make_places()
    wrong = []

    def ask(seed):
        rows = np.random.default_rng(seed).integers(0, 9, 500).tolist()
        wrong.extend(1 for _ in range(10) if find(places, rows) != expect(rows))

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
