"""Codes, bins and multi-hot rows by the core equal their plain forms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import core_reference as plain
from penstock import _native
from raising import raises_with

INT32_MAX = 2**31 - 1


def mask(count, rng):
    return rng.random(count) < 0.6


def packed(values: list[bytes]):
    stops = np.cumsum([len(value) for value in values], dtype=np.int64)
    starts = stops - np.array([len(value) for value in values], np.int64)
    return np.frombuffer(b"".join(values), np.uint8), starts, stops


@pytest.mark.parametrize("count", [0, 1, 5, 1001])
def test_place_codes_equals_numpy(count):
    rng = np.random.default_rng(count)
    codes = rng.integers(-1, 50, count).astype(np.int32)
    for present in (None, mask(count, rng)):
        got = _native.place_codes(codes, present, 2, 1, 7)
        expected = np.where(codes < 0, 1, codes + 2)
        if present is not None:
            expected[~present] = 7
        assert got.dtype == np.int32
        assert got.tolist() == expected.tolist()


def test_place_codes_of_any_negative_code_is_unknown():
    codes = np.array([-1, -2, -(2**31)], np.int32)
    assert _native.place_codes(codes, None, 5, 3, 4).tolist() == [3, 3, 3]


def test_place_codes_that_do_not_fit_int32_are_refused():
    codes = np.array([INT32_MAX - 1], np.int32)
    assert _native.place_codes(codes, None, 1, 0, 0).tolist() == [INT32_MAX]
    with raises_with(ValueError, "int32"):
        _native.place_codes(codes, None, 2, 0, 0)
    assert _native.place_codes(codes, np.array([False]), 2, 0, 9).tolist() == [9]


def test_place_codes_of_an_absent_row_is_missing_whatever_its_code_and_mask_byte():
    present = np.array([0, 0, 255, 2], np.uint8).view(np.bool_)
    codes = np.array([5, -1, 5, -1], np.int32)
    assert _native.place_codes(codes, present, 1, 0, 9).tolist() == [9, 9, 6, 0]


def bin_of(word: int, num_bins: int, salt: int) -> int:
    """Return the bin of a word that is not mixed yet, in plain Python."""
    return plain.mix_row(salt, word) * num_bins >> 64


@settings(max_examples=100)
@given(
    st.lists(st.binary(max_size=40), max_size=8),
    st.integers(1, INT32_MAX - 10),
    st.integers(0, 2**64 - 1),
)
def test_bins_of_strings_equal_the_plain_form(values, num_bins, salt):
    got = _native.hash_strings(*packed(values), None, num_bins, 2, 0, salt)
    assert got.dtype == np.int32
    assert got.tolist() == [2 + bin_of(plain.hash_bytes(value), num_bins, salt) for value in values]


@settings(max_examples=100)
@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=8),
    st.integers(1, INT32_MAX - 10),
    st.integers(0, 2**64 - 1),
)
def test_bins_of_ints_equal_the_plain_form(values, num_bins, salt):
    got = _native.hash_ints(np.array(values, np.int64), None, num_bins, 2, 0, salt)
    assert got.dtype == np.int32
    assert got.tolist() == [2 + bin_of(plain.word_of(value), num_bins, salt) for value in values]


def test_bins_of_absent_rows_are_the_missing_slot():
    present = np.array([True, False, True])
    strings = packed([b"a", b"b", b"c"])
    all_there = _native.hash_strings(*strings, None, 10, 1, 0, 3)
    assert _native.hash_strings(*strings, present, 10, 1, 0, 3).tolist() == [all_there[0], 0, all_there[2]]
    numbers = np.arange(3)
    all_there = _native.hash_ints(numbers, None, 10, 1, 0, 3)
    assert _native.hash_ints(numbers, present, 10, 1, 0, 3).tolist() == [all_there[0], 0, all_there[2]]


@pytest.mark.parametrize("salt", [0, 1, 2**64 - 1])
def test_bins_are_evenly_filled_and_others_with_another_salt(salt):
    count, num_bins = 200_000, 1000
    numbers = np.arange(count)
    strings = packed([b"user-%d" % number for number in range(count)])
    for bins, others in (
        (
            _native.hash_ints(numbers, None, num_bins, 0, 0, salt),
            _native.hash_ints(numbers, None, num_bins, 0, 0, salt ^ 2),
        ),
        (
            _native.hash_strings(*strings, None, num_bins, 0, 0, salt),
            _native.hash_strings(*strings, None, num_bins, 0, 0, salt ^ 2),
        ),
    ):
        seen = np.bincount(bins, minlength=num_bins)
        assert len(seen) == num_bins
        chi_square = float(((seen - count / num_bins) ** 2 / (count / num_bins)).sum())
        assert abs(chi_square - (num_bins - 1)) < 6 * np.sqrt(2 * num_bins)
        assert abs(np.mean(bins == others) - 1 / num_bins) < 6 / np.sqrt(count * num_bins)


def test_one_bin_takes_all():
    assert _native.hash_ints(np.arange(5), None, 1, 4, 0, 0).tolist() == [4] * 5


@settings(max_examples=100)
@given(
    st.lists(st.lists(st.integers(-3, 8) | st.sampled_from([-(2**31), INT32_MAX]), max_size=6), max_size=6),
    st.integers(0, 7),
    st.booleans(),
)
def test_multi_hot_rows_equal_the_plain_form(rows, width, counts):
    expected = np.zeros((len(rows), width), np.float32)
    for number, row in enumerate(rows):
        for code in row:
            if 0 <= code < width:
                expected[number, code] = expected[number, code] + 1 if counts else 1
    codes = np.array([code for row in rows for code in row], np.int32)
    got = _native.multi_hot(codes, np.cumsum([0, *map(len, rows)]), width, counts)
    assert (got.dtype, got.shape) == (np.float32, expected.shape)
    assert got.tolist() == expected.tolist()


def test_multi_hot_leaves_out_codes_before_and_after_the_offsets():
    codes = np.array([0, 1, 2, 3], np.int32)
    assert _native.multi_hot(codes, np.array([1, 2, 3]), 4, True).tolist() == [[0, 1, 0, 0], [0, 0, 1, 0]]


CODES = np.zeros(3, np.int32)
INTS = np.zeros(3, np.int64)
BYTES = np.zeros(4, np.uint8)
BAD_CALLS = {
    "place_codes of int64": (
        ValueError,
        "codes int32 int64",
        lambda: _native.place_codes(INTS, None, 0, 0, 0),
    ),
    "place_codes of 2-D": (ValueError, "codes 2", lambda: _native.place_codes(CODES[None], None, 0, 0, 0)),
    "place_codes with a slot too large": (
        TypeError,
        "incompatible",
        lambda: _native.place_codes(CODES, None, 2**31, 0, 0),
    ),
    "hash_ints of int32": (
        ValueError,
        "values int64 int32",
        lambda: _native.hash_ints(CODES, None, 5, 0, 0, 0),
    ),
    "hash_ints into no bins": (ValueError, "num_bins 1", lambda: _native.hash_ints(INTS, None, 0, 0, 0, 0)),
    "hash_ints into too many bins": (
        ValueError,
        "num_bins 1",
        lambda: _native.hash_ints(INTS, None, 2**31, 0, 0, 0),
    ),
    "hash_ints behind too large a first": (
        ValueError,
        "first int32",
        lambda: _native.hash_ints(INTS, None, 5, INT32_MAX - 3, 0, 0),
    ),
    "hash_ints with a short mask": (
        ValueError,
        "present 3 rows 2",
        lambda: _native.hash_ints(INTS, np.ones(2, bool), 5, 0, 0, 0),
    ),
    "hash_strings past the arena": (
        ValueError,
        "stops arena",
        lambda: _native.hash_strings(BYTES, INTS, INTS + 5, None, 5, 0, 0, 0),
    ),
    "hash_strings before the arena": (
        ValueError,
        "stops arena",
        lambda: _native.hash_strings(BYTES, INTS - 1, INTS, None, 5, 0, 0, 0),
    ),
    "hash_strings that goes back": (
        ValueError,
        "stops arena",
        lambda: _native.hash_strings(BYTES, INTS + 2, INTS + 1, None, 5, 0, 0, 0),
    ),
    "hash_strings with fewer stops": (
        ValueError,
        "stops starts",
        lambda: _native.hash_strings(BYTES, INTS, INTS[:2], None, 5, 0, 0, 0),
    ),
    "multi_hot without offsets": (
        ValueError,
        "offsets rows",
        lambda: _native.multi_hot(CODES, INTS[:0], 5, True),
    ),
    "multi_hot past the codes": (
        ValueError,
        "offsets values",
        lambda: _native.multi_hot(CODES, np.array([0, 4]), 5, True),
    ),
    "multi_hot that goes back": (
        ValueError,
        "offsets less",
        lambda: _native.multi_hot(CODES, np.array([0, 3, 2, 3]), 5, True),
    ),
    "multi_hot before the codes": (
        ValueError,
        "offsets negative",
        lambda: _native.multi_hot(CODES, np.array([-1, 3]), 5, True),
    ),
    "multi_hot of a width that no memory has": (
        ValueError,
        "shape bytes memory",
        lambda: _native.multi_hot(CODES, np.array([0, 3]), 2**62, True),
    ),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_codes_refuse_arguments_that_do_not_fit(case):
    error, text, call = BAD_CALLS[case]
    with raises_with(error, text):
        call()
