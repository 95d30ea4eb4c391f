"""The fastest loop over `tf.train.Example` that was found: the message is filled in place."""

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


class TutorialWriter:
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


# Thousands of records per second on one core, small data, on a machine that was busy with other things too
# (TensorFlow 2.21):
#
#                                                         T      S      B
#   example.features.feature[name].….value.append       20.3   76.0   24.5   <- this one
#   the functions of the tutorials                       5.2   33.9   17.0   <- tutorial.py
#   - with the classes of tf.train looked up beforehand  5.9   30.0   18.0
#   - lists given as arrays                              5.6   18.3      -
LIST_NAMES = {"float": "float_list", "int64": "int64_list", "bytes": "bytes_list", "text": "bytes_list"}


class FilledWriter(TutorialWriter):
    """Differs in how a record is built and how the rows of a frame are taken."""

    taking = "tolist"

    def serialize(self, rows: Rows) -> Iterator[bytes]:
        """Append each value to its list inside the Example."""
        lists = [(name, LIST_NAMES[kind], kind == "text", single) for name, kind, single in rows.fields]
        for row in rows.take():
            example = tf.train.Example()
            features = example.features.feature
            for (name, list_name, is_text, is_scalar), value in zip(lists, row, strict=True):
                target = getattr(features[name], list_name).value
                if is_text:
                    target.append(value.encode())
                elif is_scalar:
                    target.append(value)
                else:
                    target.extend(value)
            yield example.SerializeToString()
