"""Padded lists and their masks equal what a loop over the lists makes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import _native
from raising import raises_with

DTYPES = ["float32", "float64", "int32", "int64", "uint8", "bool"]


def plain(values, offsets, length, value, from_end):
    out = np.full((len(offsets) - 1, length, *values.shape[1:]), value, values.dtype)
    for row, (start, stop) in enumerate(pairwise(offsets)):
        items = values[start:stop]
        kept = items[max(0, len(items) - length) :] if from_end else items[:length]
        out[row, : len(kept)] = kept
    return out


@settings(max_examples=150)
@given(
    st.sampled_from(DTYPES),
    st.lists(st.integers(0, 7), max_size=6),
    st.sampled_from([(), (1,), (3,), (2, 2), (0,)]),
    st.integers(0, 9),
    st.booleans(),
    st.integers(0, 2),
)
def test_pad_equals_a_loop(dtype, lengths, shape, length, from_end, unused):
    offsets = np.cumsum([unused, *lengths])
    values = np.random.default_rng(0).integers(0, 2, (offsets[-1] + unused, *shape)).astype(dtype)
    value = 1 if dtype == "bool" else 3
    got = _native.pad(values, offsets, length, value, from_end)
    expected = plain(values, offsets, length, value, from_end)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    assert got.tolist() == expected.tolist()
    assert got.ctypes.data % 64 == 0
    mask = _native.pad_mask(offsets, length)
    assert mask.dtype == np.bool_
    assert mask.tolist() == [[place < count for place in range(length)] for count in lengths]


def test_pad_of_long_lists_equals_a_loop():
    rng = np.random.default_rng(1)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(0, 200, 300))])
    values = rng.normal(size=(offsets[-1], 5)).astype(np.float32)
    for from_end in (False, True):
        got = _native.pad(values, offsets, 70, -1.5, from_end)
        np.testing.assert_array_equal(got, plain(values, offsets, 70, -1.5, from_end))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float32", float("nan")),
        ("float32", float("-inf")),
        ("float64", 0.1),
        ("float32", 7),
        ("float64", True),
        ("int32", -(2**31)),
        ("int32", 2**31 - 1),
        ("int64", -(2**63)),
        ("int64", 2**63 - 1),
        ("int64", 5.0),
        ("int64", np.int32(4)),
        ("float32", np.float32(4.5)),
        ("uint8", 255),
        ("bool", True),
        ("bool", False),
    ],
)
def test_pad_value_is_any_number_that_the_dtype_has(dtype, value):
    padded = _native.pad(np.zeros(0, dtype), np.zeros(2, np.int64), 3, value, False)
    np.testing.assert_array_equal(padded, np.full((1, 3), value, dtype))


VALUES = np.zeros(3, np.int64)
OFFSETS = np.array([0, 3])
BAD_CALLS = {
    "half floats": (ValueError, "values float16", (np.zeros(3, "f2"), OFFSETS, 2, 0, False)),
    "columns": (ValueError, "values array", (np.zeros((3, 2))[:, 0], OFFSETS, 2, 0, False)),
    "int32 offsets": (ValueError, "offsets int64 int32", (VALUES, OFFSETS.astype("i4"), 2, 0, False)),
    "no offsets": (ValueError, "offsets", (VALUES, OFFSETS[:0], 2, 0, False)),
    "offsets past the end": (ValueError, "offsets", (VALUES, OFFSETS + 1, 2, 0, False)),
    "offsets before the start": (ValueError, "offsets", (VALUES, OFFSETS - 1, 2, 0, False)),
    "offsets that go back": (ValueError, "offsets less", (VALUES, np.array([3, 0]), 2, 0, False)),
    "a fraction for ints": (ValueError, "value", (VALUES, OFFSETS, 2, 0.5, False)),
    "infinity for ints": (ValueError, "value", (VALUES, OFFSETS, 2, float("inf"), False)),
    "a value too large": (ValueError, "value int64", (VALUES, OFFSETS, 2, 2**63, False)),
    "a float too large": (ValueError, "value int64", (VALUES, OFFSETS, 2, 1e30, False)),
    "300 for bytes": (ValueError, "value uint8", (np.zeros(3, "u1"), OFFSETS, 2, 300, False)),
    "2 for bools": (ValueError, "value bool", (np.zeros(3, "?"), OFFSETS, 2, 2, False)),
    "a text": (TypeError, "as an integer", (VALUES, OFFSETS, 2, "0", False)),
    "a text for floats": (TypeError, "must be real number", (np.zeros(3), OFFSETS, 2, "0", False)),
    "a negative length": (TypeError, "incompatible", (VALUES, OFFSETS, -1, 0, False)),
    "more than any memory": (ValueError, "shape bytes", (VALUES, OFFSETS, 2**61, 0, False)),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_pad_refuses_arguments_that_do_not_fit(case):
    error, text, arguments = BAD_CALLS[case]
    with raises_with(error, text):
        _native.pad(*arguments)


@pytest.mark.parametrize("offsets", [[], [-1, 0], [1, 0], [0, 5, 4]])
def test_pad_mask_refuses_offsets_that_do_not_fit(offsets):
    with pytest.raises(ValueError, match="offsets: "):
        _native.pad_mask(np.array(offsets, np.int64), 3)


def test_pad_mask_needs_no_values():
    assert _native.pad_mask(np.array([0, 2**62, 2**62 + 1]), 2).tolist() == [[True, True], [True, False]]
