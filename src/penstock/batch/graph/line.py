"""Writes a value of a program in one line of Python.

In: a node. Out: its code, with brackets where Python needs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from penstock.foundation.program import (
    Attribute,
    Call,
    Constant,
    Dictionary,
    Index,
    Lambda,
    Listing,
    Name,
    Node,
    Operation,
    Part,
)

_LOOSEST: Final = 0  # a lambda
_COMPARISON: Final = 1
_POWERS: Final = {"|": 2, "&": 3, "+": 4, "-": 4, "*": 5, "/": 5, "//": 5}
_PREFIX: Final = 6
TIGHTEST: Final = 7  # names, calls, brackets


def write_flat(node: Node | Part) -> str:
    """Return the code of a value in one line."""
    return _LINES[type(node)](node)


def _flat_call(node: Call) -> str:
    parts = [
        *map(write_flat, node.arguments),
        *(f"{name}={write_flat(each)}" for name, each in node.keywords),
    ]
    return f"{write_operand(node.function, TIGHTEST)}({', '.join(parts)})"


def _flat_operation(node: Operation) -> str:
    if node.left is None:
        return f"{node.sign}{write_operand(node.right, _PREFIX)}"
    left, right = write_sides(node, node.left)
    return f"{left} {node.sign} {right}"


def write_sides(node: Operation, left: Node) -> tuple[str, str]:
    """Return the code of what stands before a sign and behind it."""
    power = find_power(node)
    # Of two comparisons side by side Python would make one of three values.
    before = power + 1 if power == _COMPARISON else power
    return write_operand(left, before), write_operand(node.right, power + 1)


def write_head(node: Lambda) -> str:
    """Return what stands before the body of a lambda."""
    return f"lambda {', '.join(node.parameters)}: " if node.parameters else "lambda: "


def _flat_list(node: Listing) -> str:
    text = ", ".join(map(write_flat, node.items))
    if not node.is_tuple:
        return f"[{text}]"
    return f"({text},)" if len(node.items) == 1 else f"({text})"


_LINES: Final[dict[type, Callable[[Any], str]]] = {
    Constant: lambda node: write_constant(node.value),
    Name: lambda node: str(node.text),
    Attribute: lambda node: f"{write_operand(node.owner, TIGHTEST)}.{node.name}",
    Call: _flat_call,
    Index: lambda node: f"{write_operand(node.owner, TIGHTEST)}[{', '.join(map(write_flat, node.keys))}]",
    Operation: _flat_operation,
    Listing: _flat_list,
    Dictionary: lambda node: (
        "{" + ", ".join(f"{write_flat(key)}: {write_flat(value)}" for key, value in node.items) + "}"
    ),
    Lambda: lambda node: f"{write_head(node)}{write_flat(node.body)}",
    Part: lambda node: ":".join("" if end is None else write_flat(end) for end in (node.start, node.stop)),
}


def write_operand(node: Node, power: int) -> str:
    """Return the code of a part of a value that holds together as tightly as `power`."""
    return write_flat(node) if find_power(node) >= power else f"({write_flat(node)})"


def find_power(node: Node) -> int:
    """Return how tightly the parts of a value hold together."""
    if isinstance(node, Operation):
        return _PREFIX if node.left is None else _POWERS.get(node.sign, _COMPARISON)
    if isinstance(node, Lambda):
        return _LOOSEST
    is_signed = isinstance(node, Constant) and isinstance(node.value, int | float)
    return _PREFIX if is_signed else TIGHTEST


def write_constant(value: Any) -> str:
    """Return the code of a number, a text, bytes, True, False or None."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    text = repr(value)
    # As formatters have it: repr takes the other quotes.
    is_quoted = isinstance(value, str | bytes) and text.endswith("'") and '"' not in text
    start = text.index("'") if is_quoted else 0
    return f'{text[:start]}"{text[start + 1 : -1]}"' if is_quoted else text
