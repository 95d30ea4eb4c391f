"""Operands of a filter, and the logic of three values: true, false, and unknown where a value is missing.

In: a field of the schema, or a value in the text. Out: an `Operand`, which makes cells from columns, and
tests of operands. Truth values are as in SQL (Kleene's logic): unknown and false is false, unknown or true is
true, every other result of the unknown is unknown. `RULES` has what a filter can do with each type of field.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Bytes, Column, Columns, Dense, Mask, Ragged
from penstock.filter.arithmetic import COMPARISONS, as_number, as_numbers, compare, is_among
from penstock.filter.syntax import Value
from penstock.foundation.wording import decode_text, show
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date, DateUnit
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes as BytesField
from penstock.schema.scalar import Category, Image, Number, Text

Kind: TypeAlias = Literal["number", "string", "truth", "other"]


class Cells(NamedTuple):
    """One value per row, or one for all rows.

    Attributes:
        values: Numbers, strings (`Bytes`) or a mask, which is False where the value is unknown.
        known: The rows with a value; None if all have one.
    """

    values: Any
    known: Mask | None = None


@dataclass(frozen=True)
class Operand:
    """A part of an expression.

    Attributes:
        start: Its position in the text.
        what: Its description in errors.
        kind: Kind of its values; "other" values can only be tested for being missing.
        run: Makes the cells from columns.
        constant: The value, if it is the same for all rows.
        precision: The type of a field of floats that is narrower than float64.
        unit: The unit of a field of dates, whose values are compared with dates in texts.
    """

    start: int
    what: str
    kind: Kind
    run: Callable[[Columns], Cells]
    constant: Value | None = None
    precision: str | None = None
    unit: DateUnit | None = None


def make_value(start: int, value: Value, what: str | None = None) -> Operand:
    """Make the operand of a constant."""
    kind: Kind = "number"
    if isinstance(value, bool):
        kind, cells = "truth", Cells(np.array([value]))
    elif isinstance(value, bytes):
        stops = np.array([len(value)], np.int64)
        kind, cells = "string", Cells(Bytes(np.frombuffer(value, np.uint8), np.zeros(1, np.int64), stops))
    else:
        cells = Cells(as_number(value))
    noun = "value" if kind == "truth" else kind
    shown = show(decode_text(value) if isinstance(value, bytes) else value)
    return Operand(
        start,
        what or f"the {noun} {shown}",
        kind,
        lambda _: cells,
        value,
    )


def make_field(start: int, name: str, field: Field) -> Operand:
    """Make the operand of a field's value."""
    rules = RULES[type(field)]
    kind = rules.kind(field)
    dtype = getattr(field, "dtype", None)

    def run(columns: Columns) -> Cells:
        column = columns[name]
        known = find_known(field, column)
        if kind in ("string", "other"):
            return Cells(column, known)
        values = cast("Dense", column).values
        if kind == "truth":
            return Cells(values if known is None else values & known, known)
        return Cells(as_numbers(values), known)

    return Operand(
        start,
        f"field {show(name)}, {rules.noun}{f' of type {dtype}' if rules.shows_dtype else ''}",
        kind,
        run,
        precision=dtype if kind == "number" and dtype in ("float16", "float32") else None,
        unit=field.unit if isinstance(field, Date) else None,
    )


def make_length(start: int, name: str, field: Field) -> Operand | None:
    """Make the operand of a field's length; None if the field has no length."""
    rules = RULES[type(field)]
    measure = rules.measure
    if measure is None or rules.kind(field) == "number":
        return None

    def run(columns: Columns) -> Cells:
        return Cells(measure(columns[name]), find_known(field, columns[name]))

    return Operand(start, f"len({name})", "number", run)


def find_known(field: Field, column: Column) -> Mask | None:
    """Return the rows of a column that have a value: all, if the field has a default."""
    return None if field.default is not None else column.present


def count_values(column: Column) -> NDArray[np.int64]:
    """Return the number of values or steps in each row of a sequence."""
    return np.diff(cast("Ragged", column).offsets)


def count_bytes(column: Column) -> NDArray[np.int64]:
    """Return the number of bytes in each row."""
    strings = cast("Bytes", column)
    return strings.stops - strings.starts


def _count_characters(column: Column) -> NDArray[np.int64]:
    strings = cast("Bytes", column)
    if len(strings.arena) == 0 or strings.arena.max() < 0x80:  # ASCII, in a tenth of the time
        return strings.stops - strings.starts
    # Of the bytes of a character in UTF-8, all but the first are 10xxxxxx.
    sums = np.zeros(len(strings.arena) + 1, np.int64)
    np.cumsum((strings.arena & 0xC0) != 0x80, out=sums[1:])
    lengths: NDArray[np.int64] = sums[strings.stops] - sums[strings.starts]
    return lengths


class _Rules(NamedTuple):
    """What a filter can do with the fields of one type.

    Attributes:
        noun: The type in errors.
        kind: Returns the kind of the values of a field.
        measure: Returns the `len` of each row; None if the type has none.
        shows_dtype: Whether errors name the dtype of the field, too.
    """

    noun: str
    kind: Callable[[Any], Kind]
    measure: Callable[[Column], NDArray[np.int64]] | None = None
    shows_dtype: bool = False


def _kind_of_category(field: Category) -> Kind:
    return "number" if field.kind == "int64" else "string"


def _kind_of_tensor(field: Tensor) -> Kind:
    if field.shape != ():
        return "other"
    return "truth" if field.dtype == "bool" else "number"


RULES: dict[type[Field], _Rules] = {
    Number: _Rules("a number", lambda _: "number", shows_dtype=True),
    Category: _Rules("a category", _kind_of_category, _count_characters, shows_dtype=True),
    Date: _Rules("a date", lambda _: "number"),
    Text: _Rules("a text", lambda _: "string", _count_characters),
    BytesField: _Rules("a string of bytes", lambda _: "string", count_bytes),
    Image: _Rules("an image", lambda _: "other", count_bytes),
    Sequence: _Rules("a sequence", lambda _: "other", count_values),
    Tensor: _Rules("a tensor", _kind_of_tensor),
}


Run: TypeAlias = Callable[[Columns], Cells]


def both_known(left: Mask | None, right: Mask | None) -> Mask | None:
    """Return the rows that are in both masks; None means all rows."""
    if left is None or right is None:
        return right if left is None else left
    return left & right


def both_true(left: Cells, right: Cells) -> Cells:
    """Return the conjunction of two truth values."""
    values = left.values & right.values
    if left.known is None and right.known is None:
        return Cells(values)
    # Known where both are known, and where one is known to be false.
    return Cells(values, _known(left) & _known(right) | _is_false(left) | _is_false(right))


def one_true(left: Cells, right: Cells) -> Cells:
    """Return the disjunction of two truth values."""
    values = left.values | right.values
    if left.known is None and right.known is None:
        return Cells(values)
    return Cells(values, _known(left) & _known(right) | values)


def invert(cells: Cells) -> Cells:
    """Return the negation of a truth value."""
    return _mask_unknown(~cells.values, cells.known)


def is_missing(cells: Cells) -> Cells:
    """Return the rows without a value, which is always known."""
    return Cells(np.zeros(1, np.bool_) if cells.known is None else ~cells.known)


def is_not_zero(cells: Cells) -> Cells:
    """Return the rows in which a number counts as true."""
    return _mask_unknown(compare("!=", cells.values, as_number(0)), cells.known)


def compare_numbers(sign: str, left: Operand, right: Operand) -> Run:
    """Make the comparison of two numbers; a constant is rounded to the precision of the other field."""
    return _test_pair(_round_for(left, right), _round_for(right, left), partial(compare, sign))


def compare_strings(sign: str, left: Operand, right: Operand) -> Run:
    """Make the comparison of two strings by their bytes: UTF-8 sorts like the characters."""
    if isinstance(left.constant, bytes) and sign in ("==", "!="):
        left, right = right, left
    if isinstance(right.constant, bytes) and sign in ("==", "!="):
        is_equal = find_among(left, [right.constant])
        return is_equal if sign == "==" else lambda columns: invert(is_equal(columns))
    test_strings = COMPARISONS[sign]

    def test(strings: Bytes, others: Bytes) -> Mask:
        texts, other_texts = strings.tolist(), others.tolist()
        num_rows = max(len(texts), len(other_texts)) if texts and other_texts else 0
        pairs = zip(_repeat(texts, num_rows), _repeat(other_texts, num_rows), strict=True)
        return np.array([test_strings(text, other) for text, other in pairs], np.bool_)

    return _test_pair(left.run, right.run, test)


def compare_truths(sign: str, left: Operand, right: Operand) -> Run:
    """Make the comparison of two truth values by == or !=."""
    return _test_pair(left.run, right.run, COMPARISONS[sign])


def _test_pair(run_left: Run, run_right: Run, test: Callable[[Any, Any], Mask]) -> Run:
    def run(columns: Columns) -> Cells:
        left, right = run_left(columns), run_right(columns)
        return _mask_unknown(test(left.values, right.values), both_known(left.known, right.known))

    return run


def find_among(operand: Operand, values: SequenceOf[Value]) -> Run:
    """Make the test whether a number or a string is one of some values."""
    if operand.kind == "number":
        numbers = cast("SequenceOf[float]", values)
        return _test_one(operand.run, lambda found: is_among(found, numbers, operand.precision))
    vocabulary = _native.Vocabulary(sorted(set(cast("SequenceOf[bytes]", values))))
    return _test_one(operand.run, lambda found: vocabulary.find(found.arena, found.starts, found.stops) >= 0)


def _test_one(run_operand: Run, test: Callable[[Any], Mask]) -> Run:
    def run(columns: Columns) -> Cells:
        cells = run_operand(columns)
        return _mask_unknown(test(cells.values), cells.known)

    return run


def _round_for(operand: Operand, other: Operand) -> Run:
    if operand.constant is None or other.precision is None:
        return operand.run
    cells = Cells(as_number(cast("float", operand.constant), other.precision))
    return lambda _: cells


def _repeat(strings: list[bytes], num_rows: int) -> list[bytes]:
    return strings * num_rows if len(strings) == 1 else strings[:num_rows]


def _mask_unknown(values: Mask, known: Mask | None) -> Cells:
    """Return truth values that are False where they are unknown, as the other functions require."""
    return Cells(values if known is None else values & known, known)


def _known(cells: Cells) -> Mask:
    return np.ones(1, np.bool_) if cells.known is None else cells.known


def _is_false(cells: Cells) -> Mask:
    mask: Mask = _known(cells) & ~cells.values
    return mask
