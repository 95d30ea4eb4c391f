"""Parses numbers from strings.

In: Arrow arrays of strings. Out: `Dense` of int64 or float64. Whitespace around a number is ignored. A whole
number can be written `7`, `+7`, `7.0` or `7e0`; hexadecimal digits and the digits of other scripts are not
accepted, and other separators only where the plan has their format.
"""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.columns import Dense
from penstock.encode.plain import (
    Faults,
    Report,
    drop_full_mask,
    merge_masks,
    present_cells,
    primitive_values,
    report_rows,
)
from penstock.encode.strings import as_bytes, is_string, rewrite_texts, trim
from penstock.foundation.wording import argument, show
from penstock.plan.styled_texts import find_misfits, may_be_date, rewrite_numbers
from penstock.schema.notation import NumberFormat
from penstock.source.block import RawColumn

_WHOLE: Final = "^[+-]?[0-9]+$"
_FLOAT: Final = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?(?i:nan|inf|infinity)$"
_EXACT: Final = float(1 << 53)  # whole numbers up to here are exact in float64
_IS_PLAIN: Final = np.isin(np.arange(256), list(b"0123456789-"))
_LONGEST_WORD: Final = 20  # texts for a missing value are short
_MAX_DIGITS: Final = 18  # every number of this many digits fits into 64 bits
_FEW_TEXTS: Final = 16  # for few strings Python is faster than Arrow; tables can have 100,000 columns
_SEPARATED: Final = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+){1,9}")
_ISO_DATE: Final = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}.*")
_FEW_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_FEW_FLOAT: Final = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?")


def parse_few(text: pa.Array[Any], *, is_float: bool) -> Dense | None:
    """Return the numbers of a few strings in a simple notation; None if the general parser is needed."""
    if len(text) > _FEW_TEXTS or text.null_count or not is_string(text.type):
        return None
    try:
        cells: list[Any] = text.to_pylist()
    except UnicodeDecodeError:
        return None
    pattern = _FEW_FLOAT if is_float else _FEW_WHOLE
    if not all(pattern.fullmatch(cell) for cell in cells):
        return None
    if is_float:
        return Dense(np.array([float(cell) for cell in cells], np.float64))
    return Dense(np.array([int(cell) for cell in cells], np.int64))


def advise_missing(word: str) -> str:
    """Return the advice for a word where a number or date was expected; "" for most strings with digits."""
    if may_be_date(word) and not _ISO_DATE.fullmatch(word):
        return "Declare the order of a date: `date_order='dmy'` or `date_order='mdy'`."
    if _SEPARATED.fullmatch(word):
        return "Declare the separators: `decimal=','` or `thousands=','`."
    if not word or len(word) > _LONGEST_WORD or any(map(str.isdigit, word)):
        return ""
    return f"If it means a missing value: {argument('missing', ('', word))}."


def read_styled(raw: RawColumn, numbers: NumberFormat, report: Report) -> RawColumn:
    """Return a column with texts of a number format as Python writes numbers; other texts are reported."""

    def rewrite(text: Any, report: Report) -> Any:
        misfits = find_misfits(text, numbers)
        for row in _rows(misfits).tolist():
            word = text[row].as_py()
            report(row, f"a number such as {numbers.example}", show(word), advise_missing(word.strip()))
        return rewrite_numbers(_only(text, pc.invert(misfits)), numbers)

    return rewrite_texts(raw, rewrite, report)


def parse_whole(text: pa.Array[Any], report: Report, nan_is_missing: bool = False) -> Dense:
    """Return the whole numbers in strings, as int64; `nan` is reported, or missing."""
    # Arrow accepts 0x1F as a number, and takes ten times as long to refuse a cell as to parse one.
    if _IS_PLAIN[as_bytes(text).arena].all():
        try:
            return _dense(pc.cast(text, pa.int64()))
        except pa.ArrowInvalid:
            pass  # a number is too large, or has a misplaced minus sign: found below
    trimmed = trim(text)
    is_whole = pc.match_substring_regex(trimmed, _WHOLE)
    digits = pc.utf8_ltrim(_only(trimmed, is_whole), "+")
    numbers = _dense(pc.cast(_fit(digits, report), pa.int64()))
    numbers.present = present_cells(text)
    rows = _rows(pc.invert(is_whole))
    if len(rows):
        exact = _parse_exact(trimmed.take(rows), report_rows(report, rows), nan_is_missing)
        numbers.values[rows] = exact.values
        if exact.present is not None:
            present = np.ones(len(text), np.bool_)
            present[rows] = exact.present
            numbers.present = merge_masks(numbers.present, present)
    return numbers


def parse_floats(text: pa.Array[Any], report: Report) -> Dense:
    """Return the numbers in strings, as float64; `nan` and `inf` are accepted in upper and lower case."""
    trimmed = trim(text)
    try:
        numbers = _dense(pc.cast(trimmed, pa.float64()))
    except pa.ArrowInvalid:
        is_float = pc.match_substring_regex(trimmed, _FLOAT)
        for row in _rows(pc.invert(is_float)).tolist():
            word: Any = text[row].as_py()
            report(row, "a number", show(word), advise_missing(word.strip()))
        numbers = _dense(pc.cast(_only(trimmed, is_float), pa.float64()))
        numbers.present = present_cells(text)
    for row in np.flatnonzero(np.isinf(numbers.values)).tolist():
        written = trimmed[row].as_py()
        if "inf" not in written.lower():
            numbers.values[row] = 0
            report(row, "a number within the range of float64", show(written))
    return numbers


def _dense(array: pa.Array[Any]) -> Dense:
    values = primitive_values(array)
    return Dense(values if values.flags.writeable else values.copy(), present_cells(array))


def _rows(mask: pa.Array[Any]) -> NDArray[np.int64]:
    """Return the rows where a mask is true; null counts as false."""
    return np.flatnonzero(mask.fill_null(False).to_numpy(zero_copy_only=False))


def _only(text: pa.Array[Any], mask: pa.Array[Any]) -> Any:
    return pc.if_else(mask, text, pa.scalar(None, text.type))


def _fit(digits: pa.Array[Any], report: Report) -> pa.Array[Any]:
    """Return digits with null for numbers of more than 64 bits, which are reported."""
    column = as_bytes(digits)
    keep = np.ones(len(digits), np.bool_)
    for row in np.flatnonzero(column.stops - column.starts > _MAX_DIGITS).tolist():
        written = digits[row].as_py()
        significant = written.lstrip("-").lstrip("0")
        # Twenty digits are too many; Python refuses to parse thousands of them.
        if len(significant) > 19 or not -(1 << 63) <= int(written) < 1 << 63:
            keep[row] = False
            report(row, "a whole number of 64 bits", show(written))
    return digits if keep.all() else _only(digits, pa.array(keep))


def _parse_exact(text: pa.Array[Any], report: Report, nan_is_missing: bool) -> Dense:
    """Return whole numbers that are written as floats, such as 7.0 or 1e3, if float64 is exact for them."""
    refused = Faults("")
    floats = parse_floats(text, refused.add).values
    is_exact = (np.abs(floats) <= _EXACT) & (np.floor(floats) == floats)
    is_exact[[fault.row for fault in refused.in_order()]] = False
    is_there = ~np.isnan(floats) if nan_is_missing else np.ones(len(floats), np.bool_)
    for row in np.flatnonzero(~is_exact & is_there).tolist():
        word: Any = text[row].as_py()
        report(row, "a whole number", show(word), advise_missing(word))
    return Dense(np.where(is_exact, floats, 0).astype(np.int64), drop_full_mask(is_there))
