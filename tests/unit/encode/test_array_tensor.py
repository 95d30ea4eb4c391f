"""Arrays of one shape."""

import numpy as np
import pyarrow as pa
import pytest

from encode_columns import encode, objects, values_of
from penstock.fields import Tensor
from raising import containing

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
]
VALUES = [[[0, 1], [1, 0]], [[1, 1], [0, 0]]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_raw_tensor_has_the_type_and_shape_of_its_field(dtype):
    given = np.array(VALUES, dtype)
    for raw in (given, objects(*given), given.reshape(2, 4), pa.array(given.reshape(2, 4).tolist())):
        column, faults = encode(Tensor((2, 2), dtype, "raw"), raw)
        assert faults == []
        assert column.values.dtype == np.dtype(dtype)
        assert column.values.flags.c_contiguous
        np.testing.assert_array_equal(column.values, given)


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype != "float64"])
def test_list_tensor_has_the_type_of_its_list(dtype):
    column, faults = encode(Tensor((2, 2), dtype, "list"), np.array(VALUES, dtype))
    assert faults == []
    assert column.values.dtype == (np.float32 if "float" in dtype else np.int64)
    assert column.values.tolist() == VALUES


TWO_BY_TWO = Tensor((2, 2), "int64", "raw", optional=True)
WANTED = [[[1, 2], [3, 4]], None, [[5, 6], [7, 8]]]
COLUMNS = [
    pa.array(WANTED),
    pa.array([[[9, 9], [9, 9]], *WANTED]).slice(1),
    pa.array([[1, 2, 3, 4], None, [5, 6, 7, 8]], pa.list_(pa.int16(), 4)),
    pa.array(WANTED, pa.list_(pa.list_(pa.int16(), 2), 2)),
    objects(*WANTED),
    objects(np.array(WANTED[0], np.int8), None, np.array(WANTED[2], float)),
    objects(np.array(WANTED[0]).T.copy().T, None, WANTED[2]),
]


@pytest.mark.parametrize("raw", COLUMNS)
def test_lists_and_arrays_of_any_kind_are_tensors(raw):
    column, faults = encode(TWO_BY_TWO, raw)
    assert faults == []
    assert values_of(column) == WANTED
    assert column.values.flags.c_contiguous


def test_tensor_of_big_endian_numbers_is_in_native_order():
    column, _ = encode(Tensor((2,), "int32", "raw"), np.array([[1, 2]], ">i4"))
    assert column.values.dtype == np.dtype("=i4")
    assert column.values.tolist() == [[1, 2]]


def test_scalar_tensor_takes_single_numbers():
    for raw in (np.array([1, 2]), pa.array([1, 2]), objects(1, 2), pa.array([[1], [2]])):
        column, faults = encode(Tensor((), "int32", "raw"), raw)
        assert faults == []
        assert column.values.tolist() == [1, 2]


EXPECTED = containing("(2, 2)", "int64")
BAD = [
    (objects(np.zeros((2, 2)), np.zeros((4, 1))), EXPECTED, containing("array", "shape", "(4, 1)")),
    (objects(np.zeros((2, 2)), np.zeros(3)), EXPECTED, containing("array", "shape", "(3,)")),
    (objects(np.zeros((2, 2)), "abc"), EXPECTED, "'abc'"),
    (objects(np.zeros((2, 2)), [[1, 2], [3]]), EXPECTED, "[[1, 2], [3]]"),
    (objects([[1, 2], [3, 4]], [[1, 2], [3]]), EXPECTED, containing(2, 1, 2)),
    (pa.array([[1, 2, 3, 4], [1, 2, 3]]), EXPECTED, containing(3, "values")),
    (pa.array([[[1, 2], [3, 4]], [[1, 2, 3, 4]]]), EXPECTED, containing(1, 4)),
    (pa.array([[1, 2, 3, 4], [1, None, 3, 4]]), containing("number"), containing("position", 1)),
    (pa.array([[1, 2, 3, 4], [1, 2, 3, 4.5]]), containing("number"), containing("4.5", 3)),
    (np.array([[1, 2, 3, 4], [1, 2, 3, 4.5]]), containing("number"), containing("4.5", 3)),
    (objects(np.zeros((2, 2)), np.array([[1, np.nan], [3, 4]])), containing("number"), containing("nan", 1)),
]


@pytest.mark.parametrize(("raw", "expected", "got"), BAD)
def test_value_that_is_not_such_a_tensor_is_a_fault_of_its_row(raw, expected, got):
    _, faults = encode(TWO_BY_TWO, raw)
    assert faults == [(1, expected, got)]


def test_array_of_another_shape_is_a_fault_in_every_row():
    _, faults = encode(TWO_BY_TWO, np.zeros((2, 4, 4)))
    assert faults == [(row, EXPECTED, containing("(4, 4)", "float64")) for row in range(2)]


def test_value_that_the_type_cannot_hold_is_a_fault():
    assert encode(Tensor((2,), "uint8", "raw"), np.array([[1, 256]]))[1] == [
        (0, containing("number", 8), containing(256, 1))
    ]
    assert encode(Tensor((2,), "int8", "raw"), np.array([[1, -129]]))[1] == [
        (0, containing("number", 8), containing("-129", 1))
    ]
    assert encode(Tensor((1,), "float16", "raw"), np.array([[1e5]]))[1] == [
        (0, containing("number", "float16"), containing("100000.0", 0))
    ]


def test_uint64_beyond_int64_is_stored_raw_or_not_at_all():
    raw = np.array([[2**64 - 1]], np.uint64)
    assert encode(Tensor((1,), "uint64", "raw"), raw)[0].values.tolist() == [[2**64 - 1]]
    assert encode(Tensor((1,), "uint64", "list"), raw)[1] == [
        (0, containing("number", 63), containing(18446744073709551615, 0))
    ]


def test_json_lists_in_text_are_tensors():
    column, faults = encode(TWO_BY_TWO, pa.array(["[[1, 2], [3, 4]]", None, "[5, 6, 7, 8]"]), "json")
    assert faults == []
    assert values_of(column) == WANTED


def test_missing_tensor_is_a_fault_where_the_field_is_required():
    assert encode(Tensor((2,), "int64"), objects([1, 2], None))[1] == [(1, containing("value"), "nothing")]
