"""A program as statements: what is bound, called, defined, chosen, in order.

In: terms. Out: a `Block` of statements, which `tensorflow.py` carries out and `script.py` writes as code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from penstock.batch.graph.tree import Node, Term, lift


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
