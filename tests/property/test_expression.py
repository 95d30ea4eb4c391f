"""Law of filters: a mask has for each row what Python computes from that row, where nothing is unknown."""

import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from penstock.columns import Bytes, Dense, Ragged
from penstock.errors import OptionError, UnknownNameError
from penstock.fields import Number, Sequence, Text
from penstock.filter import arithmetic
from penstock.filter.expression import Expression, parse_expression
from penstock.schema.schema import Schema

SCHEMA = Schema(
    {
        "i": Number("int64", optional=True),
        "j": Number("int64", default=3),
        "f": Number("float32", optional=True),
        "d": Number("float64", optional=True),
        "s": Text(optional=True),
        "t": Text(),
        "tokens": Sequence("int64", optional=True),
    }
)
TESTS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
COMBINE = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod}
Row = dict[str, Any]  # what a record lacks is None


class Part(NamedTuple):
    """A piece of an expression: its text, and what Python computes for a row; None is unknown."""

    text: str
    value: Callable[[Row], Any]


EDGES = (2**53, 2**53 + 1, 2**62, 2**62 + 1, 2**63 - 1)
INTS = st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([*EDGES, *(-n for n in EDGES)])
DOUBLES = st.sampled_from([0.0, 1.0, -2.5, 0.1, 2.0**53, 2.0**62, 1e300, math.inf, -math.inf, math.nan])
FLOATS = st.sampled_from([float(np.float32(value)) for value in (0.0, 0.1, -2.5, 1.0, math.inf, math.nan)])
STRINGS = st.sampled_from(["", "a", "b", "ab", "ä", "日本", "\U0001f408", "z" * 9])

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "i": st.none() | INTS,
            "j": INTS,
            "f": st.none() | FLOATS,
            "d": st.none() | DOUBLES,
            "s": st.none() | STRINGS,
            "t": STRINGS,
            "tokens": st.none() | st.integers(0, 3).map(range),
        }
    ),
    max_size=8,
)


def make_columns(rows: list[Row]) -> dict[str, Dense | Bytes | Ragged]:
    """Return rows as columns; where one lacks a value, there is something else that must not matter."""
    columns: dict[str, Dense | Bytes | Ragged] = {}
    masks = {name: np.array([row[name] is not None for row in rows], np.bool_) for name in SCHEMA}
    for name, dtype in (("i", np.int64), ("j", np.int64), ("f", np.float32), ("d", np.float64)):
        values = [1 if row[name] is None else row[name] for row in rows]
        columns[name] = Dense(np.array(values, dtype), masks[name])
    # The default stands where a record lacks it; whether it did, must not matter.
    columns["j"].present = np.arange(len(rows)) % 2 == 0
    for name in ("s", "t"):
        values = [("a" if row[name] is None else row[name]).encode() for row in rows]
        arena = np.frombuffer(b"".join(values), np.uint8)
        offsets = np.cumsum([0, *map(len, values)], dtype=np.int64)
        columns[name] = Bytes.from_offsets(arena, offsets, masks[name] if name == "s" else None)
    lengths = [2 if row["tokens"] is None else len(row["tokens"]) for row in rows]
    offsets = np.cumsum([0, *lengths], dtype=np.int64)
    columns["tokens"] = Ragged(np.zeros(offsets[-1], np.int64), offsets, masks["tokens"])
    return columns


def lift(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function unknown where an operand is."""
    return lambda *operands: None if None in operands else function(*operands)


def field(name: str) -> Part:
    return Part(name, lambda row: row[name])


def combine(sign: str, left: Part, right: Part) -> Part:
    def compute(a: Any, b: Any) -> Any:
        try:
            return COMBINE[sign](a, b)
        except ZeroDivisionError:
            return None

    return Part(
        f"({left.text} {sign} {right.text})", lambda row: lift(compute)(left.value(row), right.value(row))
    )


# Small ones: an int beyond all doubles has no sum with a double in Python.
INT_LITERALS = (INTS | st.sampled_from([2**70, -(2**70)])).map(lambda v: Part(str(v), lambda _: v))
DOUBLE_LITERALS = st.sampled_from([0.5, -2.5, 1e300, 2.0**62]).map(lambda v: Part(repr(v), lambda _: v))
LENGTH = Part("len(tokens)", lambda row: lift(len)(row["tokens"]))
NUMBERS = st.recursive(
    st.sampled_from([field("i"), field("j"), field("d"), LENGTH]) | INT_LITERALS | DOUBLE_LITERALS,
    lambda parts: st.builds(combine, st.sampled_from("+-*/%"), parts, parts),
    max_leaves=3,
)
TEXTS = st.sampled_from([field("s"), field("t")]) | STRINGS.map(lambda v: Part(f'"{v}"', lambda _: v))


def compare(sign: str, left: Part, right: Part) -> Part:
    return Part(
        f"{left.text} {sign} {right.text}", lambda row: lift(TESTS[sign])(left.value(row), right.value(row))
    )


def compare_thrice(signs: list[str], parts: list[Part]) -> Part:
    first, second = (compare(sign, *pair) for sign, pair in zip(signs, (parts[:2], parts[1:]), strict=True))
    text = f"{parts[0].text} {signs[0]} {parts[1].text} {signs[1]} {parts[2].text}"
    return Part(text, join("and", first, second).value)


def compare_rounded(sign: str, value: float, is_left: bool) -> Part:
    rounded = float(np.float32(value))
    text = f"{value!r} {sign} f" if is_left else f"f {sign} {value!r}"
    order = (lambda x: (rounded, x)) if is_left else (lambda x: (x, rounded))
    return Part(text, lambda row: lift(lambda x: TESTS[sign](*order(x)))(row["f"]))


def among(operand: Part, values: list[Any], is_not: bool) -> Part:
    listed = ", ".join(f'"{value}"' if isinstance(value, str) else repr(value) for value in values)
    text = f"{operand.text} {'not ' if is_not else ''}in ({listed})"
    return Part(text, lambda row: lift(lambda x: (x in values) != is_not)(operand.value(row)))


def is_missing(name: str, is_not: bool) -> Part:
    return Part(f"{name} is {'not ' if is_not else ''}None", lambda row: (row[name] is None) != is_not)


def negate(part: Part) -> Part:
    return Part(f"not ({part.text})", lambda row: lift(operator.not_)(part.value(row)))


def join(word: str, left: Part, right: Part) -> Part:
    def value(row: Row) -> bool | None:
        sides = left.value(row), right.value(row)
        decisive = word == "or"
        return decisive if decisive in sides else None if None in sides else not decisive

    return Part(f"({left.text}) {word} ({right.text})", value)


SIGNS = st.sampled_from(sorted(TESTS))
CONDITIONS = st.recursive(
    st.one_of(
        st.builds(compare, SIGNS, NUMBERS, NUMBERS),
        st.builds(compare, SIGNS, TEXTS, TEXTS),
        st.builds(
            compare_thrice,
            st.lists(SIGNS, min_size=2, max_size=2),
            st.lists(NUMBERS, min_size=3, max_size=3) | st.lists(TEXTS, min_size=3, max_size=3),
        ),
        st.builds(compare_rounded, SIGNS, st.sampled_from([0.1, 1.0, -2.5, 0.3]), st.booleans()),
        st.builds(among, NUMBERS, st.lists(INTS | st.just(2.0**53), min_size=1, max_size=12), st.booleans()),
        st.builds(among, TEXTS, st.lists(STRINGS, min_size=1, max_size=5), st.booleans()),
        st.builds(is_missing, st.sampled_from(["i", "f", "d", "s", "tokens"]), st.booleans()),
    ),
    lambda parts: st.builds(negate, parts) | st.builds(join, st.sampled_from(["and", "or"]), parts, parts),
    max_leaves=4,
)


def as_array(numbers: list[int] | list[float]) -> np.ndarray:
    return np.array(numbers, np.int64 if isinstance(numbers[0], int) else np.float64)


NUMBER_ROWS = st.integers(1, 6).flatmap(
    lambda size: st.tuples(
        *[st.lists(INTS, min_size=size, max_size=size) | st.lists(DOUBLES, min_size=size, max_size=size)] * 2
    )
)


@given(SIGNS, NUMBER_ROWS)
def test_numbers_are_compared_exactly(sign, rows):
    with np.errstate(all="ignore"):
        found = arithmetic.compare(sign, *map(as_array, rows))
    assert found.tolist() == [TESTS[sign](a, b) for a, b in zip(*rows, strict=True)]


@given(st.sampled_from("+-*/%"), NUMBER_ROWS)
def test_numbers_are_combined_exactly_and_divided_by_zero_not_at_all(sign, rows):
    with np.errstate(all="ignore"):
        found, undefined = arithmetic.combine(sign, *map(as_array, rows))
    undefined = [False] * len(found) if undefined is None else undefined.tolist()
    for a, b, value, is_undefined in zip(*rows, found.tolist(), undefined, strict=True):
        assert is_undefined == (sign in "/%" and b == 0)
        if not is_undefined:
            expected = COMBINE[sign](a, b)
            assert value == expected or (math.isnan(value) and math.isnan(expected))


def parse(text: str) -> Expression:
    try:
        return parse_expression(text, SCHEMA)
    except OptionError as error:
        # 1 / 0 is refused at once: there is no row that it could be something for.
        assert "division by zero" in error.got  # noqa: PT017
        reject()


@settings(max_examples=300)
@given(CONDITIONS, ROWS)
def test_mask_equals_python_row_by_row(condition, rows):
    # A condition that names no field is refused; this one names one, and changes nothing.
    expression = parse(f"({condition.text}) and t is not None")
    found = expression.evaluate(make_columns(rows))
    assert found.tolist() == [condition.value(row) is True for row in rows]


@settings(max_examples=50)
@given(CONDITIONS, ROWS)
def test_mask_of_a_row_does_not_depend_on_the_rows_beside_it(condition, rows):
    expression = parse(f"({condition.text}) or t == '\\0'")
    alone = [expression.evaluate(make_columns([row])).tolist()[0] for row in rows]
    assert expression.evaluate(make_columns(rows)).tolist() == alone


# Parts of filters, of Python that is not part of the language, and of neither.
FILTER_PARTS = (
    'i j f s tokens len ( ) [ ] { } , < <= == != + - * / % and or not in is None True 3 .5 1e3 "a" `i`'
)
OTHER_PARTS = (
    r"""** // 007 0x1f 1j b"a" "\x41" "\q" ' " ` `` = := : ; . ... ! && | ~ @ if lambda f"{i}" \ # é ² $ ?"""
)
PARTS = st.sampled_from([*FILTER_PARTS.split(), *OTHER_PARTS.split(), "\0", "\n", "\f", "\ud800"])


@settings(max_examples=200)
@given(
    st.text(max_size=30)
    | st.lists(PARTS, max_size=12).map(" ".join)
    | st.lists(PARTS, max_size=8).map("".join)
)
def test_any_text_is_a_filter_or_refused_by_an_error_of_penstock(text):
    try:
        assert parse_expression(text, SCHEMA).text == text
    except (OptionError, UnknownNameError) as error:
        assert str(error)  # noqa: PT017
