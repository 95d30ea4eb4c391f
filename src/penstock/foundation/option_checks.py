"""Checks of options: of the attributes of options objects, and of single arguments.

In: values that a user passes. Out: the same values, or an `OptionError` whose `field` is the name of the
option.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Literal, TypeAlias, get_args

from penstock.errors import OptionError
from penstock.foundation.wording import find_nearest, is_finite, list_choices, show

OnError: TypeAlias = Literal["raise", "skip", "collect"]
"""What becomes of a record or row that cannot be used."""
EngineName: TypeAlias = Literal["local", "ray"]
"""Where work is done: in this process, or on a Ray cluster."""


def refuse_option(owner: str, option: str, expected: str, got: str, advice: str = "") -> OptionError:
    """Make the error for one option.

    Args:
        owner: Name of the class that the option belongs to, such as `Scale`; "" where that is clear.
        option: Name of the option.
        expected: Description of the values that are accepted.
        got: Description of the value that was given.
        advice: What to do about it.
    """
    what = f"{option} of {owner}" if owner else option
    return OptionError(what, field=option, expected=expected, got=got, advice=advice)


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


def check_flag(owner: str, option: str, value: object) -> None:
    """Refuse what is neither True nor False."""
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


class OptionChecks:
    """Checks of the attributes of an options object, by their names.

    None is accepted wherever it is the default.

    Args:
        options: A dataclass of options, which is being made.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass
        ... class ReadingOptions:
        ...     num_threads: int | None = None
        ...     def __post_init__(self):
        ...         OptionChecks(self).integers("num_threads", least=1)
        >>> ReadingOptions(num_threads=0)
        Traceback (most recent call last):
        penstock.errors.OptionError: num_threads: expected an integer of at least 1, got 0.
    """

    def __init__(self, options: Any) -> None:
        self._options = options
        self._defaults = {field.name: field.default for field in dataclasses.fields(options)}

    def integers(self, *names: str, least: int, most: int | None = None) -> None:
        """Check that options are integers within limits, and store those of NumPy as Python's."""
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        for name, value in self._given(names):
            number = _as_integer(value)
            if number is None or number < least or (most is not None and number > most):
                raise self._refuse(name, f"an integer {limits}", value)
            object.__setattr__(self._options, name, number)

    def numbers(self, *names: str, least: float = 0, most: float = math.inf, above: bool = False) -> None:
        """Check that options are numbers within limits.

        Args:
            names: Names of the options.
            least: Smallest number that is accepted.
            most: Largest number that is accepted.
            above: Whether `least` itself is not accepted.
        """
        for name, value in self._given(names):
            check_limits(name, value, least=least, most=most, above=above)

    def flags(self, *names: str) -> None:
        """Check that options are True or False."""
        for name, value in self._given(names):
            if not isinstance(value, bool):
                expected = "True, False or None" if self._defaults[name] is None else "True or False"
                raise self._refuse(name, expected, value)

    def choice(self, name: str, choices: Collection[str]) -> None:
        """Check that an option is one of some strings."""
        for _, value in self._given((name,)):
            if not isinstance(value, str) or value not in choices:
                raise self._refuse(name, list_choices(choices), value)

    def instance(self, name: str, kinds: Any, expected: str) -> None:
        """Check that an option is of some class; `expected` describes the values that are accepted."""
        for _, value in self._given((name,)):
            if not isinstance(value, kinds):
                raise self._refuse(name, expected, value)

    def strings(self, *names: str, distinct: bool = False) -> None:
        """Check that options are lists of strings, and store them as tuples; one string is a list of one.

        Args:
            names: Names of the options.
            distinct: Whether each string is kept once only.
        """
        for name, value in self._given(names):
            given = (value,) if isinstance(value, str) else value
            if not isinstance(given, list | tuple) or not all(isinstance(item, str) for item in given):
                raise self._refuse(name, "a list of strings", value)
            object.__setattr__(self._options, name, tuple(dict.fromkeys(given) if distinct else given))

    def _given(self, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
        for name in names:
            value = getattr(self._options, name)
            if value is not None or self._defaults[name] is not None:
                yield name, value

    def _refuse(self, name: str, expected: str, got: object) -> OptionError:
        default = self._defaults[name]
        is_shown = isinstance(default, bool | int | float | str)
        return refuse_option(
            "", name, expected, show(got), f"The default is {default!r}." if is_shown else ""
        )


def check_limits(
    name: str, value: object, *, least: float = 0, most: float = math.inf, above: bool = False
) -> None:
    """Check that a value is a number within limits; infinity is accepted if `most` is."""
    is_number = is_finite(value) or value == math.inf
    if not is_number or not least <= value <= most or (above and value == least):  # type: ignore[operator]
        lower = "above" if above else "of at least"
        upper = "" if most == math.inf else f", at most {most:g}"
        raise refuse_option("", name, f"a number {lower} {least:g}{upper}", show(value))


def _as_integer(value: object) -> int | None:
    """Return an integer of Python or NumPy as Python's; None for anything else, bools included."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None
