"""tf.data as tutorials write it: each example parsed, decoded, resized, divided by 255, shuffled, batched.

As it is, the default resize; "antialias", the better one; "float", of floats, as older tutorials have it;
"crops", of a random part; "plain", none.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from imagefeeds.task import SHUFFLE_BUFFER, Batch
from imagefeeds.tensors import FEATURES, TensorFeed, draw_box


class Feed(TensorFeed):
    """Builds the pipeline of the variant."""

    def build(self, records: Any) -> Any:
        samples = records.map(self._parse, num_parallel_calls=tf.data.AUTOTUNE)
        return samples.shuffle(SHUFFLE_BUFFER).batch(self.task.batch_size).prefetch(tf.data.AUTOTUNE)

    def _parse(self, record: Any) -> Batch:
        example = tf.io.parse_single_example(record, FEATURES)
        image = self.decode(example["image"])
        if self.task.is_cropped:
            begin, size = draw_box(tf.shape(image))
            image = tf.slice(image, begin, size)
        side = self.task.size
        if self.task.variant == "float":
            image = tf.image.resize(tf.image.convert_image_dtype(image, tf.float32), (side, side))
            return {"image": image}, {"label": example["label"]}
        if self.task.variant == "plain":
            image = tf.ensure_shape(tf.cast(image, tf.float32), (side, side, 3))
        else:
            image = tf.image.resize(image, (side, side), antialias=self.task.variant == "antialias")
        return {"image": image / 255.0}, {"label": example["label"]}
