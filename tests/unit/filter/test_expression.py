"""Filters: what they mean, row by row, and what their errors say."""

import numpy as np
import pytest

from penstock import fields
from penstock.columns import Bytes, Dense, Ragged
from penstock.errors import OptionError, UnknownNameError
from penstock.fields import Bytes as BytesField
from penstock.fields import Category, Date, Field, Image, Number, Sequence, Tensor, Text
from penstock.filter.expression import parse_expression
from penstock.schema.schema import Schema
from raising import containing, raises_with

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
        "day": Date(optional=True),
        "moment": Date("microseconds"),
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
    "day": Dense(np.array([0, 0, 19_753, -1]), np.array([True, False, True, True])),
    "moment": Dense(np.array([0, 86_399_999_999, 86_400_000_000, -1])),
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
        ("ratio * 1 == 0.1", []),  # the product is a double
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


def test_every_type_of_field_can_be_tested_for_a_missing_value():
    types = [each for each in vars(fields).values() if isinstance(each, type) and issubclass(each, Field)]
    declared = {type(SCHEMA[name]): name for name in SCHEMA}
    assert {*declared, Field} == set(types)
    for name in declared.values():
        assert rows_of(f"{name} is None or {name} is not None") == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('day > "1970-01-01"', [2]),
        ('"1970-01-01" >= day', [0, 3]),
        ('day == "2024-01-31"', [2]),
        ('day != "2024-01-31"', [0, 3]),
        ('"1969-12-31" <= day < "1970-01-02"', [0, 3]),
        ('day in ("2024-01-31", "1969-12-31")', [2, 3]),
        ('day not in ("2024-01-31",)', [0, 3]),
        ("day is None", [1]),
        ("day > 0", [2]),  # the stored number
        ("day + 1 == 0", [3]),
        ('moment < "1970-01-01"', [3]),
        ('moment >= "1970-01-02"', [2]),
        ('moment >= "1970-01-01T23:59"', [1, 2]),
        ('moment == "1970-01-01 01:00+01:00"', [0]),  # a time zone is converted to UTC
        ("moment > 0", [1, 2]),
        ("day == day", [0, 2, 3]),
    ],
)
def test_dates_are_compared_with_texts(text, rows):
    assert rows_of(text) == rows


@pytest.mark.parametrize(
    ("text", "expected", "got"),
    [
        ('day > "31.01.2024"', "2024-01-31", "31.01.2024"),
        ('day > "2024-02-30"', "2024-01-31", "2024-02-30"),
        ('day > "2024-01-31T12:00"', "2024-01-31", "12:00"),  # days have no time
        ('moment in ("yesterday",)', "2024-01-31 12:00", "yesterday"),
        ("day < moment", "days", "microseconds"),
        ("day", "a comparison", "a date"),
        ('day and name == ""', "a comparison", "a date"),
        ('age > "2024-01-31"', "a number", "2024-01-31"),
    ],
)
def test_text_that_is_no_date_is_refused_with_an_example(text, expected, got):
    with raises_with(OptionError, expected=containing(expected), got=containing(got)):
        parse_expression(text, SCHEMA)


def test_names_are_those_of_the_text_in_its_order_and_once():
    expression = parse_expression("len(tokens) > age and name == 'x' or age < 2", SCHEMA)
    assert expression.names == ("tokens", "age", "name")
    assert expression.text == "len(tokens) > age and name == 'x' or age < 2"


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
    ("text", "character", "got"),
    [
        ("", 1, "the end"),
        ("age <", 6, "the end"),
        ("age = 3", 5, "'='"),
        ("age 3 = 4", 5, "'3'"),
        ("age < 3 && code", 9, "'&&'"),
        ("!flag", 1, "'!'"),
        ("age 3", 5, "'3'"),
        ("(age < 3", 9, "the end"),
        ("(age < 3]", 9, "']'"),
        ("age < 3)", 8, "')'"),
        ("age == None", 8, "'None'"),
        ("None is None", 1, "'None'"),
        ("age is 3", 8, "'3'"),
        ("age is not 3", 12, "'3'"),
        ("age is None + 1", 8, "'None + 1'"),
        ("age not 3", 9, "'3'"),
        ("age not", 8, "the end"),
        ("age in 3", 8, "'3'"),
        ("age in", 7, "the end"),
        ("age in ()", 8, "'()'"),
        ("age in {}", 8, "'{}'"),
        ("age in (1 2)", 11, "'2'"),
        ("age in (code,)", 9, "'code'"),
        ("age in (1 + 2, 3)", 9, "'1 + 2'"),
        ("age in ((1, 2))", 9, "'(1, 2)'"),
        ("age in -(3)", 8, "'-(3)'"),
        ("age in (1, *age)", 12, "'*age'"),
        ("age == 3 in (1, 2)", 1, "'age == 3 in (1, 2)'"),
        ("age in ('a', 1)", 9, "the string 'a'"),
        ("age, code", 1, "'age, code'"),
        ("[age]", 1, "'['"),
        ("tokens[3] > 1", 7, "'['"),
        ("max(age) > 1", 4, "'('"),
        ("len(3) > 1", 5, "'3'"),
        ("len((name)) > 1", 6, "'name'"),
        ("len(name,) > 1", 5, "'name'"),
        ("len() > 1", 1, "'len()'"),
        ("len(name, blob) > 1", 1, "'len(name, blob)'"),
        ("(len)(name) > 1", 6, "'('"),
        ("name == 'Mia", 9, repr("'Mia")),
        ("`age > 3", 1, "'`age > 3'"),
        ("name == 'Mia' 'x'", 15, repr("'x'")),
        ("name == f'x'", 10, repr("'x'")),
        ("name == '''x'''", 11, repr("'x'")),
        ("age < 0x10", 8, "'x10'"),
        ("age < 1j", 8, "'j'"),
        ("age < 1e5_0", 10, "'_0'"),
        ("age < ...", 7, "'.'"),
        ("age < 3; code", 8, "';'"),
        ("age if flag else code", 5, "'if'"),
        ("lambda: age", 7, "':'"),
        ("age\0", 4, repr("\0")),
        (r"name == '\d'", 10, repr(r"\d")),
        (r"name == '\N{BULLET}'", 10, repr(r"\N")),
        (r"name == '\ud800'", 9, repr(r"'\ud800'")),
        ("name == b'ö€'", 9, repr("b'ö€'")),
        ("age ** 2 > 3", 5, "'**'"),
        ("age // 2 > 3", 5, "'//'"),
        ("name", 1, "field 'name', a text"),
        ("age < 3 and name", 13, "field 'name', a text"),
        ("age == 'old'", 8, "the string 'old'"),
        ("breed > 3", 9, "the number 3"),
        ("breed == True", 10, "the value True"),
        ("name + 1 > 2", 1, "field 'name', a text"),
        ("(age < 3) + 1 > 2", 2, "a comparison"),
        ("-True < age", 2, "the value True"),
        ("flag < True", 8, "the value True"),
        ("tokens == 3", 1, "field 'tokens', a sequence"),
        ("3 < box", 5, "field 'box', a tensor"),
        ("photo in ('a',)", 1, "field 'photo', an image"),
        ("len(age) > 1", 5, "field 'age', a number of type int64"),
        ("age > 1 / 0", 7, "a division by zero"),
        ("age > 1 % 0 * age", 7, "a division by zero"),
        ("image.class > 2", 6, "'.'"),
        ("`日本` < 3 and age = 3", 18, "'='"),
    ],
)
def test_text_that_is_not_a_filter_is_refused_with_its_position(text, character, got):
    with pytest.raises(OptionError) as caught:
        parse_expression(text, SCHEMA)
    assert caught.value.what.endswith(f" at character {character}")
    assert caught.value.got == got


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "age = 3",
            "filter 'age = 3' at character 5: expected an operator or the end, got '='. Use == to compare.",
        ),
        ("(age <", "filter '(age <' at character 7: expected a field or a value, got the end."),
        ("(age", "filter '(age' at character 5: expected an operator or ')', got the end."),
        ("age in 3", "filter 'age in 3' at character 8: expected values in parentheses, got '3'."),
        (
            "age == None",
            "filter 'age == None' at character 8: expected a field or a value, got 'None'. Use 'is None' or "
            "'is not None'.",
        ),
        (
            "age in ('a', 1)",
            "filter \"age in ('a', 1)\" at character 9: expected a number to compare with field 'age', "
            "a number of type int64, got the string 'a'.",
        ),
        ("1 < 2", "filter '1 < 2': expected the name of a field, got none."),
        (
            "image class > 2",
            "filter 'image class > 2' at character 7: expected an operator or the end, got 'class'. Put "
            "names with characters other than letters, digits and '_' in backticks.",
        ),
    ],
)
def test_message_has_position_expectation_and_advice(text, message):
    with pytest.raises(OptionError) as caught:
        parse_expression(text, SCHEMA)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "code > 1 and agge < 3",
            "filter 'code > 1 and agge < 3' at character 14: no field 'agge'. Did you mean 'age'?",
        ),
        (
            "len(token) > 3",
            "filter 'len(token) > 3' at character 5: no field 'token'. Did you mean 'tokens'?",
        ),
        (
            "`image class` > 3",
            "filter '`image class` > 3' at character 1: no field 'image class'. Did you mean 'image/class'?",
        ),
    ],
)
def test_unknown_field_is_named_with_its_position_and_the_nearest(text, message):
    with pytest.raises(UnknownNameError) as caught:
        parse_expression(text, SCHEMA)
    assert str(caught.value) == message


def test_filter_that_is_no_text_is_refused():
    with pytest.raises(OptionError) as caught:
        parse_expression(3, SCHEMA)
    assert str(caught.value) == "filter: expected a str, got 3. Write it as 'age < 3'."


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000,
        "(" * 51 + "age" + ")" * 51 + " > 3",
        "not (" * 26 + "flag" + ")" * 26,
        "not " * 10_000 + "flag",
        "-" * 1000 + "age > 3",
        "age in (" + "-" * 1000 + "1)",
    ],
)
def test_filter_nested_too_deeply_is_refused(text):
    with raises_with(OptionError, expected=containing(50), got="more"):
        parse_expression(text, SCHEMA)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("(" * 50 + "age" + ")" * 50 + " > 3", [2, 3]),
        ("not (" * 25 + "flag" + ")" * 25, [1, 3]),
        ("-" * 50 + "age > 3", [2, 3]),
        # Many levels of the tree in each pair of brackets.
        ("(age is None or age is not None and flag == " * 50 + "True" + ")" * 50, [0, 1, 2, 3]),
        (" + ".join(["age"] * 1001) + " == 5005", [2]),
        (" or ".join(["age == 5"] * 2000), [2]),
        ("age in (" + ", ".join(map(str, range(2, 30_000))) + ")", [2, 3]),
        ("name in (" + "'Mia'," * 10_000 + ")", [0]),
    ],
)
def test_filter_up_to_the_limits_is_evaluated(text, rows):
    assert rows_of(text) == rows


def test_filter_beyond_the_limits_of_length_is_refused():
    with raises_with(OptionError, expected=containing(1000)):
        parse_expression(" + ".join(["age"] * 1002) + " == 5005", SCHEMA)
    with raises_with(OptionError, expected=containing(1_000_000), got="1000007"):
        parse_expression("age < 3" + " " * 1_000_000, SCHEMA)


def test_filter_of_a_caller_with_an_almost_full_stack_is_read_or_refused():
    def descend(levels: int) -> object:
        return descend(levels - 1) if levels else parse_expression(text, SCHEMA)

    text = " + ".join(["age"] * 1000) + " == 5"
    results = []
    for levels in range(10, 1000, 70):
        try:
            results.append(descend(levels))
        except OptionError as error:
            results.append(error.expected)
        except RecursionError:  # not even the call fits
            break
    assert results[0] != "a shorter expression"
    assert {result for result in results if isinstance(result, str)} <= {"a shorter expression"}


@pytest.mark.parametrize("name", ["class", "if", "lambda", "x²", "ﬁnger", "finger", "__debug__", "e1", "_1"])
def test_field_may_have_the_name_of_a_keyword_of_python(name):
    schema = Schema({name: Number("int64"), "age": Number("int64")})
    expression = parse_expression(f"age < 1 < {name}", schema)
    assert expression.names == ("age", name)


@pytest.mark.parametrize("name", ["and", "in", "None", "True", "len", "a b", "3", "'", "(", "日本"])
def test_name_in_backticks_is_that_of_a_field(name):
    schema = Schema({name: Number("int64")})
    assert parse_expression(f"(`{name}`) < 3", schema).names == (name,)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("age<5and code==0", [0]),
        ("age == 0009", [3]),
        ("age == \N{ARABIC-INDIC DIGIT NINE}", [3]),
        ("age in(5)", [2]),
        ("age\nin\n[\n5\n]", [2]),
        ("age in ((5), - -9, +1)", [0, 2, 3]),
        (r"name == 'Mia' and name != 'Mi\0141'", [0]),  # \0 is one character, not an octal number's first
        ("name == b'J\u00f6rg'", []),  # Latin-1, not UTF-8
    ],
)
def test_values_follow_the_rules_of_filters_where_python_has_others(text, rows):
    assert rows_of(text) == rows
