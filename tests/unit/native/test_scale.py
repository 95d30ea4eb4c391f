"""Scaled numbers equal NumPy's float64, rounded once to float32."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from each_case import each_case
from penstock import _native
from raising import raises_with

INF = float("inf")
DTYPES = ["float32", "float64", "int64", "int32", "uint8", "bool"]
SPECIAL = [0.0, -0.0, 1e-45, -1e-45, 1e-12, 1.0, -1.0, 3e38, -3e38, INF, -INF, np.nan]


def plain(values, present, shift, factor, *, low, high, fill, log, nan_is_missing):
    """Return what the kernel must, by NumPy."""
    x = np.array(values, np.float64)
    with np.errstate(all="ignore"):
        clipped = np.where(np.isnan(x), x, np.clip(x, low, high))
        if log:
            clipped = np.copysign(np.log1p(np.abs(clipped)), clipped)
        per_row = x.shape[1:]
        terms = [term if term.size == 1 else term.reshape(per_row) for term in (shift, factor)]
        out = ((clipped - terms[0]) * terms[1]).astype(np.float32)
    if nan_is_missing:
        out[np.isnan(x)] = fill
    if present is not None:
        out[~present] = fill
    return out


def run(values, present=None, shift=(0.0,), factor=(1.0,), **options):
    options = {"low": -INF, "high": INF, "fill": 0.0, "log": False, "nan_is_missing": False} | options
    shift, factor = np.array(shift, np.float64), np.array(factor, np.float64)
    got = _native.scale(values, present, shift, factor, *options.values())
    assert (got.dtype, got.shape) == (np.float32, values.shape)
    assert got.ctypes.data % 64 == 0
    return got, plain(values, present, shift, factor, **options)


def numbers(rng, dtype, shape):
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith("float"):
        values = rng.normal(size=shape) * 10.0 ** rng.integers(-6, 6, shape)
        values = np.where(rng.random(shape) < 0.1, rng.choice(SPECIAL, shape), values)
        with np.errstate(all="ignore"):
            return values.astype(dtype)
    info = np.iinfo(dtype)
    small = rng.integers(max(info.min, -100), 100, shape)
    return np.where(rng.random(shape) < 0.8, small, rng.integers(info.min, info.max, shape, dtype)).astype(
        dtype
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("nan_is_missing", [False, True])
@each_case("shape", [(0,), (1,), (9,), (1027,), (5, 3), (0, 3), (4, 0), (300, 2, 3), (2, 1500)])
def test_scale_equals_numpy(dtype, shape, nan_is_missing):
    rng = np.random.default_rng(len(shape))
    values = numbers(rng, dtype, shape)
    width = int(np.prod(shape[1:]))
    for present in (None, rng.random(shape[0]) < 0.7):
        for sizes in ((1, 1), (width, width), (1, width), (width, 1)):
            shift, factor = rng.normal(size=sizes[0]), rng.normal(size=sizes[1])
            options = {"low": -5.0, "high": 70.0, "fill": 0.1, "nan_is_missing": nan_is_missing}
            got, expected = run(values, present, shift, factor, **options)
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3000,), (1, 2), (700, 3), (3, 5000)])
def test_scale_of_logarithms_equals_numpy_within_float32(dtype, shape):
    rng = np.random.default_rng(3)
    values = numbers(rng, dtype, shape)
    width = int(np.prod(shape[1:]))
    for low, high, size in ((-INF, INF, 1), (-4.0, 1e5, 1), (-INF, INF, width)):
        options = {"low": low, "high": high, "fill": -1.0, "log": True, "nan_is_missing": True}
        shift, factor = rng.normal(size=size), rng.uniform(0.5, 2, size)
        got, expected = run(values, rng.random(shape[0]) < 0.9, shift, factor, **options)
        np.testing.assert_allclose(got, expected, rtol=1.2e-7, atol=1e-7)


def test_logarithm_equals_numpy_to_the_last_bits_of_a_double():
    rng = np.random.default_rng(4)
    values = np.concatenate([10.0 ** rng.uniform(-25, 300, 100_000), rng.uniform(0, 3, 100_000), [0.0]])
    # A logarithm minus its float32 shows the lower bits.
    rounded, _ = run(values, log=True)
    rest, _ = run(values[None], None, rounded, log=True)
    got = rounded.astype(np.float64) + rest[0]
    np.testing.assert_allclose(got, np.log1p(values), rtol=5e-15, atol=0)


@settings(max_examples=200)
@given(st.lists(st.floats(width=32), max_size=20), st.floats(-1e6, 1e6), st.floats(1e-3, 1e3), st.booleans())
def test_scale_of_any_floats_equals_numpy(values, shift, factor, nan_is_missing):
    got, expected = run(
        np.array(values, np.float32), None, [shift], [factor], fill=0.5, nan_is_missing=nan_is_missing
    )
    np.testing.assert_array_equal(got, expected)


def test_scale_keeps_nan_and_the_signs_of_infinity_when_nothing_says_otherwise():
    values = np.array([np.nan, INF, -INF], np.float32)
    for log in (False, True):
        got, _ = run(values, log=log)
        np.testing.assert_array_equal(got, np.array([np.nan, INF, -INF], np.float32))
    assert run(values, low=-2.0, high=3.0)[0].tolist()[1:] == [3.0, -2.0]


def test_infinity_that_a_factor_makes_nan_is_not_missing():
    got, _ = run(np.array([INF, np.nan]), None, [0.0], [0.0], fill=9.0, nan_is_missing=True)
    assert np.isnan(got[0])
    assert got[1] == 9.0


def test_absent_rows_are_filled_whatever_the_mask_is_made_of():
    present = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    assert run(np.ones(4, np.float32), present, fill=5.0)[0].tolist() == [5.0, 1.0, 1.0, 1.0]
    got = run(np.ones((4, 2)), present, fill=5.0)[0]
    assert got.tolist() == [[5.0, 5.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]


def test_scale_takes_rows_of_a_matrix():
    matrix = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert run(matrix[1])[0].tolist() == [4.0, 5.0, 6.0, 7.0]


ONE = np.zeros(1)
ROWS = np.zeros((4, 3), np.float32)
BAD_CALLS = {
    "a list": (TypeError, "values NumPy array", ([1.0], None, ONE, ONE)),
    "no values": (TypeError, "incompatible function arguments", (None, None, ONE, ONE)),
    "half floats": (ValueError, "values array float32 float16", (np.zeros(2, "f2"),)),
    "strings": (ValueError, "values array float32", (np.array(["a"]),)),
    "other byte order": (ValueError, "values", (np.zeros(2, ">f4"),)),
    "columns": (ValueError, "values array", (ROWS[:, 0],)),
    "a transposed matrix": (ValueError, "values array", (ROWS.T,)),
    "no dimension": (ValueError, "values", (np.array(1.0),)),
    "odd places": (ValueError, "values array item size", (np.zeros(9, np.uint8)[1:].view(np.float32),)),
    "a short mask": (ValueError, "present 4 rows 3", (ROWS, np.ones(3, bool))),
    "a mask of bytes": (ValueError, "present array bool uint8", (ROWS, np.ones(4, "u1"))),
    "a mask with gaps": (ValueError, "present array", (ROWS, np.ones(8, bool)[::2])),
    "a mask of rows": (ValueError, "present 2", (ROWS, ROWS > 0)),
    "a shift too many": (ValueError, "shift 3 row 2", (ROWS, None, np.zeros(2), ONE)),
    "no factor": (ValueError, "factor 0", (ROWS, None, ONE, np.zeros(0))),
    "float32 factors": (ValueError, "factor array float64", (ROWS, None, ONE, np.zeros(1, "f4"))),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_scale_refuses_arguments_that_do_not_fit(case):
    error, text, arguments = BAD_CALLS[case]
    rest = (None, ONE, ONE)[len(arguments) - 1 :]
    with raises_with(error, text):
        _native.scale(*arguments, *rest, -INF, INF, 0.0, False, False)


@pytest.mark.parametrize(("low", "high"), [(1.0, 0.0), (np.nan, 1.0), (0.0, np.nan)])
def test_scale_refuses_limits_in_the_wrong_order(low, high):
    with raises_with(ValueError, "low"):
        _native.scale(ROWS, None, ONE, ONE, low, high, 0.0, False, False)
