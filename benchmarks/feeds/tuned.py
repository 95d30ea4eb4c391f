"""tf.data on the table, tuned: batches of serialized records through the vectorised parser and Keras layers.

As it is, with a shuffle buffer; "windowed", shuffled in windows behind the parser; "cached", those kept.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from feeds.task import SHUFFLE_BUFFER, Batch
from feeds.tensors import TensorFeed, allow_any_order, describe_features, make_preprocessing

# Thousands of records per second of CPU time on one core, best of 3 or 4 interleaved passes on a machine that
# was busy with other things (TensorFlow 2.21, Keras 3.15):
#
#   shards in order, shuffle(10,000), batch, parse_example and Keras layers in one map              78 - 84
#   - parsing and layers in two maps; experimental parse_example_dataset                            77, 80
#   - numbers stacked into a matrix for one Normalization, taken apart again                             76
#   - StaticHashTable for the strings, arithmetic for the numbers: one by one; stacked              75, 77
#   - as many parallel calls as cores; a private pool of that size; max_intra_op_parallelism 1  76, 73, 71
#   shards interleaved; 64 records of each in turn; 16 of each, without parallel calls          52, 65, 73
#   shuffled in windows of ten batches behind the layers                                          94 - 106
#   not shuffled                                                                                        97
#
# On two cores the order is the same: 114 thousand a second with the buffer, 157 with windows, at best.
BATCHES_PER_WINDOW = SHUFFLE_BUFFER // 1024 + 1


class Feed(TensorFeed):
    """Builds the pipeline of the variant."""

    def build(self, records: Any) -> Any:
        if self.task.variant:
            dataset = self._shuffle_windows(records, is_cached=self.task.variant == "cached")
        else:
            batches = records.shuffle(SHUFFLE_BUFFER).batch(self.task.batch_size)
            dataset = self._preprocess(batches)
        return allow_any_order(dataset.prefetch(tf.data.AUTOTUNE))

    def _preprocess(self, batches: Any) -> Any:
        features, preprocess = describe_features(self.task), make_preprocessing(self.task)

        def parse(records: Any) -> Batch:
            return preprocess(tf.io.parse_example(records, features))

        return batches.map(parse, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)

    def _shuffle_windows(self, records: Any, is_cached: bool) -> Any:
        """Shuffle columns instead of records: they are smaller, and the parser reads records in order.

        A record then never leaves the window of ten batches that it is stored in.
        """
        size = self.task.batch_size
        windows = self._preprocess(records.batch(BATCHES_PER_WINDOW * size))
        if is_cached:
            windows = windows.cache()

        def shuffle(inputs: Any, targets: Any) -> Batch:
            order = tf.random.shuffle(tf.range(tf.shape(targets["label"])[0]))
            shuffled: Batch = tf.nest.map_structure(
                lambda column: tf.gather(column, order), (inputs, targets)
            )
            return shuffled

        def cut(*window: Any) -> Any:
            num_batches = -(-tf.shape(window[1]["label"], tf.int64)[0] // size)
            return tf.data.Dataset.range(num_batches).map(
                lambda i: tf.nest.map_structure(lambda column: column[i * size : (i + 1) * size], window)
            )

        shuffled = windows.map(shuffle, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
        return shuffled.flat_map(cut)
