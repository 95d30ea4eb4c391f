"""Operands of a filter: fields and constants as arrays, with the rows that have a value.

In: a field of the schema, or a value in the text. Out: an `Operand`, which makes cells from columns. What a
filter can do with each type of field is in one table, `RULES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Bytes, Column, Columns, Dense, Mask, Ragged
from penstock.filter.arithmetic import as_number, as_numbers
from penstock.filter.syntax import Value
from penstock.foundation.wording import show
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
        kind: What its values are; those of "other" can only be tested for being missing.
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
    return Operand(start, what or f"the {noun} {_show(value)}", kind, lambda _: cells, value)


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
    """Make the operand of a field's length; None if it has none."""
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


def _show(value: Value) -> str:
    if not isinstance(value, bytes):
        return show(value)
    try:
        return show(value.decode())
    except UnicodeDecodeError:
        return show(value)


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
