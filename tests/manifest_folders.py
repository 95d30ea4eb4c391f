"""Data sets with a manifest as the tests need them, made by `wire` and by hand."""

import gzip
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import penstock as ps
from penstock.format.entry import ShardEntry, SplitEntry
from penstock.format.index import encode_index, encode_tfindex, identify, index_name, tfindex_name
from penstock.format.manifest import MANIFEST_NAME, Manifest, dump
from record_files import PAYLOADS
from wire.frame import write_records

NUMBERED = ps.Schema({"row": ps.fields.Number("int64"), "text": ps.fields.Text()})
"""The schema of the numbered payloads."""


def write_shard(
    folder: Path, name: str, payloads: Sequence[bytes], *, compression: str = "none", has_index: bool = True
) -> ShardEntry:
    """Write a shard with both of its indexes, and return what a manifest says of it."""
    plain = write_records(payloads)
    data = plain if compression == "none" else gzip.compress(plain, mtime=0)
    (folder / name).write_bytes(data)
    entry = ShardEntry(name, len(payloads), len(data), hashlib.sha256(data).hexdigest())
    if has_index:
        sizes = np.array([len(payload) + 16 for payload in payloads], np.int64)
        (folder / "index").mkdir(exist_ok=True)
        (folder / index_name(name)).write_bytes(encode_index(sizes, compression, identify(entry)))
        if compression == "none":
            (folder / tfindex_name(name)).write_bytes(encode_tfindex(sizes))
    return entry


def write_dataset(
    folder: Path,
    splits: Mapping[str, Sequence[Sequence[bytes]]] | None = None,
    schema: ps.Schema = NUMBERED,
    *,
    has_index: bool = True,
    **facts: Any,
) -> Manifest:
    """Write a data set: for each split its shards, and for each shard its payloads."""
    folder.mkdir(parents=True, exist_ok=True)
    compression = facts.get("compression", "none")
    entries = {}
    for split, shards in (splits or {"train": [PAYLOADS[:3], PAYLOADS[3:]], "test": [PAYLOADS[:1]]}).items():
        names = [f"{split}-{i:05}-of-{len(shards):05}.tfrecord" for i in range(len(shards))]
        entries[split] = SplitEntry(
            tuple(
                write_shard(folder, name, payloads, compression=compression, has_index=has_index)
                for name, payloads in zip(names, shards, strict=True)
            )
        )
    usual = {"payload": "example", "compression": "none", "version": "0.0.0"}
    manifest = Manifest(schema=schema, splits=entries, **{**usual, **facts})
    (folder / MANIFEST_NAME).write_bytes(dump(manifest))
    return manifest
