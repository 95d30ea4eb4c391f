"""The element types that the bytes of an array may have, judged by the numbers that they make.

In: some values of a bytes field, all of one length. Out: element types, the most plausible first, and whether
the values show one at all: numbers of the right type have usual magnitudes, and neighbours are similar.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.schema.field import TensorDtype

Order: TypeAlias = Literal["<", ">"]

_MOST_ELEMENTS: Final = 1 << 16  # of a value, to judge an element type by
_TINIEST: Final = {"float16": 6.1e-5, "float32": 1e-8, "float64": 1e-8}
LARGEST: Final = 1e8
"""Magnitude of numbers that someone measured or computed."""
MOST_ODD: Final = 1e-3
"""Maximum share of elements beyond the usual magnitudes."""
_MOST_SMALL_INTEGERS: Final = 0.99
FLOATS: Final[tuple[TensorDtype, ...]] = ("float16", "float32", "float64")
"""Floating-point types, the smallest first."""
_MISSING: Final = {"float16": 0x7E00, "float32": 0x7FC00000, "float64": 0x7FF8 << 48}
"""Bits of the NaN that programs write, without its sign; bytes of another type make other ones."""
_INTEGERS: Final[dict[str, int]] = {"int64": 40, "int32": 20}
"""Bits that usual values of a type have at most; values of a wrong type have more."""
_USUAL_INT16: Final = 1 << 13
_FEWEST_VALUES: Final = (
    16  # distinct lower bytes of an integer; fewer distinct bytes are codes of one byte each
)
_LEAST_DIFFERENCE: Final = 0.2  # between the distributions of the upper and lower bytes of an element
_SMOOTH: Final = 0.5  # differences of neighbours, relative to differences of other elements
_ROUGH: Final = 0.8
_HUGE: Final = 1e200  # larger elements, whose sums may overflow, and NaN count as zeros
_STRIDES: Final = (1, 3, 4)  # bytes between neighbours, for each number of channels


def find_types(values: Sequence[bytes], order: Order = "<") -> tuple[TensorDtype, ...]:
    """Return the element types of more than one byte that the values may have, the most plausible first.

    Of several floating-point types the smallest whose numbers all have usual magnitudes comes first, as the
    bytes of another type show as NaN, 1e-30 or 1e30.
    """
    size = len(values[0])
    types: list[TensorDtype] = [
        each for each in (*FLOATS, "int64", "int32") if size % np.dtype(each).itemsize == 0
    ]
    views = {each: _view(values, each, order) for each in types}
    found: list[TensorDtype] = [
        each for each in FLOATS if each in views and _are_usual_floats(views[each], order)
    ]
    found += [each for each in types if each in _INTEGERS and _are_usual_integers(views[each])]
    if size % 2 == 0:
        found += _find_short(values, order)
    return tuple(found)


def find_big_endian(values: Sequence[bytes]) -> TensorDtype | None:
    """Return the element type of values whose bytes are in the reverse order; None if nothing shows that."""
    if find_types(values) or _are_codes(_view(values, "uint8", "<")):
        return None
    return next(iter(find_types(values, ">")), None)


def are_usual_bytes(values: Sequence[bytes]) -> bool:
    """Return whether values are bytes by themselves: few distinct ones, or similar ones of neighbours."""
    elements = _view(values, "uint8", "<")
    if not elements.any():
        return False
    return _are_codes(elements) or min(compare_neighbours(elements, each) for each in _STRIDES) < _SMOOTH


def has_rows(values: Sequence[bytes], dtype: TensorDtype, width: int) -> bool:
    """Return whether elements are like those `width` elements later, as in the rows of an image."""
    return compare_neighbours(_view(values, dtype, "<"), width) < _ROUGH


def _are_codes(elements: NDArray[np.generic]) -> bool:
    return len(np.unique(elements)) <= _FEWEST_VALUES


def _view(values: Sequence[bytes], dtype: str, order: Order) -> NDArray[np.generic]:
    wanted = np.dtype(dtype).newbyteorder(order)
    count = min(len(values[0]) // wanted.itemsize, _MOST_ELEMENTS)
    return np.concatenate([np.frombuffer(value, wanted, count) for value in values])


def _are_usual_floats(values: NDArray[np.generic], order: Order) -> bool:
    with np.errstate(invalid="ignore", over="ignore"):
        numbers = np.abs(values.astype(np.float64))
        lower = (numbers[::2] if order == "<" else numbers[1::2]) > 0
    bits = np.abs(values).view(values.dtype.str.replace("f", "u"))
    is_missing = (bits == _MISSING[values.dtype.name]) | np.isinf(numbers)
    others = numbers[(numbers != 0) & ~is_missing]
    if not len(others) or (len(numbers) > 1 and not lower.any()):
        return False  # the second case: lower halves of larger elements, whose fractions end early
    odd = ~((others >= _TINIEST[values.dtype.name]) & (others <= LARGEST))
    return bool(odd.mean() <= MOST_ODD) and _differ(values[numbers != 0])


def _are_usual_integers(values: NDArray[np.generic]) -> bool:
    """Whether the upper bits are only a sign."""
    numbers = values.astype(np.int64)
    largest = max(abs(int(numbers.max())), abs(int(numbers.min())))
    return bool(numbers.any()) and largest < 1 << _INTEGERS[values.dtype.name]


def _find_short(values: Sequence[bytes], order: Order) -> list[TensorDtype]:
    """Return the type of two bytes of the values, if their upper bytes are not like the lower ones.

    Either most numbers are far smaller than the type allows, or neighbours are similar, but not their bytes.
    """
    signed, unsigned = _view(values, "int16", order), _view(values, "uint16", order)
    numbers = signed.astype(np.float64)
    upper, lower = np.divmod(unsigned.astype(np.int64), 256)
    if len(np.unique(lower)) < _FEWEST_VALUES or not _differ(unsigned[unsigned != 0]):
        return []
    if int(upper.max()) * 4 < int(lower.max()):
        return ["int16"]
    has_signs = numbers.min() < 0 < numbers.max() and abs(numbers.mean()) < numbers.std()
    if has_signs and (np.abs(numbers) < _USUAL_INT16).mean() >= _MOST_SMALL_INTEGERS:
        return ["int16"]
    if compare_neighbours(_view(values, "uint8", "<"), 1) < _ROUGH:
        return []
    found: dict[TensorDtype, float] = {
        "uint16": compare_neighbours(unsigned, 1),
        "int16": compare_neighbours(signed, 1),
    }
    best = min(found, key=found.__getitem__)
    return [best] if found[best] < _SMOOTH else []


def _differ(values: NDArray[np.generic]) -> bool:
    """Return whether the uppermost bytes of elements have other values than the lowest ones."""
    parts = np.ascontiguousarray(values).view(np.uint8).reshape(len(values), -1)
    first, last = (np.bincount(parts[:, at], minlength=256) / len(parts) for at in (0, -1))
    return bool(np.abs(first - last).sum() / 2 >= _LEAST_DIFFERENCE)


def compare_neighbours(elements: NDArray[np.generic], stride: int) -> float:
    """Return the mean difference of neighbours, relative to elements that are far from each other."""
    if len(elements) <= stride:
        return 1.0
    order = np.random.default_rng(0).permutation(len(elements))
    with np.errstate(invalid="ignore", over="ignore"):
        numbers = elements.astype(np.float64)
        numbers[~(np.abs(numbers) < _HUGE)] = 0.0
    others = np.abs(numbers - numbers[order]).mean()
    near = np.abs(numbers[stride:] - numbers[:-stride]).mean()
    return float(near / others) if others else 1.0
