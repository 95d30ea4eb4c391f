"""Kinds of values: how each is checked in Python, read from a word of the command line, and written as JSON.

In: the annotation of a setting. Out: its `Kind`. Type checkers see the plain type of the aliases at the end,
settings see the limits. The classes are plain because every `--help` waits for them.
"""

# ruff: noqa: D102 - `Kind` describes the methods of all

import operator
import os
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import inf
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from penstock.foundation.wording import find_nearest, is_finite, list_choices


class UnexpectedError(Exception):
    """A value is not of its kind; the caller knows its path, and makes the error for users."""

    def __init__(self, expected: str, advice: str = "", path: str = "") -> None:
        super().__init__(expected)
        self.expected = expected
        self.advice = advice
        self.path = path


class Kind:
    """A string that is not empty; base of the other kinds.

    Attributes:
        metavar: Name of the value in the help.
        expected: Description of valid values.
        choices: All values, if they are few, for the help and for completion.
        alone: Value of a flag without a value; None if the flag needs one.
        negated: Value of the flag with `--no-` before its name; None if there is no such flag.
        is_path: Whether the value is a path, for completion.
        is_local: Whether the path is one of this machine, rather than also one of an object store.
        takes_none: Whether None stands for one of the values.
    """

    choices: tuple[str, ...] = ()
    alone: Any = None
    negated: Any = None
    is_path = False
    is_local = False
    takes_none = False

    def __init__(self, metavar: str = "TEXT", expected: str = "a string") -> None:
        self.metavar = metavar
        self.expected = expected

    def check(self, value: Any) -> Any:
        """Return the value, normalized."""
        if not isinstance(value, str) or not value:
            raise UnexpectedError(self.expected)
        return value

    def parse(self, text: str) -> Any:
        """Return the value of a word of the command line."""
        return self.check(text)

    def merge(self, values: list[Any]) -> Any:
        """Return the value of a flag that was given several times: the last one, unless values are lists."""
        return values[-1]

    def dump(self, value: Any) -> Any:
        """Return the JSON form of a value."""
        return value


class Anything(Kind):
    """An object that only Python has, such as a model."""

    def check(self, value: Any) -> Any:
        return value


class Flag(Kind):
    """True or False."""

    def __init__(self) -> None:
        super().__init__("", "True or False")

    def check(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise UnexpectedError(self.expected)
        return value


class Integer(Kind):
    """An integer of Python or NumPy within limits; `words` stand for values that are not integers."""

    def __init__(
        self, least: int = 0, most: int | None = None, words: Mapping[str, Any] | None = None
    ) -> None:
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        super().__init__("N", f"an integer {limits}" + "".join(f", or {word}" for word in words or ()))
        self._least, self._most, self._words = least, inf if most is None else most, words or {}

    def check(self, value: Any) -> Any:
        if any(value is each or (isinstance(each, str) and value == each) for each in self._words.values()):
            return value
        try:
            number = None if isinstance(value, bool) else operator.index(value)
        except TypeError:
            number = None
        if number is None or not self._least <= number <= self._most:
            raise UnexpectedError(self.expected)
        return number

    def parse(self, text: str) -> Any:
        if text in self._words:
            return self._words[text]
        return self.check(int(text) if re.fullmatch(r"[+-]?\d{1,30}", text) else text)


class Number(Kind):
    """A number within limits, which is finite unless it is `unlimited`."""

    def __init__(
        self,
        least: float = 0,
        most: float = inf,
        *,
        above: bool = False,
        below: bool = False,
        unlimited: bool = False,
    ) -> None:
        upper = "" if most == inf else f" and below {most:g}" if below else f", at most {most:g}"
        super().__init__("X", f"a number {'above' if above else 'of at least'} {least:g}{upper}")
        self._least, self._most, self._above, self._below = least, most, above, below
        self._unlimited = unlimited

    def check(self, value: Any) -> float:
        if getattr(value, "shape", None) == ():  # a scalar of NumPy
            value = value.item()
        is_number = is_finite(value) or (self._unlimited and value == inf)
        is_number = is_number and self._least <= value <= self._most
        if not is_number or (self._above and value == self._least) or (self._below and value == self._most):
            raise UnexpectedError(self.expected)
        return value  # type: ignore[no-any-return]

    def parse(self, text: str) -> float:
        try:
            return self.check(float(text))
        except ValueError:
            return self.check(text)


class Choice(Kind):
    """One of some strings or numbers; `instead` is the value that None stands for."""

    def __init__(self, *values: Any, instead: str | None = None) -> None:
        super().__init__(f"{{{','.join(map(str, values))}}}", list_choices(values))
        self.choices = tuple(map(str, values))
        self._values, self._instead = values, instead
        self.takes_none = instead is not None

    def check(self, value: Any) -> Any:
        value = self._instead if value is None else value
        is_one = any(isinstance(value, type(each)) and value == each for each in self._values)
        if not is_one or isinstance(value, bool):
            raise UnexpectedError(self.expected, advise_nearest(value, self.choices))
        return value


class Strings(Kind):
    """Some strings; one alone is a list of one. On the command line with commas between, and repeatable."""

    def __init__(
        self,
        metavar: str = "NAMES",
        separator: str | None = ",",
        *,
        expected: str = "a list of strings",
        among: tuple[str, ...] = (),
        always: tuple[str, ...] = (),
    ) -> None:
        super().__init__(metavar, expected)
        self.separator, self._among, self._always = separator, among, always

    def check(self, value: Any) -> tuple[str, ...]:
        given = (value,) if isinstance(value, str) else value
        if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
            raise UnexpectedError(self.expected)
        for each in given if self._among else ():
            if each not in self._among:
                raise UnexpectedError(self.expected, advise_nearest(each, self._among))
        return tuple(dict.fromkeys(given))

    def parse(self, text: str) -> tuple[str, ...]:
        words = text.split(self.separator) if self.separator else [text]
        return self.check([each.strip() if self.separator else each for each in words if each])

    def merge(self, values: list[Any]) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self._always, *(each for value in values for each in value)]))

    def dump(self, value: Any) -> list[str]:
        return list(value)


class Pairs(Kind):
    """Values by name. On the command line NAME=VALUE with commas between, and repeatable."""

    def __init__(self, metavar: str = "NAME=VALUE", value: Kind | None = None, expected: str = "") -> None:
        super().__init__(metavar, expected or f"{metavar}, with commas between several")
        self._value = value or Kind()

    def check(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise UnexpectedError("a dict of values by name")
        checked = {}
        for name, each in value.items():
            try:
                checked[str(name)] = self._value.check(each)
            except UnexpectedError as error:
                error.path = f"[{str(name)!r}]{error.path}"
                raise
        return checked

    def parse(self, text: str) -> dict[str, Any]:
        pairs = [part.rpartition("=") for part in text.split(",") if part]
        if not pairs or not all(name.strip() and each.strip() for name, _, each in pairs):
            raise UnexpectedError(self.expected)
        return self.merge([{name.strip(): self._value.parse(each.strip())} for name, _, each in pairs])

    def merge(self, values: list[Any]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for name, value in ((name, value) for each in values for name, value in each.items()):
            if merged.setdefault(name, value) != value:
                raise UnexpectedError(f"one value for {name!r}", "Give it once.")
        return merged

    def dump(self, value: Any) -> dict[str, Any]:
        return {name: self._value.dump(each) for name, each in value.items()}


class Bytes(Integer):
    """A number of bytes: kB, MB, GB, TB are powers of 1000, KiB, MiB, GiB, TiB powers of 1024."""

    _PREFIXES: Final = ("", "k", "m", "g", "t")

    def __init__(self, least: int = 1, most: int | None = None) -> None:
        super().__init__(least, most)
        self.metavar = "SIZE"

    def parse(self, text: str) -> int:
        match = re.fullmatch(r"([0-9]{1,30}(?:\.[0-9]{1,30})?)\s*(?:([kmgt])(i?))?b?", text.strip().lower())
        if match is None or (self._least and not float(match[1])):
            raise UnexpectedError("a size such as 128MB or 1GiB")
        unit = (1024 if match[3] else 1000) ** self._PREFIXES.index(match[2] or "")
        return int(self.check(max(self._least, int(Fraction(match[1]) * unit))))


class PathName(Kind):
    """The path of a file or folder."""

    is_path = True

    def __init__(self, metavar: str = "FILE", expected: str = "a path", *, is_local: bool = False) -> None:
        super().__init__(metavar, expected)
        self.is_local = is_local

    def check(self, value: Any) -> Any:
        if not isinstance(value, str | os.PathLike):
            raise UnexpectedError(self.expected)
        return value

    def dump(self, value: Any) -> str:
        return str(os.fspath(value))


class Made(Kind):
    """A value that functions check and normalize, read from a word, and write as JSON."""

    def __init__(
        self,
        metavar: str,
        check: Callable[[Any], Any],
        *,
        parse: Callable[[str], Any] = str,
        dump: Callable[[Any], Any] | None = None,
        alone: Any = None,
        negated: Any = None,
        choices: tuple[str, ...] = (),
    ) -> None:
        super().__init__(metavar)
        self._check, self._parse, self._dump = check, parse, dump
        self.alone, self.negated, self.choices = alone, negated, choices

    def check(self, value: Any) -> Any:
        return self._check(value)

    def parse(self, text: str) -> Any:
        return self.check(self._parse(text))

    def dump(self, value: Any) -> Any:
        return value if self._dump is None else self._dump(value)


class MadePath(Made):
    """Such a value that is the path of a file or folder of this machine."""

    is_path = is_local = True


def advise_nearest(given: object, choices: tuple[str, ...]) -> str:
    """Return the choice that was probably meant as advice, or ""."""
    nearest = find_nearest(given, choices) if isinstance(given, str) else None
    return f"Did you mean {nearest!r}?" if nearest else ""


Count = Annotated[int, Integer(least=1)]
Whole = Annotated[int, Integer()]
Size = Annotated[int, Bytes()]
Seed = Annotated[int, Integer(most=2**63 - 1)]
Share = Annotated[float, Number(most=1)]
Positive = Annotated[float, Number(above=True)]
NotNegative = Annotated[float, Number()]
Column = Annotated[str, Kind("COLUMN", "the name of a column")]
SplitName = Annotated[str, Kind("NAME", "the name of a split")]
Names = Annotated[str | Sequence[str], Strings()]
Urls = Annotated[str | Sequence[str], Strings("URL", None)]
File = Annotated[str | os.PathLike[str], PathName(is_local=True)]
Cache = Annotated[
    str | os.PathLike[str], PathName("memory|FOLDER", "'memory' or the path of a folder", is_local=True)
]
Renames = Annotated[Mapping[str, str], Pairs("OLD=NEW")]
Functions = Annotated[Mapping[str, Any], Pairs(value=Anything())]
Object = Annotated[Any, Anything()]

_PLAIN: Final[Mapping[object, Kind]] = {bool: Flag(), int: Integer(), float: Number(), str: Kind()}


def find_kind(annotation: Any) -> tuple[Kind, bool]:
    """Return the kind of an annotation, and whether None is a value of it."""
    if get_origin(annotation) is Annotated:
        inner, kind = get_args(annotation)[:2]
        return kind, type(None) in get_args(inner) and not kind.takes_none
    if get_origin(annotation) in (Union, UnionType):
        (rest,) = (each for each in get_args(annotation) if each is not type(None))
        return find_kind(rest)[0], True
    if get_origin(annotation) is Literal:
        return Choice(*get_args(annotation)), False
    return _PLAIN[annotation], False
