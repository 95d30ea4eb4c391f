"""What a filter computes with: fields and values, as arrays with what is known of them.

In: a field of the schema, or a value that stands in the text. Out: an `Operand`, which gives its cells for
some columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from penstock.filter.arithmetic import as_number, as_numbers
from penstock.filter.syntax import Value
from penstock.schema.array import Sequence, Tensor
from penstock.schema.field import Field
from penstock.schema.refusal import show
from penstock.schema.scalar import Bytes as BytesField
from penstock.schema.scalar import Category, Image, Number, Text
from penstock.types import Bytes, Column, Columns, Dense, Mask, Ragged

Kind: TypeAlias = Literal["number", "string", "truth", "other"]


class Cells(NamedTuple):
    """A value a row, or one for all rows.

    Attributes:
        values: Numbers, strings (`Bytes`) or a mask, which is False where nothing is known.
        known: Which rows have a value; None if all do.
    """

    values: Any
    known: Mask | None = None


@dataclass(frozen=True)
class Operand:
    """A part of an expression.

    Attributes:
        at: Its place in the text.
        what: It in words, for errors.
        kind: What its values are; nothing but their absence can be asked of "other" ones.
        run: Gives the cells of some columns.
        constant: The value, where it is the same for all rows.
        precision: Of a field of floats: how the field holds them, where that is not as doubles.
    """

    at: int
    what: str
    kind: Kind
    run: Callable[[Columns], Cells]
    constant: Value | None = None
    precision: str | None = None


def make_value(at: int, value: Value, what: str | None = None) -> Operand:
    """Make the operand of a value."""
    kind: Kind = "number"
    cells = Cells(as_number(value)) if not isinstance(value, bool | bytes) else Cells(None)
    if isinstance(value, bool):
        kind, cells = "truth", Cells(np.array([value]))
    elif isinstance(value, bytes):
        stops = np.array([len(value)], np.int64)
        kind, cells = "string", Cells(Bytes(np.frombuffer(value, np.uint8), np.zeros(1, np.int64), stops))
    return Operand(at, what or f"the {_KINDS[kind]} {_show(value)}", kind, lambda _: cells, value)


def make_field(at: int, name: str, field: Field) -> Operand:
    """Make the operand of a field's value."""
    kind = _kind_of(field)
    precision = None
    if kind == "number" and isinstance(field, Number | Tensor) and field.dtype in ("float16", "float32"):
        precision = field.dtype

    def run(columns: Columns) -> Cells:
        column = columns[name]
        known = find_known(field, column)
        if kind in ("string", "other"):
            return Cells(column, known)
        values = cast("Dense", column).values
        if kind == "truth":
            return Cells(values if known is None else values & known, known)
        return Cells(as_numbers(values), known)

    return Operand(at, f"field {show(name)}, {_describe(field)}", kind, run, precision=precision)


def make_length(at: int, name: str, field: Field) -> Operand | None:
    """Make the operand of a field's length; None if it has none."""
    measure: Callable[[Column], NDArray[np.int64]]
    if isinstance(field, Sequence):
        measure = count_values
    elif isinstance(field, Text | Category) and field.kind == "bytes":
        measure = _count_characters
    elif isinstance(field, BytesField | Image):
        measure = count_bytes
    else:
        return None

    def run(columns: Columns) -> Cells:
        return Cells(measure(columns[name]), find_known(field, columns[name]))

    return Operand(at, f"len({name})", "number", run)


def find_known(field: Field, column: Column) -> Mask | None:
    """Return which rows of a column have a value: of a field with a default, all."""
    return None if field.default is not None else column.present


def count_values(column: Column) -> NDArray[np.int64]:
    """Return how many values, or steps, each row of a sequence has."""
    return np.diff(cast("Ragged", column).offsets)


def count_bytes(column: Column) -> NDArray[np.int64]:
    """Return how many bytes each row has."""
    strings = cast("Bytes", column)
    return strings.stops - strings.starts


_KINDS = {"number": "number", "string": "string", "truth": "value"}


def _show(value: Value) -> str:
    if not isinstance(value, bytes):
        return show(value)
    try:
        return show(value.decode())
    except UnicodeDecodeError:
        return show(value)


def _kind_of(field: Field) -> Kind:
    if isinstance(field, Number):
        return "number"
    if isinstance(field, Category | Text | BytesField):
        return "number" if field.kind == "int64" else "string"
    if isinstance(field, Tensor) and field.shape == ():
        return "truth" if field.dtype == "bool" else "number"
    return "other"


def _describe(field: Field) -> str:
    noun = {"bytes": "a string of bytes", "text": "a text", "image": "an image"}.get(field.type_name)
    if isinstance(field, Number | Category):
        return f"a {field.type_name} of type {field.dtype}"
    return noun or f"a {field.type_name}"


def _count_characters(column: Column) -> NDArray[np.int64]:
    strings = cast("Bytes", column)
    if len(strings.arena) == 0 or strings.arena.max() < 0x80:  # ASCII, at a tenth of the cost
        return strings.stops - strings.starts
    # Of the bytes of a character in UTF-8, all but the first are 10xxxxxx.
    sums = np.zeros(len(strings.arena) + 1, np.int64)
    np.cumsum((strings.arena & 0xC0) != 0x80, out=sums[1:])
    lengths: NDArray[np.int64] = sums[strings.stops] - sums[strings.starts]
    return lengths
