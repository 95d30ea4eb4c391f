"""Counts of distinct values by the core equal a Counter, up to the cap."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import _native
from raising import raises_with

STRINGS = st.lists(st.one_of(st.sampled_from([b"", b"a", b"aa", b"\0"]), st.binary(max_size=20)), max_size=60)
INTS = st.lists(st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1), max_size=60)
CAPS = st.sampled_from([0, 1, 2, 5, 1000])


def counted(values, keep, cap):
    """Return what a tally must say: by first appearance, and how many came too late."""
    kept = [value for value, wanted in zip(values, keep, strict=True) if wanted]
    known = dict.fromkeys(list(dict.fromkeys(kept))[:cap], 0)
    known.update(Counter(value for value in kept if value in known))
    return list(known), list(known.values()), sum(value not in known for value in kept)


def pieces(draw, values):
    """Cut values in two, with a mask or none for each part."""
    cut = draw(st.integers(0, len(values)))
    for part in (values[:cut], values[cut:]):
        masks = st.lists(st.booleans(), min_size=len(part), max_size=len(part))
        yield part, draw(st.none() | masks)


def as_mask(keep):
    return None if keep is None else np.array(keep, bool)


def as_strings(values):
    sizes = np.array([len(value) for value in values], np.int64)
    stops = np.cumsum(sizes, dtype=np.int64)
    return np.frombuffer(b"".join(values), np.uint8), stops - sizes, stops


@settings(max_examples=100)
@given(st.data(), STRINGS, CAPS)
def test_tally_of_strings_equals_a_counter(data, values, cap):
    tally, kept = _native.ValueCounter(cap), []
    for part, keep in pieces(data.draw, values):
        tally.add_strings(*as_strings(part), as_mask(keep))
        kept += keep or [True] * len(part)
    found, counts, num_overflowed = tally.take()
    assert (found, counts.tolist(), num_overflowed) == counted(values, kept, cap)
    assert counts.dtype == np.int64


@settings(max_examples=100)
@given(st.data(), INTS, CAPS)
def test_tally_of_ints_equals_a_counter(data, values, cap):
    tally, kept = _native.ValueCounter(cap), []
    for part, keep in pieces(data.draw, values):
        tally.add_ints(np.array(part, np.int64), as_mask(keep))
        kept += keep or [True] * len(part)
    found, counts, num_overflowed = tally.take()
    assert (list(map(int, found)), counts.tolist(), num_overflowed) == counted(values, kept, cap)


def test_tally_of_many_distinct_values_keeps_all_of_them():
    values = np.random.default_rng(0).integers(0, 50_000, 200_000)
    tally = _native.ValueCounter(1 << 20)
    tally.add_ints(values, None)
    found, counts, num_overflowed = tally.take()
    assert found.dtype == np.int64
    assert dict(zip(found.tolist(), counts.tolist(), strict=True)) == Counter(values.tolist())
    assert num_overflowed == 0


def test_tally_that_is_read_twice_gives_the_same_and_continues():
    tally = _native.ValueCounter(2)
    tally.add_ints(np.array([4, 4, 5]), None)
    assert [part.tolist() for part in tally.take()[:2]] == [[4, 5], [2, 1]]
    tally.add_ints(np.array([6, 5]), None)
    found, counts, num_overflowed = tally.take()
    assert (found.tolist(), counts.tolist(), num_overflowed) == ([4, 5], [2, 2], 1)


ARENA = np.frombuffer(b"abc", np.uint8)
ONE, TWO = np.array([1]), np.array([0, 1])
BAD_CALLS = {
    "strings past the arena": (ValueError, "add_strings", (ARENA, ONE, ONE * 4, None)),
    "strings before the arena": (ValueError, "add_strings", (ARENA, -ONE, ONE, None)),
    "strings that go back": (ValueError, "add_strings", (ARENA, ONE * 2, ONE, None)),
    "strings with more starts": (ValueError, "add_strings", (ARENA, TWO, ONE, None)),
    "strings with a short mask": (ValueError, "add_strings", (ARENA, TWO, TWO, np.array([True]))),
    "strings with a mask of bytes": (TypeError, "add_strings", (ARENA, ONE, ONE, np.ones(1, np.uint8))),
    "strings of text": (TypeError, "add_strings", ("abc", ONE, ONE, None)),
    "strings of None": (TypeError, "add_strings", (None, ONE, ONE, None)),
    "strings with int32": (TypeError, "add_strings", (ARENA, ONE.astype(np.int32), ONE, None)),
    "ints of int32": (TypeError, "add_ints", (ONE.astype(np.int32), None)),
    "ints of floats": (TypeError, "add_ints", (ONE.astype(np.float64), None)),
    "ints with gaps": (TypeError, "add_ints", (np.arange(6)[::2], None)),
    "ints of None": (TypeError, "add_ints", (None, None)),
    "ints of a list": (TypeError, "add_ints", ([1, 2], None)),
    "ints in the other byte order": (TypeError, "add_ints", (ONE.astype(">i8"), None)),
    "ints with a long mask": (ValueError, "add_ints", (ONE, np.ones(2, bool))),
    "ints with a mask with gaps": (TypeError, "add_ints", (TWO, np.ones(4, bool)[::2])),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_tally_refuses_arguments_that_do_not_fit_and_counts_nothing(case):
    error, method, arguments = BAD_CALLS[case]
    tally = _native.ValueCounter(10)
    with pytest.raises(error):
        getattr(tally, method)(*arguments)
    assert [len(part) for part in tally.take()[:2]] == [0, 0]


def test_tally_refuses_a_negative_cap():
    with pytest.raises(TypeError):
        _native.ValueCounter(-1)


def test_tally_of_strings_takes_no_ints_and_the_other_way_round():
    tally = _native.ValueCounter(10)
    tally.add_strings(ARENA, ONE, ONE * 2, None)
    with raises_with(ValueError, "strings integers"):
        tally.add_ints(ONE, None)
    tally = _native.ValueCounter(10)
    tally.add_ints(ONE, None)
    with raises_with(ValueError, "strings integers"):
        tally.add_strings(ARENA, ONE, ONE * 2, None)


@settings(max_examples=100)
@given(st.data(), STRINGS | INTS, CAPS)
def test_merged_tallies_equal_one_tally(data, values, cap):
    tallies = []
    for part, _ in pieces(data.draw, values):
        tally = _native.ValueCounter(1000)
        if values and isinstance(values[0], int):
            tally.add_ints(np.array(part, np.int64), None)
        else:
            tally.add_strings(*as_strings(part), None)
        tallies.append(tally)
    merged = _native.ValueCounter(cap)
    for tally in tallies:
        merged.merge(tally)
    found, counts, num_overflowed = merged.take()
    expected = counted(values, [True] * len(values), cap)
    assert (list(found), counts.tolist(), num_overflowed) == expected
    assert (len(merged), merged.num_overflowed) == (len(expected[0]), expected[2])


def test_tallies_of_different_kinds_and_a_tally_with_itself_are_not_merged():
    words, numbers = _native.ValueCounter(9), _native.ValueCounter(9)
    words.add_strings(*as_strings([b"a"]), None)
    numbers.add_ints(np.array([1]), None)
    for one, other in ((words, numbers), (numbers, words), (words, words)):
        with raises_with(ValueError):
            one.merge(other)
