"""tf.data on the table as tutorials write it: each example parsed and preprocessed alone, then batched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf

from feeds.task import SHUFFLE_BUFFER, Batch, Task
from fitted import NUM_IDS
from readers.tfdata import DTYPES, limit_threads

Preprocess = Callable[[dict[str, Any]], Batch]


class TensorFeed:
    """A tf.data pipeline as a feed; the pipeline is made once, a pass is one iterator over it."""

    def __init__(self, task: Task) -> None:
        limit_threads(task.num_cores)
        self.task = task
        # From the page cache, reading the shards in order is faster than interleaving them.
        self._records = tf.data.TFRecordDataset(task.files)
        self._dataset = self.build(self._records)

    def build(self, records: Any) -> Any:
        """Make the pipeline that follows serialized records."""
        raise NotImplementedError

    def batches(self) -> Iterator[Batch]:
        """Iterate eagerly."""
        return iter(self._dataset)

    def epochs(self) -> Iterator[Batch]:
        """Repeat the records: then no buffer runs empty between two epochs, which is the best case."""
        return iter(self.build(self._records.repeat()))

    def to_tensors(self, batch: Batch) -> Batch:
        """Leave it as it is."""
        return batch


def describe_features(task: Task) -> dict[str, Any]:
    """Make the feature spec: one value for each field."""
    return {field.name: tf.io.FixedLenFeature([], DTYPES[field.kind]) for field in task.spec.fields}


def make_preprocessing(task: Task) -> Preprocess:
    """Make the layers from the fitted state; what they are applied to may be one example or a batch."""
    layers: dict[str, Any] = {}
    for name, words in task.fitted.vocabularies.items():
        layers[name] = keras.layers.StringLookup(vocabulary=words)
    for name, mean in task.fitted.means.items():
        layer = keras.layers.Normalization(axis=None, mean=mean, variance=task.fitted.variances[name])
        layer(tf.zeros([1]))  # made here, its constants are not part of another graph
        layers[name] = layer

    def preprocess(columns: dict[str, Any]) -> Batch:
        inputs = {name: layer(columns[name]) for name, layer in layers.items()}
        return inputs, {"label": columns["label"]}

    return preprocess


def allow_any_order(dataset: Any) -> Any:
    """Let batches come in the order in which they get done."""
    options = tf.data.Options()
    options.deterministic = False
    options.autotune.enabled = True
    return dataset.with_options(options)


# Texts per second of CPU time on one core, batches of 1024, best of 3 interleaved passes on a busy machine:
# per example 7,900; per batch 20,500, with as many parallel calls as cores 21,000; written out 24,000, cut to
# 64 words before they are looked up 25,600. Batches of 256 are slower for all of them.
#
# The set that TextVectorization strips.
PUNCTUATION = r'[!"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~\']'
UNKNOWN, FIRST_ID = 1, 2


class TextFeed(TensorFeed):
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
        layer(tf.constant(["made here, its constants are not part of another graph"]))
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
# On two cores the order is the same: 114 thousand per second with the buffer, 157 with windows, at best.
BATCHES_PER_WINDOW = SHUFFLE_BUFFER // 1024 + 1


class TunedFeed(TensorFeed):
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


class TutorialFeed(TensorFeed):
    """Builds the pipeline; a pass is one iterator over it."""

    def build(self, records: Any) -> Any:
        features, preprocess = describe_features(self.task), make_preprocessing(self.task)

        def parse(record: Any) -> Batch:
            return preprocess(tf.io.parse_single_example(record, features))

        samples = records.map(parse)
        return samples.shuffle(SHUFFLE_BUFFER).batch(self.task.batch_size).prefetch(tf.data.AUTOTUNE)
