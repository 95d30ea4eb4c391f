"""Logic of three values: true, false, and unknown where a value is missing.

In: operands and their cells. Out: cells of truth values, as in SQL (Kleene's logic): unknown and false is
false, unknown or true is true, every other result of the unknown is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

import numpy as np

from penstock import _native
from penstock.columns import Bytes, Columns, Mask
from penstock.filter.arithmetic import COMPARISONS, as_number, compare, is_among
from penstock.filter.operand import Cells, Operand
from penstock.filter.syntax import Value

Run: TypeAlias = Callable[[Columns], Cells]


def both_known(left: Mask | None, right: Mask | None) -> Mask | None:
    """Return the rows that are in both masks; None means all rows."""
    if left is None or right is None:
        return right if left is None else left
    return left & right


def both_true(left: Cells, right: Cells) -> Cells:
    """Return the conjunction of two truth values."""
    values = left.values & right.values
    if left.known is None and right.known is None:
        return Cells(values)
    # Known where both are known, and where one is known to be false.
    return Cells(values, _known(left) & _known(right) | _is_false(left) | _is_false(right))


def one_true(left: Cells, right: Cells) -> Cells:
    """Return the disjunction of two truth values."""
    values = left.values | right.values
    if left.known is None and right.known is None:
        return Cells(values)
    return Cells(values, _known(left) & _known(right) | values)


def invert(cells: Cells) -> Cells:
    """Return the negation of a truth value."""
    return _mask_unknown(~cells.values, cells.known)


def is_missing(cells: Cells) -> Cells:
    """Return the rows without a value, which is always known."""
    return Cells(np.zeros(1, np.bool_) if cells.known is None else ~cells.known)


def is_not_zero(cells: Cells) -> Cells:
    """Return the rows in which a number counts as true."""
    return _mask_unknown(compare("!=", cells.values, as_number(0)), cells.known)


def compare_numbers(sign: str, left: Operand, right: Operand) -> Run:
    """Make the comparison of two numbers; a constant is rounded to the precision of the other field."""
    run_left, run_right = _round_for(left, right), _round_for(right, left)

    def run(columns: Columns) -> Cells:
        a, b = run_left(columns), run_right(columns)
        return _mask_unknown(compare(sign, a.values, b.values), both_known(a.known, b.known))

    return run


def compare_strings(sign: str, left: Operand, right: Operand) -> Run:
    """Make the comparison of two strings by their bytes: UTF-8 sorts like the characters."""
    if isinstance(left.constant, bytes) and sign in ("==", "!="):
        left, right = right, left
    if isinstance(right.constant, bytes) and sign in ("==", "!="):
        is_equal = find_among(left, [right.constant])
        return is_equal if sign == "==" else lambda columns: invert(is_equal(columns))
    test = COMPARISONS[sign]

    def run(columns: Columns) -> Cells:
        a, b = left.run(columns), right.run(columns)
        texts, others = a.values.tolist(), b.values.tolist()
        num_rows = max(len(texts), len(others)) if texts and others else 0
        pairs = zip(_repeat(texts, num_rows), _repeat(others, num_rows), strict=True)
        values = np.array([test(text, other) for text, other in pairs], np.bool_)
        return _mask_unknown(values, both_known(a.known, b.known))

    return run


def compare_truths(sign: str, left: Operand, right: Operand) -> Run:
    """Make the comparison of two truth values by == or !=."""

    def run(columns: Columns) -> Cells:
        a, b = left.run(columns), right.run(columns)
        values = a.values == b.values if sign == "==" else a.values != b.values
        return _mask_unknown(values, both_known(a.known, b.known))

    return run


def find_among(operand: Operand, values: Sequence[Value]) -> Run:
    """Make the test whether a number or a string is one of some values."""
    if operand.kind == "number":
        numbers = cast("Sequence[float]", values)

        def run_numbers(columns: Columns) -> Cells:
            cells = operand.run(columns)
            return _mask_unknown(is_among(cells.values, numbers, operand.precision), cells.known)

        return run_numbers
    vocabulary = _native.Vocabulary(sorted(set(cast("Sequence[bytes]", values))))

    def run_strings(columns: Columns) -> Cells:
        cells = operand.run(columns)
        strings: Bytes = cells.values
        return _mask_unknown(vocabulary.find(strings.arena, strings.starts, strings.stops) >= 0, cells.known)

    return run_strings


def _round_for(operand: Operand, other: Operand) -> Run:
    if operand.constant is None or other.precision is None:
        return operand.run
    cells = Cells(as_number(cast("float", operand.constant), other.precision))
    return lambda _: cells


def _repeat(strings: list[bytes], num_rows: int) -> list[bytes]:
    return strings * num_rows if len(strings) == 1 else strings[:num_rows]


def _mask_unknown(values: Mask, known: Mask | None) -> Cells:
    """Return truth values that are False where they are unknown, as the other functions require."""
    return Cells(values if known is None else values & known, known)


def _known(cells: Cells) -> Mask:
    return np.ones(1, np.bool_) if cells.known is None else cells.known


def _is_false(cells: Cells) -> Mask:
    mask: Mask = _known(cells) & ~cells.values
    return mask
