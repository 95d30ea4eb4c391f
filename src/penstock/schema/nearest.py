"""The error for a name that is not there, with the name that was probably meant.

In: a name and those that exist. Out: `UnknownNameError`, or `OptionError` for a keyword.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

from penstock.errors import OptionError, UnknownNameError
from penstock.schema.refusal import show

# Comparing is quadratic in the length of the names, and a file can hold keys of 64 kB by the thousand.
_MAX_COMPARED_NAMES = 10_000
_MAX_COMPARED_CHARS = 200
_MAX_LISTED_NAMES = 8


def find_nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the existing name that looks most like `name`, or None where none does."""
    known = {other[:_MAX_COMPARED_CHARS]: other for other in islice(names, _MAX_COMPARED_NAMES)}
    close = get_close_matches(name[:_MAX_COMPARED_CHARS], known, n=1)
    return known[close[0]] if close else None


def unknown_name(name: object, names: Iterable[str], *, what: str = "field") -> UnknownNameError:
    """Make the error for a field, or another thing with a name, that does not exist."""
    known = list(names)
    nearest = find_nearest(name, known) if isinstance(name, str) else None
    if nearest is not None:
        advice = f"Did you mean {show(nearest)}?"
    elif known:
        listed = ", ".join(show(other) for other in known[:_MAX_LISTED_NAMES])
        more = ", …" if len(known) > _MAX_LISTED_NAMES else ""
        advice = f"There are {listed}{more}."
    else:
        advice = f"There is no {what} at all."
    return UnknownNameError(f"no {what} {show(name)}", field=str(name), got=show(name), advice=advice)


def check_keywords(given: Iterable[str], known: Iterable[str], owner: str) -> None:
    """Refuse a keyword that a function does not have.

    Raises:
        OptionError: There is one.
    """
    names = list(known)
    for name in given:
        if name not in names:
            nearest = find_nearest(name, names)
            raise OptionError(
                f"option {name!r}",
                expected=f"an option of {owner}",
                got=repr(name),
                advice=f"Did you mean {nearest!r}?" if nearest else f"There are {', '.join(names)}.",
            )
