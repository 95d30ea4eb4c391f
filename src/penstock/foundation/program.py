"""The syntax tree of generated code: expressions as nodes, and the statements that use them.

In: Python code on `Term` objects that reads like the generated program. Out: nodes and statements, which
`bridge/graph/tensorflow.py` runs and `program_text.py` writes as Python code. Nothing is executed here.
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
    """A number, string, bytes, True, False or None."""

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
class Slice:
    """A slice `start:stop` inside square brackets."""

    start: Node | None
    stop: Node | None


@dataclass(frozen=True)
class Subscript:
    """`owner[keys]`."""

    owner: Node
    keys: tuple[Node | Slice, ...]


@dataclass(frozen=True)
class Operation:
    """A binary operation `left sign right`, or a unary operation `sign right` if `left` is None."""

    sign: str
    left: Node | None
    right: Node


@dataclass(frozen=True)
class ListNode:
    """A list or a tuple."""

    items: tuple[Node, ...]
    is_tuple: bool = False


@dataclass(frozen=True)
class DictNode:
    """A dict."""

    items: tuple[tuple[Node, Node], ...]


@dataclass(frozen=True)
class Lambda:
    """`lambda parameters: body`."""

    parameters: tuple[str, ...]
    body: Node


Node: TypeAlias = Name | Constant | Attribute | Call | Subscript | Operation | ListNode | DictNode | Lambda


class Term:
    """An expression under construction: attribute access, calls and operators on it return new terms.

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
        if name.startswith("_"):  # Python itself looks up special attributes such as __len__
            raise AttributeError(name)
        return Term(Attribute(self.node, name))

    def __call__(self, *arguments: Any, **keywords: Any) -> Term:
        """Return the term for a call."""
        pairs = tuple((name, lift(value)) for name, value in keywords.items())
        return Term(Call(self.node, tuple(map(lift, arguments)), pairs))

    def __getitem__(self, keys: Any) -> Term:
        key_tuple = keys if isinstance(keys, tuple) else (keys,)
        return Term(Subscript(self.node, tuple(map(_lift_key, key_tuple))))

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
        raise TypeError("a Term is an expression of generated code and has no truth value")

    def __iter__(self) -> Any:
        raise TypeError("a Term is an expression of generated code and cannot be iterated over")


def lift(value: Any) -> Node:
    """Convert a term or a Python value to a node."""
    if isinstance(value, Term):
        return value.node
    if isinstance(value, Mapping):
        return DictNode(tuple((lift(key), lift(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return ListNode(tuple(map(lift, value)), isinstance(value, tuple))
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return Constant(value)
    raise TypeError(f"{value!r} cannot be part of generated code")


def function(*parameters: str, body: Callable[..., Any]) -> Term:
    """Return a lambda whose body is the result of calling `body` with one term per parameter."""
    return Term(Lambda(parameters, lift(body(*map(Term.name, parameters)))))


def _operate(sign: str, left: Term, right: Any) -> Term:
    return Term(Operation(sign, left.node, lift(right)))


def _lift_key(key: Any) -> Node | Slice:
    if not isinstance(key, slice):
        return lift(key)
    start, stop = (None if end is None else lift(end) for end in (key.start, key.stop))
    return Slice(start, stop)


@dataclass(frozen=True)
class Bind:
    """`names = value`."""

    names: tuple[str, ...]
    value: Node


@dataclass(frozen=True)
class Execute:
    """An expression that is evaluated for its side effect, such as an assertion."""

    value: Node


@dataclass(frozen=True)
class Comment:
    """A comment on the statements that follow."""

    text: str


@dataclass(frozen=True)
class DefineConstant:
    """A constant at the top of the program.

    Attributes:
        name: Name of the constant.
        value: Its value.
        source: Expression that generated code uses instead where the value is too long to be written out.
    """

    name: str
    value: Node
    source: Node | None = None


@dataclass(frozen=True)
class DefineFunction:
    """A function; its body ends with a `Return`."""

    name: str
    parameters: tuple[str, ...]
    docstring: str
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Return:
    """`return value`, the end of a function."""

    value: Node


@dataclass(frozen=True)
class If:
    """Either of two blocks, by a condition on constants of the program."""

    condition: Node
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...]


Statement: TypeAlias = Bind | Execute | Comment | DefineConstant | DefineFunction | Return | If


@dataclass
class StatementBlock:
    """A list of statements in the order in which they were added."""

    statements: list[Statement] = field(default_factory=list)

    def bind(self, names: str | Sequence[str], value: Any) -> Term:
        """Assign a value to one or several names; return the term for the first name."""
        targets = (names,) if isinstance(names, str) else tuple(names)
        self.statements.append(Bind(targets, lift(value)))
        return Term.name(targets[0])

    def execute(self, value: Term) -> None:
        """Evaluate an expression for its side effect."""
        self.statements.append(Execute(value.node))

    def note(self, text: str) -> None:
        """Add a comment."""
        self.statements.append(Comment(text))

    def define_constant(self, name: str, value: Any, source: Term | None = None) -> Term:
        """Define a constant; return the term for it."""
        self.statements.append(DefineConstant(name, lift(value), None if source is None else source.node))
        return Term.name(name)

    def define_function(self, name: str, *parameters: str, body: Callable[..., Any]) -> Term:
        """Define a function that returns `body(*parameters)`; return the term for it."""
        value = lift(body(*map(Term.name, parameters)))
        self.statements.append(DefineFunction(name, parameters, "", (Return(value),)))
        return Term.name(name)

    def finish(self, value: Any) -> tuple[Statement, ...]:
        """Return the statements as a function body that returns a value."""
        return (*self.statements, Return(lift(value)))
