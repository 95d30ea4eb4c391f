"""Write a program as Python code, formatted in lines of at most 100 characters.

In: statements and nodes of `program.py`. Out: text, with parentheses only where Python needs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from textwrap import wrap
from typing import Any, Final

from penstock.foundation.program import (
    Attribute,
    Bind,
    Call,
    Comment,
    Constant,
    DefineConstant,
    DefineFunction,
    DictNode,
    Execute,
    If,
    Lambda,
    ListNode,
    Name,
    Node,
    Operation,
    Return,
    Slice,
    Statement,
    Subscript,
)

# Operator precedence: a larger number binds more tightly.
_LOOSEST: Final = 0  # a lambda
_COMPARISON: Final = 1
_POWERS: Final = {"|": 2, "&": 3, "+": 4, "-": 4, "*": 5, "/": 5, "//": 5}
_PREFIX: Final = 6
TIGHTEST: Final = 7  # names, calls, subscripts, displays


def write_flat(node: Node | Slice) -> str:
    """Return the code of an expression in one line."""
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
    """Return the code of the left and the right operand of a binary operation."""
    power = find_power(node)
    # Python reads `a < b < c` as a chain, so a comparison inside a comparison needs parentheses.
    before = power + 1 if power == _COMPARISON else power
    return write_operand(left, before), write_operand(node.right, power + 1)


def write_head(node: Lambda) -> str:
    """Return the code of a lambda up to its body."""
    return f"lambda {', '.join(node.parameters)}: " if node.parameters else "lambda: "


def _flat_list(node: ListNode) -> str:
    text = ", ".join(map(write_flat, node.items))
    if not node.is_tuple:
        return f"[{text}]"
    return f"({text},)" if len(node.items) == 1 else f"({text})"


_LINES: Final[dict[type, Callable[[Any], str]]] = {
    Constant: lambda node: write_constant(node.value),
    Name: lambda node: str(node.text),
    Attribute: lambda node: f"{write_operand(node.owner, TIGHTEST)}.{node.name}",
    Call: _flat_call,
    Subscript: lambda node: f"{write_operand(node.owner, TIGHTEST)}[{', '.join(map(write_flat, node.keys))}]",
    Operation: _flat_operation,
    ListNode: _flat_list,
    DictNode: lambda node: (
        "{" + ", ".join(f"{write_flat(key)}: {write_flat(value)}" for key, value in node.items) + "}"
    ),
    Lambda: lambda node: f"{write_head(node)}{write_flat(node.body)}",
    Slice: lambda node: ":".join("" if end is None else write_flat(end) for end in (node.start, node.stop)),
}


def write_operand(node: Node, power: int) -> str:
    """Return the code of an operand, in parentheses if it binds less tightly than `power`."""
    return write_flat(node) if find_power(node) >= power else f"({write_flat(node)})"


def find_power(node: Node) -> int:
    """Return the precedence of the outermost operation of a node."""
    if isinstance(node, Operation):
        return _PREFIX if node.left is None else _POWERS.get(node.sign, _COMPARISON)
    if isinstance(node, Lambda):
        return _LOOSEST
    is_signed = isinstance(node, Constant) and isinstance(node.value, int | float)
    return _PREFIX if is_signed else TIGHTEST


def write_constant(value: Any) -> str:
    """Return the code of a number, string, bytes, True, False or None."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    text = repr(value)
    # Double quotes, as code formatters prefer; repr uses single quotes.
    is_quoted = isinstance(value, str | bytes) and text.endswith("'") and '"' not in text
    start = text.index("'") if is_quoted else 0
    return f'{text[:start]}"{text[start + 1 : -1]}"' if is_quoted else text


_WIDTH: Final = 100
_STEP: Final = "    "


def write_program(statements: Iterable[Statement], docstring: str, modules: Iterable[str]) -> str:
    """Return the code of a program.

    Args:
        statements: Statements of the program.
        docstring: Docstring of the script.
        modules: Import statements of the script.
    """
    lines = [f'"""{docstring}"""', "", *modules, "", *_write_block(statements, "")]
    return "\n".join([*lines, ""])


def _write_block(statements: Iterable[Statement], indent: str) -> Iterator[str]:
    block = tuple(statements)
    has_comments = any(isinstance(each, Comment) for each in block)
    previous: Statement | None = None
    for statement in block:
        yield from [""] * _count_blanks(previous, statement, is_outer=not indent, has_comments=has_comments)
        yield from _write_statement(statement, indent)
        previous = statement


def _count_blanks(
    previous: Statement | None, following: Statement, *, is_outer: bool, has_comments: bool
) -> int:
    """Return the number of blank lines between two statements."""
    if isinstance(following, DefineFunction) and isinstance(previous, Comment):
        return 0
    if isinstance(following, DefineFunction) or isinstance(previous, DefineFunction):
        return 2 if is_outer else int(previous is not None)
    is_end = isinstance(following, Return) and has_comments
    return int(previous is not None and (is_end or isinstance(following, Comment)))


def _write_statement(statement: Statement, indent: str) -> Iterable[str]:
    if isinstance(statement, DefineFunction):
        return _write_function(statement, indent)
    if isinstance(statement, If):
        return _write_choice(statement, indent)
    if isinstance(statement, Comment):
        start = f"{indent}# "
        return wrap(statement.text, _WIDTH, initial_indent=start, subsequent_indent=start)
    return [_write_line(statement, indent)]


def _write_function(statement: DefineFunction, indent: str) -> Iterator[str]:
    yield f"{indent}def {statement.name}({', '.join(statement.parameters)}):"
    inner = indent + _STEP
    if statement.docstring:
        yield f'{inner}"""{statement.docstring}"""'
        if isinstance(statement.body[0], DefineFunction):
            yield ""
    yield from _write_block(statement.body, inner)


def _write_choice(statement: If, indent: str) -> Iterator[str]:
    yield f"{indent}if {write_flat(statement.condition)}:"
    yield from _write_block(statement.then, indent + _STEP)
    yield f"{indent}else:"
    yield from _write_block(statement.otherwise, indent + _STEP)


def _write_line(statement: Bind | Execute | DefineConstant | Return, indent: str) -> str:
    if isinstance(statement, Bind):
        head, value = f"{', '.join(statement.names)} = ", statement.value
    elif isinstance(statement, DefineConstant):
        head, value = f"{statement.name} = ", statement.source or statement.value
    elif isinstance(statement, Return):
        head, value = "return ", statement.value
    else:
        head, value = "", statement.value
    if isinstance(value, Operation) and len(indent) + len(head) + len(write_flat(value)) > _WIDTH:
        inner = indent + _STEP
        return f"{indent}{head}(\n{inner}{_write(value, inner, 0)}\n{indent})"
    return f"{indent}{head}{_write(value, indent, len(head))}"


def _write(node: Node | Slice, indent: str, taken: int) -> str:
    """Return the code of a node that starts `taken` characters after the indent, in lines if it is long."""
    flat = write_flat(node)
    if len(indent) + taken + len(flat) < _WIDTH:
        return flat
    break_up = _BREAKS.get(type(node))
    return flat if break_up is None else break_up(node, indent, taken)


def _break_call(node: Call, indent: str, taken: int) -> str:
    inner = indent + _STEP
    parts = [_write(each, inner, 1) for each in node.arguments]
    parts += [f"{name}={_write(each, inner, len(name) + 2)}" for name, each in node.keywords]
    if not parts:
        return f"{_write(node.function, indent, taken + 2)}()"
    return "\n".join(
        [f"{_write_operand(node.function, indent, taken)}(", *_indent_each(parts, inner), f"{indent})"]
    )


def _break_attribute(node: Attribute, indent: str, taken: int) -> str:
    return f"{_write_operand(node.owner, indent, taken)}.{node.name}"


def _break_subscript(node: Subscript, indent: str, taken: int) -> str:
    return f"{_write_operand(node.owner, indent, taken)}[{', '.join(map(write_flat, node.keys))}]"


def _break_dictionary(node: DictNode, indent: str, taken: int) -> str:  # noqa: ARG001
    inner = indent + _STEP
    parts = [
        f"{write_flat(key)}: {_write(value, inner, len(write_flat(key)) + 3)}" for key, value in node.items
    ]
    return "\n".join(["{", *_indent_each(parts, inner), f"{indent}}}"])


def _break_list(node: ListNode, indent: str, taken: int) -> str:  # noqa: ARG001
    inner, ends = indent + _STEP, "()" if node.is_tuple else "[]"
    if all(isinstance(each, Constant) for each in node.items):
        lines = _fill(map(write_flat, node.items), inner)
    else:
        lines = _indent_each([_write(each, inner, 1) for each in node.items], inner)
    return "\n".join([ends[0], *lines, f"{indent}{ends[1]}"])


def _break_operation(node: Operation, indent: str, taken: int) -> str:
    if node.left is None:
        return f"{node.sign}{_write_operand(node.right, indent, taken + 1)}"
    left, right = write_sides(node, node.left)
    return f"{left}\n{indent}{node.sign} {right}"


def _break_lambda(node: Lambda, indent: str, taken: int) -> str:
    head, body = write_head(node), _write(node.body, indent, taken + len(write_head(node)))
    return f"{head}({body})" if isinstance(node.body, Operation) and "\n" in body else f"{head}{body}"


_BREAKS: Final[dict[type, Callable[[Any, str, int], str]]] = {
    Call: _break_call,
    Attribute: _break_attribute,
    Subscript: _break_subscript,
    DictNode: _break_dictionary,
    ListNode: _break_list,
    Operation: _break_operation,
    Lambda: _break_lambda,
}


def _write_operand(node: Node, indent: str, taken: int) -> str:
    return _write(node, indent, taken) if find_power(node) == TIGHTEST else write_operand(node, TIGHTEST)


def _indent_each(parts: Iterable[str], indent: str) -> Iterator[str]:
    return (f"{indent}{part}," for part in parts)


def _fill(parts: Iterable[str], indent: str) -> Iterator[str]:
    """Yield lines that each hold as many parts as fit."""
    line = indent
    for part in parts:
        if len(line) > len(indent) and len(line) + len(part) + 2 > _WIDTH:
            yield line.rstrip()
            line = indent
        line += f"{part}, "
    yield line.rstrip()
