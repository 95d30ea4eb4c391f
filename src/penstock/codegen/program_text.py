"""Write a program as Python code, divided into lines of limited length.

In: statements and nodes of `program.py`. Out: text, with parentheses only where Python needs them.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Final

from penstock.codegen.program import Comment, LongConstant

# Sign and precedence of each operator: a larger number binds more tightly.
_LOOSEST: Final = 0  # a lambda
_COMPARISON: Final = 1
_PREFIX: Final = 6
_TIGHTEST: Final = 7  # names, calls, subscripts, displays
_SIGNS: Final[dict[type[ast.AST], tuple[str, int]]] = {
    ast.Lt: ("<", _COMPARISON),
    ast.LtE: ("<=", _COMPARISON),
    ast.Gt: (">", _COMPARISON),
    ast.GtE: (">=", _COMPARISON),
    ast.Eq: ("==", _COMPARISON),
    ast.NotEq: ("!=", _COMPARISON),
    ast.BitOr: ("|", 2),
    ast.BitAnd: ("&", 3),
    ast.Add: ("+", 4),
    ast.Sub: ("-", 4),
    ast.Mult: ("*", 5),
    ast.Div: ("/", 5),
    ast.FloorDiv: ("//", 5),
    ast.USub: ("-", _PREFIX),
    ast.Invert: ("~", _PREFIX),
}
_OPERATIONS: Final = (ast.BinOp, ast.Compare, ast.UnaryOp)

_STEP: Final = "    "
_COMMENT_WIDTH: Final = 100
_SHORT: Final = 50


def write_flat(node: ast.expr) -> str:
    """Return the code of an expression in one line."""
    return _LINES[type(node)](node)


def _flat_call(node: ast.Call) -> str:
    return f"{_write_operand(node.func, _TIGHTEST)}{_flat_arguments(node)}"


def _flat_arguments(node: ast.Call) -> str:
    named = (f"{each.arg}={write_flat(each.value)}" for each in node.keywords)
    return f"({', '.join([*map(write_flat, node.args), *named])})"


def _flat_binary(node: ast.BinOp | ast.Compare) -> str:
    left, sign, right = _write_sides(node)
    return f"{left} {sign} {right}"


def _write_sides(node: ast.BinOp | ast.Compare) -> tuple[str, str, str]:
    """Return the code of the left operand, the sign, and the code of the right operand."""
    if isinstance(node, ast.BinOp):
        sign, power = _SIGNS[type(node.op)]
        return _write_operand(node.left, power), sign, _write_operand(node.right, power + 1)
    sign, power = _SIGNS[type(node.ops[0])]
    # Python reads `a < b < c` as a chain, so a comparison inside a comparison needs parentheses.
    return _write_operand(node.left, power + 1), sign, _write_operand(node.comparators[0], power + 1)


def _flat_tuple(node: ast.Tuple) -> str:
    text = ", ".join(map(write_flat, node.elts))
    return f"({text},)" if len(node.elts) == 1 else f"({text})"


def _flat_keys(node: ast.Subscript) -> str:
    keys = node.slice.elts if isinstance(node.slice, ast.Tuple) and len(node.slice.elts) > 1 else [node.slice]
    return f"[{', '.join(map(write_flat, keys))}]"


def _pair(node: ast.Dict) -> Iterator[tuple[str, ast.expr]]:
    for key, value in zip(node.keys, node.values, strict=True):
        if key is not None:
            yield write_flat(key), value


def _write_head(node: ast.Lambda) -> str:
    parameters = _list_parameters(node.args)
    return f"lambda {parameters}: " if parameters else "lambda: "


def _list_parameters(parameters: ast.arguments) -> str:
    return ", ".join(each.arg for each in parameters.args)


_LINES: Final[dict[type[ast.AST], Callable[[Any], str]]] = {
    ast.Constant: lambda node: write_constant(node.value),
    ast.Name: lambda node: str(node.id),
    ast.Attribute: lambda node: f"{_write_operand(node.value, _TIGHTEST)}.{node.attr}",
    ast.Call: _flat_call,
    ast.Subscript: lambda node: f"{_write_operand(node.value, _TIGHTEST)}{_flat_keys(node)}",
    ast.BinOp: _flat_binary,
    ast.Compare: _flat_binary,
    ast.UnaryOp: lambda node: f"{_SIGNS[type(node.op)][0]}{_write_operand(node.operand, _PREFIX)}",
    ast.List: lambda node: f"[{', '.join(map(write_flat, node.elts))}]",
    ast.Tuple: _flat_tuple,
    ast.Dict: lambda node: "{" + ", ".join(f"{key}: {write_flat(value)}" for key, value in _pair(node)) + "}",
    ast.Lambda: lambda node: f"{_write_head(node)}{write_flat(node.body)}",
    ast.Slice: lambda node: ":".join(
        "" if end is None else write_flat(end) for end in (node.lower, node.upper)
    ),
}


def _write_operand(node: ast.expr, power: int) -> str:
    """Return the code of an operand, in parentheses if it binds less tightly than `power`."""
    return write_flat(node) if _find_power(node) >= power else f"({write_flat(node)})"


def _find_power(node: ast.expr) -> int:
    """Return the precedence of the outermost operation of a node."""
    match node:
        case ast.BinOp(op=sign) | ast.UnaryOp(op=sign) | ast.Compare(ops=[sign]):
            return _SIGNS[type(sign)][1]
        case ast.Lambda():
            return _LOOSEST
        case ast.Constant(value=int() | float()):  # it may have a sign
            return _PREFIX
    return _TIGHTEST


def write_constant(value: Any) -> str:
    """Return the code of a number, string, bytes, True, False or None."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    text = repr(value)
    # Double quotes, as code formatters prefer; repr uses single quotes.
    is_quoted = isinstance(value, str | bytes) and text.endswith("'") and '"' not in text
    start = text.index("'") if is_quoted else 0
    return f'{text[:start]}"{text[start + 1 : -1]}"' if is_quoted else text


@dataclass(frozen=True)
class Layout:
    """How a program is divided into lines.

    Attributes:
        width: Maximum length of a line of code.
        margin: Number of characters that stay free after an argument or item and its comma.
        parts_return: Whether a blank line precedes the `return` of a function that contains comments.
        breaks_operations: Whether an operation that is too long is divided before its sign.
    """

    width: int = 100
    margin: int = 1
    parts_return: bool = True
    breaks_operations: bool = True


def write_program(
    statements: Iterable[ast.stmt], docstring: str, modules: Iterable[str], layout: Layout | None = None
) -> str:
    """Return the code of a script: docstring, import statements, statements."""
    body = list(statements)
    gap = [] if isinstance(body[0], ast.FunctionDef) else [""]
    lines = [f'"""{docstring}"""', "", *modules, *gap, *write_lines(body, layout or Layout())]
    return "\n".join([*lines, ""])


def write_lines(statements: Iterable[ast.stmt], layout: Layout) -> Iterator[str]:
    """Return the lines of statements."""
    return _Writer(layout).write_block(statements, "")


class _Writer:
    """Writes statements in a layout."""

    def __init__(self, layout: Layout) -> None:
        self._width = layout.width
        self._margin = layout.margin
        self._parts_return = layout.parts_return
        self._flat: tuple[type[ast.expr], ...] = () if layout.breaks_operations else _OPERATIONS

    def write_block(self, block: Iterable[ast.stmt], indent: str) -> Iterator[str]:
        """Yield the lines of statements."""
        statements = list(block)
        parts_return = self._parts_return and any(isinstance(each, Comment) for each in statements)
        previous: ast.stmt | None = None
        for statement in statements:
            blanks = _count_blanks(previous, statement, is_outer=not indent, parts_return=parts_return)
            yield from [""] * blanks
            yield from self._write_statement(statement, indent)
            previous = statement

    def _write_statement(self, statement: ast.stmt, indent: str) -> Iterable[str]:
        match statement:
            case ast.FunctionDef():
                return self._write_function(statement, indent)
            case ast.If():
                return self._write_choice(statement, indent)
            case Comment(text=text):
                start = f"{indent}# "
                return wrap(text, _COMMENT_WIDTH, initial_indent=start, subsequent_indent=start)
            case LongConstant(targets=[target], source=value) | ast.Assign(targets=[target], value=value):
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                return [self._write_line(f"{', '.join(map(write_flat, names))} = ", value, indent)]
            case ast.Return(value=ast.expr() as value):
                return [self._write_line("return ", value, indent)]
            case ast.Expr(value=value):
                return [self._write_line("", value, indent)]
        raise TypeError(f"generated code has no {type(statement).__name__}")

    def _write_function(self, statement: ast.FunctionDef, indent: str) -> Iterator[str]:
        returns = "" if statement.returns is None else f" -> {write_flat(statement.returns)}"
        yield f"{indent}def {statement.name}({_list_parameters(statement.args)}){returns}:"
        inner, body = indent + _STEP, statement.body
        docstring = ast.get_docstring(statement, clean=False)
        if docstring is not None:
            yield f'{inner}"""{docstring}"""'
            body = body[1:]
            if isinstance(body[0], ast.FunctionDef) or _opens_section(body[0]):
                yield ""
        yield from self.write_block(body, inner)

    def _write_choice(self, statement: ast.If, indent: str) -> Iterator[str]:
        yield f"{indent}if {write_flat(statement.test)}:"
        yield from self.write_block(statement.body, indent + _STEP)
        yield f"{indent}else:"
        yield from self.write_block(statement.orelse, indent + _STEP)

    def _write_line(self, head: str, value: ast.expr, indent: str) -> str:
        is_operation = isinstance(value, _OPERATIONS)
        if is_operation and len(indent) + len(head) + len(write_flat(value)) > self._width:
            inner = indent + _STEP
            return f"{indent}{head}(\n{inner}{self._write(value, inner, 0)}\n{indent})"
        return f"{indent}{head}{self._write(value, indent, len(head))}"

    def _write(self, node: ast.expr, indent: str, taken: int) -> str:
        """Return the code of a node, in lines if it is long; `taken` characters precede it in its line."""
        flat = write_flat(node)
        if len(indent) + taken + len(flat) < self._width or isinstance(node, self._flat):
            return flat
        break_up = _BREAKS.get(type(node))
        return flat if break_up is None else break_up(self, node, indent, taken)

    def _break_call(self, node: ast.Call, indent: str, taken: int) -> str:
        arguments = _flat_arguments(node)
        if isinstance(node.func, ast.Call) and len(arguments) <= _SHORT:
            # In `layers.Dense(…)(x)`, the arguments of the layer are the long part.
            return f"{self._break_call(node.func, indent, taken)}{arguments}"
        inner = indent + _STEP
        parts = [self._write(each, inner, self._margin) for each in node.args]
        for each in node.keywords:
            head = f"{each.arg}="
            parts.append(f"{head}{self._write(each.value, inner, len(head) + self._margin)}")
        if not parts:
            return f"{self._write(node.func, indent, taken + 2)}()"
        return _enclose(
            f"{self._write_owner(node.func, indent, taken)}(", _end_each(parts, inner), ")", indent
        )

    def _break_attribute(self, node: ast.Attribute, indent: str, taken: int) -> str:
        return f"{self._write_owner(node.value, indent, taken)}.{node.attr}"

    def _break_subscript(self, node: ast.Subscript, indent: str, taken: int) -> str:
        return f"{self._write_owner(node.value, indent, taken)}{_flat_keys(node)}"

    def _break_dictionary(self, node: ast.Dict, indent: str, taken: int) -> str:  # noqa: ARG002
        inner = indent + _STEP
        parts = [
            f"{key}: {self._write(value, inner, len(key) + 2 + self._margin)}" for key, value in _pair(node)
        ]
        return _enclose("{", _end_each(parts, inner), "}", indent)

    def _break_list(self, node: ast.List | ast.Tuple, indent: str, taken: int) -> str:  # noqa: ARG002
        inner, (start, end) = indent + _STEP, "()" if isinstance(node, ast.Tuple) else "[]"
        if all(isinstance(each, ast.Constant) for each in node.elts):
            return _enclose(start, self._fill(map(write_flat, node.elts), inner), end, indent)
        parts = [self._write(each, inner, self._margin) for each in node.elts]
        return _enclose(start, _end_each(parts, inner), end, indent)

    def _break_binary(self, node: ast.BinOp | ast.Compare, indent: str, taken: int) -> str:  # noqa: ARG002
        left, sign, right = _write_sides(node)
        return f"{left}\n{indent}{sign} {right}"

    def _break_unary(self, node: ast.UnaryOp, indent: str, taken: int) -> str:
        return f"{_SIGNS[type(node.op)][0]}{self._write_owner(node.operand, indent, taken + 1)}"

    def _break_lambda(self, node: ast.Lambda, indent: str, taken: int) -> str:
        head = _write_head(node)
        body = self._write(node.body, indent, taken + len(head))
        return f"{head}({body})" if isinstance(node.body, _OPERATIONS) and "\n" in body else f"{head}{body}"

    def _write_owner(self, node: ast.expr, indent: str, taken: int) -> str:
        is_tight = _find_power(node) == _TIGHTEST
        return self._write(node, indent, taken) if is_tight else _write_operand(node, _TIGHTEST)

    def _fill(self, parts: Iterable[str], indent: str) -> Iterator[str]:
        """Yield lines that each hold as many parts as fit."""
        line = indent
        for part in parts:
            if len(line) > len(indent) and len(line) + len(part) + 1 + self._margin > self._width:
                yield line.rstrip()
                line = indent
            line += f"{part}, "
        yield line.rstrip()


_BREAKS: Final[dict[type[ast.AST], Callable[[_Writer, Any, str, int], str]]] = {
    ast.Call: _Writer._break_call,
    ast.Attribute: _Writer._break_attribute,
    ast.Subscript: _Writer._break_subscript,
    ast.Dict: _Writer._break_dictionary,
    ast.List: _Writer._break_list,
    ast.Tuple: _Writer._break_list,
    ast.BinOp: _Writer._break_binary,
    ast.Compare: _Writer._break_binary,
    ast.UnaryOp: _Writer._break_unary,
    ast.Lambda: _Writer._break_lambda,
}


def _count_blanks(
    previous: ast.stmt | None, following: ast.stmt, *, is_outer: bool, parts_return: bool
) -> int:
    """Return the number of blank lines between two statements."""
    if isinstance(following, ast.FunctionDef) and isinstance(previous, Comment):
        return 0
    if isinstance(following, ast.FunctionDef) or isinstance(previous, ast.FunctionDef):
        return 2 if is_outer else int(previous is not None)
    is_end = isinstance(following, ast.Return) and parts_return
    return int(previous is not None and (is_end or _opens_section(following)))


def _opens_section(statement: ast.stmt) -> bool:
    return isinstance(statement, Comment) and statement.opens_section


def _end_each(parts: Iterable[str], indent: str) -> Iterator[str]:
    return (f"{indent}{part}," for part in parts)


def _enclose(start: str, lines: Iterable[str], end: str, indent: str) -> str:
    return "\n".join([start, *lines, f"{indent}{end}"])
