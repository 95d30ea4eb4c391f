"""What the tf.data feeds of images share: a data set as a feed, the feature spec, boxes of random crops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from contestants.tensors import limit_threads
from imagefeeds.task import CROP_AREA, CROP_ASPECT, Batch, Task

FEATURES = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}


class TensorFeed:
    """A tf.data pipeline as a feed."""

    def __init__(self, task: Task) -> None:
        limit_threads(task.num_cores)
        self.task = task
        # Repeated here, no buffer runs empty between two epochs, which is the best case. From the page
        # cache, reading the shards one behind the other is faster than interleaving them.
        records = tf.data.TFRecordDataset(task.photos.shards).repeat()
        self._dataset = self.build(records)

    def build(self, records: Any) -> Any:
        """Make the pipeline behind serialized records."""
        raise NotImplementedError

    def epochs(self) -> Iterator[Batch]:
        """Iterate eagerly."""
        return iter(self._dataset)

    def to_tensors(self, batch: Batch) -> Batch:
        """Leave it as it is."""
        return batch

    def decode(self, data: Any) -> Any:
        """Decode all of one picture."""
        is_png = self.task.photos.format == "png"
        return tf.io.decode_png(data, channels=3) if is_png else tf.io.decode_jpeg(data, channels=3)


def draw_box(shape: Any) -> tuple[Any, Any]:
    """Draw where a random crop begins, and its size; (y, x, 0) and (height, width, -1), as ops take them."""
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        shape,
        bounding_boxes=tf.zeros([1, 0, 4]),
        aspect_ratio_range=CROP_ASPECT,
        area_range=CROP_AREA,
        max_attempts=10,
        use_image_if_no_bounding_boxes=True,
        min_object_covered=0.0,
    )
    return begin, size
