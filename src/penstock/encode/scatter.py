"""Columns of mixed objects: each type is converted as a column of its own.

In: arrays of objects. Out: `Dense`, with each value in its row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.encode.fault import Report, report_rows
from penstock.encode.missing import tidy
from penstock.encode.plain import group_objects
from penstock.foundation.wording import show
from penstock.source.block import RawColumn
from penstock.types import Dense


def convert_objects(
    objects: NDArray[Any],
    dtype: str,
    convert: Callable[[RawColumn, Report], Dense],
    expect: Callable[[object], str],
    report: Report,
) -> Dense:
    """Convert objects type by type; those that no column holds are reported by what `expect` says of them."""
    values = np.zeros(len(objects), dtype)
    present = np.zeros(len(objects), np.bool_)
    for rows, column in group_objects(objects):
        present[rows] = True
        if column is None:
            value = objects[rows[0]]
            report(int(rows[0]), expect(value), show(value))
            continue
        part = convert(column, report_rows(report, rows))
        values[rows] = part.values
        if part.present is not None:
            present[rows] = part.present
    return Dense(values, tidy(present))
