"""Checks of single arguments: arguments of transforms, and others that no class of settings declares.

In: values that a user passes. Out: the same values, or an `OptionError` whose `field` is the name of the
option.
"""

from __future__ import annotations

import operator
from collections.abc import Collection

from penstock.errors import OptionError
from penstock.foundation.wording import find_nearest, is_finite, list_choices, show


def refuse_option(owner: str, option: str, expected: str, got: str, advice: str = "") -> OptionError:
    """Make the error for one option of a class; `owner` is "" where the class is clear."""
    what = f"{option} of {owner}" if owner else option
    return OptionError(what, field=option, expected=expected, got=got, advice=advice)


def advise_nearest(given: object, choices: Collection[str]) -> str:
    """Return advice with the nearest choice for the first name that is not a choice, or ""."""
    names = given if isinstance(given, tuple | list) else ()
    for name in names:
        if isinstance(name, str) and name not in choices:
            nearest = find_nearest(name, choices)
            return "" if nearest is None else f"Did you mean {nearest!r}?"
    return ""


def check_choice(owner: str, option: str, value: object, choices: Collection[str]) -> None:
    """Refuse a value that is not one of some strings."""
    if not isinstance(value, str) or value not in choices:
        raise refuse_option(owner, option, list_choices(choices), show(value))


def check_flag(owner: str, option: str, value: object) -> None:
    """Refuse values other than True and False."""
    if not isinstance(value, bool):
        raise refuse_option(owner, option, "True or False", show(value))


def check_count(owner: str, option: str, value: object, least: int = 1, most: int = 2**31 - 1) -> int:
    """Return a whole number between two others."""
    number = _as_integer(value)
    if number is None or not least <= number <= most:
        expected = f"a whole number from {least} to {most}"
        raise refuse_option(owner, option, expected, show(value))
    return number


def check_number(owner: str, option: str, value: object, choices: Collection[int]) -> int:
    """Return one of some whole numbers."""
    number = operator.index(value) if hasattr(value, "__index__") and not isinstance(value, bool) else None
    if number is None or number not in choices:
        *rest, last = map(str, choices)
        raise refuse_option(owner, option, f"{', '.join(rest)} or {last}", show(value))
    return number


def check_real(owner: str, option: str, value: object) -> float:
    """Return a finite number."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a scalar of NumPy
        value = value.item()
    if is_finite(value):
        return value
    raise refuse_option(owner, option, "a finite number", show(value))


def _as_integer(value: object) -> int | None:
    """Return an integer of Python or NumPy as Python's; None for anything else, bools included."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None
