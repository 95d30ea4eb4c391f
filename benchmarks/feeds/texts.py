"""tf.data on the texts: Keras `TextVectorization` in `map`, on whole batches or on each example.

As it is, per batch; "examples", one by one; "operations", what the layer does, with less to look up.
"""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from feeds.task import Batch
from feeds.tensors import TensorFeed, allow_any_order, describe_features
from fitted import NUM_IDS

# Texts per second of CPU time on one core, batches of 1024, best of 3 interleaved passes on a busy machine:
# per example 7,900; per batch 20,500, with as many parallel calls as cores 21,000; written out 24,000, cut to
# 64 words before they are looked up 25,600. Batches of 256 are slower for all of them.
#
# The set that TextVectorization strips.
PUNCTUATION = r'[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']'
UNKNOWN, FIRST_ID = 1, 2


class Feed(TensorFeed):
    """Builds the pipeline of the variant."""

    def build(self, records: Any) -> Any:
        features = describe_features(self.task)
        is_single = self.task.variant == "examples"
        parse = tf.io.parse_single_example if is_single else tf.io.parse_example
        tokenize = self._make_operations() if self.task.variant == "operations" else self._make_layer()

        def vectorize(serialized: Any) -> Batch:
            columns = parse(serialized, features)
            return {"text": tokenize(columns["text"])}, {"label": columns["label"]}

        if is_single:
            samples = records.map(vectorize, num_parallel_calls=tf.data.AUTOTUNE)
            return samples.batch(self.task.batch_size).prefetch(tf.data.AUTOTUNE)
        batches = records.batch(self.task.batch_size)
        vectorized = batches.map(vectorize, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
        return allow_any_order(vectorized.prefetch(tf.data.AUTOTUNE))

    def _make_layer(self) -> Any:
        layer = keras.layers.TextVectorization(
            vocabulary=self.task.fitted.vocabularies["text"], output_sequence_length=NUM_IDS
        )
        layer(tf.constant(["made here, its constants are no part of somebody's graph"]))
        return layer

    def _make_operations(self) -> Any:
        words = tf.constant(self.task.fitted.vocabularies["text"])
        ids = tf.range(FIRST_ID, FIRST_ID + tf.size(words, tf.int64), dtype=tf.int64)
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(words, ids), UNKNOWN)

        def tokenize(texts: Any) -> Any:
            plain = tf.strings.regex_replace(tf.strings.lower(texts), PUNCTUATION, "")
            # Only the words that will be kept are looked up; the layer looks up all, then cuts.
            tokens = tf.strings.split(plain)[:, :NUM_IDS]
            return tf.ragged.map_flat_values(table.lookup, tokens).to_tensor(shape=[None, NUM_IDS])

        return tokenize
