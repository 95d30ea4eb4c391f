"""Numbers and dates in texts that Python would not read: which format they have, and their values.

In: texts as Arrow arrays. Out: the separators of numbers, or the orders of day, month and year, if only some
readings are possible; and the texts as Python writes numbers, or in ISO 8601.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.schema.notation import TIME_PATTERN, DateOrder, NumberFormat, date_pattern
from penstock.source.block import RawColumn
from penstock.source.column import drop_missing_texts

_ANY: Final = re.compile("(?:" + "|".join(map(date_pattern, get_args(DateOrder))) + ")" + TIME_PATTERN)
_ISO: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ].*)?"
_SEPARATED: Final = "[./-]"

_SHORT_TIME: Final = (
    (r"^([^ T,]{8,10})(?:T|,? )([0-9]):", r"\1 0\2:"),
    (r"^([^ T,]{8,10})(?:T|,? )([0-9]{2}):", r"\1 \2:"),
    (r" Z$", "Z"),
)
_REWRITES: Final = {
    # One-digit parts get a zero; in a replacement, \10 is group 1 and a zero.
    False: (
        (f"^([0-9])({_SEPARATED})", r"0\1\2"),
        (f"^([0-9]{{2}}{_SEPARATED})([0-9])({_SEPARATED})", r"\10\2\3"),
        *_SHORT_TIME,
    ),
    True: (
        (f"^([0-9]{{4}}){_SEPARATED}([0-9]{{1,2}}){_SEPARATED}", r"\1-\2-"),
        (r"^([0-9]{4}-)([0-9])-", r"\10\2-"),
        (r"^([0-9]{4}-[0-9]{2}-)([0-9])($|[^0-9])", r"\10\2\3"),
        *_SHORT_TIME,
    ),
}
FORMATS: Final = (
    *(NumberFormat(".", ","), NumberFormat(",", ".")),
    *(NumberFormat(".", " "), NumberFormat(",", " ")),
    *(NumberFormat(".", "'"), NumberFormat(",", "'")),
)
"""Formats that are tried; plain numbers are tried before them."""

_DIGITS: Final = re.compile(r"[+-]?[.,]?[0-9][0-9.,' \u00a0\u202f\u2019]*([eE][+-]?[0-9]+)?")
_GAPS: Final = (" ", "'")


class DateReading(NamedTuple):
    """The orders in which all texts are dates.

    Attributes:
        orders: The orders; more than one if the texts do not distinguish day and month.
        kind: Whether they are a "date", or a "time": a date with a time of day.
    """

    orders: tuple[DateOrder, ...]
    kind: Any


def may_be_date(text: str) -> bool:
    """Return whether a text looks like a date of any order."""
    return _ANY.fullmatch(text) is not None


def find_orders(texts: Any, probe: list[str]) -> DateReading | None:
    """Return the orders in which all texts, without nulls, are dates; None if there are none."""
    if not probe or not all(map(may_be_date, probe)):
        return None
    has_time: Any = pc.match_substring(texts, ":")
    kinds = pc.unique(has_time).to_pylist()
    if len(kinds) > 1:
        return None  # days and microseconds cannot share a column
    kind = "time" if kinds[0] else "date"
    orders = tuple(order for order in get_args(DateOrder) if _fits(texts, order, kind))
    return DateReading(orders, kind) if orders else None


def _fits(texts: Any, order: DateOrder, kind: str) -> bool:
    matched = pc.match_substring_regex(texts, f"^{date_pattern(order)}{TIME_PATTERN}$")
    if not pc.all(matched).as_py():
        return False
    written = rewrite_dates(texts, order)
    types = (pa.date32(),) if kind == "date" else (pa.timestamp("us"), pa.timestamp("us", "UTC"))
    return any(_can_cast(written, each) for each in types)


def _can_cast(texts: Any, wanted: pa.DataType) -> bool:
    try:
        texts.cast(wanted)
    except pa.ArrowInvalid:
        return False
    return True


def rewrite_dates(texts: Any, order: DateOrder) -> Any:
    """Return dates of an order in ISO 8601; texts in ISO 8601 stay as they are."""
    for pattern, written in _REWRITES[order == "ymd"]:
        texts = pc.replace_substring_regex(texts, pattern, written)
    if order == "ymd":
        return texts
    written = r"\3-\2-\1" if order == "dmy" else r"\3-\1-\2"
    pattern = f"^([0-9]{{2}}){_SEPARATED}([0-9]{{2}}){_SEPARATED}([0-9]{{4}})"
    return pc.replace_substring_regex(texts, pattern, written)


def find_date_misfits(texts: Any, order: DateOrder) -> Any:
    """Return a mask of the texts that are not dates of an order, nor in ISO 8601; null stays null."""
    pattern = rf"^\s*(?:{date_pattern(order)}{TIME_PATTERN}|{_ISO})\s*$"
    return pc.invert(pc.match_substring_regex(texts, pattern))


def may_be_numbers(probe: list[str]) -> bool:
    """Return whether texts consist of digits and separators."""
    return bool(probe) and all(_DIGITS.fullmatch(text) for text in probe)


def find_format(texts: Any, declared: NumberFormat | None = None) -> NumberFormat | None:
    """Return the format of numbers, at least one of them not plain; None without a format, or in doubt.

    `1,234` may be 1234 or 1.234: without a declaration, such texts have no format. Groups of digits with
    spaces, all of one length and without decimals, may be codes.

    `texts`: the texts, without nulls.
    """
    allowed = [each for each in FORMATS if declared is None or _agrees(each, declared)]
    fitting = [each for each in allowed if _fits_format(texts, each)]
    if not fitting:
        return None
    read = {each: rewrite_numbers(texts, each) for each in fitting}
    chosen = next((each for each in fitting if _occurs(each, texts)), fitting[0])
    if declared is not None:
        return chosen
    if any(not read[each].equals(read[chosen]) for each in fitting):
        return None
    if chosen.thousands in _GAPS and _occurs(chosen, texts):
        lengths: Any = pc.min_max(pc.utf8_length(texts)).as_py()
        has_decimals = pc.any(pc.match_substring_regex(texts, "[.,]")).as_py()
        return chosen if has_decimals or lengths["min"] != lengths["max"] else None
    return chosen


def _fits_format(texts: Any, numbers: NumberFormat) -> bool:
    """Return whether all texts are numbers of a format."""
    return bool(pc.all(_match(texts, numbers), min_count=0).as_py())


def are_numbers(raw: RawColumn, numbers: NumberFormat, words: Sequence[str]) -> bool:
    """Return whether all texts of a raw column are numbers of a format, except some words."""
    texts = _take_texts(raw, words)
    return texts is None or _fits_format(texts, numbers)


def find_doubt(raw: RawColumn, numbers: NumberFormat, words: Sequence[str]) -> tuple[str, str] | None:
    """Return a text and its number, if all texts are plain numbers, too, with other values."""
    texts = _take_texts(raw, words)
    if texts is None or not _fits_format(texts, NumberFormat()):
        return None
    pairs: Any = zip(texts.to_pylist(), rewrite_numbers(texts, numbers).to_pylist(), strict=True)
    return next(((text, read) for text, read in pairs if text != read), None)


def _take_texts(raw: RawColumn, words: Sequence[str]) -> Any:
    """Return the texts of a raw column without some words; None if its values are of another type."""
    column = drop_missing_texts(raw, words) if words else raw
    if isinstance(column, np.ndarray):
        return pa.array([value for value in column.tolist() if isinstance(value, str)], pa.string())
    kind = column.type
    return column if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None


def rewrite_numbers(texts: Any, numbers: NumberFormat) -> Any:
    """Return texts of a format as Python writes numbers: `1234.5`."""
    if numbers.thousands is not None:
        texts = pc.replace_substring_regex(texts, numbers.thousands_pattern, "")
    return pc.replace_substring(texts, ",", ".") if numbers.decimal == "," else texts


def find_misfits(texts: Any, numbers: NumberFormat) -> Any:
    """Return a mask of the texts that are not numbers of a format; null stays null."""
    return pc.invert(_match(texts, numbers, r"\s*", "|[+-]?(?i:nan|inf|infinity)"))


def _match(texts: Any, numbers: NumberFormat, space: str = "", other: str = "") -> Any:
    return pc.match_substring_regex(texts, f"^{space}(?:{numbers.pattern}{other}){space}$")


def _agrees(numbers: NumberFormat, declared: NumberFormat) -> bool:
    return declared.decimal in (None, numbers.decimal) and declared.thousands in (None, numbers.thousands)


def _occurs(numbers: NumberFormat, texts: Any) -> bool:
    """Return whether the separator of thousands occurs in a text."""
    return bool(pc.any(pc.match_substring_regex(texts, numbers.thousands_pattern), min_count=0).as_py())


def is_same(texts: Any, numbers: NumberFormat) -> bool:
    """Return whether texts of a format are plain numbers, too, with the same values."""
    found: pa.ChunkedArray[Any] = rewrite_numbers(texts, numbers)
    return found.equals(texts)
