"""Bytes that are to be text: which of them are not UTF-8.

In: a column of bytes. Out: row numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.types import Bytes


def find_invalid(column: Bytes) -> list[int]:
    """Return the rows that are not UTF-8."""
    if not len(column.arena) or (_is_valid(column.arena) and _has_clean_edges(column)):
        return []
    return [row for row, value in enumerate(column) if not _is_text(value)]


def _is_valid(arena: NDArray[np.uint8]) -> bool:
    # All values as if they were one: Arrow checks many bytes at a step, but each value costs it a call.
    offsets = np.array([0, len(arena)], np.int64)
    buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(arena.data)]
    whole: pa.Array[Any] = pa.Array.from_buffers(pa.large_string(), 1, buffers)
    try:
        whole.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _has_clean_edges(column: Bytes) -> bool:
    """Return whether no value begins or ends inside a character, given that all bytes together are UTF-8."""
    for edges in (column.starts, column.stops):
        inside = edges[edges < len(column.arena)]
        if ((column.arena[inside] & 0xC0) == 0x80).any():
            return False
    return True


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
