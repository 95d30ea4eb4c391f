"""Dates and times as people write them: of stored numbers, which are days or microseconds since 1970.

In: a number, and how its column held it. Out: a text.
"""

from __future__ import annotations

import datetime
import math
from typing import Final

_BEGIN: Final = datetime.datetime(1970, 1, 1)


def write_number(value: float, form: str = "value") -> str:
    """Write a stored number: a date or a time as such, others with six digits, whole ones with all.

    Example:
        >>> write_number(18262, "date"), write_number(18262.0), write_number(0.1234567)
        ('2020-01-01', '18262', '0.123457')
    """
    moment = read_moment(value, form)
    if moment is not None:
        return moment
    if isinstance(value, int):
        return str(value)
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.6g}"


def read_moment(value: object, form: str) -> str | None:
    """Return the date or time that a stored number is; None, if it is none."""
    if form not in ("date", "time") or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    try:
        if form == "date":
            return (_BEGIN + datetime.timedelta(days=int(value))).date().isoformat()
        return (_BEGIN + datetime.timedelta(microseconds=int(value))).isoformat(" ")
    except OverflowError:  # beyond the year 9999
        return None
