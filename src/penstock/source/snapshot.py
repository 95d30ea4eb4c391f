"""Samples as they were when they came: whoever makes them may fill the same array or dict again.

In: samples. Out: dicts whose values nobody else changes; values that cannot change are not copied.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from penstock.errors import SourceError
from penstock.foundation.json_text import MAX_DEPTH

_FIXED: Final = frozenset(
    {
        *(type(None), bool, int, float, str, bytes),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta),
        *(np.bool_, np.int32, np.int64, np.float32, np.float64, np.str_, np.datetime64),
    }
)


def own_sample(sample: Mapping[str, Any], row: int) -> dict[str, Any]:
    """Return a sample that shares nothing with its maker that can change.

    Args:
        sample: Values by column.
        row: Its number, from 0, for the error.

    Raises:
        SourceError: Lists lie deeper in one another than `MAX_DEPTH`, or in themselves.
    """
    owned = dict(sample)
    for name, value in owned.items():
        if type(value) in _FIXED:
            continue
        try:
            owned[name] = own(value)
        except RecursionError:
            raise _too_deep(name, row) from None
    return owned


def check_depth(name: str, values: Iterable[Any]) -> None:
    """Refuse lists that are too deep: making a column of them would end the process.

    Raises:
        SourceError: A value has more levels than `MAX_DEPTH`.
    """
    nested = [(row, value) for row, value in enumerate(values) if isinstance(value, (list, tuple))]
    for _ in range(MAX_DEPTH):
        nested = [
            (row, item)
            for row, value in nested
            if not _FIXED.issuperset(map(type, value))
            for item in value
            if isinstance(item, (list, tuple))
        ]
        if not nested:
            return
    raise _too_deep(name, nested[0][0])


def _too_deep(name: object, row: int) -> SourceError:
    return SourceError(
        "depth of the value",
        row=row + 1,
        field=str(name),
        expected=f"at most {MAX_DEPTH} lists in one another",
        got="more",
        advice="Flatten it, or leave it out.",
    )


def own(value: Any, depth: int = 0) -> Any:
    """Return a value, or a copy of it where it can change.

    Raises:
        RecursionError: It is deeper than `MAX_DEPTH`.
    """
    if type(value) in _FIXED:
        return value
    if depth > MAX_DEPTH:
        raise RecursionError(f"more than {MAX_DEPTH} levels")
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, (list, tuple)):
        return _own_items(value, depth)
    if isinstance(value, Mapping):
        return {key: own(inner, depth + 1) for key, inner in value.items()}
    return _own_array(value, depth)


def _own_items(value: list[Any] | tuple[Any, ...], depth: int) -> Any:
    is_fixed = _FIXED.issuperset(map(type, value))
    if type(value) is not list and is_fixed:
        return value
    if is_fixed:
        return list(value)
    items = [own(item, depth + 1) for item in value]
    return items if isinstance(value, list) else tuple(items)


def _own_array(value: Any, depth: int) -> Any:
    if isinstance(value, np.ndarray):
        owned = value.copy()
        if value.dtype == object and not _FIXED.issuperset(map(type, _flat(value))):
            for place in np.ndindex(value.shape):
                owned[place] = own(value[place], depth + 1)
        return owned
    # Arrow's arrays have the method too, and cannot change; so have the single values of NumPy.
    if hasattr(value, "__array__") and not isinstance(value, (np.generic, pa.Array, pa.ChunkedArray)):
        return np.array(value)
    return value


def _flat(value: np.ndarray[Any, Any]) -> Iterable[Any]:
    items: Iterable[Any] = value.flat
    return items
