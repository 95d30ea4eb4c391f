"""Filters: what they mean, row by row, and what their errors say."""

import numpy as np
import pytest

from penstock.errors import OptionError, UnknownNameError
from penstock.fields import Bytes as BytesField
from penstock.fields import Category, Image, Number, Sequence, Tensor, Text
from penstock.filter.expression import parse_expression
from penstock.schema.schema import Schema
from penstock.types import Bytes, Dense, Ragged
from raising import containing, mentions, raises_with

SCHEMA = Schema(
    {
        "age": Number("int64", optional=True),
        "ratio": Number("float32"),
        "exact": Number("float64"),
        "breed": Category(optional=True),
        "code": Category("int64"),
        "name": Text(),
        "known": Number("int64", default=7),
        "blob": BytesField(),
        "photo": Image(optional=True),
        "tokens": Sequence("int64", optional=True),
        "box": Tensor((4,)),
        "flag": Tensor((), "bool"),
        "big": Tensor((), "uint64"),
        "image/class": Number("int64"),
        "len": Number("int64"),
    }
)
NUM_ROWS = 4


def strings(*values: bytes, present: list[bool] | None = None) -> Bytes:
    lengths = [len(value) for value in values]
    arena = np.frombuffer(b"".join(values), np.uint8)
    offsets = np.cumsum([0, *lengths])
    return Bytes.from_offsets(arena, offsets, None if present is None else np.array(present))


COLUMNS = {
    "age": Dense(np.array([1, 0, 5, 9]), np.array([True, False, True, True])),
    "ratio": Dense(np.array([0.1, -1.5, np.nan, np.inf], np.float32)),
    "exact": Dense(np.array([0.1, 2.0**53, 1e300, -0.0])),
    "breed": strings(b"siamese", b"", b"", b"manx", present=[True, True, False, True]),
    "code": Dense(np.array([0, 1, 2**62 + 1, -(2**63)])),
    "name": strings(b"Mia", "Jörg".encode(), b"\xff\xfe", b""),
    "known": Dense(np.array([7, 1, 7, 2]), np.array([False, True, False, True])),
    "blob": strings(b"\xff\x00", b"abc", b"", b"Mia"),
    "photo": strings(b"jpeg", b"", b"png", b"gif!", present=[True, False, True, True]),
    "tokens": Ragged(np.arange(5), np.array([0, 2, 2, 2, 5]), np.array([True, True, False, True])),
    "box": Dense(np.zeros((4, 4), np.float32)),
    "flag": Dense(np.array([True, False, True, False])),
    "big": Dense(np.array([1, 2**64 - 1, 2**63, 0], np.uint64)),
    "image/class": Dense(np.array([3, 4, 5, 6])),
    "len": Dense(np.array([10, 20, 30, 40])),
}


def rows_of(text: str) -> list[int]:
    expression = parse_expression(text, SCHEMA)
    mask = expression.evaluate({name: COLUMNS[name] for name in expression.names})
    assert mask.dtype == np.bool_
    assert mask.shape == (NUM_ROWS,)
    return np.flatnonzero(mask).tolist()


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("age < 5", [0]),
        ("age <= 5", [0, 2]),
        ("5 < age", [3]),
        ("age == 5 or age == 9", [2, 3]),
        ("age != 5", [0, 3]),
        ("1 < age < 9", [2]),
        ("1 <= age <= 5 <= code", [2]),
        ("not age < 5", [2, 3]),
        ("not (age < 5 or age == 9)", [2]),
        ("age + 1 == 2", [0]),
        ("age - 1 - 1 == 3", [2]),
        ("2 * age + 1 > 10", [2, 3]),
        ("age % 4 == 1", [0, 2, 3]),
        ("age / 2 == 2.5", [2]),
        ("-age < -4", [2, 3]),
        ("- - age == 5", [2]),
        ("+age == 1", [0]),
        ("age in (1, 5)", [0, 2]),
        ("age in [5.0]", [2]),
        ("age in {-1, 9,}", [3]),
        ("age not in (1, 5)", [3]),
        ("age in (1, 2, 3, 4, 5, 6, 7, 8, 10.0, 11)", [0, 2]),
        ("age", [0, 2, 3]),
        ("not age", []),
        ("age and code", [2, 3]),
        ("True == age", [0]),
        ("1_0 > age", [0, 2, 3]),
        ("age < 1e1 and age > .5e1", [3]),
    ],
)
def test_numbers_are_compared_as_python_would(text, rows):
    assert rows_of(text) == rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('breed == "siamese"', [0]),
        ("'manx' == breed", [3]),
        ('breed != "siamese"', [1, 3]),
        ('breed == ""', [1]),
        ('breed in ("manx", "persian")', [3]),
        ('breed not in ("manx", "persian", "manx")', [0, 1]),
        ('breed < "n"', [1, 3]),
        ('"n" <= breed', [0]),
        ("breed != name", [0, 1, 3]),
        ("blob == name", []),
        ('name == "Jörg"', [1]),
        (r'name == "J\u00f6rg" or name == "\x4dia"', [0, 1]),
        (r"blob == b'\xff\x00'", [0]),
        ('name == b"Mia"', [0]),
        ('name > "Jo"', [0, 1, 2]),
        ('"a" < "b" and age < 5', [0]),
        (r'name == "\"" or name == "a\\b" or name == "\n\t\r\0\'"', []),
    ],
)
def test_strings_are_compared_by_what_they_are(text, rows):
    assert rows_of(text) == rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        # Unknown is not true, and what is not unknown is not true either.
        ("age < 5 or age >= 5", [0, 2, 3]),
        ("not (age < 5) or not (age >= 5)", [0, 2, 3]),
        ("age == age", [0, 2, 3]),
        ("not age == age", []),
        ("age in (0, 1)", [0]),
        ("not age in (0, 1)", [2, 3]),
        # The other side may decide.
        ("age < 5 or len == 20", [0, 1]),
        ("not (age < 5 and len == 10)", [1, 2, 3]),
        ("not not (age < 5 or len == 20)", [0, 1]),
        ("not not (age < 5 and len == 20) or not (age < 5 and len == 20)", [0, 2, 3]),
        ("(age < 5 or len == 20) == (len > 0)", [0, 1]),
        ("not (age < 5 and len == 20)", [0, 2, 3]),
        ("not (age < 5 or len == 20)", [2, 3]),
        ("(age < 5) == (len < 25)", [0, 2, 3]),
        ("(age < 5) != (len < 15)", []),
        ("age is None", [1]),
        ("age is not None", [0, 2, 3]),
        ("age + 1 is None", [1]),
        ("photo is None", [1]),
        ("tokens is None or breed is None", [2]),
        ("box is None", []),
        ("box is not None", [0, 1, 2, 3]),
        ("ratio is None", []),
    ],
)
def test_what_is_missing_makes_its_comparisons_unknown(text, rows):
    assert rows_of(text) == rows


def test_field_with_a_default_is_never_missing():
    assert rows_of("known == 7") == [0, 2]
    assert rows_of("known is None") == []


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("len(tokens) == 2", [0]),
        ("len(tokens) < 3", [0, 1]),
        ("len(name) == 4", [1]),  # characters, not bytes
        ("len(breed) == 0", [1]),
        ("len(blob) == 3", [1, 3]),
        ("len(photo) >= 4", [0, 3]),
        ("len(tokens) * 2 + 1 == 7", [3]),
        ("len > 25 and len(name) < 4", [2, 3]),
    ],
)
def test_length_counts_values_characters_or_bytes(text, rows):
    assert rows_of(text) == rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("ratio == 0.1", [0]),  # a record holds the float nearest to 0.1
        ("ratio <= 0.1", [0, 1]),
        ("0.1 > ratio", [1]),
        ("ratio in (0.1, 7)", [0]),
        ("ratio == 1 / 10", [0]),
        ("ratio * 1 == 0.1", []),  # what is computed is a double
        ("ratio == 1e300", []),  # which no float32 holds, and which is not infinity
        ("ratio >= 1e300", [3]),
        ("ratio == 1e999", [3]),
        ("exact == 0.1", [0]),
        ("ratio == exact", []),
        ("ratio != ratio", [2]),
        ("ratio", [0, 1, 2, 3]),
        ("exact == 0", [3]),
        ("-exact == 0", [3]),
    ],
)
def test_floats_are_compared_as_the_field_holds_them(text, rows):
    assert rows_of(text) == rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("code == 4611686018427387905", [2]),
        ("code == 4611686018427387905.0", []),  # the float is 2**62
        ("code > 4611686018427387904.0", [2]),
        ("code in (4611686018427387904.0, 1)", [1]),
        ("code < 100000000000000000000000", [0, 1, 2, 3]),
        ("code == 1e999", []),
        ("code * code * code < 0", [3]),
        ("code * 4 == 18446744073709551620", [2]),
        ("-code == 9223372036854775808", [3]),
        ("code - 1 < -9223372036854775808", [3]),
        ("code * 4 % 10 == 0", [0, 2]),
        ("code * 4 in (18446744073709551620, 4)", [1, 2]),
        ("code / 3 > 1e18", [2]),
        ("code * code / code == code", [1, 3]),  # the quotient is a float; 2**62 + 1 is none
        ("code * 4 + 0.5 > 1e19", [2]),
        ("big == 18446744073709551615", [1]),
        ("big > 9223372036854775808", [1]),
        ("big - 1 < 0", [3]),
        ("exact == 9007199254740993", []),
        ("exact in (9007199254740993, 9007199254740992)", [1]),
        ("code < 1" + "0" * 5000, [0, 1, 2, 3]),
    ],
)
def test_whole_numbers_are_exact_however_large(text, rows):
    assert rows_of(text) == rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("age / code > 2", []),
        ("age / code is None", [0, 1]),
        ("age % code is None", [0, 1]),
        ("1 / exact is None", [3]),
        ("exact % exact == 0", [0, 1, 2]),
        ("-7 % 3 == 2 and age < 5", [0]),
    ],
)
def test_division_by_zero_gives_no_value(text, rows):
    assert rows_of(text) == rows


def test_truths_are_conditions_by_themselves():
    assert rows_of("flag") == [0, 2]
    assert rows_of("not flag") == [1, 3]
    assert rows_of("flag == True") == [0, 2]
    assert rows_of("flag != (age > 4)") == [0, 3]


def test_name_with_other_signs_stands_in_backticks():
    assert rows_of("`image/class` >= 5 and `age`>5") == [3]
    assert parse_expression('`image/class` > 1 and name == "`x`"', SCHEMA).names == ("image/class", "name")


def test_names_are_those_of_the_text_in_its_order_and_once():
    expression = parse_expression("len(tokens) > age and name == 'x' or age < 2", SCHEMA)
    assert expression.names == ("tokens", "age", "name")
    assert mentions(expression.text, "len(tokens) 'x' 2")


@pytest.mark.parametrize(
    "text",
    [
        "age < 3",
        "age * age > 1",
        "name > 'a' and age in (1, 2)",
        "name == 'a' or len(name) == age",
        "age is None",
    ],
)
def test_expression_of_no_rows_has_no_rows(text):
    columns = {"age": Dense(np.empty(0, np.int64)), "name": strings()}
    assert parse_expression(text, SCHEMA).evaluate(columns).tolist() == []


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("", "'' 1"),
        ("age <", "'age <' 6"),
        ("age = 3", "'age = 3' 5 '='"),
        ("age < 3 && code", "'age < 3 && code' 9 '&&'"),
        ("!flag", "'!flag' 1 '!'"),
        ("age 3", "'age 3' 5 '3'"),
        ("(age < 3", "'(age < 3' 9 ')'"),
        ("age == None", "'age == None' 8 'None'"),
        ("age is 3", "'age is 3' 8 None '3'"),
        ("age not 3", "'age not 3' 9 '3'"),
        ("age in 3", "'age in 3' 8 '3'"),
        ("age in ()", "'age in ()' 9 ')'"),
        ("age in (1 2)", "'age in (1 2)' 11 ',' '2'"),
        ("age in (code,)", "'age in (code,)' 9"),
        ("age in ('a', 1)", "\"age in ('a', 1)\" 9 'age' int64 'a'"),
        ("len(3) > 1", "'len(3) > 1' 5 '3'"),
        ("name == 'Mia", '"name == \'Mia" 9 "\'"'),
        (r"name == '\d'", "\"name == '\\\\d'\" 10 '\\\\d'"),
        (r"name == '\ud800'", "\"name == '\\\\ud800'\" 9 UTF-8 \"'\\\\ud800'\""),
        ("name == b'ö€'", "\"name == b'ö€'\" 9 \\xff \"b'ö€'\""),
        ("age ** 2 > 3", "'age ** 2 > 3' 5 '**'"),
        ("name", "'name' 1 'name'"),
        ("age < 3 and name", "'age < 3 and name' 13 'name'"),
        ("age == 'old'", "\"age == 'old'\" 8 'age' int64 'old'"),
        ("breed > 3", "'breed > 3' 9 'breed' 3"),
        ("breed == True", "'breed == True' 10 'breed' True"),
        ("name + 1 > 2", "'name + 1 > 2' 1 'name'"),
        ("(age < 3) + 1 > 2", "'(age < 3) + 1 > 2' 2"),
        ("flag < True", "'flag < True' 8 True"),
        ("tokens == 3", "'tokens == 3' 1 'tokens'"),
        ("3 < box", "'3 < box' 5 'box' tensor"),
        ("photo in ('a',)", "\"photo in ('a',)\" 1 'photo'"),
        ("len(age) > 1", "'len(age) > 1' 5 'age' int64"),
        ("age > 1 / 0", "'age > 1 / 0' 7"),
        ("1 < 2", "'1 < 2'"),
        ("image.class > 2", "'image.class > 2' 6 '.'"),
    ],
)
def test_filter_that_is_none_is_refused_with_its_place(text, facts):
    with raises_with(OptionError, facts):
        parse_expression(text, SCHEMA)


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("code > 1 and agge < 3", "'code > 1 and agge < 3' 14 'agge' 'age'"),
        ("len(token) > 3", "'len(token) > 3' 5 'token' 'tokens'"),
        ("`image class` > 3", "'`image class` > 3' 1 'image class' 'image/class'"),
    ],
)
def test_field_that_is_not_there_is_named_with_its_place_and_the_nearest(text, facts):
    with raises_with(UnknownNameError, facts):
        parse_expression(text, SCHEMA)


def test_filter_that_is_no_text_is_refused():
    with raises_with(OptionError, "filter 3 'age < 3'"):
        parse_expression(3, SCHEMA)


@pytest.mark.parametrize("text", ["(" * 10_000, "not " * 10_000 + "flag", "-" * 10_000 + "age > 3"])
def test_filter_nested_too_deep_is_refused_and_does_not_exhaust_the_stack(text):
    with raises_with(OptionError, expected=containing(50)):
        parse_expression(text, SCHEMA)


def test_long_chains_are_no_deep_ones():
    assert rows_of(" + ".join(["age"] * 3000) + " == 3000") == [0]
    assert rows_of(" or ".join(["age == 5"] * 2000)) == [2]
    assert rows_of("age in (" + ", ".join(map(str, range(2, 3000))) + ")") == [2, 3]
