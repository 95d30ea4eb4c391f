"""Writes one data set: TFRecords by TensorFlow, the same rows as Parquet by pyarrow, the labels for checking.

In: the name of a data set on the command line. Out: its folder, the stamp of its parameters written last.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tensorflow as tf

from datasets import NUM_SHARDS, SEED, DatasetSpec, Field, list_datasets
from values import Values, make_columns

ENTRY_TAG = b"\x0a"


def shuffle_keys(example: bytes, rng: random.Random) -> bytes:
    """Put the map entries of one serialized Example (`0a length features`) into random order."""
    size, at = _read_varint(example, 1)
    if example[:1] != ENTRY_TAG or at + size != len(example):
        raise ValueError("expected an Example that holds its features and nothing else")
    entries = []
    while at < len(example):
        if example[at : at + 1] != ENTRY_TAG:
            raise ValueError(f"expected a map entry at byte {at}, got tag {example[at]:#04x}")
        size, start = _read_varint(example, at + 1)
        entries.append(example[at : start + size])
        at = start + size
    rng.shuffle(entries)
    features = b"".join(entries)
    return example[: len(example) - len(features)] + features


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"


LIST_NAMES = {"float": "float_list", "int64": "int64_list", "bytes": "bytes_list"}
ARROW_TYPES: dict[str, Callable[[], pa.DataType]] = {
    "float": pa.float32,
    "int64": pa.int64,
    "bytes": pa.binary,
}


def serialize(columns: dict[str, Values], fields: tuple[Field, ...]) -> Iterator[bytes]:
    """Turn columns into serialized Examples, with the keys in whatever order TensorFlow leaves them."""
    lists = [(field.name, LIST_NAMES[field.kind], field.length == 1) for field in fields]
    plain = [values.tolist() if isinstance(values, np.ndarray) else values for values in columns.values()]
    for row in zip(*plain, strict=True):
        example = tf.train.Example()
        features = example.features.feature
        for (name, list_name, is_scalar), value in zip(lists, row, strict=True):
            target = getattr(features[name], list_name).value
            if is_scalar:
                target.append(value)
            else:
                target.extend(value)
        yield example.SerializeToString()


def write_records(path: Path, records: Iterator[bytes]) -> None:
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)


def write_parquet(path: Path, columns: dict[str, Values], fields: tuple[Field, ...]) -> None:
    arrays = [_to_arrow(columns[field.name], field) for field in fields]
    table = pa.Table.from_arrays(arrays, names=[field.name for field in fields])
    pq.write_table(table, path, compression="snappy", use_dictionary=True)


def _to_arrow(values: Any, field: Field) -> pa.Array:
    scalar = ARROW_TYPES[field.kind]()
    if field.length == 1:
        return pa.array(values, scalar)
    rows = list(values)
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    # A list even where the length is fixed: pyarrow reads both alike, and other engines know only this one.
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(np.concatenate(rows), scalar))


def write_dataset(spec: DatasetSpec) -> None:
    """Write every shard in both formats."""
    labels = []
    for shard in range(NUM_SHARDS):
        columns = make_columns(spec, shard)
        labels.append(columns["label"])
        write_records(spec.shards("tfrecord")[shard], serialize(columns, spec.fields))
        write_parquet(spec.shards("parquet")[shard], columns, spec.fields)
    np.save(spec.labels, np.concatenate(labels))


def write_shuffled(spec: DatasetSpec, source: DatasetSpec) -> None:
    """Write the source's records with their keys in an order that changes from record to record."""
    rng = random.Random(SEED)  # noqa: S311 - reproducible, not secret
    for old, new in zip(source.shards("tfrecord"), spec.shards("tfrecord"), strict=True):
        records = tf.data.TFRecordDataset(str(old)).as_numpy_iterator()
        write_records(new, (shuffle_keys(record, rng) for record in records))
    shutil.copyfile(source.labels, spec.labels)


def main() -> None:
    """Write one data set into a fresh folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    specs = list_datasets(arguments.quick)
    spec = specs[arguments.name]
    shutil.rmtree(spec.folder, ignore_errors=True)
    spec.folder.mkdir(parents=True)
    if spec.shuffled_from:
        write_shuffled(spec, specs[spec.shuffled_from])
    else:
        write_dataset(spec)
    spec.stamp.write_text(json.dumps(spec.parameters, indent=1) + "\n")


if __name__ == "__main__":
    main()
