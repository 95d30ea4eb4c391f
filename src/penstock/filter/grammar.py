"""The text of a filter as a tree.

In: `age < 3 and breed == "siamese"`. Out: nodes, each with its place in the text; expression.py says what
they mean. Words, signs and what binds closer than what are Python's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, Union

from penstock.errors import OptionError
from penstock.filter.token import Token, Value, cut, refuse_at, refuse_token
from penstock.foundation.wording import show

# Parsing and evaluating call themselves for what is in parentheses; nobody writes so many.
_DEEPEST = 50

_COMPARING = ("<", "<=", ">", ">=", "==", "!=")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Literal:
    """A value that stands in the text."""

    at: int
    value: Value


@dataclass(frozen=True)
class Name:
    """The value of a field."""

    at: int
    name: str


@dataclass(frozen=True)
class Length:
    """How many values, characters or bytes a field has."""

    at: int
    operand: Name


@dataclass(frozen=True)
class Chain:
    """Operands one behind the other, from the left to the right: a + b - c, or a * b / c."""

    at: int
    first: Node
    rest: tuple[tuple[str, Node], ...]


@dataclass(frozen=True)
class Comparison:
    """Operands of which each is compared with the next: a < b <= c."""

    at: int
    first: Node
    rest: tuple[tuple[str, Node], ...]


@dataclass(frozen=True)
class Membership:
    """Whether an operand is one of some values."""

    at: int
    operand: Node
    values: tuple[Literal, ...]


@dataclass(frozen=True)
class Absence:
    """Whether an operand has no value."""

    at: int
    operand: Node


@dataclass(frozen=True)
class Negation:
    """What is true where its operand is false."""

    at: int
    operand: Node


@dataclass(frozen=True)
class Junction:
    """Operands joined by "and" or by "or"."""

    at: int
    word: str
    operands: tuple[Node, ...]


Node: TypeAlias = Union[  # noqa: UP007 - classes defined above, evaluated here
    Literal, Name, Length, Chain, Comparison, Membership, Absence, Negation, Junction
]
_Read: TypeAlias = Callable[[], Node]


def parse(text: str) -> Node:
    """Read the text of a filter.

    Raises:
        OptionError: It is no expression; the message names the place.
    """
    return _Parser(text).whole()


class _Parser:
    """Reads tokens from the first to the last; each method reads what binds closer than the one before it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ahead = cut(text)[::-1]
        self._depth = 0

    def whole(self) -> Node:
        node = self._disjunction()
        if self._next.kind != "end":
            raise self._refuse("an operator or the end")
        return node

    def _disjunction(self) -> Node:
        return self._junction("or", self._conjunction)

    def _conjunction(self) -> Node:
        return self._junction("and", self._negation)

    def _junction(self, word: str, read: _Read) -> Node:
        at, operands = self._next.at, [read()]
        while self._skip(word):
            operands.append(read())
        return operands[0] if len(operands) == 1 else Junction(at, word, tuple(operands))

    def _negation(self) -> Node:
        at = self._next.at
        return Negation(at, self._nested(self._negation)) if self._skip("not") else self._comparison()

    def _comparison(self) -> Node:
        at = self._next.at
        first = self._sum()
        rest = []
        while self._is_sign(*_COMPARING):
            rest.append((self._take().text, self._sum()))
        if rest:
            return Comparison(at, first, tuple(rest))
        if self._skip("is"):
            is_not = self._skip("not")
            if not self._skip("None"):
                raise self._refuse("None")
            test: Node = Absence(at, first)
        else:
            is_not = self._skip("not")
            if not self._skip("in"):
                if is_not:
                    raise self._refuse("in")
                return first
            test = Membership(at, first, self._values())
        return Negation(at, test) if is_not else test

    def _values(self) -> tuple[Literal, ...]:
        if not self._is_sign(*_CLOSING):
            raise self._refuse("values in parentheses")
        closing = _CLOSING[self._take().text]
        values: list[Literal] = []
        while not (values and self._is_sign(closing)):
            value = self._unary()
            if not isinstance(value, Literal):
                raise refuse_at(self._text, value.at, expected="a value", got="an expression")
            values.append(value)
            if not self._is_sign(closing):
                self._need(",")
        self._take()
        return tuple(values)

    def _sum(self) -> Node:
        return self._chain(("+", "-"), self._product)

    def _product(self) -> Node:
        return self._chain(("*", "/", "%"), self._unary)

    def _chain(self, signs: tuple[str, ...], read: _Read) -> Node:
        at, first = self._next.at, read()
        rest = []
        while self._is_sign(*signs):
            rest.append((self._take().text, read()))
        return Chain(at, first, tuple(rest)) if rest else first

    def _unary(self) -> Node:
        if not self._is_sign("+", "-"):
            return self._atom()
        sign = self._take()
        operand = self._nested(self._unary)
        if isinstance(operand, Literal) and not isinstance(operand.value, bool | bytes):
            return Literal(sign.at, -operand.value if sign.text == "-" else operand.value)
        return Chain(sign.at, Literal(sign.at, 0), ((sign.text, operand),))

    def _atom(self) -> Node:
        if self._is_sign("("):
            self._take()
            inside = self._nested(self._disjunction)
            self._need(")")
            return inside
        if self._next.kind not in ("value", "name"):
            raise self._refuse("a field or a value")
        token = self._take()
        if token.kind == "value":
            return Literal(token.at, token.value)
        if token.text != "len" or not self._is_sign("("):
            return Name(token.at, token.text)
        self._take()
        if self._next.kind != "name":
            raise self._refuse("the name of a field")
        field = self._take()
        self._need(")")
        return Length(token.at, Name(field.at, field.text))

    def _nested(self, read: _Read) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._refuse(f"at most {_DEEPEST} of them one inside the other")
        node = read()
        self._depth -= 1
        return node

    @property
    def _next(self) -> Token:
        return self._ahead[-1]

    def _take(self) -> Token:
        return self._ahead.pop()

    def _is_sign(self, *signs: str) -> bool:
        return self._next.kind == "sign" and self._next.text in signs

    def _skip(self, word: str) -> bool:
        """Pass over a keyword if it comes next."""
        if self._next.kind == "keyword" and self._next.text == word:
            self._take()
            return True
        return False

    def _need(self, sign: str) -> None:
        if not self._is_sign(sign):
            raise self._refuse(show(sign))
        self._take()

    def _refuse(self, expected: str) -> OptionError:
        return refuse_token(self._text, self._next, expected)
