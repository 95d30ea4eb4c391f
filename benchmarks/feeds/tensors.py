"""What the tf.data feeds share: a data set as a feed, feature specs, Keras layers of the fitted state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf

from contestants.tensors import DTYPES, limit_threads
from feeds.task import Batch, Task

Preprocess = Callable[[dict[str, Any]], Batch]


class TensorFeed:
    """A tf.data pipeline as a feed; the pipeline is made once, a pass is one iterator over it."""

    def __init__(self, task: Task) -> None:
        limit_threads(task.num_cores)
        self.task = task
        # From the page cache, reading the shards one behind the other is faster than interleaving them.
        self._records = tf.data.TFRecordDataset(task.files)
        self._dataset = self.build(self._records)

    def build(self, records: Any) -> Any:
        """Make the pipeline behind serialized records."""
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
        layer(tf.zeros([1]))  # made here, its constants are no part of somebody's graph
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
