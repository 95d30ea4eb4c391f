"""Values of a program as trees: which names, calls and signs each is made of.

In: Python that reads like the program itself, on `Term`s in place of tensors. Out: nodes, which
`tensorflow.py` evaluates and `line.py` writes as code. Nothing here calls anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Name:
    """A variable, a function or a module."""

    text: str


@dataclass(frozen=True)
class Constant:
    """A number, a text, bytes, True, False or None."""

    value: Any


@dataclass(frozen=True)
class Attribute:
    """`owner.name`."""

    owner: Node
    name: str


@dataclass(frozen=True)
class Call:
    """`function(*arguments, **keywords)`."""

    function: Node
    arguments: tuple[Node, ...]
    keywords: tuple[tuple[str, Node], ...]


@dataclass(frozen=True)
class Part:
    """`start:stop`, in brackets."""

    start: Node | None
    stop: Node | None


@dataclass(frozen=True)
class Index:
    """`owner[keys]`."""

    owner: Node
    keys: tuple[Node | Part, ...]


@dataclass(frozen=True)
class Operation:
    """`left sign right`; without `left`, `sign right`."""

    sign: str
    left: Node | None
    right: Node


@dataclass(frozen=True)
class Listing:
    """A list, or a tuple."""

    items: tuple[Node, ...]
    is_tuple: bool = False


@dataclass(frozen=True)
class Dictionary:
    """A dict."""

    items: tuple[tuple[Node, Node], ...]


@dataclass(frozen=True)
class Lambda:
    """`lambda parameters: body`."""

    parameters: tuple[str, ...]
    body: Node


Node: TypeAlias = Name | Constant | Attribute | Call | Index | Operation | Listing | Dictionary | Lambda


class Term:
    """What stands for a value while a program is written: attributes, calls and signs make further terms.

    Example:
        >>> tf, age = Term.name("tf"), Term.name("age")
        >>> term = tf.cast(age - 2, tf.float32)
        >>> term.node.keywords, term.node.arguments[0].sign
        ((), '-')
    """

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        self.node = node

    @classmethod
    def name(cls, text: str) -> Term:
        """Return the term for a variable."""
        return cls(Name(text))

    def __getattr__(self, name: str) -> Term:
        if name.startswith("_"):  # Python asks objects for such by itself
            raise AttributeError(name)
        return Term(Attribute(self.node, name))

    def __call__(self, *arguments: Any, **keywords: Any) -> Term:
        """Return the term for a call."""
        given = tuple((name, lift(value)) for name, value in keywords.items())
        return Term(Call(self.node, tuple(map(lift, arguments)), given))

    def __getitem__(self, keys: Any) -> Term:
        given = keys if isinstance(keys, tuple) else (keys,)
        return Term(Index(self.node, tuple(map(_lift_key, given))))

    def __add__(self, other: Any) -> Term:
        return _operate("+", self, other)

    def __sub__(self, other: Any) -> Term:
        return _operate("-", self, other)

    def __mul__(self, other: Any) -> Term:
        return _operate("*", self, other)

    def __truediv__(self, other: Any) -> Term:
        return _operate("/", self, other)

    def __floordiv__(self, other: Any) -> Term:
        return _operate("//", self, other)

    def __and__(self, other: Any) -> Term:
        return _operate("&", self, other)

    def __or__(self, other: Any) -> Term:
        return _operate("|", self, other)

    def __lt__(self, other: Any) -> Term:
        return _operate("<", self, other)

    def __le__(self, other: Any) -> Term:
        return _operate("<=", self, other)

    def __gt__(self, other: Any) -> Term:
        return _operate(">", self, other)

    def __ge__(self, other: Any) -> Term:
        return _operate(">=", self, other)

    def equals(self, other: Any) -> Term:
        """Return `self == other`."""
        return _operate("==", self, other)

    def differs(self, other: Any) -> Term:
        """Return `self != other`."""
        return _operate("!=", self, other)

    def __neg__(self) -> Term:
        return Term(Operation("-", None, self.node))

    def __invert__(self) -> Term:
        return Term(Operation("~", None, self.node))

    def __bool__(self) -> bool:
        raise TypeError("a term has no value yet")

    def __iter__(self) -> Any:
        raise TypeError("a term has no items yet")


def lift(value: Any) -> Node:
    """Return the node of a term, or of a Python value."""
    if isinstance(value, Term):
        return value.node
    if isinstance(value, Mapping):
        return Dictionary(tuple((lift(key), lift(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return Listing(tuple(map(lift, value)), isinstance(value, tuple))
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return Constant(value)
    raise TypeError(f"{value!r} has no place in a program")


def function(*parameters: str, body: Callable[..., Any]) -> Term:
    """Return a lambda: `body` is called with a term for each parameter."""
    return Term(Lambda(parameters, lift(body(*map(Term.name, parameters)))))


def _operate(sign: str, left: Term, right: Any) -> Term:
    return Term(Operation(sign, left.node, lift(right)))


def _lift_key(key: Any) -> Node | Part:
    if not isinstance(key, slice):
        return lift(key)
    start, stop = (None if end is None else lift(end) for end in (key.start, key.stop))
    return Part(start, stop)


@dataclass(frozen=True)
class Bind:
    """`names = value`."""

    names: tuple[str, ...]
    value: Node


@dataclass(frozen=True)
class Do:
    """A call for what it does."""

    value: Node


@dataclass(frozen=True)
class Note:
    """A comment on what follows."""

    text: str


@dataclass(frozen=True)
class Given:
    """A constant on top.

    Attributes:
        name: Of the constant.
        value: What it is.
        source: How code gets it, where it is too long to be written out.
    """

    name: str
    value: Node
    source: Node | None = None


@dataclass(frozen=True)
class Define:
    """A function, which ends with a `Return`."""

    name: str
    parameters: tuple[str, ...]
    words: str
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Return:
    """The end of a function."""

    value: Node


@dataclass(frozen=True)
class When:
    """One of two blocks, by a condition that is known before anything runs."""

    condition: Node
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


Statement: TypeAlias = Bind | Do | Note | Given | Define | Return | When


@dataclass
class Block:
    """Statements, in the order in which they were added."""

    statements: list[Statement] = field(default_factory=list)

    def bind(self, names: str | Sequence[str], value: Any) -> Term:
        """Bind a name, or several, to a value; return the term for the first."""
        given = (names,) if isinstance(names, str) else tuple(names)
        self.statements.append(Bind(given, lift(value)))
        return Term.name(given[0])

    def do(self, value: Term) -> None:
        """Call something for what it does."""
        self.statements.append(Do(value.node))

    def note(self, text: str) -> None:
        """Add a comment."""
        self.statements.append(Note(text))

    def give(self, name: str, value: Any, source: Term | None = None) -> Term:
        """Add a constant; return the term for it."""
        self.statements.append(Given(name, lift(value), None if source is None else source.node))
        return Term.name(name)

    def define(self, name: str, *parameters: str, body: Callable[..., Any]) -> Term:
        """Add a function of one value, as `function` makes lambdas; return the term for it."""
        value = lift(body(*map(Term.name, parameters)))
        self.statements.append(Define(name, parameters, "", (Return(value),)))
        return Term.name(name)

    def finish(self, value: Any) -> tuple[Statement, ...]:
        """Return the statements as those of a function that returns a value."""
        return (*self.statements, Return(lift(value)))
