"""Checks of values in a declaration, above all of the default of a field.

In: a value given by a user. Out: an immutable value of the declared type, or a `SchemaError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.foundation.wording import refuse, show

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_FLOAT32_MAX = float(np.finfo(np.float32).max)

Check: TypeAlias = Callable[[str, str, object], Any]
"""Checks one value: (owner, path, value) → the normalized value. The path is for the error message."""


def check_int64(owner: str, path: str, value: object) -> int:
    """Return an int that fits an int64 list."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, int) or isinstance(value, bool):
        raise refuse(owner, path, expected="an int", got=show(value))
    if not _INT64_MIN <= value <= _INT64_MAX:
        raise refuse(owner, path, expected="a signed 64-bit int", got=show(value))
    return int(value)


def check_float32(owner: str, path: str, value: object) -> float:
    """Return a float that fits a float list; NaN and infinities are allowed."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise refuse(owner, path, expected="a number", got=show(value))
    # Ints are compared without conversion: float() of a huge int raises.
    if _FLOAT32_MAX < abs(value) < math.inf:
        raise refuse(owner, path, expected="a number in the range of float32", got=show(value))
    return float(value)


def check_float64(owner: str, path: str, value: object) -> float:
    """Return a float; NaN and infinities are allowed."""
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise refuse(owner, path, expected="a number", got=show(value))
    try:
        return float(value)
    except OverflowError:
        raise refuse(owner, path, expected="a number in the range of float64", got=show(value)) from None


def check_string(owner: str, path: str, value: object) -> str:
    """Return a str that can be encoded as UTF-8."""
    if not isinstance(value, str):
        advice = "Decode it, or use a Bytes field." if isinstance(value, bytes) else ""
        raise refuse(owner, path, expected="a str", got=show(value), advice=advice)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise refuse(owner, path, expected="a str that can be encoded as UTF-8", got=show(value)) from None
    return str(value)


def check_bytes(owner: str, path: str, value: object) -> bytes:
    """Return bytes."""
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise refuse(owner, path, expected="bytes", got=show(value))
    return bytes(value)


VALUE_CHECKS: dict[str, Check] = {
    "int64": check_int64,
    "float32": check_float32,
    "float64": check_float64,
    "string": check_string,
    "bytes": check_bytes,
}
"""Checks by element type."""


def check_list(
    owner: str, path: str, value: object, dtype: str, shape: tuple[int, ...] | None = ()
) -> tuple[Any, ...]:
    """Return a tuple of values, or of steps: tuples of `shape[0]` values (any number if `shape` is None)."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        raise refuse(owner, path, expected="a list", got=show(value))
    if shape == ():
        check = VALUE_CHECKS[dtype]
        return tuple(check(owner, f"{path}[{i}]", item) for i, item in enumerate(value))
    steps = tuple(check_list(owner, f"{path}[{i}]", step, dtype) for i, step in enumerate(value))
    for i, step in enumerate(steps):
        if shape is not None and len(step) != shape[0]:
            raise refuse(
                owner, f"{path}[{i}]", expected=f"a step of {shape[0]} values", got=f"{len(step)} values"
            )
    return steps


def check_array(owner: str, path: str, value: object, shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Return a read-only array of a shape and type; values that do not fit the type are an error."""
    try:
        given = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        raise refuse(owner, path, expected="an array", got=show(value)) from None
    if given.shape != shape:
        raise refuse(owner, path, expected=f"an array of shape {shape}", got=f"shape {given.shape}")
    # Bools for a bool array and numbers for a numeric one: True instead of 1 is usually a mistake.
    if given.dtype.kind not in ("b" if dtype == "bool" else "iuf"):
        raise refuse(owner, path, expected=f"values of {dtype}", got=f"values of {given.dtype.name}")
    with np.errstate(all="ignore"):
        kept = given.astype(dtype)
    if not _holds(kept, given):
        raise refuse(owner, path, expected=f"values that {dtype} can hold", got=show(given.tolist()))
    kept.flags.writeable = False
    return kept


def _holds(kept: NDArray[Any], given: NDArray[Any]) -> bool:
    """Whether a conversion kept the values: ints exactly; floats may be rounded, but not to infinity."""
    if kept.dtype.kind == "f":
        return bool(np.array_equal(np.isfinite(kept), np.isfinite(given)))
    # Compared as Python ints: NumPy would compare uint64 with int64 as float64.
    return bool(kept.tolist() == given.tolist())


def identify(value: Any) -> object:
    """Return a hashable key, equal for defaults with the same bits: NaN equals NaN, -0.0 is not 0.0."""
    if isinstance(value, np.ndarray):
        return value.dtype.name, value.shape, value.tobytes()
    if isinstance(value, tuple):
        return tuple(identify(item) for item in value)
    if isinstance(value, float):
        return value.hex()
    return value
