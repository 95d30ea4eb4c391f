"""Whether a shard is what its manifest promises: its size, its hash, its records, its indexes.

In: a shard that was read to its last byte, and its entry. Out: a fault for each promise that is not kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from penstock.errors import PathError
from penstock.jobs.check.file_check import Fault, FileCheck, word_contrast
from penstock.read.index import build_index
from penstock.read.options import ReadOptions
from penstock.shards.entry import ShardEntry
from penstock.shards.index import (
    LONGEST_HEADER,
    decode_index,
    decode_tfindex,
    identify,
    index_name,
    most_bytes,
    tfindex_name,
)
from penstock.storage.open_file import OpenFile

_MOST_ITEM_BYTES = 8


def compare_shard(check: FileCheck, sha256: str, entry: ShardEntry) -> Iterator[Fault]:
    """Yield how a shard differs from what its manifest says."""
    for what, expected, got in (
        ("size of the shard, by the manifest", entry.num_bytes, check.identity.size),
        ("number of records, by the manifest", entry.num_records, check.num_records),
        ("SHA-256, by the manifest", entry.sha256, sha256),
    ):
        if expected != got:
            yield Fault(check.path, None, None, word_contrast(what, expected, got))


def compare_indexes(path: Path, entry: ShardEntry, options: ReadOptions) -> Iterator[Fault]:
    """Yield the indexes of a sound shard that are not its own; a shard need not have any."""
    offsets = build_index(OpenFile(path), options).offsets
    limit = options.max_record_bytes
    own, text = path.parent / index_name(entry.name), path.parent / tfindex_name(entry.name)
    data = _read(own, LONGEST_HEADER + _MOST_ITEM_BYTES * entry.num_records)
    if data is not None:
        decoded = decode_index(data, identify(entry), limit)
        if decoded is None or not np.array_equal(decoded[0], offsets):
            yield Fault(own, None, None, f"is not the index of {path.name}")
    data = _read(text, most_bytes(int(offsets[-1])))
    if data is not None:
        found = decode_tfindex(data, int(offsets[-1]), limit)
        if found is None or not np.array_equal(found, offsets):
            yield Fault(text, None, None, f"is not the index of {path.name}")


def _read(path: Path, most: int) -> bytes | None:
    """Return what an index holds, a byte more than it can have at most; None if it is not there."""
    try:
        return OpenFile(path).read(0, most + 1)
    except PathError:
        return None
