"""The entry point of the encode stage: raw columns of a block become the columns of their fields.

In: the plan of each column, and its raw values. Out: a `Column` or a `Deferred`, and a `CellFault` for each
row that does not fit. The values of such a row are undefined.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as SequenceOf
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.columns import Bytes as ByteStrings
from penstock.columns import Column, Dense, Mask
from penstock.encode.array import encode_sequence, encode_tensor
from penstock.encode.date import EXPECTED as EXPECTED_DATE
from penstock.encode.date import convert_dates, convert_times, read_ordered
from penstock.encode.file_check import FileThreads
from penstock.encode.image import encode_image
from penstock.encode.number import convert_numbers, expect_number, fit_numbers
from penstock.encode.number_text import read_styled
from penstock.encode.plain import (
    CellFault,
    Faults,
    Report,
    as_objects,
    convert_objects,
    normalize_column,
    present_cells,
    present_objects,
    primitive_values,
    refuse_all,
    refuse_rows,
)
from penstock.encode.strings import convert_text, decode_cells, encode_bytes, is_bytes, is_string, trim
from penstock.foundation.json_text import MAX_DEPTH, is_deep
from penstock.foundation.wording import show
from penstock.plan.plan import ColumnPlan
from penstock.schema.array import Sequence, Tensor
from penstock.schema.date import Date
from penstock.schema.field import Field
from penstock.schema.scalar import Bytes, Category, Image, Number, Text
from penstock.settings.groups import StoredImages
from penstock.source.block import Block, RawColumn
from penstock.source.column import drop_missing_texts
from penstock.storage.deferred import Deferred


def encode_date(field: Date, raw: RawColumn, report: Report) -> Dense:
    """Return dates as days or microseconds, by the unit of the field; numbers are counts of that unit."""
    column = normalize_column(raw)
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "O" and column.ndim == 1:
            encode = partial(encode_date, field)
            numbers = convert_objects(column, "int64", encode, lambda _: EXPECTED_DATE, report)
            return Dense(numbers.values, present_objects(column))
        is_number, is_date = column.dtype.kind in "iuf", column.dtype.kind != "m"
    else:
        kind = column.type
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        is_date = not (pa.types.is_time(kind) or pa.types.is_duration(kind))
    if is_number:
        dates = convert_numbers(column, "int64", report, nan_is_missing=True)
    elif is_date:
        dates = (convert_dates if field.unit == "days" else convert_times)(column, report)
    else:
        dates = Dense(np.zeros(len(column), np.int64), refuse_all(column, EXPECTED_DATE, report))
    for row in np.flatnonzero(dates.values == _NO_TIME).tolist():
        report(row, "a date that fits 64 bits", str(_NO_TIME))
    return dates


_WORDS = pa.array(["false", "true", "0", "1"])  # those with an even index mean 0


def _convert_flags(raw: RawColumn, report: Report) -> Dense:
    """Return 0 for false and 1 for true."""
    column = normalize_column(raw)
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "O" and column.ndim == 1:
            return convert_objects(column, "int64", _convert_flags, lambda _: expect_number("bool"), report)
    elif is_string(column.type) or is_bytes(column.type):
        return _read_words(decode_cells(column, report), report)
    flags = convert_numbers(column, "bool", report, nan_is_missing=True)
    return Dense(flags.values.astype(np.int64), flags.present)


def _read_words(text: pa.Array[Any], report: Report) -> Dense:
    words = pc.utf8_lower(trim(text))
    indices = pc.index_in(words, pc.cast(_WORDS, text.type), skip_nulls=True)
    unknown = pc.and_(pc.is_null(indices), pc.is_valid(text)).to_numpy(zero_copy_only=False)
    refuse_rows(text, np.flatnonzero(unknown).tolist(), expect_number("bool"), report)
    return Dense(primitive_values(indices).astype(np.int64) & 1, present_cells(text))


_NO_TIME: Final = -(2**63)  # NaT of NumPy
EXPECTED: Final = "a JSON list"


def _parse_lists(raw: RawColumn, report: Report) -> RawColumn:
    """Return the lists in strings of JSON; other strings are reported, and missing like JSON's null."""
    text = convert_text(raw, report)
    is_there = [True] * len(text) if text.present is None else text.present.tolist()
    cells = enumerate(zip(text, is_there, strict=True))
    return as_objects([_parse(row, value, report) if there else None for row, (value, there) in cells])


def _parse(row: int, value: bytes, report: Report) -> object:
    if is_deep(value):
        report(row, f"{EXPECTED} of at most {MAX_DEPTH} nested levels", "more levels")
        return None
    try:
        parsed = json.loads(value)
    except ValueError:
        parsed = value
    if parsed is None or isinstance(parsed, list):
        return parsed
    report(row, EXPECTED, show(value.decode(errors="replace")))
    return None


_JOINABLE: Final = (Number, Category, Text)
_ADVICE: Final = "Give the field optional=True or a default, or leave such rows out: `on_error='skip'`."

_MAX_SHORT: Final = 16
"""Maximum number of rows for encoding columns together: a call of Arrow takes as long as many cells."""


def encode_columns(
    plans: SequenceOf[ColumnPlan], block: Block, options: StoredImages, threads: FileThreads | None = None
) -> tuple[dict[str, Column | Deferred], list[CellFault]]:
    """Return the columns of fields by field name, and the faults in the order of columns.

    Short columns with equal fields are encoded together: a table of three rows can have 100,000 columns.
    `threads`: threads that help to read the files that columns name.
    """
    encoded: dict[str, tuple[Column | Deferred, list[CellFault]]] = {}
    for group in _group(plans, block):
        if len(group) == 1:
            raw = block.columns[group[0].column]
            encoded[group[0].name] = encode_column(group[0], raw, block, options, threads)
            continue
        raws: list[Any] = [block.columns[plan.column] for plan in group]
        joined = pa.concat_arrays(raws)
        column, faults = encode_column(group[0], joined, block, options)
        for plan, part in zip(group, _divide(column, block.num_rows), strict=True):
            encoded[plan.name] = part, []
        for fault in faults:
            number, row = divmod(fault.row, block.num_rows)
            plan = group[number]
            encoded[plan.name][1].append(replace(fault, row=row, column=plan.column))
    columns = {plan.name: encoded[plan.name][0] for plan in plans}
    return columns, [fault for plan in plans for fault in encoded[plan.name][1]]


def _group(plans: SequenceOf[ColumnPlan], block: Block) -> Iterator[SequenceOf[ColumnPlan]]:
    """Yield groups of columns that can be encoded together: few strings each, with equal fields."""
    if not 0 < block.num_rows <= _MAX_SHORT:
        yield from ([plan] for plan in plans)
        return
    groups: dict[tuple[object, ...], list[ColumnPlan]] = {}
    for plan in plans:
        raw = block.columns[plan.column]
        if plan.form == "value" and isinstance(plan.field, _JOINABLE) and isinstance(raw, pa.StringArray):
            groups.setdefault((id(plan.field), plan.missing, plan.nan, plan.numbers), []).append(plan)
        else:
            yield [plan]
    yield from groups.values()


def _divide(column: Column | Deferred, num_rows: int) -> Iterator[Column]:
    """Yield the columns that were encoded together."""
    num_columns = len(column) // num_rows
    masks: Iterable[Mask | None] = repeat(None, num_columns)
    if column.present is not None:
        masks = [None if mask.all() else mask for mask in column.present.reshape(num_columns, num_rows)]
    if isinstance(column, Dense):
        for values, mask in zip(column.values.reshape(num_columns, num_rows), masks, strict=True):
            yield Dense(values, mask)
    elif isinstance(column, ByteStrings):
        starts, stops = (edges.reshape(num_columns, num_rows) for edges in (column.starts, column.stops))
        firsts, lasts = starts[:, 0], stops[:, -1]
        inner = zip(starts - firsts[:, None], stops - firsts[:, None], masks, strict=True)
        for first, last, (start, stop, mask) in zip(firsts.tolist(), lasts.tolist(), inner, strict=True):
            yield ByteStrings(column.arena[first:last], start, stop, mask)
    else:
        raise TypeError("numbers and strings have one value per row")


def encode_column(
    plan: ColumnPlan,
    raw: RawColumn,
    block: Block,
    options: StoredImages,
    threads: FileThreads | None = None,
) -> tuple[Column | Deferred, list[CellFault]]:
    """Return the values of a column as their records store them.

    Missing values are marked as not present in an optional field, and are faults in others. NaN in a column
    of single numbers is a missing value, for any source, unless the plan declares it a value; inside lists
    and arrays it is a value. The result depends only on the arguments, and on the files that values refer to.
    """
    faults = Faults(plan.column)
    cells = _Cells(plan, raw, block, options, faults.add, threads)
    column = _encode(cells)
    if column.present is not None:
        if column.present.all():
            column.present = None
        elif not plan.field.optional:
            for row in np.flatnonzero(~column.present).tolist():
                faults.add(row, "a value", "nothing", _ADVICE)
            column.present = None
    return column, faults.in_order()


def _encode(cells: _Cells) -> Column | Deferred:
    plan, raw, report = cells.plan, cells.raw, cells.report
    if plan.missing:
        raw = drop_missing_texts(normalize_column(raw), plan.missing)
    if plan.numbers is not None:
        raw = read_styled(raw, plan.numbers, report)
    if plan.dates is not None:
        raw = read_ordered(raw, plan.dates, report)
    if plan.form == "json":
        raw = _parse_lists(raw, report)
    return ENCODERS[type(plan.field)](plan.field, cells._replace(raw=raw))


class _Cells(NamedTuple):
    """The raw values of a column, and other values that an encoder may need."""

    plan: ColumnPlan
    raw: RawColumn
    block: Block
    options: StoredImages
    report: Report
    threads: FileThreads | None


def _encode_number(field: Number | Category, cells: _Cells) -> Dense:
    plan, raw, report = cells.plan, cells.raw, cells.report
    if plan.form in _NUMBER_FORMS:
        return fit_numbers(_NUMBER_FORMS[plan.form](raw, report), field.dtype, report)
    return convert_numbers(raw, field.dtype, report, nan_is_missing=plan.nan == "missing")


def _encode_category(field: Category, cells: _Cells) -> Column:
    if field.dtype == "string":
        return convert_text(cells.raw, cells.report)
    return _encode_number(field, cells)


_NUMBER_FORMS: Final[dict[str, Callable[[RawColumn, Report], Dense]]] = {
    "date": convert_dates,
    "time": convert_times,
    "bool": _convert_flags,
}
# How the raw values of a column are encoded, by the type of its field.
ENCODERS: Final[dict[type[Field], Callable[[Any, _Cells], Column | Deferred]]] = {
    Number: _encode_number,
    Category: _encode_category,
    Date: lambda field, cells: encode_date(field, cells.raw, cells.report),
    Text: lambda _, cells: convert_text(cells.raw, cells.report),
    Bytes: lambda _, cells: encode_bytes(
        cells.plan.form, cells.raw, cells.block, cells.report, cells.threads
    ),
    Image: lambda field, cells: encode_image(
        field, cells.plan.form, cells.raw, cells.block, cells.options, cells.report, cells.threads
    ),
    Sequence: lambda field, cells: encode_sequence(field, cells.raw, cells.report),
    Tensor: lambda field, cells: encode_tensor(field, cells.raw, cells.report),
}
