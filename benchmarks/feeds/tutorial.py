"""tf.data on the table as tutorials write it: each example parsed and preprocessed alone, then batched."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from feeds.task import SHUFFLE_BUFFER, Batch
from feeds.tensors import TensorFeed, describe_features, make_preprocessing


class Feed(TensorFeed):
    """Builds the pipeline; a pass is one iterator over it."""

    def build(self, records: Any) -> Any:
        features, preprocess = describe_features(self.task), make_preprocessing(self.task)

        def parse(record: Any) -> Batch:
            return preprocess(tf.io.parse_single_example(record, features))

        samples = records.map(parse)
        return samples.shuffle(SHUFFLE_BUFFER).batch(self.task.batch_size).prefetch(tf.data.AUTOTUNE)
