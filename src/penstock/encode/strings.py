"""Arrow arrays of strings or bytes as `Bytes`, without a copy of what they hold.

In: Arrow arrays of variable-width values. Out: `Bytes`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.encode.plain import present_cells, view_buffer
from penstock.types import Bytes


def is_bytes(kind: pa.DataType) -> bool:
    """Return whether a plain type is one of byte strings."""
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def is_string(kind: pa.DataType) -> bool:
    """Return whether a plain type is one of text."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def as_bytes(array: pa.Array[Any]) -> Bytes:
    """Return an array of strings or bytes as a column that shares its memory; missing rows have no bytes."""
    present = present_cells(array)
    if not len(array):
        return no_bytes(0, present)
    _, offset_buffer, value_buffer = array.buffers()
    is_large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    dtype = np.int64 if is_large else np.int32
    offsets = view_buffer(offset_buffer, dtype, len(array) + 1, array.offset).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    if first == last or value_buffer is None:
        return no_bytes(len(array), present)
    arena = view_buffer(value_buffer, np.uint8, last - first, first)
    offsets -= first
    starts, stops = offsets[:-1], offsets[1:]
    if present is not None:
        # Nothing forbids bytes below a null.
        stops = np.where(present, stops, starts)
    return Bytes(arena, starts, stops, present)


def trim(text: pa.Array[Any]) -> pa.Array[Any]:
    """Return text without white space around it."""
    # Of the white space beyond ASCII, no byte is below 0x80.
    is_clean = ((as_bytes(text).arena - 33) < 127 - 33).all()
    return text if is_clean else pc.utf8_trim_whitespace(text)


def no_bytes(num_rows: int, present: NDArray[np.bool_] | None) -> Bytes:
    """Return a column of empty values."""
    return Bytes.from_offsets(np.zeros(0, np.uint8), np.zeros(num_rows + 1, np.int64), present)


def join_bytes(values: Iterable[bytes | memoryview | None]) -> Bytes:
    """Return a column of values that lie anywhere; None is missing."""
    cells = list(values)
    offsets = np.zeros(len(cells) + 1, np.int64)
    np.cumsum(
        np.fromiter((0 if cell is None else len(cell) for cell in cells), np.int64, len(cells)),
        out=offsets[1:],
    )
    arena = np.frombuffer(b"".join(cell for cell in cells if cell is not None), np.uint8)
    present = np.fromiter((cell is not None for cell in cells), np.bool_, len(cells))
    return Bytes.from_offsets(arena, offsets, None if present.all() else present)
