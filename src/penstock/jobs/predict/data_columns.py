"""Columns of new data: the inputs of the model, and the columns that the output keeps.

In: a pipeline, fields, and encoded columns. Out: columns as decoding returns them; an error if a required
column does not exist; the Arrow schema of the kept columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from penstock.columns import CodedColumn, Column, Dense, concat
from penstock.decode.arrow import arrow_schema
from penstock.encode.column import encode_column
from penstock.encode.deferred import materialize
from penstock.encode.plain import as_objects
from penstock.errors import FieldError, PenstockError, SchemaError, SourceError
from penstock.foundation.wording import argument, find_nearest, show
from penstock.plan.plan import ColumnPlan
from penstock.schema.array import Tensor
from penstock.schema.field import Field
from penstock.schema.schema import Schema
from penstock.settings.groups import StoredImages
from penstock.source.block import Block, RawColumn
from penstock.storage.deferred import Deferred
from penstock.transform.pipeline import Pipeline

WITHOUT_LABELS: Final = "For data without labels: penstock predict RUN DATA, in Python ps.predict(run, data)."
"""Advice for an evaluation on data without labels."""

_MOST_LISTED: Final = 8
ROW: Final = "row"
"""Name of the column with the row numbers, from 0, if the data has no id."""


def can_lack(inputs: Pipeline, name: str) -> bool:
    """Whether rows may lack a value of a field: it was optional in training, or its transform allows it."""
    transform = inputs.transforms.get(name)
    return inputs.schema[name].optional or (transform is not None and transform.takes_missing)


def find_absent(
    inputs: Pipeline, there: Mapping[str, str], columns: Sequence[str], source: str, *, is_allowed: bool
) -> list[str]:
    """Return the input fields that the data does not have; all of them may be missing."""
    absent = [name for name in inputs.fields if name not in there]
    num_inputs = sum(inputs.schema[name].role != "target" for name in inputs.fields)
    others = [column for column in columns if column not in there.values()]
    spelt = {_spell(column): column for column in others}
    refused = []
    for name in absent:
        if inputs.schema[name].role == "target":
            raise _refuse_unlabelled(name, columns, source)
        can_be_absent = _takes_nothing(inputs, name) and len(absent) < num_inputs
        # `Age` for `age` is a typing error; with all values missing, predictions would be wrong.
        if not is_allowed or not can_be_absent or _spell(name) in spelt:
            similar = spelt.get(_spell(name)) or find_nearest(name, others)
            refused.append(_Absent(name, similar, can_be_absent))
    if refused:
        raise _refuse_absent(sorted(refused, key=lambda each: each.rank), columns, source)
    return absent


class _Absent(NamedTuple):
    """An input that the data does not have: its name, a column with a similar name, whether it may lack."""

    name: str
    similar: str | None
    can_be_absent: bool

    @property
    def rank(self) -> int:
        """Place in a message: first what a new name repairs, then what the model cannot do without."""
        return 0 if self.similar is not None else 1 + self.can_be_absent


def _spell(name: str) -> str:
    """Return a name without case, spaces and dashes, which are often misspelled."""
    return "".join(char for char in name.casefold() if char.isalnum())


def _takes_nothing(inputs: Pipeline, name: str) -> bool:
    """Whether a whole column may be missing; tried with one row, because a transform may refuse it."""
    if not can_lack(inputs, name):
        return False
    transform = inputs.transforms.get(name)
    try:
        if transform is not None:
            transform.apply(name, make_absent(inputs.schema[name], 1), None)
    except FieldError:
        return False
    return True


def _refuse_absent(refused: Sequence[_Absent], columns: Sequence[str], source: str) -> PenstockError:
    (name, similar, can_be_absent), rest = refused[0], [each.name for each in refused[1:]]
    it = "them" if rest else "it"
    advice = f"Add {it} to the data: the model reads {it}."
    if similar is not None:
        advice = f"It has {show(similar)}. Did you mean {show(name)}? Rename the column."
    elif can_be_absent:
        allowed = argument("allow_missing_columns", True)
        advice = f"Add {it} to the data; or let {it} count as missing in all rows: {allowed}."
    return SchemaError(
        f"{source}: no column {show(name)}" + (f", nor {_list_columns(rest)}" if rest else ""),
        field=name,
        expected=f"the columns that the model was trained on, including {show(name)}",
        got=_list_columns(columns),
        advice=advice,
    )


def _refuse_unlabelled(name: str, columns: Sequence[str], source: str) -> PenstockError:
    nearest = find_nearest(name, columns)
    hint = f"Rename {show(nearest)}, if that is the column. " if nearest else ""
    return SchemaError(
        f"{source}: no column {show(name)}",
        field=name,
        expected=f"the labels to compare predictions with, in a column {show(name)}",
        got=_list_columns(columns),
        advice=hint + WITHOUT_LABELS,
    )


def note_empty(name: str) -> str:
    """Return the note on an input without a value in any record."""
    return f"field {show(name)} is empty in all records: it counts as missing"


def _list_columns(columns: Sequence[str]) -> str:
    more = ", …" if len(columns) > _MOST_LISTED else ""
    return ", ".join(show(column) for column in columns[:_MOST_LISTED]) + more or "none"


def make_absent(field: Field, num_rows: int) -> Column:
    """Return a column in which every row lacks the field."""
    column = _stand_in(field).take(np.zeros(num_rows, np.int64))
    column.present = np.zeros(num_rows, np.bool_)
    return column


def as_decoded(field: Field, column: Column | Deferred, faulty: Sequence[int] = ()) -> CodedColumn:
    """Return an encoded column as decoding would return it.

    Deferred values are read. Rows that lack the field have its default, or zeros.

    `column`: column, as `encode_column` returns it. `faulty`: rows that are not valid; their values are not
    read.
    """
    if isinstance(column, Deferred) and len(faulty):
        present = np.ones(len(column), np.bool_) if column.present is None else column.present.copy()
        present[faulty] = False
        column.present = present
    column = _as_stored(field, materialize(column))
    if column.present is None:
        return column
    num_rows, present = len(column), column.present
    rows = np.where(present, np.arange(num_rows), num_rows)
    filled = concat([column, _stand_in(field)]).take(rows)
    filled.present = present
    return filled


def _as_stored(field: Field, column: Column) -> Column:
    # A tensor that is stored as a list is encoded with the type of the list, and decoded with its own.
    if isinstance(field, Tensor) and isinstance(column, Dense):
        values = column.values.astype(field.dtype, copy=False)
        return Dense(values.reshape((len(column), *field.shape)), column.present)
    return column


def _stand_in(field: Field) -> Column:
    """Return a column of one row, with the value that decoding gives to rows without the field."""
    plan = ColumnPlan("", "", replace(field, role="input", optional=True), nan="value")
    raw: RawColumn = pa.nulls(1) if field.default is None else as_objects([field.default])
    if isinstance(field.default, float):
        raw = np.array([field.default])  # among objects, NaN would be a missing value
    encoded, _ = encode_column(plan, raw, Block(0, 1, {}), StoredImages())
    column = materialize(encoded)
    if field.default is None:
        column = column.take(np.empty(0, np.int64)).pad(1).without_mask()
    return _as_stored(field, column)


@dataclass(frozen=True)
class Kept:
    """One kept column: the row numbers, the values of a field, or a raw column unchanged.

    Attributes:
        source: Name of the field or of the raw column.
        field: Field of the values, or None for a raw column.
        is_row: Whether the column has the row numbers.
    """

    source: str
    field: Field | None = None
    is_row: bool = False


class Keeping:
    """Kept columns by their names in the output."""

    def __init__(self) -> None:
        self.entries: dict[str, Kept] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns in the output."""
        return tuple(self.entries)

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields whose values are kept."""
        return tuple(each.source for each in self.entries.values() if each.field is not None)

    def add_row(self) -> None:
        """Keep the row numbers."""
        self.entries[ROW] = Kept(ROW, is_row=True)

    def add_field(self, name: str, source: str, field: Field) -> None:
        """Keep the values of a field."""
        self.entries[name] = Kept(source, field)

    def add_raw(self, name: str, source: str) -> None:
        """Keep a raw column unchanged."""
        self.entries[name] = Kept(source)

    def find_types(self, raw: Mapping[str, RawColumn]) -> pa.Schema:
        """Return the Arrow schema of the columns; a raw column has the type of its first values, or text."""
        fields = []
        for name, each in self.entries.items():
            kind: pa.DataType = pa.large_string()
            if each.is_row:
                kind = pa.int64()
            elif each.field is not None:
                kind = arrow_schema(Schema({name: each.field})).field(name).type
            elif each.source in raw:
                kind = plain_array(raw[each.source]).type
            fields.append(pa.field(name, pa.large_string() if pa.types.is_null(kind) else kind))
        return pa.schema(fields)


def plain_array(raw: RawColumn) -> Any:
    """Return a raw column as an Arrow array; objects that Arrow does not support become text."""
    if not isinstance(raw, np.ndarray):
        return raw
    values: Any = raw if raw.ndim == 1 else raw.tolist()
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return pa.array([None if value is None else str(value) for value in raw.tolist()], pa.large_string())


def as_type(name: str, array: Any, kind: Any) -> Any:
    """Return an array with the type of the previous rows."""
    if array.type == kind:
        return array
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise SourceError(
            f"column {name!r}",
            field=name,
            expected=f"{kind}, as in the previous rows",
            got=array.type,
            advice="Give the column one type, or do not keep it.",
        ) from None
