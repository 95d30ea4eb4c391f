"""Search for a text in columns of texts.

In: columns and a text. Out: the rows that contain it, in upper or lower case.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Bytes, Column, Columns, Mask, Ragged
from penstock.decode.sample import IS_TEXT
from penstock.schema.field import Field
from penstock.schema.scalar import Category
from penstock.schema.schema import Schema


def list_searchable(schema: Schema) -> tuple[str, ...]:
    """Return the fields that a search looks at: those with texts."""
    return tuple(name for name, field in schema.items() if _has_texts(field))


def _has_texts(field: Field) -> bool:
    if isinstance(field, Category):
        return field.dtype == "string"
    return IS_TEXT[type(field)](field)


def find_text(columns: Columns, names: Iterable[str], text: str, num_rows: int) -> Mask:
    """Return the rows in which a field contains a text; upper and lower case do not differ."""
    found = np.zeros(num_rows, np.bool_)
    for name in names:
        found |= _find_in_column(columns[name], text)
    return found


def _find_in_column(column: Column, text: str) -> Mask:
    if isinstance(column, Bytes):
        found = _find_in_strings(column, text)
    else:
        values, offsets = Ragged.of(column).flatten()
        items = _find_in_strings(Bytes.of(values), text)
        sums = np.concatenate([[0], np.cumsum(items)])
        found = sums[offsets[1:]] > sums[offsets[:-1]]
    return found if column.present is None else found & column.present


def _find_in_strings(column: Bytes, text: str) -> Mask:
    if not text.isascii():  # letters whose lower case has other bytes, one text at a time
        wanted = text.casefold()
        folded = (value.decode(errors="replace").casefold() for value in column)
        return np.fromiter((wanted in value for value in folded), np.bool_, len(column))
    packed = column.pack()
    ends: NDArray[np.int64] = packed.stops
    hay, needle = packed.arena[: int(ends[-1]) if len(ends) else 0].tobytes().lower(), text.lower().encode()
    found = np.zeros(len(column), np.bool_)
    at = hay.find(needle)
    while at >= 0:
        row = int(np.searchsorted(ends, at, side="right"))
        end = int(ends[row])
        is_inside = at + len(needle) <= end
        found[row] |= is_inside
        at = hay.find(needle, end if is_inside else at + 1)
    return found
