"""Bools as 0 and 1."""

import numpy as np
import pyarrow as pa
import pytest

from encode_columns import encode, objects, values_of
from penstock.fields import Category, Number
from raising import containing

FIELD = Category("int64", values=(0, 1), optional=True)

FLAGS = [
    (pa.array([True, None, False]), [1, None, 0]),
    (pa.array([True, True, None, False]).slice(1), [1, None, 0]),
    (pa.array(["true", None, "FALSE"]), [1, None, 0]),
    (pa.array([" True", None, "0"], pa.large_string()), [1, None, 0]),
    (pa.array([b"true", None, b"false"]), [1, None, 0]),
    (np.array([1.0, np.nan, 0.0]), [1, None, 0]),
    (objects(True, None, "false"), [1, None, 0]),
]


@pytest.mark.parametrize(("raw", "expected"), FLAGS)
def test_bool_is_one_or_zero(raw, expected):
    column, faults = encode(FIELD, raw, "bool")
    assert faults == []
    assert values_of(column) == expected
    assert column.values.dtype == np.int64


@pytest.mark.parametrize(
    ("raw", "got"),
    [(pa.array(["true", "yes"]), "'yes'"), (np.array([0, 2]), "2"), (objects(True, [1]), "[1]")],
)
def test_anything_else_is_a_fault(raw, got):
    assert encode(FIELD, raw, "bool")[1] == [(1, containing("false"), got)]


def test_bool_for_a_float_is_a_float():
    column, faults = encode(Number("float32"), pa.array(["true", "false"]), "bool")
    assert faults == []
    assert column.values.dtype == np.float32
    assert column.values.tolist() == [1, 0]
