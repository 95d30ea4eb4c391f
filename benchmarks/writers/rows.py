"""The records, one by one, for the writers that loop over them.

In: a task. Out: the kinds of its fields, and an iterator over tuples of values for each pass. Data in
memory has been turned into Python values beforehand; files on the disk are read anew in every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from datasets import Field
from values import Values, make_columns
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


Kind = Literal["float", "int64", "bytes", "text"]
# How rows of a frame are taken: as tutorials do, or faster.
Taking = Literal["itertuples", "tolist"]

# Thousands of rows of T per second on one core, the loop alone (pandas 3.1, whose texts are Arrow arrays):
#
#   zip(*(frame[name].tolist() for name in frame))   310   <- "tolist"
#   frame.values.tolist()                            110 - 250
#   frame.itertuples(index=False, name=None)          56   <- "itertuples"
#   frame.itertuples(index=False)                     54
#   frame.to_dict("records")                          35


@dataclass(frozen=True)
class Rows:
    """The fields by name, kind, and whether they hold one value; and what gives the rows of a pass."""

    fields: tuple[tuple[str, Kind, bool], ...]
    take: Callable[[], Iterable[tuple[Any, ...]]]


def open_rows(task: Task, taking: Taking) -> Rows:
    """Make the rows of a task ready."""
    if task.spec is None:
        return Rows((("image", "bytes", True), ("label", "int64", True)), lambda: _read_images(task))
    if task.raw.source is None:
        columns = as_rows(task)
        fields = tuple((field.name, field.kind, field.length == 1) for field in task.spec.fields)
        return Rows(fields, lambda: zip(*columns, strict=True))
    kinds = {field.name: "text" if field.kind == "bytes" else field.kind for field in task.spec.fields}
    read = _open_csv(task) if task.raw.name == "csv" else _open_parquet(task)
    return Rows(
        tuple((name, kind, True) for name, kind in kinds.items()),  # type: ignore[misc]
        lambda: _take(read(), taking),
    )


def _take(frame: pd.DataFrame, taking: Taking) -> Iterable[tuple[Any, ...]]:
    if taking == "itertuples":
        return frame.itertuples(index=False, name=None)
    return zip(*(frame[name].tolist() for name in frame), strict=True)


def _open_csv(task: Task) -> Callable[[], pd.DataFrame]:
    """Cut as many rows off the file as are asked for."""
    head = task.scratch / "head.csv"
    with task.source.open() as file, head.open("w") as cut:
        cut.writelines(islice(file, 1 + task.num_records))
    return lambda: pd.read_csv(head)


def _open_parquet(task: Task) -> Callable[[], pd.DataFrame]:
    head = task.scratch / "head.parquet"
    pq.write_table(pq.read_table(task.source).slice(0, task.num_records), head)
    return lambda: pd.read_parquet(head)


def _read_images(task: Task) -> Iterable[tuple[bytes, int]]:
    folders = sorted(path for path in task.source.iterdir() if path.is_dir())
    files = ((path, label) for label, folder in enumerate(folders) for path in sorted(folder.iterdir()))
    for path, label in islice(files, task.num_records):
        yield path.read_bytes(), label
