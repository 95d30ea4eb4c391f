"""tf.data, tuned: serialized records shuffled, uint8 out, no more threads than cores, any order.

As it is, the default resize; "antialias", the better one; "half", decoded at half the size before it;
"crops", only the part decoded that is needed; "plain", not resized.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from imagefeeds.task import SHUFFLE_BUFFER, Batch
from imagefeeds.tensors import FEATURES, TensorFeed, draw_box

# 500x375 to 224, images per CPU-second on one core, medians of five interleaved turns on a busy machine:
#
#   as many parallel calls as cores in a private pool; AUTOTUNE in it; no pool of its own     697, 686, 679
#   floats rounded instead of cut off: in a private pool; without one                              663, 711
#   `tf.image.resize` instead of its operation, AUTOTUNE, no pool                                       714
#   as tutorials write it; shuffled before it is decoded; floats before they are resized      617, 609, 560
#
# Turns differ by 10 %, so the first six are alike. Slower in a trial before that, by 5 to 25 %: a vectorised
# parser with `map_fn` over the batch or with `unbatch`, `batch` with parallel calls, whole batches resized at
# once, floats batched and then cast.


class Feed(TensorFeed):
    """Builds the pipeline of the variant."""

    def build(self, records: Any) -> Any:
        samples = records.shuffle(SHUFFLE_BUFFER).map(
            self._parse, num_parallel_calls=self.task.num_cores, deterministic=False
        )
        options = tf.data.Options()
        options.deterministic = False
        options.threading.private_threadpool_size = self.task.num_cores
        return samples.batch(self.task.batch_size).prefetch(tf.data.AUTOTUNE).with_options(options)

    def _parse(self, record: Any) -> Batch:
        example = tf.io.parse_single_example(record, FEATURES)
        data, side = example["image"], self.task.size
        if self.task.variant == "plain":
            image = tf.ensure_shape(self.decode(data), (side, side, 3))
        else:
            image = self._resize(self._decode_part(data))
        return {"image": image}, {"label": example["label"]}

    def _decode_part(self, data: Any) -> Any:
        if self.task.is_cropped:
            begin, size = draw_box(tf.io.extract_jpeg_shape(data))
            window = tf.concat([begin[:2], size[:2]], 0)
            return tf.io.decode_and_crop_jpeg(data, window, channels=3)
        if self.task.variant == "half":
            return tf.io.decode_jpeg(data, channels=3, ratio=2)
        return self.decode(data)

    def _resize(self, image: Any) -> Any:
        """Resize, and make bytes of the floats that come out.

        What is behind the point is cut off, as most people write it, for it is quicker; but rounded where
        good pixels are asked for, which is nothing beside that resize.
        """
        size = (self.task.size, self.task.size)
        if "antialias" in self.task.variant:
            return tf.cast(tf.image.resize(image, size, antialias=True) + 0.5, tf.uint8)
        floats = tf.raw_ops.ResizeBilinear(images=image[None], size=size, half_pixel_centers=True)[0]
        return tf.cast(floats, tf.uint8)
