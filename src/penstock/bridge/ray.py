"""Records of a split as a `ray.data.Datasource`.

In: a split. Out: read tasks for Ray Data; each reads consecutive records as Arrow tables. A task has
the path of the data set, not its records, so every node must be able to read the files at that path.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from ray.data import Datasource, ReadTask
from ray.data.block import BlockMetadata

from penstock.decode.arrow import arrow_schema

if TYPE_CHECKING:
    from penstock.dataset import Split

_Reopen: TypeAlias = "Callable[..., Split]"


class SplitDatasource(Datasource):  # type: ignore[misc]
    """The records of a split, with some fields or all, for `ray.data.read_datasource`."""

    def __init__(self, split: Split, fields: Iterable[str] | None = None) -> None:
        super().__init__()
        self.split = split
        self.fields = None if fields is None else (fields,) if isinstance(fields, str) else tuple(fields)
        schema = split.schema if self.fields is None else split.schema.select(self.fields)
        self._schema = arrow_schema(schema)
        source = split.as_source()  # refuses records that are not Examples
        self._starts = source.rows.starts
        self._num_bytes = source.rows.shards.num_bytes

    def get_name(self) -> str:
        """Return the name of the read tasks."""
        return "Penstock"

    def estimate_inmemory_data_size(self) -> int | None:
        """Return the size of the shards, which is about the size of the columns of all fields."""
        return self._num_bytes

    def get_read_tasks(
        self,
        parallelism: int,
        per_task_row_limit: int | None = None,
        data_context: Any = None,  # noqa: ARG002 - passed by Ray
    ) -> list[ReadTask]:
        """Return tasks that each read about the same number of consecutive records.

        A task reads whole shards if there are at least twice as many shards as tasks; otherwise, shards are
        divided, so that a few large shards do not limit the number of tasks.
        """
        reopen, arguments = self.split.__reduce__()
        reference = json.dumps(arguments)
        return [
            ReadTask(
                partial(_read, reopen, reference, self.fields, start, stop),
                BlockMetadata(
                    stop - start, self._num_bytes * (stop - start) // max(1, self._starts[-1]), None
                ),
                schema=self._schema,
                per_task_row_limit=per_task_row_limit,
            )
            for start, stop in _divide(self._starts, parallelism)
        ]


def _divide(starts: list[int], parallelism: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows that cover all of them; with many files, at the borders of files."""
    num_rows, num_files = starts[-1], len(starts) - 1
    num_tasks = max(1, min(parallelism, num_rows))
    if num_files >= 2 * num_tasks:
        bounds = [starts[number * num_files // num_tasks] for number in range(num_tasks + 1)]
    else:
        bounds = [number * num_rows // num_tasks for number in range(num_tasks + 1)]
    for start, stop in pairwise(bounds):
        if start < stop:
            yield start, stop


def _read(
    reopen: _Reopen, reference: str, fields: tuple[str, ...] | None, start: int, stop: int
) -> Iterator[pa.Table]:
    """Yield records as tables; this runs in a worker of Ray."""
    for batch in _open(reopen, reference).iter_arrow(fields, start, stop):
        yield pa.Table.from_batches([batch])


@lru_cache(maxsize=4)
def _open(reopen: _Reopen, reference: str) -> Split:
    """Open a split once per worker, which reads many ranges of it."""
    return reopen(*json.loads(reference))
