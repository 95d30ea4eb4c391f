"""Values as they are stored."""

import numpy as np
import pytest

from fit_sources import fit, lists, numbers, run, strings
from penstock.errors import FieldError, OptionError
from penstock.fields import Bytes, Category, Image, Number, Sequence, Tensor, Text
from penstock.transform import Keep, Output
from penstock.transform.output import align, can_cast, is_aligned
from raising import containing, raises_with


@pytest.mark.parametrize(
    ("field", "column"),
    [
        (Number("int64"), numbers([1, 2], "int64")),
        (Number("float64"), numbers([1.5, 2], "float64")),
        (Category("int64"), numbers([1, 2], "int64")),
        (Tensor((2,), "uint8"), numbers([[1, 2], [3, 4]], "uint8")),
    ],
)
def test_values_are_given_as_stored(field, column):
    kept = run(fit(Keep(), field, column), column)
    assert kept.dtype == column.values.dtype
    assert np.array_equal(kept, column.values)


def test_aligned_values_are_not_copied():
    column = numbers([[1, 2]], "float32")
    column.values = align(column.values)
    assert run(fit(Keep(), Tensor((2,)), column), column) is column.values


def test_dtype_is_as_asked():
    column = numbers([1, 2**24 + 1], "int64")
    keep = fit(Keep("float32"), Number("int64"), column)
    assert keep.outputs("x") == (Output("x", "float32"),)
    assert run(keep, column).tolist() == [1.0, 2.0**24]


def test_whole_number_that_the_dtype_cannot_hold_is_an_error():
    keep = fit(Keep("uint8"), Tensor((2,), "int64"), numbers([[0, 255]], "int64"))
    assert run(keep, numbers([[0, 255]], "int64")).tolist() == [[0, 255]]
    with raises_with(FieldError, field="x", record=1, expected=containing("uint8"), got="-1"):
        run(keep, numbers([[0, 255], [-1, 0]], "int64"))


def test_float_that_the_dtype_cannot_hold_is_an_error_and_infinity_is_none():
    keep = fit(Keep("float16"), Tensor((2,)), numbers([[0.0, 1.0]]))
    assert run(keep, numbers([[np.inf, 65504.0]])).tolist() == [[np.inf, 65504.0]]
    with raises_with(FieldError, field="x", record=1, expected=containing("float16"), got="-70000.0"):
        run(keep, numbers([[np.inf, 0.0], [0.0, -7e4]]))


def test_missing_value_is_an_error_when_fitted_and_when_applied():
    field = Number(optional=True)
    with raises_with(OptionError, "'x' 2 3 Keep(missing=0)"):
        fit(Keep(), field, numbers([1.0, None, None]))
    keep = fit(Keep(), field, numbers([1.0]))
    with raises_with(FieldError, field="x", record=1):
        run(keep, numbers([1.0, None]))


@pytest.mark.parametrize("missing", [0, 7.0])
def test_missing_value_is_filled_in_as_asked(missing):
    column = numbers([[1.0, 2.0], None])
    keep = fit(Keep(missing=missing), Tensor((2,), optional=True), column)
    assert run(keep, column).tolist() == [[1.0, 2.0], [missing, missing]]
    assert column.values[1].tolist() == [0.0, 0.0]


def test_default_of_the_field_counts_as_a_value():
    column = numbers([1.0, 5.0])
    column.present = np.array([True, False])
    keep = fit(Keep("float32"), Number(default=5.0), column)
    assert run(keep, column).tolist() == [1.0, 5.0]
    assert not keep.takes_missing


def test_sequence_is_given_ragged_where_asked():
    column = lists([[1, 2], []])
    ragged = run(fit(Keep(ragged=True), Sequence(), column), column)
    assert (ragged.values.tolist(), ragged.offsets.tolist()) == ([1, 2], [0, 2, 2])
    small = run(fit(Keep("int32", ragged=True), Sequence(), column), column)
    assert small.values.dtype == np.int32


@pytest.mark.parametrize(
    ("keep", "field", "facts"),
    [
        (Keep(), Text(), "'x' text"),
        (Keep(), Category(), "Tokenize() Encode()"),
        (Keep(), Sequence("string"), "Tokenize() Encode()"),
        (Keep(), Image(), "Image() Pipeline.map None"),
        (Keep(), Bytes(), "Image() Pipeline.map None"),
        (Keep(), Sequence(), "shape sequence"),
        (Keep(ragged=True), Number(), "sequence ragged=True"),
        (Keep("int32"), Number(), "dtype Keep float32"),
        (Keep("bool"), Number("int64"), "dtype Keep int64"),
    ],
)
def test_field_that_cannot_be_kept_is_refused(keep, field, facts):
    with raises_with(OptionError, facts):
        fit(keep, field, strings(["a"]))


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ({"dtype": "string"}, "dtype Keep 'float32'"),
        ({"missing": "zero"}, "missing Keep 'zero'"),
        ({"ragged": 1}, "ragged Keep True False 1"),
    ],
)
def test_option_that_cannot_be_is_refused(options, facts):
    with raises_with(OptionError, facts):
        Keep(**options)


def test_casts_never_drop_fractions():
    assert can_cast("bool", "int8")
    assert can_cast("int64", "uint8")
    assert can_cast("uint64", "int8")
    assert can_cast("int64", "float16")
    assert can_cast("float64", "float16")
    assert not can_cast("float16", "int64")
    assert not can_cast("uint8", "bool")


def test_align_copies_arrays_that_are_unaligned_or_not_contiguous():
    whole = align(np.arange(64, dtype=np.float32))
    assert is_aligned(whole)
    assert align(whole) is whole
    for part in (whole[1:], whole[::2], whole.reshape(8, 8).T):
        assert not is_aligned(part)
        assert is_aligned(align(part))
        assert np.array_equal(align(part), part)
    swapped = whole.astype(">f4")
    assert align(swapped).tolist() == whole.tolist()


@pytest.mark.parametrize("dtype", [np.float64, np.dtype("float64"), float])
def test_dtype_is_taken_as_numpy_has_it(dtype):
    assert Keep(dtype=dtype) == Keep(dtype="float64")
    assert Keep(dtype=dtype).to_json()["dtype"] == "float64"
    with raises_with(OptionError, "Keep", field="dtype", expected=containing("'float32'", "'float64'")):
        Keep(dtype=dict)
