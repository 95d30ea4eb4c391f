"""What a transform promises."""

import numpy as np
import pytest

from fit_sources import lists, nested
from penstock.errors import OptionError
from penstock.transform import Output
from raising import raises_with


def test_output_is_described_with_its_varying_sizes():
    assert Output("x", "float32").describe() == "float32 (n,)"
    assert Output("x", "int64", (None, 4)).describe() == "int64 (n, ?, 4)"
    assert Output("x", "int64", (None,), is_ragged=True).describe() == "int64 ragged (n, ?)"


def test_output_of_numpy_dtype_and_list_shape_is_normalised():
    assert Output("x", np.float32, [3]) == Output("x", "float32", (3,))


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("", "float32"), "Output string ''"),
        (("x", "complex64"), "'x' 'float32'"),
        (("x", "float32", 3), "shape 'x'"),
        (("x", "float32", (0,)), "shape 'x'"),
        (("x", "float32", (3,), True), "None ragged (3,)"),
        (("x", "float32", (), 1), "is_ragged 'x' True False 1"),
    ],
)
def test_output_that_cannot_be_is_refused(arguments, facts):
    with raises_with(OptionError, facts):
        Output(*arguments)


def test_output_accepts_arrays_with_its_dtype_shape_and_rows():
    output = Output("x", "float32", (None, 2))
    assert output.accepts(np.zeros((3, 5, 2), np.float32), 3)
    assert not output.accepts(np.zeros((3, 5, 2), np.float64), 3)
    assert not output.accepts(np.zeros((3, 5, 1), np.float32), 3)
    assert not output.accepts(np.zeros((4, 5, 2), np.float32), 3)
    assert not output.accepts(np.zeros((3, 2), np.float32), 3)
    assert not output.accepts([1.0], 1)


def test_ragged_output_accepts_lists_and_lists_of_lists():
    assert Output("x", "int64", (None,), is_ragged=True).accepts(lists([[1], []]), 2)
    assert not Output("x", "int64", (None,), is_ragged=True).accepts(np.zeros((2, 1), np.int64), 2)
    assert Output("x", "int64", (None, None), is_ragged=True).accepts(nested([[[1]], []]), 2)
    assert not Output("x", "int32", (None,), is_ragged=True).accepts(lists([[1], []]), 2)
