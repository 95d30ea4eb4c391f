"""Arithmetic and comparison of numbers, with the results that Python gives for each row.

In: arrays of int64, of float64, or of Python integers where 64 bits are not enough. Out: such arrays, and
masks. The result of a row depends on its own values alone, not on the other rows of its block.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Mask

Numbers: TypeAlias = NDArray[Any]

_INT64 = np.iinfo(np.int64)
# Integers up to this one are exact as doubles.
_EXACT: Final = 1 << 53
_FEW_VALUES: Final = 8  # comparing with each is faster than looking up each number
_COMBINE: dict[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def as_numbers(values: NDArray[Any]) -> Numbers:
    """Return numbers of any type as one of the array types of this module."""
    if values.dtype.kind == "f":
        return values.astype(np.float64, copy=False)
    if values.dtype == np.uint64 and _largest(values) > _INT64.max:
        return values.astype(object)
    return values.astype(np.int64, copy=False)


def as_number(value: float, precision: str | None = None) -> Numbers:
    """Return one number as an array, rounded to the type of the field that it is compared with."""
    if precision is not None:
        with np.errstate(over="ignore"):
            rounded = float(np.dtype(precision).type(_as_double(value)))
        # A number too large for the field is not rounded, so that it is not equal to infinity.
        if math.isfinite(rounded):
            return np.array([rounded])
    if isinstance(value, float):
        return np.array([value])
    return np.array([value], np.int64 if _INT64.min <= value <= _INT64.max else object)


def combine(sign: str, left: Numbers, right: Numbers) -> tuple[Numbers, Mask | None]:
    """Return the result of + - * / or %, and the rows without one because of a division by zero."""
    if sign in ("/", "%"):
        return _divide(sign, left, right)
    if _has_floats(left) or _has_floats(right):
        return _COMBINE[sign](_as_doubles(left), _as_doubles(right)), None
    bounds = _largest(left), _largest(right)
    if (bounds[0] * bounds[1] if sign == "*" else sum(bounds)) > _INT64.max:
        left, right = left.astype(object), right.astype(object)
    return _COMBINE[sign](left, right), None


def compare(sign: str, left: Numbers, right: Numbers) -> Mask:
    """Return the rows for which a comparison is true."""
    if _has_floats(left) != _has_floats(right):
        whole = right if _has_floats(left) else left
        if _largest(whole) > _EXACT:  # rounding to doubles could make different numbers equal
            left, right = left.astype(object), right.astype(object)
    mask: Mask = COMPARISONS[sign](left, right).astype(np.bool_, copy=False)
    return mask


def is_among(numbers: Numbers, values: Sequence[float], precision: str | None = None) -> Mask:
    """Return which numbers are equal to one of some values; see `as_number`."""
    candidates = [as_number(value, precision) for value in values]
    if len(candidates) > _FEW_VALUES:
        wanted = {candidate.tolist()[0] for candidate in candidates}
        return np.array([number in wanted for number in numbers.tolist()], np.bool_)
    mask = np.zeros(len(numbers), np.bool_)
    for candidate in candidates:
        mask |= compare("==", numbers, candidate)
    return mask


def _divide(sign: str, left: Numbers, right: Numbers) -> tuple[Numbers, Mask | None]:
    zero: Mask = compare("==", right, as_number(0))
    right = np.where(zero, np.ones(1, right.dtype), right)
    undefined = zero if zero.any() else None
    if _has_floats(left) or _has_floats(right):
        left, right = _as_doubles(left), _as_doubles(right)
    elif object in (left.dtype, right.dtype) or (sign == "/" and max(map(_largest, (left, right))) > _EXACT):
        pairs = zip(*np.broadcast_arrays(left.astype(object), right.astype(object)), strict=True)
        if sign == "%":
            return np.array([a % b for a, b in pairs], object), undefined
        return np.array([_quotient(a, b) for a, b in pairs], np.float64), undefined
    return (np.true_divide if sign == "/" else np.remainder)(left, right), undefined


def _quotient(left: int, right: int) -> float:
    try:
        return left / right
    except OverflowError:
        return math.inf if (left > 0) == (right > 0) else -math.inf


def _has_floats(numbers: Numbers) -> bool:
    return numbers.dtype == np.float64


def _largest(numbers: Numbers) -> int:
    """Return the largest absolute value of integers."""
    return max(abs(int(numbers.min())), abs(int(numbers.max()))) if len(numbers) else 0


def _as_doubles(numbers: Numbers) -> NDArray[np.float64]:
    if numbers.dtype != object:
        return numbers.astype(np.float64, copy=False)
    return np.array([_as_double(number) for number in numbers.tolist()], np.float64)


def _as_double(number: float) -> float:
    """Return a number as a double; infinite if it is too large for one."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
