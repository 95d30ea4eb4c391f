"""Penstock: `split.columns(start, stop)`, batch by batch; on two cores by two threads, delivered in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import penstock as ps
from penstock.columns import Bytes, Column, Columns, Dense, Ragged
from readers.task import Tally, Task

# Batches decoded ahead of the consumer, for each thread: enough that none waits, few enough for flat memory.
BATCHES_AHEAD = 2


class Reader:
    """Opens the shards as one split and reads ranges of it."""

    def __init__(self, task: Task) -> None:
        dataset = ps.open([str(path) for path in task.shards("tfrecord")])
        if len(dataset.splits) != 1:
            raise ValueError(f"expected the shards to form one split, got {dataset.splits}")
        self._split = dataset[dataset.splits[0]]
        is_partial = len(task.fields) < len(task.spec.fields)
        self._fields = [field.name for field in task.fields] if is_partial else None
        self._num_threads = task.num_cores
        self._starts = range(0, len(self._split), task.batch_size)

    def batches(self) -> Iterator[Columns]:
        """Decode one range after the other, in this thread or ahead of it."""
        if self._num_threads == 1:
            yield from map(self._read, self._starts)
            return
        ahead: deque[Future[Columns]] = deque()
        with ThreadPoolExecutor(self._num_threads) as pool:
            for start in self._starts:
                ahead.append(pool.submit(self._read, start))
                if len(ahead) > BATCHES_AHEAD * self._num_threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()

    def _read(self, start: int) -> Columns:
        stop = min(start + self._starts.step, len(self._split))
        return self._split.columns(start, stop, fields=self._fields)

    def touch(self, batch: Columns) -> Tally:
        """Read one element of each column, and all labels."""
        for column in batch.values():
            _touch_column(column)
        labels = batch["label"]
        if not isinstance(labels, Dense):
            raise TypeError(f"expected the labels as one dense column, got {labels!r}")
        return Tally(len(labels), int(labels.values.sum()))


def _touch_column(column: Column) -> None:
    if isinstance(column, Bytes):
        column.arena[column.starts[0]]
    elif isinstance(column, Ragged):
        column.values[column.offsets[0]]
    else:
        column.values[0]
