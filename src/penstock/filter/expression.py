"""Filters: which rows of some columns an expression is true for.

In: `age < 3 and breed == "siamese"` and a schema. Out: an `Expression`, which names the fields it needs and
gives a mask for their columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from penstock.errors import OptionError, UnknownNameError
from penstock.filter import grammar
from penstock.filter.arithmetic import combine
from penstock.filter.operand import Cells, Kind, Operand, make_field, make_length, make_value
from penstock.filter.token import Value, refuse_at
from penstock.filter.truth import (
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
    one_true,
)
from penstock.foundation.wording import show, unknown_name
from penstock.schema.schema import Schema
from penstock.types import Columns, Mask

_WANTED = {"number": "a number", "string": "a string", "truth": "True or False"}


@dataclass(frozen=True)
class Expression:
    """A condition on the fields of a record.

    Fields stand by their names, in backticks where a name has other signs than letters, digits and `_`. There
    are `and`, `or`, `not`; comparisons, which may be chained; `in ("a", "b")`; `+ - * / %` on numbers;
    `len(tokens)`, which counts the values of a sequence, the characters of a text, the bytes of anything
    else; `is None` and `is not None`. They mean what they mean in Python, and a number by itself is true if
    it is not zero.

    A value that is missing is not compared: what would come of it is unknown, and so is what comes of that,
    up to `and` and `or`, where the other side may decide. A row is taken where the whole is true. Division by
    zero gives no value, either. A number that is compared with a field of float32 is first rounded as the
    field's own values are.

    Attributes:
        text: As it was written.
        names: The fields that it needs, in the order of the text.
    """

    text: str
    names: tuple[str, ...]
    _run: Run

    def evaluate(self, columns: Columns) -> Mask:
        """Return the rows that the expression is true for."""
        num_rows = len(columns[self.names[0]])
        with np.errstate(all="ignore"):
            found: Mask = self._run(columns).values
        return np.array(np.broadcast_to(found, (num_rows,)))


def parse_expression(text: str, schema: Schema) -> Expression:
    """Read a filter.

    Raises:
        OptionError: It is no expression, or compares what cannot be compared; the message names the place.
        UnknownNameError: There is no such field; the message names the nearest.

    Example:
        >>> from penstock.fields import Category, Number
        >>> schema = Schema({"age": Number("int64"), "breed": Category()})
        >>> parse_expression('age < 3 and breed == "siamese"', schema).names
        ('age', 'breed')
    """
    if not isinstance(text, str):
        raise OptionError("filter", expected="a str", got=show(text), advice="Write it as 'age < 3'.")
    compiler = _Compiler(text, schema)
    run = compiler.truth(grammar.parse(text))
    if not compiler.names:
        raise OptionError(f"filter {show(text)}", expected="the name of a field", got="none")
    return Expression(text, tuple(compiler.names), run)


class _Compiler:
    """Turns nodes into operands, and refuses those that do not go together."""

    def __init__(self, text: str, schema: Schema) -> None:
        self._text = text
        self._schema = schema
        self.names: dict[str, None] = {}  # a set in the order of the text

    def truth(self, node: grammar.Node) -> Run:
        """Compile what must be true or false."""
        operand = self._compile(node)
        if operand.kind == "truth":
            return operand.run
        if operand.kind != "number":
            raise self._refuse(operand, "a comparison")
        return lambda columns: is_not_zero(operand.run(columns))

    def _compile(self, node: grammar.Node) -> Operand:
        ways: dict[type, Callable[[Any], Operand]] = {
            grammar.Literal: self._literal,
            grammar.Name: self._name,
            grammar.Length: self._length,
            grammar.Chain: self._chain,
            grammar.Comparison: self._comparison,
            grammar.Membership: self._membership,
            grammar.Absence: self._absence,
            grammar.Negation: self._negation,
            grammar.Junction: self._junction,
        }
        return ways[type(node)](node)

    def _literal(self, node: grammar.Literal) -> Operand:
        return make_value(node.at, node.value)

    def _name(self, node: grammar.Name) -> Operand:
        self._note(node)
        return make_field(node.at, node.name, self._schema[node.name])

    def _absence(self, node: grammar.Absence) -> Operand:
        operand = self._compile(node.operand)
        return _test(node.at, lambda columns: is_missing(operand.run(columns)))

    def _negation(self, node: grammar.Negation) -> Operand:
        run = self.truth(node.operand)
        return _test(node.at, lambda columns: invert(run(columns)))

    def _junction(self, node: grammar.Junction) -> Operand:
        runs = [self.truth(each) for each in node.operands]
        join = both_true if node.word == "and" else one_true
        return _test(node.at, lambda columns: reduce(join, (run(columns) for run in runs)))

    def _note(self, node: grammar.Name) -> None:
        if node.name not in self._schema:
            error = unknown_name(node.name, self._schema)
            what = f"filter {show(self._text)} at character {node.at + 1}: {error.what}"
            raise UnknownNameError(what, field=node.name, got=error.got, advice=error.advice)
        self.names[node.name] = None

    def _length(self, node: grammar.Length) -> Operand:
        self._note(node.operand)
        name = node.operand.name
        operand = make_length(node.at, name, self._schema[name])
        if operand is None:
            raise self._refuse(
                make_field(node.operand.at, name, self._schema[name]), "a sequence, a text or bytes"
            )
        return operand

    def _chain(self, node: grammar.Chain) -> Operand:
        first = self._need("number", node.first)
        rest = [(sign, self._need("number", each)) for sign, each in node.rest]

        def run(columns: Columns) -> Cells:
            cells = first.run(columns)
            for sign, operand in rest:
                other = operand.run(columns)
                values, nowhere = combine(sign, cells.values, other.values)
                known = both_known(cells.known, other.known)
                cells = Cells(values, known if nowhere is None else both_known(known, ~nowhere))
            return cells

        if first.constant is None or any(each.constant is None for _, each in rest):
            return Operand(node.at, "a number", "number", run)
        with np.errstate(all="ignore"):
            cells = run({})
        if cells.known is not None:
            raise refuse_at(self._text, node.at, expected="a number", got="a division by zero")
        return make_value(node.at, cells.values.tolist()[0])

    def _comparison(self, node: grammar.Comparison) -> Operand:
        left = self._compile(node.first)
        tests = []
        for sign, each in node.rest:
            right = self._compile(each)
            tests.append(self._pair(sign, left, right))
            left = right
        return _test(node.at, lambda columns: reduce(both_true, (test(columns) for test in tests)))

    def _pair(self, sign: str, left: Operand, right: Operand) -> Run:
        """Compile a comparison of two."""
        left, right = _count_truth(left, right), _count_truth(right, left)
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
            raise self._refuse(right, f"a number or a string behind {sign}")
        return compare_truths(sign, left, right)

    def _membership(self, node: grammar.Membership) -> Operand:
        operand = self._compile(node.operand)
        if operand.kind not in ("number", "string"):
            raise self._refuse(operand, "a number or a string", _advise(operand))
        values: list[Value] = []
        for each in node.values:
            value = _count_truth(make_value(each.at, each.value), operand)
            if value.kind != operand.kind or value.constant is None:
                raise self._refuse(value, f"{_WANTED[operand.kind]} to compare with {operand.what}")
            values.append(value.constant)
        return _test(node.at, find_among(operand, values))

    def _need(self, kind: Kind, node: grammar.Node) -> Operand:
        operand = self._compile(node)
        if operand.kind != kind:
            raise self._refuse(operand, _WANTED[kind])
        return operand

    def _refuse(self, operand: Operand, expected: str, advice: str = "") -> OptionError:
        return refuse_at(self._text, operand.at, expected=expected, got=operand.what, advice=advice)


def _test(at: int, run: Run) -> Operand:
    return Operand(at, "a comparison", "truth", run)


def _count_truth(operand: Operand, other: Operand) -> Operand:
    """Return True as 1 and False as 0 where the other one is a number."""
    if other.kind == "number" and isinstance(operand.constant, bool):
        return make_value(operand.at, int(operand.constant), operand.what)
    return operand


def _advise(operand: Operand) -> str:
    return "" if operand.kind != "other" else "Of a sequence there is len(…); of any field, `is None`."
