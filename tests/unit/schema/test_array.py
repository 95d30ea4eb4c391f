"""Types of field with several values a record: what they take and what they refuse."""

import numpy as np
import pytest

from penstock.errors import SchemaError
from penstock.fields import Sequence, Tensor


@pytest.mark.parametrize("shape", [(2, 3), [2, 3], np.array([2, 3]), (np.int32(2), 3)])
def test_tensor_shape_in_any_form_is_a_tuple_of_ints(shape):
    field = Tensor(shape)
    assert field.shape == (2, 3)
    assert {type(dim) for dim in field.shape} == {int}


@pytest.mark.parametrize("dtype", ["uint8", np.uint8, np.dtype("u1"), np.dtype(">u1")])
def test_tensor_dtype_in_any_spelling_is_its_name(dtype):
    assert Tensor((1,), dtype).dtype == "uint8"


def test_tensor_of_float64_is_raw():
    assert Tensor((2,), "float64").encoding == "raw"
    assert Tensor((2,), "float32").encoding == "auto"


def test_tensor_size_counts_elements_and_bytes():
    field = Tensor((64, 32), "int16", "raw")
    assert (field.size, field.num_bytes) == (2048, 4096)
    assert (Tensor(()).size, Tensor(()).num_bytes) == (1, 4)


def test_tensor_default_is_array_of_its_shape_and_dtype():
    field = Tensor((2, 2), "uint8", default=[[0, 1], [2, 255]])
    assert field.default.dtype == np.uint8
    assert field.default.tolist() == [[0, 1], [2, 255]]
    assert Tensor((1,), "int32", default=[3.0]).default.tolist() == [3]
    assert Tensor((1,), "float32", default=[3]).default.dtype == np.float32
    assert Tensor((), "bool", default=True).default.shape == ()


@pytest.mark.parametrize(
    ("default", "kept"),
    [([], ()), ([1, 2], (1, 2)), (np.array([3]), (3,))],
)
def test_sequence_default_is_kept_as_tuple(default, kept):
    assert Sequence(default=default).default == kept
    assert Sequence(default=default).optional


@pytest.mark.parametrize(
    ("shape", "default", "kept"),
    [
        ((), ["a", "b"], ("a", "b")),
        ((2,), [["a", "b"]], (("a", "b"),)),
        (None, [[], ["a"]], ((), ("a",))),
    ],
)
def test_feature_list_default_has_the_shape_of_steps(shape, default, kept):
    assert Sequence("string", shape, "feature_list", default=default).default == kept


@pytest.mark.parametrize(
    ("shape", "num_values"),
    [((), 1), ((1,), 1), ((7,), 7), (None, None)],
)
def test_step_of_feature_list_counts_its_values(shape, num_values):
    field = Sequence("int64", shape, "feature_list")
    assert field.is_feature_list
    assert field.num_step_values == num_values


@pytest.mark.parametrize(
    ("make", "place", "message"),
    [
        (
            lambda: Tensor(3),
            "shape",
            "shape of Tensor: expected a tuple of positive ints, got 3. A vector's shape is (n,), with the "
            "comma.",
        ),
        (lambda: Tensor("33"), "shape", "shape of Tensor: expected a tuple of positive ints, got '33'."),
        (lambda: Tensor(None), "shape", "shape of Tensor: expected a tuple of positive ints, got None."),
        (lambda: Tensor((64, 0)), "shape[1]", "shape[1] of Tensor: expected a positive int, got 0."),
        (
            lambda: Tensor((-1, 4)),
            "shape[0]",
            "shape[0] of Tensor: expected a positive int, got -1. A field of varying length is a Sequence.",
        ),
        (
            lambda: Tensor((None,)),
            "shape[0]",
            "shape[0] of Tensor: expected a positive int, got None. A field of varying length is a Sequence.",
        ),
        (lambda: Tensor((True,)), "shape[0]", "shape[0] of Tensor: expected a positive int, got True."),
        (lambda: Tensor((1.0,)), "shape[0]", "shape[0] of Tensor: expected a positive int, got 1.0."),
        (lambda: Tensor((1,) * 33), "shape", "shape of Tensor: expected at most 32 dimensions, got 33."),
        (
            lambda: Tensor((2**15, 2**15), "float16"),
            "shape",
            "shape of Tensor: expected at most 2147483647 bytes, got 2147483648. A record is at most 2 GiB.",
        ),
        (
            lambda: Tensor((10**100,)),
            "shape",
            "shape of Tensor: expected at most 2147483647 bytes, got an int of 335 bits. A record is at "
            "most 2 GiB.",
        ),
        (
            lambda: Tensor((1,), "float32", None),
            "encoding",
            "encoding of Tensor: expected 'auto', 'list' or 'raw', got None.",
        ),
        (
            lambda: Tensor((1,), "float64", "list"),
            "encoding",
            "encoding of Tensor: expected 'raw' for float64, got 'list'. A TFRecord's float lists hold "
            "float32.",
        ),
        (
            lambda: Tensor((2, 2), default=[1, 2]),
            "default",
            "default of Tensor: expected an array of shape (2, 2), got shape (2,).",
        ),
        (
            lambda: Tensor((2,), default=[[1], [2, 3]]),
            "default",
            "default of Tensor: expected an array, got [[1], [2, 3]].",
        ),
        (
            lambda: Tensor((2,), default=["a", "b"]),
            "default",
            "default of Tensor: expected values of float32, got values of str32.",
        ),
        (
            lambda: Tensor((2,), "int8", default=[True, False]),
            "default",
            "default of Tensor: expected values of int8, got values of bool.",
        ),
        (
            lambda: Tensor((2,), "int8", default=[1, 300]),
            "default",
            "default of Tensor: expected values that int8 can hold, got [1, 300].",
        ),
        (
            lambda: Tensor((1,), "uint64", default=[-1]),
            "default",
            "default of Tensor: expected values that uint64 can hold, got [-1].",
        ),
        (
            lambda: Tensor((1,), "int32", default=[float("nan")]),
            "default",
            "default of Tensor: expected values that int32 can hold, got [nan].",
        ),
        (
            lambda: Tensor((1,), "float16", default=[1e6]),
            "default",
            "default of Tensor: expected values that float16 can hold, got [1000000.0].",
        ),
        (
            lambda: Sequence("float64"),
            "dtype",
            "dtype of Sequence: expected 'int64', 'float32', 'string' or 'bytes', got 'float64'. A "
            "TFRecord's float "
            "lists hold float32; Tensor(shape, 'float64', 'raw') holds doubles.",
        ),
        (
            lambda: Sequence("int64", (), "list"),
            "stored",
            "stored of Sequence: expected 'feature' or 'feature_list', got 'list'.",
        ),
        (
            lambda: Sequence("int64", (3,)),
            "shape",
            "shape of Sequence: expected (), got (3,). Only steps have a shape: say stored='feature_list', "
            "or declare "
            "a Tensor.",
        ),
        (
            lambda: Sequence("int64", None),
            "shape",
            "shape of Sequence: expected (), got None. Only steps have a shape: say stored='feature_list', "
            "or declare "
            "a Tensor.",
        ),
        (
            lambda: Sequence("int64", (2, 2), "feature_list"),
            "shape",
            "shape of Sequence: expected (), (k,) or None, got (2, 2). A step is a flat list.",
        ),
        (
            lambda: Sequence("int64", (0,), "feature_list"),
            "shape[0]",
            "shape[0] of Sequence: expected a positive int, got 0.",
        ),
        (lambda: Sequence(default=1), "default", "default of Sequence: expected a list, got 1."),
        (
            lambda: Sequence("string", default="ab"),
            "default",
            "default of Sequence: expected a list, got 'ab'.",
        ),
        (
            lambda: Sequence(default=[1, "x"]),
            "default[1]",
            "default[1] of Sequence: expected an int, got 'x'.",
        ),
        (
            lambda: Sequence("int64", (2,), "feature_list", default=[[1, 2], [3]]),
            "default[1]",
            "default[1] of Sequence: expected a step of 2 values, got 1 values.",
        ),
        (
            lambda: Sequence("int64", None, "feature_list", default=[[1, 2.5]]),
            "default[0][1]",
            "default[0][1] of Sequence: expected an int, got 2.5.",
        ),
    ],
)
def test_array_of_impossible_declaration_is_refused(make, place, message):
    with pytest.raises(SchemaError) as caught:
        make()
    assert str(caught.value) == message
    assert caught.value.field == place


@pytest.mark.parametrize(
    "dtype", [np.complex64, np.longdouble, "complex64", "datetime64", object, np.dtype("V4")]
)
def test_tensor_dtype_that_no_record_holds_is_refused(dtype):
    with pytest.raises(SchemaError, match=r"^dtype of Tensor: expected 'bool', 'int8', "):
        Tensor((1,), dtype)


def test_tensor_dtype_of_swapped_bytes_is_refused():
    with pytest.raises(SchemaError, match=r"got '>f4', byte-swapped. Records hold little-endian values"):
        Tensor((1,), np.dtype("<f4").newbyteorder(">"))
