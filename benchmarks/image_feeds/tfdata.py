"""tf.data as tutorials write it: each example parsed, decoded, resized, divided by 255, shuffled, batched.

As it is, the default resize; "antialias", the better one; "float", of floats, as older tutorials have it;
"crops", of a random part; "plain", none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from image_feeds.task import CROP_AREA, CROP_ASPECT, SHUFFLE_BUFFER, Batch, Task
from readers.tfdata import limit_threads

FEATURES = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}


class TensorFeed:
    """A tf.data pipeline as a feed."""

    def __init__(self, task: Task) -> None:
        limit_threads(task.num_cores)
        self.task = task
        # Repeated here, no buffer runs empty between two epochs, which is the best case. From the page
        # cache, reading the shards in order is faster than interleaving them.
        records = tf.data.TFRecordDataset(task.photos.shards).repeat()
        self._dataset = self.build(records)

    def build(self, records: Any) -> Any:
        """Make the pipeline that follows serialized records."""
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


class TunedFeed(TensorFeed):
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

        Fractions are cut off, as most people write it, for it is quicker; but rounded where
        good pixels are asked for, which costs little compared to that resize.
        """
        size = (self.task.size, self.task.size)
        if "antialias" in self.task.variant:
            return tf.cast(tf.image.resize(image, size, antialias=True) + 0.5, tf.uint8)
        floats = tf.raw_ops.ResizeBilinear(images=image[None], size=size, half_pixel_centers=True)[0]
        return tf.cast(floats, tf.uint8)


class TutorialFeed(TensorFeed):
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
