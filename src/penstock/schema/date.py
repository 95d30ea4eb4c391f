"""The field type of dates and points in time, and their texts.

In: declarations, and dates as texts or as objects of Python and NumPy. Out: frozen fields, numbers of days or
microseconds since 1970-01-01, and texts.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Kind
from penstock.foundation.wording import refuse, show
from penstock.schema.field import Field, check_choice, check_int64

DateUnit: TypeAlias = Literal["days", "microseconds"]
"""What a stored date counts since 1970-01-01: days, or microseconds in UTC."""

EXAMPLES: Final[Mapping[DateUnit, str]] = {
    "days": "a date such as 2024-01-31",
    "microseconds": "a date or a time such as 2024-01-31 12:00",
}
"""Values of each unit, for messages."""

DATE_LIMITS: Final[Mapping[DateUnit, tuple[int, int]]] = {
    "days": (-719_162, 2_932_896),
    "microseconds": (-62_135_596_800_000_000, 253_402_300_799_999_999),
}
"""The first and the last stored number in the years 1 to 9999, which Python has dates for."""

DAY: Final = 86_400_000_000
"""Microseconds of a day."""

_DTYPES: Final[Mapping[DateUnit, str]] = {"days": "M8[D]", "microseconds": "M8[us]"}
_MOST_DAYS: Final = 10_000_000
_NO_TIME: Final = -(2**63)  # NaT of NumPy
_EPOCH: Final = datetime.datetime(1970, 1, 1)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)


@dataclass(frozen=True, repr=False, eq=False)
class Date(Field):
    """One date, or one point in time, per record.

    Dates are stored as whole numbers: days since 1970-01-01, or microseconds since 1970-01-01T00:00 UTC. A
    time without a time zone is taken as UTC; a time with one is converted to UTC. Samples hold
    `numpy.datetime64`.

    Attributes:
        unit: What a stored number counts: "days" for dates, "microseconds" for points in time.
        default: Value for records that lack the field: a text in ISO 8601, an object of Python or NumPy, or
            the stored number. It is kept as the stored number.

    Example:
        >>> import penstock as ps
        >>> ps.fields.Date(default="2024-01-31").default
        19753
    """

    unit: DateUnit = "days"
    type_name: ClassVar[str] = "date"
    dtype: ClassVar[str] = "int64"

    @property
    def kind(self) -> Kind:
        """Kind of list that stores the field in a record."""
        return "int64"

    def describe(self) -> str:
        """Return a short description of the values per record."""
        return f"scalar {self.unit}"

    def _check(self, owner: str) -> None:
        check_choice(owner, "unit", self.unit, get_args(DateUnit))

    def _check_default(self, owner: str) -> int:
        default = self.default
        if isinstance(default, int | np.integer) and not isinstance(default, np.timedelta64):
            return int(check_int64(owner, "default", default))
        try:
            return count_date(default, self.unit)
        except ValueError:
            raise refuse(owner, "default", expected=EXAMPLES[self.unit], got=show(default)) from None


def choose_unit(low: float | None, high: float | None) -> DateUnit:
    """Return the unit that stored numbers have, by their size: days are less than the year 29,000.

    Example:
        >>> choose_unit(18262, 19753), choose_unit(1_577_836_800_000_000, 1_706_659_200_000_000)
        ('days', 'microseconds')
    """
    return "days" if max(abs(low or 0), abs(high or 0)) <= _MOST_DAYS else "microseconds"


def date_forms(fields: Mapping[str, Field]) -> dict[str, str]:
    """Return "date" or "time" for each field of dates, by its unit."""
    return {
        name: "date" if field.unit == "days" else "time"
        for name, field in fields.items()
        if isinstance(field, Date)
    }


def as_times(numbers: NDArray[Any], unit: DateUnit) -> NDArray[Any]:
    """Return stored numbers as an array of `datetime64`, which shares their memory.

    Example:
        >>> as_times(np.array([19753, -1]), "days").tolist()
        [datetime.date(2024, 1, 31), datetime.date(1969, 12, 31)]
    """
    times: NDArray[Any] = np.ascontiguousarray(numbers, np.int64).view(_DTYPES[unit])
    return times


def make_time(number: int, unit: DateUnit) -> np.datetime64:
    """Return a stored number as `datetime64`."""
    time: np.datetime64 = as_times(np.array([number]), unit)[0]
    return time


def show_time(time: np.datetime64) -> str:
    """Return a date or a point in time as Python writes it, without a fraction that is zero.

    Example:
        >>> show_time(np.datetime64("2024-01-31")), show_time(np.datetime64("2024-01-31T12:00", "us"))
        ('2024-01-31', '2024-01-31 12:00:00')
    """
    return str(time).replace("T", " ").removesuffix(".000000")


def show_date(number: float, unit: DateUnit) -> str:
    """Return a stored number, or a computed one such as a mean, as a date or a point in time.

    Example:
        >>> show_date(19753, "days"), show_date(-60_000_000, "microseconds")
        ('2024-01-31', '1969-12-31 23:59:00')
    """
    if not abs(number) < 2**63:  # NaN, or a prediction that no stored number can be
        return f"{number:g}"
    return show_time(make_time(int(number), unit))


def count_date(value: object, unit: DateUnit) -> int:
    """Return the stored number of a date: a text in ISO 8601, or an object of Python or NumPy.

    Example:
        >>> count_date("2024-01-31", "days"), count_date("1970-01-01T01:00+01:00", "microseconds")
        (19753, 0)
    """
    if isinstance(value, bytes):
        value = value.decode()
    if isinstance(value, str):
        value = _read_text(value.strip())
    if isinstance(value, np.datetime64):
        number = _count_exactly(value, unit)
        if number == _NO_TIME:
            raise ValueError("not a time")
        return number
    if not isinstance(value, datetime.date) or str(value) == "NaT":  # of pandas, which is a datetime
        raise ValueError(f"not a date: {value!r}")
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime.combine(value, datetime.time())
    if value.tzinfo is not None:
        try:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        except OverflowError:  # before the year 1 or after 9999 in UTC
            raise ValueError(f"not a date in UTC: {value!r}") from None
    micros = (value - _EPOCH) // _MICROSECOND
    if unit == "microseconds":
        return micros
    days, rest = divmod(micros, DAY)
    if rest:
        raise ValueError("a time of day among days")
    return days


def _read_text(text: str) -> datetime.datetime | np.datetime64:
    try:
        # The formats of ISO 8601 that Python reads without separators, such as 20240131, may be numbers.
        if text[4:5] == "-":
            return datetime.datetime.fromisoformat(text)
    except ValueError:
        pass
    if len(text) < len("2024-01-31") or text[:1].isalpha():  # NumPy reads "now", "NaT" and years, too
        raise ValueError(f"not a date: {text!r}")
    if text[-6:-5] in ("+", "-") and ":" in text[-3:]:
        raise ValueError(f"not a date: {text!r}")  # NumPy ignores time zones
    return np.datetime64(text)  # years before 1 and after 9999


def _count_exactly(time: np.datetime64, unit: DateUnit) -> int:
    counted = time.astype(_DTYPES[unit])
    if counted.astype(time.dtype) != time:
        raise ValueError("a date that does not fit the unit")
    return int(counted.astype(np.int64))
