"""Types of field with one value a record: what they take and what they refuse."""

import math

import numpy as np
import pytest

from penstock.errors import SchemaError
from penstock.fields import Bytes, Category, Image, Number, Text
from penstock.schema.scalar import MAX_CATEGORIES
from raising import raises_with


@pytest.mark.parametrize("dtype", ["int64", np.int64, np.dtype("int64"), int])
def test_number_dtype_in_any_spelling_is_its_name(dtype):
    assert Number(dtype).dtype == "int64"


@pytest.mark.parametrize(
    ("dtype", "default", "kept"),
    [
        ("float32", 1, 1.0),
        ("float32", np.float32(0.5), 0.5),
        ("float32", math.inf, math.inf),
        ("float32", 3.4028234e38, 3.4028234e38),
        ("int64", 2**63 - 1, 2**63 - 1),
        ("int64", -(2**63), -(2**63)),
        ("int64", np.int8(-3), -3),
    ],
)
def test_number_default_in_range_is_kept_as_python_number(dtype, default, kept):
    field = Number(dtype, default=default)
    assert field.default == kept
    assert type(field.default) is type(kept)


def test_number_default_nan_is_kept():
    assert math.isnan(Number(default=math.nan).default)


@pytest.mark.parametrize(
    ("make", "place", "facts"),
    [
        (lambda: Number("float16"), "dtype", "dtype Number 'float32' 'int64' 'float64' 'float16'"),
        (lambda: Number(None), "dtype", "dtype Number 'float32' 'int64' 'float64' None"),
        (lambda: Number("f4"), "dtype", "dtype Number 'float32' 'int64' 'float64' 'f4'"),
        (lambda: Number(np.str_), "dtype", "dtype Number 'float32' 'int64' 'float64' 'str'"),
        (lambda: Number([]), "dtype", "dtype Number 'float32' 'int64' 'float64' []"),
        (lambda: Number(default="1"), "default", "default Number '1'"),
        (lambda: Number(default=True), "default", "default Number True"),
        (lambda: Number(default=np.True_), "default", "default Number True"),
        (lambda: Number(default=[1.0]), "default", "default Number [1.0]"),
        (lambda: Number(default=1e39), "default", "default Number float32 1e+39"),
        (lambda: Number(default=-(10**400)), "default", "default Number float32 1329"),
        (lambda: Number("int64", default=1.0), "default", "default Number 1.0"),
        (lambda: Number("int64", default=2**63), "default", "default Number 64 9223372036854775808"),
        (lambda: Category("float32"), "dtype", "dtype Category 'string' 'int64' 'float32'"),
        (lambda: Category(values="ab"), "values", "values Category 'ab'"),
        (lambda: Category(values=()), "values", "values Category 1 65536 0"),
        (lambda: Category("int64", range(MAX_CATEGORIES + 1)), "values", "values Category range(0, 65537)"),
        (
            lambda: Category("int64", list(range(MAX_CATEGORIES + 1))),
            "values",
            "values Category 1 65536 65537",
        ),
        (lambda: Category(values=("a", 1)), "values[1]", "values[1] Category 1"),
        (lambda: Category(values=("b", "a", "b")), "values[2]", "values[2] Category 'b'"),
        (lambda: Category(values=("a",), default="b"), "default", "default Category 'b'"),
        (lambda: Category("int64", default="b"), "default", "default Category 'b'"),
        (lambda: Text(default=b"x"), "default", "default Text b'x'"),
        (lambda: Text(default="\udfff"), "default", "default Text UTF-8 '\\udfff'"),
        (lambda: Image("tiff"), "format", "format Image 'jpeg' 'png' 'webp' 'gif' 'bmp' 'tiff'"),
        (lambda: Image(default="x"), "default", "default Image 'x'"),
        (lambda: Bytes(default=7), "default", "default Bytes 7"),
    ],
)
def test_scalar_of_impossible_declaration_is_refused(make, place, facts):
    with raises_with(SchemaError, facts, field=place):
        make()


def test_category_values_in_any_order_are_sorted():
    assert Category(values=["b", "a"]).values == ("a", "b")
    assert Category("int64", np.array([5, -1])).values == (-1, 5)


def test_bytes_default_in_any_buffer_is_bytes():
    assert Bytes(default=bytearray(b"ab")).default == b"ab"
    assert Image(default=memoryview(b"ab")).default == b"ab"


def test_refusal_of_long_value_shows_its_beginning():
    with pytest.raises(SchemaError) as caught:
        Number(default="x" * 10_000)
    assert len(str(caught.value)) < 200
