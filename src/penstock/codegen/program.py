"""The syntax tree of generated code: nodes of Python's `ast`, and a few statements that `ast` lacks.

In: Python code on `Term` objects that reads like the generated program. Out: expressions and statements,
which `interpreter.py` runs and `program_text.py` writes as Python code. Nothing is executed here.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


def _make_operator(sign: type[ast.operator | ast.cmpop]) -> Callable[[Term, Any], Term]:
    def apply(left: Term, right: Any) -> Term:
        found = sign()
        if isinstance(found, ast.cmpop):
            return Term(ast.Compare(left.node, [found], [lift(right)]))
        return Term(ast.BinOp(left.node, found, lift(right)))

    return apply


class Term:
    """An expression under construction: attribute access, calls and operators on it return new terms.

    Example:
        >>> tf, age = Term.name("tf"), Term.name("age")
        >>> ast.unparse(tf.cast(age - 2, tf.float32).node)
        'tf.cast(age - 2, tf.float32)'
    """

    __slots__ = ("node",)

    def __init__(self, node: ast.expr) -> None:
        self.node = node

    @classmethod
    def name(cls, text: str) -> Term:
        """Return the term for a variable."""
        return cls(ast.Name(text, ast.Load()))

    def __getattr__(self, name: str) -> Term:
        if name.startswith("_"):  # Python itself looks up special attributes such as __len__
            raise AttributeError(name)
        return Term(ast.Attribute(self.node, name, ast.Load()))

    def __call__(self, *arguments: Any, **keywords: Any) -> Term:
        """Return the term for a call."""
        named = [ast.keyword(name, lift(value)) for name, value in keywords.items()]
        return Term(ast.Call(self.node, list(map(lift, arguments)), named))

    def __getitem__(self, keys: Any) -> Term:
        if isinstance(keys, tuple) and len(keys) > 1:
            key: ast.expr = ast.Tuple(list(map(_lift_key, keys)), ast.Load())
        else:
            key = _lift_key(*keys) if isinstance(keys, tuple) else _lift_key(keys)
        return Term(ast.Subscript(self.node, key, ast.Load()))

    __add__ = _make_operator(ast.Add)
    __sub__ = _make_operator(ast.Sub)
    __mul__ = _make_operator(ast.Mult)
    __truediv__ = _make_operator(ast.Div)
    __floordiv__ = _make_operator(ast.FloorDiv)
    __and__ = _make_operator(ast.BitAnd)
    __or__ = _make_operator(ast.BitOr)
    __lt__ = _make_operator(ast.Lt)
    __le__ = _make_operator(ast.LtE)
    __gt__ = _make_operator(ast.Gt)
    __ge__ = _make_operator(ast.GtE)
    equals = _make_operator(ast.Eq)
    differs = _make_operator(ast.NotEq)

    def __neg__(self) -> Term:
        return Term(ast.UnaryOp(ast.USub(), self.node))

    def __invert__(self) -> Term:
        return Term(ast.UnaryOp(ast.Invert(), self.node))

    def __bool__(self) -> bool:
        raise TypeError("a Term is an expression of generated code and has no truth value")

    def __iter__(self) -> Any:
        raise TypeError("a Term is an expression of generated code and cannot be iterated over")


def lift(value: Any) -> ast.expr:
    """Convert a term or a Python value to a node."""
    if isinstance(value, Term):
        return value.node
    if isinstance(value, Mapping):
        return ast.Dict(list(map(lift, value)), list(map(lift, value.values())))
    if isinstance(value, list | tuple):
        items = list(map(lift, value))
        return ast.Tuple(items, ast.Load()) if isinstance(value, tuple) else ast.List(items, ast.Load())
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return ast.Constant(value)
    raise TypeError(f"{value!r} cannot be part of generated code")


def _lift_key(key: Any) -> ast.expr:
    if not isinstance(key, slice):
        return lift(key)
    start, stop = (None if end is None else lift(end) for end in (key.start, key.stop))
    return ast.Slice(start, stop)


def function(*parameters: str, body: Callable[..., Any]) -> Term:
    """Return a lambda whose body is the result of calling `body` with one term per parameter."""
    return Term(ast.Lambda(_list_parameters(parameters), lift(body(*map(Term.name, parameters)))))


def define_function(
    name: str,
    parameters: Iterable[str],
    docstring: str,
    body: Iterable[ast.stmt],
    returns: ast.expr | None = None,
) -> ast.FunctionDef:
    """Return the definition of a function; `body` ends with a `return`, and `returns` is its annotation."""
    opening = [ast.Expr(ast.Constant(docstring))] if docstring else []
    return ast.FunctionDef(name, _list_parameters(parameters), [*opening, *body], [], returns)


def _list_parameters(names: Iterable[str]) -> ast.arguments:
    listed = [ast.arg(name) for name in names]
    return ast.arguments(posonlyargs=[], args=listed, kwonlyargs=[], kw_defaults=[], defaults=[])


class Comment(ast.stmt):
    """A comment on the statements that follow.

    Attributes:
        text: Text of the comment.
        opens_section: Whether a blank line precedes the comment.
    """

    def __init__(self, text: str, *, opens_section: bool = True) -> None:
        super().__init__()
        self.text = text
        self.opens_section = opens_section


class LongConstant(ast.Assign):
    """A constant whose value is too long to be written out.

    Attributes:
        source: Expression that generated code uses instead of the value.
    """

    def __init__(self, name: str, value: ast.expr, source: ast.expr) -> None:
        super().__init__([_make_target(name)], value)
        self.source = source


@dataclass
class StatementBlock:
    """A list of statements in the order in which they were added."""

    statements: list[ast.stmt] = field(default_factory=list)

    def bind(self, names: str | Sequence[str], value: Any) -> Term:
        """Assign a value to a variable, an attribute or several variables; return the term for the first."""
        listed = (names,) if isinstance(names, str) else tuple(names)
        targets = list(map(_make_target, listed))
        target = targets[0] if len(targets) == 1 else ast.Tuple(targets, ast.Store())
        self.statements.append(ast.Assign([target], lift(value)))
        return Term.name(listed[0])

    def execute(self, value: Term) -> None:
        """Evaluate an expression for its side effect."""
        self.statements.append(ast.Expr(value.node))

    def note(self, text: str, *, opens_section: bool = True) -> None:
        """Add a comment."""
        self.statements.append(Comment(text, opens_section=opens_section))

    def define_constant(self, name: str, value: Any, source: Term | None = None) -> Term:
        """Define a constant; code contains `source` instead of a value that is too long. Return its term."""
        if source is None:
            return self.bind(name, value)
        self.statements.append(LongConstant(name, lift(value), source.node))
        return Term.name(name)

    def define_function(self, name: str, *parameters: str, body: Callable[..., Any]) -> Term:
        """Define a function that returns `body(*parameters)`; return the term for it."""
        value = lift(body(*map(Term.name, parameters)))
        self.statements.append(define_function(name, parameters, "", [ast.Return(value)]))
        return Term.name(name)

    def choose(self, condition: Term, then: StatementBlock, otherwise: StatementBlock) -> None:
        """Run either of two blocks."""
        self.statements.append(ast.If(condition.node, then.statements, otherwise.statements))

    def finish(self, value: Any) -> list[ast.stmt]:
        """Return the statements as a function body that returns a value."""
        return [*self.statements, ast.Return(lift(value))]


def _make_target(name: str) -> ast.expr:
    """Return the target of an assignment to a variable, or to an attribute such as `model.trainable`."""
    owner, _, attribute = name.rpartition(".")
    if not owner:
        return ast.Name(name, ast.Store())
    return ast.Attribute(ast.Name(owner, ast.Load()), attribute, ast.Store())
