"""How dates are written in texts, if not in ISO 8601: the order of day, month and year.

In: what a user declares, or what a plan detects. Out: the order, with the pattern of its dates.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

DateOrder: TypeAlias = Literal["dmy", "mdy", "ymd"]
"""Day, month, year: 31.01.2024; month, day, year: 01/31/2024; year, month, day: 2024/01/31."""

EXAMPLES: Final[dict[DateOrder, str]] = {"dmy": "31.01.2024", "mdy": "01/31/2024", "ymd": "2024/01/31"}
MEANINGS: Final[dict[DateOrder, str]] = {
    "dmy": "the day first",
    "mdy": "the month first",
    "ymd": "the year first",
}

_PARTS: Final = {"d": "(?:0?[1-9]|[12][0-9]|3[01])", "m": "(?:0?[1-9]|1[0-2])", "y": "[0-9]{4}"}
TIME_PATTERN: Final = (
    r"(?:(?:[T ]|, ?)[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?: ?Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
"""Regular expression of the time of day after a date, which may be absent."""


def date_pattern(order: DateOrder) -> str:
    """Return the regular expression of a date, in the syntax that Python and RE2 share.

    The parts are separated by points, slashes or hyphens; the year has four digits.
    """
    parts = [_PARTS[part] for part in order]
    return "(?:" + "|".join(separator.join(parts) for separator in (r"\.", "/", "-")) + ")"
