"""Bools as whole numbers: 0 and 1.

In: columns of bools, of `true` and `false` in any case, of 0 and 1. Out: `Dense` of int64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.encode.cell import refuse_rows
from penstock.encode.fault import Report
from penstock.encode.missing import present_cells
from penstock.encode.number import convert_numbers, expect_number
from penstock.encode.plain import settle
from penstock.encode.primitive import primitive_values
from penstock.encode.scatter import convert_objects
from penstock.encode.strings import is_bytes, is_string, trim
from penstock.encode.text import decode_cells
from penstock.source.block import RawColumn
from penstock.types import Dense

_WORDS = pa.array(["false", "true", "0", "1"])  # at even places those that are 0


def convert_flags(raw: RawColumn, report: Report) -> Dense:
    """Return 0 for false and 1 for true."""
    column = settle(raw)
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "O" and column.ndim == 1:
            return convert_objects(column, "int64", convert_flags, lambda _: expect_number("bool"), report)
    elif is_string(column.type) or is_bytes(column.type):
        return _read_words(decode_cells(column, report), report)
    flags = convert_numbers(column, "bool", report, nan_is_missing=True)
    return Dense(flags.values.astype(np.int64), flags.present)


def _read_words(text: pa.Array[Any], report: Report) -> Dense:
    words = pc.utf8_lower(trim(text))
    places = pc.index_in(words, pc.cast(_WORDS, text.type), skip_nulls=True)
    unknown = pc.and_(pc.is_null(places), pc.is_valid(text)).to_numpy(zero_copy_only=False)
    refuse_rows(text, np.flatnonzero(unknown).tolist(), expect_number("bool"), report)
    return Dense(primitive_values(places).astype(np.int64) & 1, present_cells(text))
