"""Types of field with one value a record: what they take and what they refuse."""

import math

import numpy as np
import pytest

from penstock.errors import SchemaError
from penstock.fields import Bytes, Category, Image, Number, Text
from penstock.schema.scalar import MAX_CATEGORIES


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
    ("make", "place", "message"),
    [
        (
            lambda: Number("float16"),
            "dtype",
            "dtype of Number: expected 'float32', 'int64' or 'float64', got 'float16'.",
        ),
        (
            lambda: Number(None),
            "dtype",
            "dtype of Number: expected 'float32', 'int64' or 'float64', got None.",
        ),
        (
            lambda: Number("f4"),
            "dtype",
            "dtype of Number: expected 'float32', 'int64' or 'float64', got 'f4'.",
        ),
        (
            lambda: Number(np.str_),
            "dtype",
            "dtype of Number: expected 'float32', 'int64' or 'float64', got 'str'.",
        ),
        (lambda: Number([]), "dtype", "dtype of Number: expected 'float32', 'int64' or 'float64', got []."),
        (lambda: Number(default="1"), "default", "default of Number: expected a number, got '1'."),
        (lambda: Number(default=True), "default", "default of Number: expected a number, got True."),
        (lambda: Number(default=np.True_), "default", "default of Number: expected a number, got True."),
        (lambda: Number(default=[1.0]), "default", "default of Number: expected a number, got [1.0]."),
        (
            lambda: Number(default=1e39),
            "default",
            "default of Number: expected a number in the range of float32, got 1e+39.",
        ),
        (
            lambda: Number(default=-(10**400)),
            "default",
            "default of Number: expected a number in the range of float32, got an int of 1329 bits.",
        ),
        (lambda: Number("int64", default=1.0), "default", "default of Number: expected an int, got 1.0."),
        (
            lambda: Number("int64", default=2**63),
            "default",
            "default of Number: expected an int of 64 bits, signed, got 9223372036854775808.",
        ),
        (
            lambda: Category("float32"),
            "dtype",
            "dtype of Category: expected 'string' or 'int64', got 'float32'.",
        ),
        (lambda: Category(values="ab"), "values", "values of Category: expected a list, got 'ab'."),
        (
            lambda: Category(values=()),
            "values",
            "values of Category: expected 1 to 65536 values, got 0. Leave `values` out.",
        ),
        (
            lambda: Category("int64", range(MAX_CATEGORIES + 1)),
            "values",
            "values of Category: expected a list, got range(0, 65537).",
        ),
        (
            lambda: Category("int64", list(range(MAX_CATEGORIES + 1))),
            "values",
            "values of Category: expected 1 to 65536 values, got 65537. Declare the field as Text, or as a "
            "Number.",
        ),
        (lambda: Category(values=("a", 1)), "values[1]", "values[1] of Category: expected a str, got 1."),
        (
            lambda: Category(values=("b", "a", "b")),
            "values[2]",
            "values[2] of Category: expected distinct values, got 'b' a second time.",
        ),
        (
            lambda: Category(values=("a",), default="b"),
            "default",
            "default of Category: expected one of `values`, got 'b'. Add it to `values`.",
        ),
        (lambda: Category("int64", default="b"), "default", "default of Category: expected an int, got 'b'."),
        (
            lambda: Text(default=b"x"),
            "default",
            "default of Text: expected a str, got b'x'. Text is str; bytes belong into Bytes.",
        ),
        (
            lambda: Text(default="\udfff"),
            "default",
            "default of Text: expected a str that UTF-8 can write, got '\\udfff'.",
        ),
        (
            lambda: Image("tiff"),
            "format",
            "format of Image: expected 'jpeg', 'png', 'webp', 'gif' or 'bmp', got 'tiff'.",
        ),
        (lambda: Image(default="x"), "default", "default of Image: expected bytes, got 'x'."),
        (lambda: Bytes(default=7), "default", "default of Bytes: expected bytes, got 7."),
    ],
)
def test_scalar_of_impossible_declaration_is_refused(make, place, message):
    with pytest.raises(SchemaError) as caught:
        make()
    assert str(caught.value) == message
    assert caught.value.field == place


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
