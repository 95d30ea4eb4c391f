"""webdataset over tar files of the same pictures, decoded by OpenCV; one thread, as it is without torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import webdataset

from image_feeds.opencv import decode_into
from image_feeds.task import SHUFFLE_BUFFER, SHUFFLE_SEED, ArrayFeed, Batch, Task
from photos import NUM_SHARDS


class Feed(ArrayFeed):
    """Files shuffled as they are stored, then decoded, then batched."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._rng = np.random.default_rng(SHUFFLE_SEED)
        stored = webdataset.WebDataset(task.photos.tars, shardshuffle=NUM_SHARDS, seed=SHUFFLE_SEED)
        samples = stored.repeat().shuffle(SHUFFLE_BUFFER).map(self._decode)
        self._batches: Any = samples.batched(task.batch_size, collation_fn=self._join, partial=False)

    def epochs(self) -> Iterator[Batch]:
        """Iterate indefinitely."""
        return iter(self._batches)

    def _decode(self, sample: dict[str, Any]) -> tuple[Any, int]:
        image = np.empty((self._task.size, self._task.size, 3), np.uint8)
        data = np.frombuffer(sample[self._task.photos.format], np.uint8)
        decode_into(self._task, data, image, self._rng)
        return image, int(sample["cls"])

    def _join(self, samples: list[tuple[Any, int]]) -> Batch:
        images, labels = zip(*samples, strict=True)
        return {"image": np.stack(images)}, {"label": np.array(labels)}
