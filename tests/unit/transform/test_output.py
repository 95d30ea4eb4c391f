"""What a transform promises."""

import numpy as np
import pytest

from fit_sources import lists, nested
from penstock.errors import OptionError
from penstock.transform import Output


def test_output_is_described_with_what_varies():
    assert Output("x", "float32").describe() == "float32 (n,)"
    assert Output("x", "int64", (None, 4)).describe() == "int64 (n, ?, 4)"
    assert Output("x", "int64", (None,), is_ragged=True).describe() == "int64 ragged (n, ?)"


def test_output_of_numpy_dtype_and_list_shape_is_normalised():
    assert Output("x", np.float32, [3]) == Output("x", "float32", (3,))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", "float32"), "name of an Output: expected a text, got ''"),
        (("x", "complex64"), "dtype of output 'x': expected 'float32', "),
        (("x", "float32", 3), "shape of output 'x': expected a tuple of positive ints"),
        (("x", "float32", (0,)), "shape of output 'x': expected a tuple of positive ints"),
        (("x", "float32", (3,), True), "expected None as the first dimension of what is ragged, got (3,)"),
        (("x", "float32", (), 1), "is_ragged of output 'x': expected True or False, got 1"),
    ],
)
def test_output_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(OptionError) as caught:
        Output(*arguments)
    assert message in str(caught.value)


def test_output_accepts_what_has_its_dtype_shape_and_rows():
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
