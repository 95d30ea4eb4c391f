"""Numbers of strings and integers by the core equal a dict, whatever the values are."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import _native
from raising import raises_with

# Lengths around those at which strings are loaded in another way: 4, 8, 16 bytes.
SIZES = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100]
STRINGS = st.one_of(
    st.sampled_from([b"", b"\0", b"\0\0", b"a", b"a\0", b"a" * 16, b"a" * 17, b"a" * 16 + b"\0"]),
    st.binary(max_size=40),
    st.sampled_from(SIZES).flatmap(lambda size: st.binary(min_size=size, max_size=size)),
)
INTS = st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1)


def place(values):
    """Put strings one behind the other."""
    stops = np.cumsum([len(value) for value in values], dtype=np.int64)
    starts = stops - np.array([len(value) for value in values], np.int64)
    return np.frombuffer(b"".join(values), np.uint8), starts, stops


@settings(max_examples=300)
@given(st.lists(STRINGS, unique=True, max_size=60), st.lists(STRINGS, max_size=60))
def test_vocabulary_of_any_strings_equals_a_dict(known, others):
    vocabulary = _native.Vocabulary(known)
    numbers = {value: i for i, value in enumerate(known)}
    asked = known + others + [value + b"\0" for value in known] + [value[:-1] for value in known]
    found = vocabulary.find(*place(asked))
    assert found.dtype == np.int32
    assert found.tolist() == [numbers.get(value, -1) for value in asked]
    assert (len(vocabulary), vocabulary.values()) == (len(known), known)


@settings(max_examples=200)
@given(st.lists(INTS, unique=True, max_size=60), st.lists(INTS, max_size=60))
def test_vocabulary_of_any_ints_equals_a_dict(known, others):
    vocabulary = _native.IntVocabulary(np.array(known, np.int64))
    numbers = {value: i for i, value in enumerate(known)}
    found = vocabulary.find(np.array(known + others, np.int64))
    assert found.dtype == np.int32
    assert found.tolist() == [numbers.get(value, -1) for value in known + others]
    assert len(vocabulary) == len(known)


def test_vocabulary_of_strings_at_the_end_of_the_arena_reads_nothing_after_it():
    # Each in an allocation of exactly its size: the sanitizer sees a byte too many.
    values = [bytes(range(65, 65 + size)) for size in SIZES]
    vocabulary = _native.Vocabulary(values)
    for i, value in enumerate(values):
        arena = np.frombuffer(bytearray(value), np.uint8)
        assert vocabulary.find(arena, np.array([0]), np.array([len(value)])).tolist() == [i]


@pytest.mark.parametrize(
    "values",
    [
        [b"%d" % i for i in range(200_000)],
        [i.to_bytes(8, "little") for i in range(200_000)],
        [i.to_bytes(16, "big") for i in range(200_000)],
        [b"a long value that has its number at the end: %d" % i for i in range(100_000)],
        [b"%d, a long value that has its number at the beginning" % i for i in range(100_000)],
        [bytes([i % 256]) * (i // 256) for i in range(256 * 40)][255:],
    ],
    ids=["digits", "low bytes", "high bytes", "ends", "beginnings", "repeated bytes"],
)
def test_vocabulary_of_values_with_a_pattern_finds_each_near_its_slot(values):
    vocabulary = _native.Vocabulary(values)
    assert vocabulary.find(*place(values)).tolist() == list(range(len(values)))
    others = [value + b"!?" for value in values]
    assert (vocabulary.find(*place(others)) == -1).all()
    assert vocabulary.longest_probe < 128


def test_vocabulary_of_ints_with_a_pattern_finds_them():
    for step in (1, 2**16, 2**32, 2**44, -1000):
        values = np.arange(100_000, dtype=np.int64) * step
        vocabulary = _native.IntVocabulary(values)
        np.testing.assert_array_equal(vocabulary.find(values), np.arange(100_000))
        assert (vocabulary.find(values + 100_000 * step) == -1).all()


def test_vocabulary_of_a_value_of_ten_megabytes_finds_it():
    large = bytes(range(256)) * 40_000
    vocabulary = _native.Vocabulary([b"small", large])
    others = [large, large[:-1] + b"!", b"!" + large[1:], large[:-1], b"small"]
    assert vocabulary.find(*place(others)).tolist() == [1, -1, -1, -1, 0]


def test_vocabulary_of_no_values_finds_none():
    assert _native.Vocabulary([]).find(*place([b"", b"a", b"a" * 40])).tolist() == [-1, -1, -1]
    assert _native.IntVocabulary(np.zeros(0, np.int64)).find(np.array([0, 1])).tolist() == [-1, -1]
    assert _native.Vocabulary([b"a"]).find(*place([])).tolist() == []


def test_vocabulary_gives_many_threads_the_same_codes():
    values = [b"value %d" % i for i in range(10_000)]
    vocabulary, asked, found = _native.Vocabulary(values), place(values), []
    threads = [threading.Thread(target=lambda: found.append(vocabulary.find(*asked))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(each, np.arange(10_000)) for each in found)
    assert len(found) == 4


def test_vocabulary_with_a_value_twice_is_refused():
    with raises_with(ValueError, "2 vocabulary"):
        _native.Vocabulary([b"a", b"b", b"a"])
    with pytest.raises(ValueError, match="twice"):
        _native.Vocabulary([b"a" * 100, b"a" * 100])
    with pytest.raises(ValueError, match="twice"):
        _native.IntVocabulary(np.array([4, 5, 4]))


@pytest.mark.parametrize("values", [["text"], [None], [1], [bytearray(b"a")], 3, None])
def test_vocabulary_of_values_that_are_not_bytes_is_refused(values):
    with pytest.raises(TypeError):
        _native.Vocabulary(values)


ARENA = np.frombuffer(b"abc", np.uint8)
ONE = np.array([1])
BAD_CALLS = {
    "past the arena": (ARENA, ONE, ONE * 4),
    "before the arena": (ARENA, -ONE, ONE),
    "going back": (ARENA, ONE * 2, ONE),
    "far past the arena": (ARENA, ONE * -(2**62), ONE * 2**62),
    "more starts": (ARENA, np.array([0, 1]), ONE),
    "int32": (ARENA, ONE.astype(np.int32), ONE),
    "other bytes": (ARENA.astype(np.int8), ONE, ONE),
    "gaps": (np.zeros(6, np.uint8)[::2], ONE, ONE),
    "text": ("abc", ONE, ONE),
    "None": (None, ONE, ONE),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_vocabulary_refuses_arguments_that_do_not_fit(case):
    with pytest.raises((TypeError, ValueError)):
        _native.Vocabulary([b"a"]).find(*BAD_CALLS[case])


@pytest.mark.parametrize(
    "values", [[1, 2], np.array([1.0]), np.array([1], np.int32), np.zeros((2, 2), np.int64)]
)
def test_int_vocabulary_refuses_arguments_that_do_not_fit(values):
    with pytest.raises((TypeError, ValueError)):
        _native.IntVocabulary(values)
    with pytest.raises((TypeError, ValueError)):
        _native.IntVocabulary(np.array([1])).find(values)
