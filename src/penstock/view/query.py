"""What a page of the viewer asks for, as the parameters of its address.

In: the parameters of a request, each a text of any content. Out: a `Query` whose values are within their
limits, or an `OptionError` that names the parameter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal, TypeAlias, get_args
from urllib.parse import urlencode

from penstock.errors import OptionError
from penstock.foundation.wording import list_choices, show

Layout: TypeAlias = Literal["grid", "table"]
Show: TypeAlias = Literal["all", "damaged", "mistakes", "correct"]
Order: TypeAlias = Literal["ascending", "descending"]

MAX_PAGE_SIZE: Final = 100
"""Largest number of records on one page."""

MAX_FILTER_CHARS: Final = 2000
MAX_SEARCH_CHARS: Final = 200
_MAX_NAME_CHARS: Final = 70_000  # a key of a record may have 64 kB
_MAX_NUMBER: Final = (1 << 63) - 1
_MAX_DIGITS: Final = 20

_CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "layout": get_args(Layout),
    "show": get_args(Show),
    "order": get_args(Order),
}
_OR: Final = re.compile(r"\bor\b")
_LENGTHS: Final = {"filter": MAX_FILTER_CHARS, "search": MAX_SEARCH_CHARS}


@dataclass(frozen=True, kw_only=True)
class Query:
    """Which records to show, in which order, and which page of them.

    Attributes:
        split: Name of the split; "" for the first one.
        shard: Number of the file in the split; None for all files.
        filter: Expression that selects records, as for `filter=` of loaders; "" for all.
        search: Text that a text field must contain; "" for all.
        show: Which records to show: all; only damaged ones; of a run only mistakes, or only correct
            predictions.
        sort: What to sort by: `field:NAME`, `loss:TARGET` or `bytes:`; "" for the stored order.
        order: Direction of sorting.
        layout: Cards with pictures, or a table with one row per record.
        page: Number of the page, from 0.
        size: Number of records per page.
        column: First field that a table shows, as a number in the schema.
    """

    split: str = ""
    shard: int | None = None
    filter: str = ""
    search: str = ""
    show: Show = "all"
    sort: str = ""
    order: Order = "ascending"
    layout: Layout = "grid"
    page: int = 0
    size: int = 24
    column: int = 0

    def change(self, **values: Any) -> Query:
        """Return the query with other values, at its first page unless the page is given."""
        return replace(self, **{"page": 0, **values})

    def narrow(self, condition: str) -> Query:
        """Return the query with one more condition in its filter.

        Example:
            >>> Query(filter="age < 3 or age > 8").narrow("kind == 'cat'").filter
            "(age < 3 or age > 8) and kind == 'cat'"
        """
        text = self.filter.strip()
        if not text or text == condition:
            return self.change(filter=condition)
        # `or` is the only operator that binds less than `and`; in a string, parentheses do no harm.
        if _OR.search(text):
            text = f"({text})"
        elif text.endswith(f" and {condition}"):
            return self.change()
        return self.change(filter=f"{text} and {condition}")

    def to_address(self, path: str = "/", **more: Any) -> str:
        """Return the address of a page; parameters with their default value are left out."""
        usual = Query()
        given = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if getattr(self, each.name) != getattr(usual, each.name)
        }
        parameters = urlencode(
            {**given, **{name: value for name, value in more.items() if value is not None}}
        )
        return f"{path}?{parameters}" if parameters else path

    def selection_key(self) -> tuple[Any, ...]:
        """Return the parameters that select records in a split, without order and page."""
        return self.split, self.filter.strip(), self.search, self.show


def parse_query(parameters: Mapping[str, str], first_split: str) -> Query:
    """Return the query of a request; parameters that are not part of a query are ignored.

    Raises OptionError: a parameter is not valid; `field` is its name.
    """
    given: dict[str, Any] = {}
    for each in fields(Query):
        text = parameters.get(each.name, "")
        if text == "":
            continue
        if each.name in _CHOICES:
            if text not in _CHOICES[each.name]:
                raise _refuse(each.name, list_choices(_CHOICES[each.name]), text)
            given[each.name] = text
        elif each.name in ("shard", "page", "size", "column"):
            given[each.name] = parse_number(each.name, text)
        else:
            most = _LENGTHS.get(each.name, _MAX_NAME_CHARS)
            if len(text) > most:
                raise OptionError(
                    each.name, field=each.name, expected=f"at most {most} characters", got=len(text)
                )
            given[each.name] = text
    if not 1 <= given.get("size", 1) <= MAX_PAGE_SIZE:
        raise _refuse("size", f"1 to {MAX_PAGE_SIZE} records per page", str(given["size"]))
    return Query(**{"split": first_split, **given})


def parse_number(name: str, text: str) -> int:
    """Return a parameter that is a number from 0 on."""
    digits = text.strip().replace(",", "")
    if (
        not (digits.isascii() and digits.isdecimal())
        or len(digits) > _MAX_DIGITS
        or int(digits) > _MAX_NUMBER
    ):
        raise _refuse(name, "a whole number of at least 0", text)
    return int(digits)


def _refuse(name: str, expected: str, got: str) -> OptionError:
    return OptionError(f"parameter {name!r}", field=name, expected=expected, got=show(got))
