"""Types of field with several values a record: what they take and what they refuse."""

import numpy as np
import pytest

from penstock.errors import SchemaError
from penstock.fields import Sequence, Tensor
from raising import containing, raises_with


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
    ("make", "place", "facts"),
    [
        (lambda: Tensor(3), "shape", "shape Tensor 3"),
        (lambda: Tensor("33"), "shape", "shape Tensor '33'"),
        (lambda: Tensor(None), "shape", "shape Tensor None"),
        (lambda: Tensor((64, 0)), "shape[1]", "shape[1] Tensor 0"),
        (lambda: Tensor((-1, 4)), "shape[0]", "shape[0] Tensor -1"),
        (lambda: Tensor((None,)), "shape[0]", "shape[0] Tensor None"),
        (lambda: Tensor((True,)), "shape[0]", "shape[0] Tensor True"),
        (lambda: Tensor((1.0,)), "shape[0]", "shape[0] Tensor 1.0"),
        (lambda: Tensor((1,) * 33), "shape", "shape Tensor 32 33"),
        (lambda: Tensor((2**15, 2**15), "float16"), "shape", "shape Tensor 2147483647 2147483648"),
        (lambda: Tensor((10**100,)), "shape", "shape Tensor 2147483647 335"),
        (lambda: Tensor((1,), "float32", None), "encoding", "encoding Tensor 'auto' 'list' 'raw' None"),
        (lambda: Tensor((1,), "float64", "list"), "encoding", "encoding Tensor 'raw' float64 'list'"),
        (lambda: Tensor((2, 2), default=[1, 2]), "default", "default Tensor (2, 2) (2,)"),
        (lambda: Tensor((2,), default=[[1], [2, 3]]), "default", "default Tensor [[1] [2, 3]"),
        (lambda: Tensor((2,), default=["a", "b"]), "default", "default Tensor float32 str32"),
        (lambda: Tensor((2,), "int8", default=[True, False]), "default", "default Tensor int8 bool"),
        (lambda: Tensor((2,), "int8", default=[1, 300]), "default", "default Tensor int8 [1, 300]"),
        (lambda: Tensor((1,), "uint64", default=[-1]), "default", "default Tensor uint64 [-1]"),
        (lambda: Tensor((1,), "int32", default=[float("nan")]), "default", "default Tensor int32 [nan]"),
        (lambda: Tensor((1,), "float16", default=[1e6]), "default", "default Tensor float16 [1000000.0]"),
        (lambda: Sequence("float64"), "dtype", "dtype Sequence 'int64' 'float32' 'string' 'bytes' 'float64'"),
        (lambda: Sequence("int64", (), "list"), "stored", "stored Sequence 'feature' 'feature_list' 'list'"),
        (lambda: Sequence("int64", (3,)), "shape", "shape Sequence (3,) stored='feature_list'"),
        (lambda: Sequence("int64", None), "shape", "shape Sequence None stored='feature_list'"),
        (lambda: Sequence("int64", (2, 2), "feature_list"), "shape", "shape Sequence None (2, 2)"),
        (lambda: Sequence("int64", (0,), "feature_list"), "shape[0]", "shape[0] Sequence 0"),
        (lambda: Sequence(default=1), "default", "default Sequence 1"),
        (lambda: Sequence("string", default="ab"), "default", "default Sequence 'ab'"),
        (lambda: Sequence(default=[1, "x"]), "default[1]", "default[1] Sequence 'x'"),
        (
            lambda: Sequence("int64", (2,), "feature_list", default=[[1, 2], [3]]),
            "default[1]",
            "default[1] Sequence 2 1",
        ),
        (
            lambda: Sequence("int64", None, "feature_list", default=[[1, 2.5]]),
            "default[0][1]",
            "default[0][1] Sequence 2.5",
        ),
    ],
)
def test_array_of_impossible_declaration_is_refused(make, place, facts):
    with raises_with(SchemaError, facts, field=place):
        make()


@pytest.mark.parametrize(
    "dtype", [np.complex64, np.longdouble, "complex64", "datetime64", object, np.dtype("V4")]
)
def test_tensor_dtype_that_no_record_holds_is_refused(dtype):
    with raises_with(SchemaError, "Tensor", field="dtype", expected=containing("'bool'", "'int8'")):
        Tensor((1,), dtype)


def test_tensor_dtype_of_swapped_bytes_is_refused():
    with raises_with(SchemaError, field="dtype", got=containing("'>f4'")):
        Tensor((1,), np.dtype("<f4").newbyteorder(">"))
