"""Numbers from every kind of raw column."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from encode_columns import encode, objects, values_of
from penstock.columns import Dense
from penstock.fields import Number
from raising import containing

INT = Number("int64")
FLOAT = Number("float32")

WHOLE = [
    (pa.array([1, -2, 3], pa.int8()), [1, -2, 3]),
    (pa.array([1, 2, 3], pa.uint64()), [1, 2, 3]),
    (pa.array([9, 1, 2]).slice(1), [1, 2]),
    (pa.array([1.0, -0.0, 2.0**62]), [1, 0, 2**62]),
    (pa.array([1.0, 2.0], pa.float16()), [1, 2]),
    (pa.array([True, False]), [1, 0]),
    (pa.array([Decimal("7.00"), Decimal("9007199254740993.00")]), [7, 9007199254740993]),
    (pa.array(["1", "-2", "9223372036854775807", "-9223372036854775808"]), [1, -2, 2**63 - 1, -(2**63)]),
    (pa.array(["9", "1", "2"], pa.large_string()).slice(1), [1, 2]),
    (pa.array(["1", "2"], pa.string_view()), [1, 2]),
    (pa.array([b"1", b"2"]), [1, 2]),
    (pa.array([" 1", "2 ", "\t3\n"]), [1, 2, 3]),
    (pa.array(["+5", "7.0", "7.", "1e3", "00501", "-0"]), [5, 7, 7, 1000, 501, 0]),
    (pa.array(["0000000000000000000007"]), [7]),
    (pa.array(["1", "2", "1"]).dictionary_encode(), [1, 2, 1]),
    (np.array([1, 2], ">i4"), [1, 2]),
    (np.array([[1], [2]]), [1, 2]),
    (np.array(["1", "2"]), [1, 2]),
    (np.array(["1", "2"], ">U3"), [1, 2]),
    (np.array([b"1", b"2"]), [1, 2]),
    (objects(1, 2), [1, 2]),
    (objects(1, "2", True, 3.0, b"4", np.int8(5), Decimal(6)), [1, 2, 1, 3, 4, 5, 6]),
]


@pytest.mark.parametrize(("raw", "expected"), WHOLE)
def test_whole_number_from_an_object_with_one_is_that_number(raw, expected):
    column, faults = encode(INT, raw)
    assert faults == []
    assert isinstance(column, Dense)
    assert column.values.dtype == np.int64
    assert column.values.tolist() == expected
    assert column.present is None


NOT_WHOLE = [
    (pa.array(["1", "x", "2"]), 1, containing("number"), "'x'"),
    (pa.array(["1", "0x1F"]), 1, containing("number"), "'0x1F'"),
    (pa.array(["1", "1_000"]), 1, containing("number"), "'1_000'"),
    (pa.array(["1", "٣"]), 1, containing("number"), "'٣'"),
    (pa.array(["1", ""]), 1, containing("number"), "''"),
    (pa.array(["1", "1.5"]), 1, containing("number"), "'1.5'"),
    (pa.array(["1", "nan"]), 1, containing("number"), "'nan'"),
    (pa.array(["1", "1e400"]), 1, containing("number"), "'1e400'"),
    (pa.array(["1", "9223372036854775808"]), 1, containing("number", 64), "'9223372036854775808'"),
    (pa.array(["1", "-" + "9" * 40]), 1, containing("number", 64), f"'-{'9' * 40}'"),
    (np.array([1, 2**63], np.uint64), 1, containing("number", 64), "9223372036854775808"),
    (np.array([1.0, 2.5]), 1, containing("number"), "2.5"),
    (np.array([1.0, 2.0**63]), 1, containing("number", 64), "9.223372036854776e+18"),
    (np.array([1.0, np.inf]), 1, containing("number"), "inf"),
    (np.array([1.0, np.nan]), 1, containing("number"), "nan"),
    (objects(1, 2**63), 1, containing("number", 64), "9223372036854775808"),
    (objects(1, [2]), 1, containing("number"), "[2]"),
    (objects(1, {2}), 1, containing("number"), "{2}"),
    (objects(1, 2j), 1, containing("number"), "2j"),
    (pa.array([[1]]), 0, containing("number"), "[1]"),
    (pa.array([b"1", b"\xff"]), 1, containing("text", "UTF-8"), "b'\\xff'"),
    (np.array([[1, 2]]), 0, containing("number"), containing(2, "values")),
    (pa.array([b"1", b"\xff"]).view(pa.string()), 1, containing("text", "UTF-8"), "b'\\xff'"),
    (pa.array([b" 1", b"2\xff"]).view(pa.string()), 1, containing("text", "UTF-8"), "b'2\\xff'"),
]


@pytest.mark.parametrize(("raw", "row", "expected", "got"), NOT_WHOLE)
def test_whole_number_from_something_else_is_a_fault_of_that_row(raw, row, expected, got):
    column, faults = encode(INT, raw, plan={"nan": "value"})
    assert faults == [(row, expected, got)]
    assert column.values[row] == 0


FLOATS = [
    (pa.array([1.5, float("nan"), float("inf")]), [1.5, float("nan"), float("inf")]),
    (
        pa.array(["1.5", "1e3", " .5 ", "+2", "nan", "-inf", "7"]),
        [1.5, 1000, 0.5, 2, float("nan"), -np.inf, 7],
    ),
    (np.array([0.1]), [float(np.float32(0.1))]),
    (np.array([2**24 + 1]), [2.0**24]),
    (np.array([True, False]), [1, 0]),
    (pa.array([Decimal("1.50")]), [1.5]),
    (pa.array([1.5, 2.5, None], pa.float16()).slice(1, 1), [2.5]),
]


@pytest.mark.parametrize(("raw", "expected"), FLOATS)
def test_float_from_an_object_with_a_number_is_the_nearest_float32(raw, expected):
    column, faults = encode(FLOAT, raw, plan={"nan": "value"})
    assert faults == []
    assert column.values.dtype == np.float32
    np.testing.assert_array_equal(column.values, np.array(expected, np.float32))


def test_float_that_float32_cannot_hold_is_a_fault_and_not_infinity():
    column, faults = encode(FLOAT, pa.array(["1e39", "3e38", "1e400", "inf"]))
    assert faults == [
        (0, containing("number", "float32"), "1e+39"),
        (2, containing("number", "float64"), "'1e400'"),
    ]
    assert np.isinf(column.values).tolist() == [False, False, False, True]


def test_float64_keeps_every_bit():
    column, faults = encode(Number("float64"), pa.array(["0.1", "1e300"]))
    assert faults == []
    assert column.values.dtype == np.float64
    assert column.values.tolist() == [0.1, 1e300]


@pytest.mark.parametrize(
    "raw",
    [
        pa.array([1, None, 3]),
        pa.array(["1", None, "3"]),
        pa.array([" 1", None, "3.0"]),
        np.array([1.0, np.nan, 3.0]),
        np.ma.masked_array([1, 2, 3], [False, True, False]),
        objects(1, None, 3),
        objects(1, float("nan"), 3),
        objects(1, pd.NA, "3"),
    ],
)
def test_missing_number_is_not_present_where_optional_and_a_fault_elsewhere(raw):
    column, faults = encode(Number("int64", optional=True), raw)
    assert faults == []
    assert values_of(column) == [1, None, 3]
    _, faults = encode(INT, raw)
    assert [row for row, _, _ in faults] == [1]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize(
    "raw",
    [
        np.array([1.0, np.nan]),
        np.array([1.0, np.nan], np.float32),
        pa.array([1.0, float("nan")]),
        pa.array([1.0, float("nan")], pa.float16()),
        pa.array(["1", "nan"]),
        pa.array(["1.0", " NaN "]),
        objects(1.0, float("nan")),
        objects("1", np.float32("nan")),
    ],
)
def test_nan_is_missing_whatever_holds_it(raw, dtype):
    column, faults = encode(Number(dtype, optional=True), raw)
    assert faults == []
    assert values_of(column) == [1, None]
    assert column.values[1] == 0
    _, faults = encode(Number(dtype), raw)
    assert faults == [(1, containing("value"), "nothing")]


def test_nan_is_a_value_where_the_plan_says_so():
    column, faults = encode(Number("float32", optional=True), np.array([1.0, np.nan]), plan={"nan": "value"})
    assert faults == []
    assert column.present is None
    assert np.isnan(column.values).tolist() == [False, True]


def test_words_of_the_plan_are_missing_and_others_are_faults():
    field = Number("float32", optional=True)
    for raw in (pa.array(["1", " NA ", "na"]), pa.array([b"1", b"NA", b"na"]), objects(1, "NA", "na")):
        column, faults = encode(field, raw, plan={"missing": ("NA",)})
        assert [row for row, _, _ in faults] == [2]
        assert column.present.tolist()[:2] == [True, False]


def test_nan_that_is_a_value_stays_one_beside_a_float_that_is_too_large():
    raw = np.array([np.nan, 1e39])
    column, faults = encode(Number("float32", optional=True), raw, plan={"nan": "value"})
    assert [row for row, _, _ in faults] == [1]
    assert column.present is None
    assert np.isnan(column.values[0])


def test_column_of_nothing_has_no_value_at_all():
    column, faults = encode(Number("int64", optional=True), pa.nulls(3))
    assert faults == []
    assert values_of(column) == [None, None, None]
    assert len(encode(INT, pa.array([], pa.string()))[0]) == 0


def test_point_in_time_declared_as_number_is_microseconds():
    assert values_of(encode(INT, pa.array([datetime.datetime(1970, 1, 1, 0, 0, 1)]))[0]) == [1_000_000]


@pytest.mark.parametrize(
    "texts", [["7", "-3", "007"], ["9" * 18], ["0.1", "16777217", "-2.50"], ["3.4028236e38", "1"]]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_few_texts_are_the_numbers_that_many_are(texts, dtype):
    few, _ = encode(Number(dtype), pa.array(texts))
    many, _ = encode(Number(dtype), pa.array(texts * 20))
    assert values_of(few) * 20 == values_of(many)
