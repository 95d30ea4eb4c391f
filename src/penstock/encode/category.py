"""Categories, one a row: by name or by number.

In: raw columns of text, numbers and bools. Out: `Bytes` for names, `Dense` of int64 for numbers. A value that
is not among the field's `values` is no fault: they inform.
"""

from __future__ import annotations

from penstock.encode.fault import Report
from penstock.encode.number import convert_numbers
from penstock.encode.text import convert_text
from penstock.schema.scalar import Category
from penstock.source.block import RawColumn
from penstock.types import Bytes, Dense


def encode_category(
    field: Category, raw: RawColumn, report: Report, *, nan_is_missing: bool = True
) -> Bytes | Dense:
    """Return names as text, or numbers."""
    if field.dtype == "string":
        return convert_text(raw, report)
    return convert_numbers(raw, "int64", report, nan_is_missing=nan_is_missing)
