"""Checks of the options of transforms, one for each form of value.

In: what a user wrote. Out: the value as it is kept, or an `OptionError` whose `field` is the option's name.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Literal, TypeAlias, get_args

import numpy as np

from penstock.errors import OptionError
from penstock.foundation.wording import find_nearest, is_finite, list_choices, show

OnError: TypeAlias = Literal["raise", "skip", "collect"]
"""What becomes of a record or row that cannot be used."""


def refuse_option(owner: str, option: str, expected: str, got: str, advice: str = "") -> OptionError:
    """Make the error for one option; `owner` is whose it is, such as `Scale`."""
    return OptionError(f"{option} of {owner}", field=option, expected=expected, got=got, advice=advice)


def advise_nearest(given: object, choices: Collection[str]) -> str:
    """Return what was probably meant by the first name that is none of the choices, or ""."""
    names = given if isinstance(given, tuple | list) else ()
    for name in names:
        if isinstance(name, str) and name not in choices:
            nearest = find_nearest(name, choices)
            return "" if nearest is None else f"Did you mean {nearest!r}?"
    return ""


def check_choice(owner: str, option: str, value: object, choices: Collection[str]) -> None:
    """Refuse a value that is none of some strings."""
    if not isinstance(value, str) or value not in choices:
        raise refuse_option(owner, option, list_choices(choices), show(value))


def check_dtype_name(owner: str, value: object, choices: Collection[str]) -> str:
    """Return the name of an element type, which may be given as NumPy has it."""
    if isinstance(value, (np.dtype, type)):
        value = np.dtype(value).name
    check_choice(owner, "dtype", value, choices)
    return str(value)


def check_flag(owner: str, option: str, value: object) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, bool):
        raise refuse_option(owner, option, "True or False", show(value))


def check_count(owner: str, option: str, value: object, least: int = 1, most: int = 2**31 - 1) -> int:
    """Return a whole number between two others."""
    number = None
    if hasattr(value, "__index__") and not isinstance(value, bool | np.bool_):
        number = operator.index(value)
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
    if isinstance(value, np.generic):
        value = value.item()
    if is_finite(value):
        return value
    raise refuse_option(owner, option, "a finite number", show(value))


def check_on_error(on_error: str) -> OnError:
    """Return the policy if it is one.

    Raises:
        OptionError: It is not.
    """
    for choice in get_args(OnError):
        if on_error == choice:
            return choice  # type: ignore[no-any-return]
    choices = ", ".join(map(repr, get_args(OnError)))
    raise OptionError("on_error", expected=f"one of {choices}", got=show(on_error))
