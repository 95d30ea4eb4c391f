"""What both tf.data contestants share: the feature spec of a data set, and a look at a batch of tensors."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from contestants.task import Tally, Task

DTYPES = {"float": tf.float32, "int64": tf.int64, "bytes": tf.string}


def limit_threads(num_cores: int) -> None:
    """Give TensorFlow as many threads as there are cores; to be called before its first operation."""
    tf.config.threading.set_intra_op_parallelism_threads(num_cores)
    tf.config.threading.set_inter_op_parallelism_threads(num_cores)


def describe_features(task: Task, varying: Any) -> dict[str, Any]:
    """Make the feature spec; `varying` is the feature class for lists of any length."""
    features: dict[str, Any] = {}
    for field in task.fields:
        dtype = DTYPES[field.kind]
        if field.length is None:
            features[field.name] = varying(dtype)
        else:
            features[field.name] = tf.io.FixedLenFeature([] if field.length == 1 else [field.length], dtype)
    return features


def touch_tensors(batch: dict[str, Any]) -> Tally:
    """Look at each tensor without a copy, and sum the labels.

    Numbers are read through the buffer protocol and strings are only asked for their shape: an eager slice
    would cost more than the decoding, and `numpy()` would make a Python object of every string.
    """
    for value in batch.values():
        tensor = value.values if isinstance(value, tf.SparseTensor) else value
        if tensor.dtype == tf.string:
            tensor.shape[0]
        else:
            memoryview(tensor)[(0,) * tensor.ndim]
    labels = batch["label"].numpy()
    return Tally(len(labels), int(labels.sum()))
