"""One raw column of a block into the column of its field: the door of this stage.

In: what the plan says of the column, and its raw values. Out: a `Column`, or a `Deferred`, and a `CellFault`
for each row that does not fit. Such a row holds nothing of use.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from penstock.encode.bytes import encode_bytes
from penstock.encode.category import encode_category
from penstock.encode.date import convert_dates, convert_times
from penstock.encode.fault import CellFault, Faults, Report
from penstock.encode.flag import convert_flags
from penstock.encode.image import encode_image
from penstock.encode.jsontext import parse_lists
from penstock.encode.number import convert_numbers, fit_numbers
from penstock.encode.options import EncodeOptions
from penstock.encode.plain import settle
from penstock.encode.sequence import encode_sequence
from penstock.encode.tensor import encode_tensor
from penstock.encode.text import convert_text
from penstock.schema.array import Sequence, Tensor
from penstock.schema.plan import ColumnPlan
from penstock.schema.scalar import Bytes, Category, Image, Number, Text
from penstock.source.block import Block, RawColumn
from penstock.source.column import drop_words
from penstock.types import Column, Deferred

_ADVICE: Final = "Give the field optional=True or a default, or pass on_error='skip'."


def encode_column(
    plan: ColumnPlan, raw: RawColumn, block: Block, options: EncodeOptions
) -> tuple[Column | Deferred, list[CellFault]]:
    """Return the values of a column as their record will hold them.

    Values that are missing are marked as not present where the field is optional, and are faults where it is
    not. NaN in a column of single numbers is such a missing value, whatever the source, unless the plan says
    that it is a value; inside lists and arrays it is a value. Nothing outside the arguments, and the files
    that the values name, has a say in the result.
    """
    faults = Faults(plan.column)
    column = _encode(plan, raw, block, options, faults.add)
    if column.present is not None:
        if column.present.all():
            column.present = None
        elif not plan.field.optional:
            for row in np.flatnonzero(~column.present).tolist():
                faults.add(row, "a value", "nothing", _ADVICE)
            column.present = None
    return column, faults.in_order()


def _encode(
    plan: ColumnPlan, raw: RawColumn, block: Block, options: EncodeOptions, report: Report
) -> Column | Deferred:
    if plan.missing:
        raw = drop_words(settle(raw), plan.missing)
    if plan.form == "json":
        raw = parse_lists(raw, report)
    column: Column | Deferred
    match plan.field:
        case Number(dtype=dtype) | Category(dtype="int64" as dtype) if plan.form in ("date", "time", "bool"):
            convert = {"date": convert_dates, "time": convert_times, "bool": convert_flags}[plan.form]
            column = fit_numbers(convert(raw, report), dtype, report)
        case Number(dtype=dtype):
            column = convert_numbers(raw, dtype, report, nan_is_missing=plan.nan == "missing")
        case Category() as field:
            column = encode_category(field, raw, report, nan_is_missing=plan.nan == "missing")
        case Text():
            column = convert_text(raw, report)
        case Bytes():
            column = encode_bytes(plan.form, raw, block, report)
        case Image() as field:
            column = encode_image(field, plan.form, raw, block, options, report)
        case Sequence() as field:
            column = encode_sequence(field, raw, report)
        case Tensor() as field:
            column = encode_tensor(field, raw, report)
        case field:
            raise TypeError(f"{field!r} has no encoder")
    return column
