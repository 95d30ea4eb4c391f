"""Strings and lists that are taken by row belong to the rows, in the requested order."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from each_case import each_case
from penstock import _native
from raising import raises_with

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
DTYPES += ["float16", "float32", "float64"]


@settings(max_examples=150)
@given(st.data(), st.lists(st.binary(max_size=20), min_size=1, max_size=8))
def test_taken_strings_are_strings_of_the_rows(data, values):
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=12))
    # The arena holds them the other way round, with bytes between: starts and stops alone say where they are.
    arena, starts = b"", {}
    for number in reversed(range(len(values))):
        starts[number] = len(arena) + 2
        arena += b"##" + values[number]
    begins = np.array([starts[number] for number in range(len(values))], np.int64)
    ends = begins + [len(value) for value in values]
    got, offsets = _native.take_strings(
        np.frombuffer(arena, np.uint8), begins, ends, np.array(rows, np.int64)
    )
    assert (got.dtype, offsets.dtype) == (np.uint8, np.int64)
    assert got.tobytes() == b"".join(values[row] for row in rows)
    assert offsets.tolist() == np.cumsum([0, *(len(values[row]) for row in rows)]).tolist()


@settings(max_examples=150)
@given(st.lists(st.lists(st.tuples(st.binary(max_size=20), st.integers(0, 2)), max_size=6), max_size=4))
def test_joined_strings_are_strings_of_all_columns_in_order(columns):
    spans = []
    for column in columns:
        arena, starts, stops = b"#", [], []
        for value, gap in column:  # without a gap, a string begins where the one before it ends
            starts.append(len(arena) + gap)
            arena += b"#" * gap + value
            stops.append(len(arena))
        spans.append((np.frombuffer(arena, np.uint8), np.array(starts, np.int64), np.array(stops, np.int64)))
    got, offsets = _native.join_strings(spans)
    values = [value for column in columns for value, _ in column]
    assert (got.dtype, offsets.dtype) == (np.uint8, np.int64)
    assert got.tobytes() == b"".join(values)
    assert offsets.tolist() == np.cumsum([0, *map(len, values)]).tolist()


@pytest.mark.parametrize("shape", [(), (3,), (2, 2), (0,)])
@each_case("dtype", DTYPES)
def test_taken_lists_are_lists_of_the_rows(dtype, shape):
    rng = np.random.default_rng(2)
    offsets = np.concatenate([[1], 1 + np.cumsum(rng.integers(0, 5, 20))])
    values = rng.integers(0, 100, (offsets[-1] + 2, *shape)).astype(dtype)
    rows = rng.integers(0, 20, 50)
    got, places = _native.take_lists(values, offsets, rows)
    expected = [values[offsets[row] : offsets[row + 1]] for row in rows]
    assert (got.dtype, got.shape[1:]) == (np.dtype(dtype), shape)
    np.testing.assert_array_equal(got, np.concatenate(expected))
    assert places.tolist() == np.cumsum([0, *map(len, expected)]).tolist()


def test_taking_no_rows_gives_nothing():
    got, places = _native.take_lists(np.zeros((4, 2)), np.array([0, 4]), np.zeros(0, np.int64))
    assert (got.shape, places.tolist()) == ((0, 2), [0])
    got, places = _native.take_strings(
        np.zeros(0, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    )
    assert (got.shape, places.tolist()) == ((0,), [0])


def test_rows_that_are_not_taken_may_be_anything():
    got, _ = _native.take_strings(
        np.frombuffer(b"abc", np.uint8), np.array([1, -5]), np.array([3, 2**62]), np.array([0, 0])
    )
    assert got.tobytes() == b"bcbc"


ARENA = np.zeros(4, np.uint8)
ROW = np.zeros(1, np.int64)


def join(start, stop):
    _native.join_strings([(ARENA, np.array([start]), np.array([stop]))])


def take(start, stop, row=0):
    _native.take_strings(ARENA, np.array([start]), np.array([stop]), np.array([row]))


BAD_CALLS = {
    "a joined string past the arena": ("stops arena", lambda: join(0, 5)),
    "a joined string before the arena": ("stops arena", lambda: join(-1, 4)),
    "a joined string that goes back": ("stops arena", lambda: join(2, 1)),
    "joined places at both ends": ("stops arena", lambda: join(-(2**63), 2**63 - 1)),
    "fewer stops of joined strings": ("stops starts", lambda: _native.join_strings([(ARENA, ROW, ROW[:0])])),
    "a joined column without stops": ("columns three", lambda: _native.join_strings([(ARENA, ROW)])),
    "a row behind the last": ("rows row", lambda: take(0, 4, 1)),
    "a negative row": ("rows row", lambda: take(0, 4, -1)),
    "a string past the arena": ("rows values", lambda: take(0, 5)),
    "a string before the arena": ("rows values", lambda: take(-1, 4)),
    "a string that goes back": ("rows values", lambda: take(2, 1)),
    "places at both ends": ("rows values", lambda: take(-(2**63), 2**63 - 1)),
    "fewer stops": ("stops starts", lambda: _native.take_strings(ARENA, ROW, ROW[:0], ROW)),
    "rows of int32": (
        "rows array int64 int32",
        lambda: _native.take_strings(ARENA, ROW, ROW, ROW.astype(np.int32)),
    ),
    "an arena of int8": (
        "arena array uint8 int8",
        lambda: _native.take_strings(ARENA.view(np.int8), ROW, ROW, ROW),
    ),
    "lists without offsets": ("offsets rows", lambda: _native.take_lists(ARENA, ROW[:0], ROW)),
    "lists past the values": ("rows values", lambda: _native.take_lists(ARENA, np.array([0, 5]), ROW)),
    "lists that go back": ("rows values", lambda: _native.take_lists(ARENA, np.array([3, 2]), ROW)),
    "lists of objects": (
        "values array numbers bool",
        lambda: _native.take_lists(np.array([None, None]), np.array([0, 1]), ROW),
    ),
    "lists of columns": (
        "values array",
        lambda: _native.take_lists(np.zeros((4, 2))[:, 0], np.array([0, 1]), ROW),
    ),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_taking_refuses_arguments_that_do_not_fit(case):
    text, call = BAD_CALLS[case]
    with raises_with(ValueError, text):
        call()


def test_taking_items_without_bytes_needs_no_memory():
    huge = np.zeros((2**40, 0), np.uint8)
    got, offsets = _native.take_lists(huge, np.array([0, 2**40]), np.zeros(3, np.int64))
    assert (got.shape, offsets.tolist()) == ((3 * 2**40, 0), [0, 2**40, 2**41, 3 * 2**40])


def test_taking_more_items_than_can_be_counted_is_refused():
    huge = np.zeros((2**62, 0), np.uint8)
    with raises_with(ValueError, "rows values memory"):
        _native.take_lists(huge, np.array([0, 2**62]), np.zeros(3, np.int64))


@pytest.mark.skipif("PENSTOCK_SANITIZED" in os.environ, reason="sanitizers end the process instead")
def test_taking_more_than_memory_holds_is_an_error():
    values = np.zeros(2**26, np.uint8)
    with pytest.raises(MemoryError):  # 2**48 bytes: more than the address space, so no system promises them
        _native.take_lists(values, np.array([0, 2**26]), np.zeros(2**22, np.int64))
