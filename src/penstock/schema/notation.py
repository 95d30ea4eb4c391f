"""How numbers and dates are written in texts: separators of numbers, and the order of day, month and year.

In: what a user declares, or what a plan detects. Out: a `NumberFormat` or a `DateOrder`, with the patterns of
such texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, get_args

from penstock.errors import OptionError
from penstock.foundation.option_checks import check_choice

DecimalSeparator: TypeAlias = Literal[".", ","]
ThousandsSeparator: TypeAlias = Literal[",", ".", " ", "'"]
NanMeaning: TypeAlias = Literal["missing", "value"]
"""Meaning of NaN in a column of single numbers: a missing value, or a distinct value."""

_SEPARATORS: Final = {",": ",", ".": r"\.", " ": "[ \u00a0\u202f]", "'": "['\u2019]", None: ""}
"""Patterns of separators; a space may be one that does not break a line, and an apostrophe a curly one."""


@dataclass(frozen=True)
class NumberFormat:
    """Format of numbers in texts; None leaves a separator open.

    Attributes:
        decimal: Separator before the decimals.
        thousands: Separator between groups of three digits.

    Example:
        >>> NumberFormat(",", ".").example
        '1.234,5'
    """

    decimal: DecimalSeparator | None = None
    thousands: ThousandsSeparator | None = None

    def __post_init__(self) -> None:
        if self.decimal is not None:
            check_choice("", "decimal", self.decimal, get_args(DecimalSeparator))
        if self.thousands is not None:
            check_choice("", "thousands", self.thousands, get_args(ThousandsSeparator))
        if self.decimal is not None and self.decimal == self.thousands:
            raise OptionError(
                "thousands",
                field="thousands",
                expected="another separator than the decimal separator",
                got=repr(self.thousands),
            )

    @property
    def example(self) -> str:
        """A number in this format."""
        return f"1{self.thousands or ''}234{self.decimal or '.'}5"

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as in Python: `1234.5`."""
        return self.decimal in (None, ".") and self.thousands is None

    @cached_property
    def thousands_pattern(self) -> str:
        """Regular expression of the separator of thousands; empty if there is none."""
        return _SEPARATORS[self.thousands]

    @cached_property
    def pattern(self) -> str:
        """Regular expression of a number, without anchors, in the syntax that Python and RE2 share."""
        decimal = _SEPARATORS[self.decimal or "."]
        grouped = f"[1-9][0-9]{{0,2}}(?:{self.thousands_pattern}[0-9]{{3}})+|" if self.thousands else ""
        whole = f"(?:{grouped}[0-9]+)"
        return f"[+-]?(?:{whole}(?:{decimal}[0-9]*)?|{decimal}[0-9]+)(?:[eE][+-]?[0-9]+)?"

    def to_form(self) -> dict[str, Any]:
        """Return the separators that are not open, by name."""
        return {
            name: value
            for name, value in (("decimal", self.decimal), ("thousands", self.thousands))
            if value is not None
        }


def declare_format(
    decimal: DecimalSeparator | None, thousands: ThousandsSeparator | None
) -> NumberFormat | None:
    """Return the format of two options; None if neither is given."""
    return None if decimal is None and thousands is None else NumberFormat(decimal, thousands)


DateOrder: TypeAlias = Literal["dmy", "mdy", "ymd"]
"""Day, month, year: 31.01.2024; month, day, year: 01/31/2024; year, month, day: 2024/01/31."""

DATE_EXAMPLES: Final[dict[DateOrder, str]] = {"dmy": "31.01.2024", "mdy": "01/31/2024", "ymd": "2024/01/31"}
DATE_MEANINGS: Final[dict[DateOrder, str]] = {
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
    """Return the regular expression of a date, in the syntax that Python and RE2 share."""
    parts = [_PARTS[part] for part in order]
    return "(?:" + "|".join(separator.join(parts) for separator in (r"\.", "/", "-")) + ")"
