"""tf.data, tuned as its performance guide says: the shards interleaved, then as in `tuned.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from contestants import tuned


class Reader(tuned.Reader):
    """Builds the pipeline; a pass is one iterator over it."""

    def open_records(self, files: list[str]) -> Any:
        """Read all files at once, a record of each in turn."""
        return tf.data.Dataset.from_tensor_slices(files).interleave(
            tf.data.TFRecordDataset,
            cycle_length=len(files),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=False,
        )
