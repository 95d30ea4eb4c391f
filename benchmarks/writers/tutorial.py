"""The loop of the tutorials: a `tf.train.Feature` from a small function for each value, one file, one writer.

No splits, no shuffling, no fsync, no checksum but the CRCs that the format asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow as tf

from writers.frames import count_records
from writers.rows import Rows, Taking, open_rows
from writers.task import Task


def _bytes_feature(value: bytes) -> Any:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def _text_feature(value: str) -> Any:
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value.encode()]))


def _float_feature(value: float) -> Any:
    return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))


def _int64_feature(value: int) -> Any:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def _float_list_feature(value: list[float]) -> Any:
    return tf.train.Feature(float_list=tf.train.FloatList(value=value))


def _int64_list_feature(value: list[int]) -> Any:
    return tf.train.Feature(int64_list=tf.train.Int64List(value=value))


FUNCTIONS = {
    ("bytes", True): _bytes_feature,
    ("text", True): _text_feature,
    ("float", True): _float_feature,
    ("int64", True): _int64_feature,
    ("float", False): _float_list_feature,
    ("int64", False): _int64_list_feature,
}


class Writer:
    """Makes the rows ready; a pass is one file."""

    taking: Taking = "itertuples"

    def __init__(self, task: Task) -> None:
        self._rows = open_rows(task, self.taking)

    def write(self, out: Path) -> None:
        """Serialize record by record."""
        out.mkdir()
        with tf.io.TFRecordWriter(str(out / "records.tfrecord")) as writer:
            for record in self.serialize(self._rows):
                writer.write(record)

    def serialize(self, rows: Rows) -> Iterator[bytes]:
        """Build each Example from the inside out."""
        functions = [(name, FUNCTIONS[kind, is_scalar]) for name, kind, is_scalar in rows.fields]
        for row in rows.take():
            feature = {name: make(value) for (name, make), value in zip(functions, row, strict=True)}
            yield tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()

    def count(self, out: Path) -> int:
        """Count frames."""
        return count_records(out)
