"""Filters: the rows of some columns for which an expression is true.

In: `age < 3 and breed == "siamese"` and a schema. Out: an `Expression`, which has the names of the fields
that it needs, and makes a mask from their columns.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from penstock.columns import Columns, Mask
from penstock.errors import OptionError, UnknownNameError
from penstock.filter.arithmetic import combine
from penstock.filter.operand import (
    Cells,
    Operand,
    Run,
    both_known,
    both_true,
    compare_numbers,
    compare_strings,
    compare_truths,
    find_among,
    invert,
    is_missing,
    is_not_zero,
    make_field,
    make_length,
    make_value,
    one_true,
)
from penstock.filter.syntax import Syntax, Value, refuse_at
from penstock.foundation.wording import show, unknown_name
from penstock.schema.date import EXAMPLES, count_date
from penstock.schema.schema import Schema

_WANTED = {"number": "a number", "string": "a string", "truth": "True or False"}
# The operators that the tokens of a filter can make; `Syntax` lets no others through.
_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Mod: "%",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


@dataclass(frozen=True)
class Expression:
    """A condition on the fields of a record.

    Fields are written by name, in backticks where a name has characters other than letters, digits and `_`.
    There are `and`, `or`, `not`; comparisons, which may be chained; `in ("a", "b")`; `+ - * / %` on numbers;
    dates as strings, such as `seen > "2024-01-31"`; `len(tokens)`, which counts the values of a sequence, the
    characters of a text, the bytes of anything else; `is None` and `is not None`. They mean what they mean in
    Python, and a number by itself is true if it is not zero.

    The result of a comparison with a missing value is unknown, and so is every result computed from it, up to
    `and` and `or`, where the other side may decide. A row is taken where the whole expression is true. The
    result of a division by zero is missing. A number that is compared with a field of float32 is first
    rounded to float32.

    Attributes:
        text: The text of the expression.
        names: The fields that it needs, in the order of the text.
    """

    text: str
    names: tuple[str, ...]
    _run: Run

    def evaluate(self, columns: Columns) -> Mask:
        """Return the rows for which the expression is true."""
        num_rows = len(columns[self.names[0]])
        with np.errstate(all="ignore"):
            found: Mask = self._run(columns).values
        return np.array(np.broadcast_to(found, (num_rows,)))


def parse_expression(text: str, schema: Schema) -> Expression:
    """Read a filter.

    Example:
        >>> from penstock.fields import Category, Number
        >>> schema = Schema({"age": Number("int64"), "breed": Category()})
        >>> parse_expression('age < 3 and breed == "siamese"', schema).names
        ('age', 'breed')
    """
    if not isinstance(text, str):
        raise OptionError("filter", expected="a str", got=show(text), advice="Write it as 'age < 3'.")
    try:
        compiler = _Compiler(Syntax(text), schema)
        run = compiler.compile()
    except (MemoryError, RecursionError):
        # The limits of `Syntax` suffice, except if the caller's own stack is almost full.
        raise OptionError(
            f"filter {show(text)}", expected="a shorter expression", got=f"{len(text)} characters"
        ) from None
    if not compiler.names:
        raise OptionError(f"filter {show(text)}", expected="the name of a field", got="none")
    return Expression(text, tuple(compiler.names), run)


class _Compiler:
    """Turns the nodes of a syntax tree into operands, and refuses all that the language does not have."""

    def __init__(self, syntax: Syntax, schema: Schema) -> None:
        self._syntax = syntax
        self._schema = schema
        self.names: dict[str, None] = {}  # a set in the order of the text

    def compile(self) -> Run:
        """Compile the whole expression."""
        return self._condition(self._syntax.tree)

    def _condition(self, node: ast.expr) -> Run:
        operand = self._compile(node)
        if operand.kind == "truth":
            return operand.run
        if operand.kind != "number" or operand.unit is not None:
            raise self._refuse(operand, "a comparison")
        return lambda columns: is_not_zero(operand.run(columns))

    def _number(self, node: ast.expr) -> Operand:
        operand = self._compile(node)
        if operand.kind != "number":
            raise self._refuse(operand, _WANTED["number"])
        return operand

    def _compile(self, node: ast.expr) -> Operand:
        compile_node = self._NODES.get(type(node))
        if compile_node is None:
            raise self._syntax.refuse(node, "a field, a value or a comparison")
        return compile_node(self, node)

    def _name_or_value(self, node: ast.Name) -> Operand:
        token = self._syntax.token(node)
        if token.kind == "value":
            return make_value(token.start, token.value)
        return make_field(token.start, token.text, self._schema[self._field_name(node)])

    def _field_name(self, node: ast.Name) -> str:
        token = self._syntax.token(node)
        if token.text not in self._schema:
            error = unknown_name(token.text, self._schema)
            what = f"filter {show(self._syntax.text)} at character {token.start + 1}: {error.what}"
            raise UnknownNameError(what, field=token.text, got=error.got, advice=error.advice)
        self.names[token.text] = None
        return token.text

    def _length(self, node: ast.Call) -> Operand:
        syntax = self._syntax
        start = syntax.first_token(node)  # the token `len`: `Syntax` refuses other calls
        if len(node.args) != 1:
            raise syntax.refuse(node, "len with the name of one field")
        argument = node.args[0]
        # Just `len(name)`: no parentheses around the name, and no comma after it.
        is_plain = syntax.first_token(argument) == start + 2 and syntax.tokens[start + 3].text == ")"
        if not is_plain or not isinstance(argument, ast.Name) or syntax.token(argument).kind != "name":
            raise syntax.refuse(argument, "the name of a field")
        name = self._field_name(argument)
        operand = make_length(syntax.start(node), name, self._schema[name])
        if operand is None:
            expected = "a sequence, a text or bytes"
            raise self._refuse(make_field(syntax.start(argument), name, self._schema[name]), expected)
        return operand

    def _arithmetic(self, node: ast.BinOp) -> Operand:
        # The tree of a + b * c - d has its first operand deepest; it is reached by a loop, not by recursion.
        steps: list[ast.BinOp] = []
        left: ast.expr = node
        while isinstance(left, ast.BinOp):
            steps.append(left)
            left = left.left
        first = self._number(left)
        rest: list[tuple[str, Operand]] = []
        for step in reversed(steps):
            sign, operand = _ARITHMETIC[type(step.op)], self._number(step.right)
            if rest or first.constant is None or operand.constant is None:
                rest.append((sign, operand))
            else:
                first = self._fold(self._syntax.start(step), sign, first, operand)
        return _chain(self._syntax.start(node), first, rest) if rest else first

    def _fold(self, start: int, sign: str, left: Operand, right: Operand) -> Operand:
        with np.errstate(all="ignore"):
            cells = _chain(start, left, [(sign, right)]).run({})
        if cells.known is not None:
            raise refuse_at(self._syntax.text, start, expected="a number", got="a division by zero")
        return make_value(start, cells.values.tolist()[0])

    def _unary(self, node: ast.UnaryOp) -> Operand:
        start = self._syntax.start(node)
        if isinstance(node.op, ast.Not):
            run = self._condition(node.operand)
            return _test(start, lambda columns: invert(run(columns)))
        operand, sign = self._number(node.operand), "-" if isinstance(node.op, ast.USub) else "+"
        zero = make_value(start, 0)
        if operand.constant is not None:
            return self._fold(start, sign, zero, operand)
        return _chain(start, zero, [(sign, operand)])

    def _junction(self, node: ast.BoolOp) -> Operand:
        runs = [self._condition(each) for each in node.values]
        join = both_true if isinstance(node.op, ast.And) else one_true
        start = self._syntax.start(node)
        return _test(start, lambda columns: reduce(join, (run(columns) for run in runs)))

    def _comparison(self, node: ast.Compare) -> Operand:
        start = self._syntax.start(node)
        if not all(type(op) in _COMPARISONS for op in node.ops):
            if len(node.ops) > 1:
                raise self._syntax.refuse(node, "'in' and 'is' apart from comparisons", "Join them by 'and'.")
            is_in = isinstance(node.ops[0], ast.In | ast.NotIn)
            run = (self._membership if is_in else self._absence)(node.left, node.comparators[0])
            if isinstance(node.ops[0], ast.NotIn | ast.IsNot):
                return _test(start, lambda columns: invert(run(columns)))
            return _test(start, run)
        left = self._compile(node.left)
        tests = []
        for op, each in zip(node.ops, node.comparators, strict=True):
            right = self._compile(each)
            tests.append(self._pair(_COMPARISONS[type(op)], left, right))
            left = right
        return _test(start, lambda columns: reduce(both_true, (test(columns) for test in tests)))

    def _pair(self, sign: str, left: Operand, right: Operand) -> Run:
        left, right = _count_truth(left, right), _count_truth(right, left)
        left, right = self._count_date(left, right), self._count_date(right, left)
        if left.unit is not None and right.unit is not None and left.unit != right.unit:
            raise self._refuse(right, f"{left.unit} to compare with {left.what}", got=right.unit)
        for operand in (left, right):
            if operand.kind == "other":
                raise self._refuse(operand, "a number or a string", _advise(operand))
        if left.kind != right.kind:
            raise self._refuse(right, f"{_WANTED[left.kind]} to compare with {left.what}")
        if left.kind == "number":
            return compare_numbers(sign, left, right)
        if left.kind == "string":
            return compare_strings(sign, left, right)
        if sign not in ("==", "!="):
            raise self._refuse(right, f"a number or a string after {sign}")
        return compare_truths(sign, left, right)

    def _absence(self, left: ast.expr, right: ast.expr) -> Run:
        operand = self._compile(left)
        if not isinstance(right, ast.Constant):  # None is the only constant in the tree
            raise self._syntax.refuse(right, "None")
        return lambda columns: is_missing(operand.run(columns))

    def _membership(self, left: ast.expr, right: ast.expr) -> Run:
        operand = self._compile(left)
        if operand.kind not in ("number", "string"):
            raise self._refuse(operand, "a number or a string", _advise(operand))
        values: list[Value] = []
        for node in self._elements(right):
            value = self._count_date(_count_truth(self._value(node), operand), operand)
            if value.kind != operand.kind or value.constant is None:
                raise self._refuse(value, f"{_WANTED[operand.kind]} to compare with {operand.what}")
            values.append(value.constant)
        return find_among(operand, values)

    def _elements(self, node: ast.expr) -> Sequence[ast.expr]:
        """Return the elements of a parenthesized list; `(x)` is one element."""
        if self._syntax.tokens[self._syntax.first_token(node) - 1].code != "in":
            return [node]
        if not isinstance(node, ast.Tuple | ast.List | ast.Set) or not node.elts:
            raise self._syntax.refuse(node, "values in parentheses")
        return node.elts

    def _value(self, node: ast.expr) -> Operand:
        inner = node
        while isinstance(inner, ast.UnaryOp) and not isinstance(inner.op, ast.Not):
            inner = inner.operand
        if not isinstance(inner, ast.Name) or self._syntax.token(inner).kind != "value":
            raise self._syntax.refuse(node, "a value")
        return self._compile(node)

    def _count_date(self, operand: Operand, other: Operand) -> Operand:
        """Return a date in a text as the stored number where the other one is a field of dates."""
        if other.unit is None or not isinstance(operand.constant, bytes):
            return operand
        try:
            number = count_date(operand.constant, other.unit)
        except ValueError:
            raise self._refuse(operand, f"{EXAMPLES[other.unit]} to compare with {other.what}") from None
        return make_value(operand.start, number, operand.what)

    def _refuse(
        self, operand: Operand, expected: str, advice: str = "", got: str | None = None
    ) -> OptionError:
        got = operand.what if got is None else f"{operand.what} in {got}"
        return refuse_at(self._syntax.text, operand.start, expected=expected, got=got, advice=advice)

    _NODES: ClassVar[dict[type[ast.expr], Callable[[_Compiler, Any], Operand]]] = {
        ast.Name: _name_or_value,
        ast.Call: _length,
        ast.BinOp: _arithmetic,
        ast.UnaryOp: _unary,
        ast.BoolOp: _junction,
        ast.Compare: _comparison,
    }


def _chain(start: int, first: Operand, rest: Sequence[tuple[str, Operand]]) -> Operand:
    """Return the result of arithmetic from left to right."""

    def run(columns: Columns) -> Cells:
        cells = first.run(columns)
        for sign, operand in rest:
            other = operand.run(columns)
            values, undefined = combine(sign, cells.values, other.values)
            known = both_known(cells.known, other.known)
            cells = Cells(values, known if undefined is None else both_known(known, ~undefined))
        return cells

    return Operand(start, "a number", "number", run)


def _test(start: int, run: Run) -> Operand:
    return Operand(start, "a comparison", "truth", run)


def _count_truth(operand: Operand, other: Operand) -> Operand:
    """Return True as 1 and False as 0 where the other one is a number."""
    if other.kind == "number" and isinstance(operand.constant, bool):
        return make_value(operand.start, int(operand.constant), operand.what)
    return operand


def _advise(operand: Operand) -> str:
    return "" if operand.kind != "other" else "Use len(…) for sequences, or 'is None' for any field."
