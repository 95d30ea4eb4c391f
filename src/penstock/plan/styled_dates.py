"""Dates in texts with the day, month or year first: which orders they may have, and their values.

In: texts as Arrow arrays. Out: the orders in which all texts are dates, and the texts in ISO 8601.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple, get_args

import pyarrow as pa
import pyarrow.compute as pc

from penstock.schema.date_order import TIME_PATTERN, DateOrder, date_pattern

_ANY: Final = re.compile("(?:" + "|".join(map(date_pattern, get_args(DateOrder))) + ")" + TIME_PATTERN)
_ISO: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ].*)?"
_SEPARATED: Final = "[./-]"


class DateReading(NamedTuple):
    """The orders in which all texts are dates.

    Attributes:
        orders: The orders; more than one if the texts do not tell day and month apart.
        kind: Whether they are a "date", or a "time": a date with a time of day.
    """

    orders: tuple[DateOrder, ...]
    kind: Any


def may_be_date(text: str) -> bool:
    """Return whether a text looks like a date of any order."""
    return _ANY.fullmatch(text) is not None


def find_orders(texts: Any, probe: list[str]) -> DateReading | None:
    """Return the orders in which all texts are dates; None if there is none.

    `texts`: the texts, without nulls.
    """
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


def find_date_misfits(texts: Any, order: DateOrder) -> Any:
    """Return a mask of the texts that are not dates of an order, nor in ISO 8601; null stays null."""
    pattern = rf"^\s*(?:{date_pattern(order)}{TIME_PATTERN}|{_ISO})\s*$"
    return pc.invert(pc.match_substring_regex(texts, pattern))
