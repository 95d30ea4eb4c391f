"""The content of the TFRecord files that a writer left, to see that it did its work.

In: a folder. Out: the number of records by hopping from frame to frame, the sum of their labels.
"""

from __future__ import annotations

import mmap
import re
import struct
from pathlib import Path

import numpy as np

import penstock as ps
from penstock.columns import Dense

HEADER_BYTES, FOOTER_BYTES = 12, 4
# Penstock's shards end in .tfrecord, shards of TensorFlow Datasets in .tfrecord-00000-of-00001.
SHARD_NAME = re.compile(r"\.tfrecord(-\d+-of-\d+)?$")


def find_shards(out: Path) -> list[Path]:
    """Return the files of records, in the order of their names."""
    return sorted(path for path in out.rglob("*") if SHARD_NAME.search(path.name))


def count_records(out: Path) -> int:
    """Count the frames; a file that does not end with one is an error."""
    return sum(_count_frames(path) for path in find_shards(out))


def sum_labels(out: Path) -> int:
    """Read the labels back, all CRCs checked, from the shards alone."""
    dataset = ps.open([str(path) for path in find_shards(out)])
    total = 0
    for name in dataset.splits:
        labels = dataset[name].columns(fields=["label"])["label"]
        if not isinstance(labels, Dense):
            raise TypeError(f"expected the labels as one dense column, got {labels!r}")
        total += int(np.asarray(labels.values).sum())
    return total


def _count_frames(path: Path) -> int:
    size = path.stat().st_size
    if not size:
        return 0
    num_frames = at = 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        while at + HEADER_BYTES <= size:
            (length,) = struct.unpack_from("<Q", data, at)
            at += HEADER_BYTES + length + FOOTER_BYTES
            num_frames += 1
    if at != size:
        raise ValueError(f"{path.name}: expected a frame to end at byte {size}, got {at}")
    return num_frames
