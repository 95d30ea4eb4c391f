"""Arrays from the core's pool are plain NumPy arrays, aligned, and their memory lives as long as they do."""

import gc
import os

import numpy as np
import pytest

from each_case import each_case
from penstock import _native
from raising import raises_with

DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
DTYPES += ["float16", "float32", "float64"]


@each_case("dtype", DTYPES)
@each_case("shape", [(), (0,), (1,), (7,), (3, 0, 2), (5, 3), (2, 3, 4, 5), (100_000,)])
def test_empty_array_is_aligned_contiguous_and_writable(shape, dtype):
    array = _native.empty(shape, dtype)
    assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    assert array.ctypes.data % 64 == 0
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert array.flags.aligned
    assert not array.flags.owndata
    array[...] = 1
    assert (array == np.ones(shape, dtype)).all()


def test_empty_arrays_that_are_held_do_not_share_memory():
    arrays = [_native.empty((1000,), "int64") for _ in range(20)]
    for number, array in enumerate(arrays):
        array[:] = number
    assert [set(array.tolist()) for array in arrays] == [{number} for number in range(20)]


def test_memory_of_an_array_goes_back_to_the_pool_with_its_last_view():
    gc.collect()  # arrays of earlier tests that are still in rings
    _native.empty_pool()
    array = _native.empty((1 << 20,), "uint8")
    view = array[10:20].reshape(2, 5)
    view[:] = 7
    del array
    gc.collect()
    assert _native.pooled_bytes() == 0
    assert (view == 7).all()
    del view
    gc.collect()
    assert _native.pooled_bytes() >= 1 << 20
    _native.empty_pool()


def test_memory_of_an_array_is_used_again():
    first = _native.empty((1 << 16,), "uint8")
    place = first.ctypes.data
    del first
    assert _native.empty((1 << 14,), "float32").ctypes.data == place


BAD_CALLS = {
    "a list": (TypeError, "shape integers", ([3], "int8")),
    "no number": (TypeError, "interpreted as an integer", (("3",), "int8")),
    "a fraction": (TypeError, "interpreted as an integer", ((3.0,), "int8")),
    "a negative dimension": (ValueError, "shape negative", ((3, -1), "int8")),
    "too many dimensions": (ValueError, "shape 32", ((1,) * 33, "int8")),
    "too large a product": (ValueError, "shape bytes memory", ((2**40, 2**40, 3), "int8")),
    "too many bytes": (ValueError, "shape bytes memory", ((2**61,), "float64")),
    "an unknown dtype": (ValueError, "dtype 'complex64'", ((3,), "complex64")),
    "a dtype object": (TypeError, "dtype", ((3,), np.dtype("int8"))),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_empty_refuses_arguments_that_do_not_fit(case):
    error, text, arguments = BAD_CALLS[case]
    with raises_with(error, text):
        _native.empty(*arguments)


@pytest.mark.skipif("PENSTOCK_SANITIZED" in os.environ, reason="sanitizers end the process instead")
def test_empty_array_larger_than_memory_is_a_memory_error():
    with pytest.raises(MemoryError):
        _native.empty((2**59,), "uint8")


def test_zero_sized_array_of_huge_dimensions_takes_no_memory():
    assert _native.empty((0, 2**40), "float64").shape == (0, 2**40)


def test_memory_that_was_kept_while_more_was_in_use_is_given_back():
    _native.empty_pool()
    arrays = [_native.empty((64 << 20,), "uint8") for _ in range(12)]
    del arrays[6:]
    assert _native.pooled_bytes() > 256 << 20
    arrays.clear()
    assert _native.pooled_bytes() <= 256 << 20
    _native.empty_pool()
