"""tf.data as tutorials write it: one `parse_single_example` a record, then batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from contestants.task import Tally, Task
from contestants.tensors import describe_features, limit_threads, touch_tensors


class Reader:
    """Builds the pipeline; a pass is one iterator over it."""

    def __init__(self, task: Task) -> None:
        limit_threads(task.num_cores)
        features = describe_features(task, tf.io.VarLenFeature)
        records = tf.data.TFRecordDataset([str(path) for path in task.shards("tfrecord")])
        samples = records.map(lambda record: tf.io.parse_single_example(record, features))
        self._dataset = samples.batch(task.batch_size).prefetch(tf.data.AUTOTUNE)

    def batches(self) -> Iterator[dict[str, Any]]:
        """Iterate eagerly."""
        return iter(self._dataset)

    def touch(self, batch: dict[str, Any]) -> Tally:
        """Look at every tensor."""
        return touch_tensors(batch)
