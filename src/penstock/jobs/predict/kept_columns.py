"""What goes from new data into the output as it is: what names a row, and columns that were asked for.

In: names, fields and raw columns. Out: an Arrow schema, and arrays of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.decode.arrow import arrow_schema
from penstock.errors import SourceError
from penstock.schema.field import Field
from penstock.schema.schema import Schema
from penstock.source.block import RawColumn

ROW: Final = "row"
"""The column that numbers the rows from 0, where nothing else names them."""


@dataclass(frozen=True)
class Kept:
    """One column: the rows' numbers, a field's values, or a raw column as it is.

    Attributes:
        source: The name of the field, or of the raw column.
        field: What its values are, or None where they are taken as they are.
        is_row: Whether it numbers the rows.
    """

    source: str
    field: Field | None = None
    is_row: bool = False


class Keeping:
    """The columns, by the names that they have in the output."""

    def __init__(self) -> None:
        self.entries: dict[str, Kept] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names in the output."""
        return tuple(self.entries)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields whose values are needed."""
        return tuple(each.source for each in self.entries.values() if each.field is not None)

    def add_row(self) -> None:
        """Number the rows."""
        self.entries[ROW] = Kept(ROW, is_row=True)

    def add_field(self, name: str, source: str, field: Field) -> None:
        """Keep the values of a field."""
        self.entries[name] = Kept(source, field)

    def add_raw(self, name: str, source: str) -> None:
        """Keep a raw column as it is."""
        self.entries[name] = Kept(source)

    def settle(self, raw: Mapping[str, RawColumn]) -> pa.Schema:
        """Return the types; those of raw columns are as the first of their values are, or text."""
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
    """Return a raw column as an Arrow array; objects that Arrow does not know, as text."""
    if not isinstance(raw, np.ndarray):
        return raw
    values: Any = raw if raw.ndim == 1 else raw.tolist()
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return pa.array([None if value is None else str(value) for value in raw.tolist()], pa.large_string())


def as_type(name: str, array: Any, kind: Any) -> Any:
    """Return an array in the type that the rows before had.

    Raises:
        SourceError: It cannot be.
    """
    if array.type == kind:
        return array
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise SourceError(
            f"column {name!r}",
            field=name,
            expected=f"{kind}, as in the rows before",
            got=array.type,
            advice="Give the column one type, or do not keep it.",
        ) from None
