"""tf.data as its performance guide says, with shards interleaved or in order; and as tutorials write it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from readers.task import Tally, Task

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


# Thousands of records/s on 1 and 2 cores, best of 4 to 6 interleaved passes on a machine that was busy
# with other things too (TensorFlow 2.21); a dash was not measured.
#
#                                                             T           S            B
#   TFRecordDataset(files) -> batch -> parse_example      145  268    274  467    20.3  27.1   <- this one
#   - with buffer_size 1 MiB                              142  264    252    -    19.9  21.0
#   - with a private pool of as many threads as cores       -    -      -  418       -  25.0
#   - without AUTOTUNE and prefetch                       134    -      -    -    16.7     -
#   interleave(4 files, each batched), best of 3 ways     137  256    214  415    18.7  23.1
#   interleave(4 files) -> batch -> parse_example         121  152    125  213    20.5  23.0
#   - with block_length 64                                117  190      -    -       -  29.0
#   TFRecordDataset(files, num_parallel_reads=4) -> ...     -   98      -    -       -     -
#
# Interleaving hands every record from thread to thread: that pays where storage is slow, and not where the
# page cache holds the files. The ids of S on 1 core: RaggedFeature, taken apart into values and row splits,
# 274; RaggedFeature 260; VarLenFeature 237. On B the first three places lie within the noise of 7 %.


class TunedReader:
    """Builds the pipeline; a pass is one iterator over it."""

    def __init__(self, task: Task) -> None:
        limit_threads(task.num_cores)
        features = describe_features(task, tf.io.RaggedFeature)

        def parse(records: Any) -> dict[str, Any]:
            return _take_apart(tf.io.parse_example(records, features))

        records = self.open_records([str(path) for path in task.shards("tfrecord")])
        batches = records.batch(task.batch_size).map(
            parse, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False
        )
        options = tf.data.Options()
        options.deterministic = False
        options.autotune.enabled = True
        self._dataset = batches.prefetch(tf.data.AUTOTUNE).with_options(options)

    def open_records(self, files: list[str]) -> Any:
        """Read the files in order."""
        return tf.data.TFRecordDataset(files)

    def batches(self) -> Iterator[dict[str, Any]]:
        """Iterate eagerly."""
        return iter(self._dataset)

    def touch(self, batch: dict[str, Any]) -> Tally:
        """Look at every tensor."""
        return touch_tensors(batch)


def _take_apart(columns: dict[str, Any]) -> dict[str, Any]:
    """Replace ragged tensors by their parts, which cross the border of the pipeline without being wrapped."""
    parts: dict[str, Any] = {}
    for name, value in columns.items():
        if isinstance(value, tf.RaggedTensor):
            parts[name], parts[f"{name}/row_splits"] = value.values, value.row_splits
        else:
            parts[name] = value
    return parts


class TutorialReader:
    """Builds the pipeline; a pass is one iterator over it."""

    def __init__(self, task: Task) -> None:
        limit_threads(task.num_cores)
        features = describe_features(task, tf.io.VarLenFeature)
        records = tf.data.TFRecordDataset([str(path) for path in task.shards("tfrecord")])
        samples = records.map(lambda record: tf.io.parse_single_example(record, features))
        self._dataset = samples.batch(task.batch_size).prefetch(tf.data.AUTOTUNE)

    def batches(self) -> Iterator[dict[str, Any]]:
        """Iterate eagerly."""
        return iter(self._dataset)

    def touch(self, batch: dict[str, Any]) -> Tally:
        """Look at every tensor."""
        return touch_tensors(batch)


class InterleavedReader(TunedReader):
    """Builds the pipeline; a pass is one iterator over it."""

    def open_records(self, files: list[str]) -> Any:
        """Read all files at once, a record of each in turn."""
        return tf.data.Dataset.from_tensor_slices(files).interleave(
            tf.data.TFRecordDataset,
            cycle_length=len(files),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=False,
        )
