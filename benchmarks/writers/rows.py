"""The records, one by one, for the writers that loop over them.

In: a task. Out: the kinds of its fields, and an iterator over tuples of values for each pass. What is in
memory has been turned into Python values beforehand; what is on the disk is read anew in every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import pandas as pd
import pyarrow.parquet as pq

from writers.columns import as_rows
from writers.task import Task

Kind = Literal["float", "int64", "bytes", "text"]
# How rows of a frame are taken: as tutorials do, or faster.
Taking = Literal["itertuples", "tolist"]

# Thousands of rows of T a second on one core, the loop alone (pandas 3.1, whose texts are Arrow arrays):
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
    if task.material.source is None:
        columns = as_rows(task)
        fields = tuple((field.name, field.kind, field.length == 1) for field in task.spec.fields)
        return Rows(fields, lambda: zip(*columns, strict=True))
    kinds = {field.name: "text" if field.kind == "bytes" else field.kind for field in task.spec.fields}
    read = _open_csv(task) if task.material.name == "csv" else _open_parquet(task)
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
