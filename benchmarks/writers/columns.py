"""The columns in memory, as each writer likes them best.

In: a task. Out: arrays for those that take columns, plain Python values for those that loop over records.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from content import Values, make_columns
from datasets import Field
from writers.task import Task


@cache
def draw_columns(task: Task) -> dict[str, Values]:
    """Draw the values of the read benchmark: arrays for numbers, lists of bytes or of arrays for the rest."""
    spec = task.spec
    if spec is None:
        raise ValueError("images have no columns")
    num_shards = -(-task.num_records // spec.records_per_shard)
    shards = [make_columns(spec, shard) for shard in range(num_shards)]
    columns: dict[str, Values] = {}
    for field in spec.fields:
        parts = [shard.pop(field.name) for shard in shards]
        if isinstance(parts[0], np.ndarray):
            columns[field.name] = np.concatenate(parts)[: task.num_records]
        else:
            columns[field.name] = [value for part in parts for value in part][: task.num_records]
    return columns


def as_columns(task: Task) -> dict[str, Any]:
    """Return a dict of columns, as a program holds them that has them from a table or from arrays.

    Numbers and vectors are NumPy arrays, blobs a list of bytes. Words and lists of ids are Arrow arrays, as
    they are in every table of pandas, polars or pyarrow, or lists of Python values if the variant is "lists".
    """
    columns = draw_columns(task)
    return {field.name: _shape(field, columns[field.name], task) for field in _fields(task)}


def as_rows(task: Task) -> list[list[Any]]:
    """Return plain Python values, column by column; a loop turns them into records fastest."""
    return [_to_plain(values) for values in draw_columns(task).values()]


def _fields(task: Task) -> tuple[Field, ...]:
    return () if task.spec is None else task.spec.fields


def _shape(field: Field, values: Any, task: Task) -> Any:
    if field.name == "blob" or isinstance(values, np.ndarray):
        return values
    if field.kind == "bytes":
        words = [word.decode() for word in values]
        return words if task.variant == "lists" else pa.array(words)
    if task.variant == "lists":
        return values
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in values])])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(np.concatenate(values)))


def _to_plain(values: Values) -> list[Any]:
    if isinstance(values, np.ndarray):
        plain: list[Any] = values.tolist()
        return plain
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
