"""Grain over ArrayRecord files of the same pictures, decoded by OpenCV in as many threads as cores."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import grain
import numpy as np
from grain.sources import ArrayRecordDataSource

from image_feeds.opencv import decode_into
from image_feeds.task import SHUFFLE_SEED, ArrayFeed, Batch, Task
from image_feeds.threads import BATCHES_AHEAD

LABEL = struct.Struct("<q")


class Feed(ArrayFeed):
    """A true shuffle, reads and decoding in threads, then batches."""

    def __init__(self, task: Task) -> None:
        self._task = task
        if not task.photos.arrays:
            raise FileNotFoundError("the pictures were made without array_record; remove them and try again")
        records = grain.MapDataset.source(ArrayRecordDataSource(task.photos.arrays)).seed(SHUFFLE_SEED)
        order = records.shuffle().repeat()
        # A generator for each record is not free.
        samples = order.random_map(self._decode) if task.is_cropped else order.map(self._decode)
        threads = grain.ReadOptions(
            num_threads=task.num_cores, prefetch_buffer_size=BATCHES_AHEAD * task.batch_size
        )
        self._batches: Any = samples.to_iter_dataset(threads).batch(task.batch_size, drop_remainder=True)

    def epochs(self) -> Iterator[Batch]:
        """Iterate indefinitely."""
        return (({"image": batch["image"]}, {"label": batch["label"]}) for batch in self._batches)

    def _decode(self, record: bytes, rng: np.random.Generator | None = None) -> dict[str, Any]:
        image = np.empty((self._task.size, self._task.size, 3), np.uint8)
        decode_into(self._task, np.frombuffer(record, np.uint8, offset=LABEL.size), image, rng)
        return {"image": image, "label": LABEL.unpack_from(record)[0]}
