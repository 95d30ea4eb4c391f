"""Encoding a raw column as a conversion does, in one call."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from penstock.columns import Bytes, Dense, Ragged
from penstock.encode.column import encode_column
from penstock.plan.plan import ColumnPlan
from penstock.schema.field import Field
from penstock.settings.groups import StoredImages
from penstock.source.block import Block
from penstock.storage.deferred import Deferred

ColumnDeclaration = tuple[int, str, str]


def objects(*values: object) -> np.ndarray:
    """Return an array of objects, also of lists that have one length."""
    array = np.empty(len(values), object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def encode(
    field: Field,
    raw: Any,
    form: str = "value",
    options: StoredImages | None = None,
    plan: Mapping[str, Any] | None = None,
    **block: Any,
):
    """Encode a column; return it, and (row, expected, got) of its faults."""
    given = Block(0, len(raw), {"column": raw}, **block)
    plan = ColumnPlan("column", "field", field, form, **(plan or {}))
    column, faults = encode_column(plan, raw, given, options or StoredImages())
    assert len(column) == len(raw)
    assert all(fault.column == "column" for fault in faults)
    return column, [(fault.row, fault.expected, fault.got) for fault in faults]


def values_of(column: Dense | Bytes | Ragged | Deferred) -> list[Any]:
    """Return the values of a column, None where one is missing."""
    present = [True] * len(column) if column.present is None else column.present.tolist()
    if isinstance(column, Dense):
        values = column.values.tolist()
    elif isinstance(column, Bytes):
        values = column.tolist()
    elif isinstance(column, Ragged):
        values = [_plain(column[row]) for row in range(len(column))]
    else:
        values = [bytes(value) for value in column.values]
    return [value if there else None for value, there in zip(values, present, strict=True)]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return [_plain(item) for item in value] if isinstance(value, list) else value
