"""OpenCV in a plain loop of threads, as one would write it by hand; records are read by Penstock's `columns`.

It reads batches of neighbours in random order, which is less of a shuffle than the others make.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import penstock as ps
from imagefeeds.pixels import decode_into
from imagefeeds.task import SHUFFLE_SEED, ArrayFeed, Batch, Task
from imagefeeds.threads import run_threads


class Feed(ArrayFeed):
    """Each thread reads, decodes and resizes a batch."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._split: Any = ps.open(task.photos.folder / "shards")["train"]
        self._num_batches = len(self._split) // task.batch_size

    def epochs(self) -> Iterator[Batch]:
        """Iterate for ever."""
        return run_threads(self._make_batch, self._task.num_cores)

    def _make_batch(self, number: int) -> Batch:
        epoch, step = divmod(number, self._num_batches)
        order = np.random.default_rng((SHUFFLE_SEED, epoch)).permutation(self._num_batches)
        start = int(order[step]) * self._task.batch_size
        columns = self._split.columns(start, start + self._task.batch_size)
        files = columns["image"]
        rng = np.random.default_rng((SHUFFLE_SEED, number))
        size = self._task.size
        images = np.empty((len(files.starts), size, size, 3), np.uint8)
        for i, (begin, end) in enumerate(zip(files.starts.tolist(), files.stops.tolist(), strict=True)):
            decode_into(self._task, files.arena[begin:end], images[i], rng)
        return {"image": images}, {"label": columns["label"].values}
