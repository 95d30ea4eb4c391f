"""Indexes that are kept in the user's cache folder, so that a large file is scanned once.

In: a file. Out: its index, from the cache if that is of this very file, else made and kept. Layout of a cache
file: one line of JSON, then the sizes of all frames as little-endian uint32 or uint64.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from penstock._native import crc32c
from penstock.read.index import FileIndex, build_index
from penstock.read.options import ReadOptions
from penstock.storage.cache import cache_path, write_cached
from penstock.storage.file import FileIdentity, OpenFile
from penstock.types import Compression

_VERSION = 1
# Below this size a scan is faster than the cache. A compressed file is inflated for it: there it pays sooner.
_SMALLEST_PLAIN = 32 << 20
_SMALLEST_COMPRESSED = 1 << 20
_LONGEST_HEADER = 4096
_FRAME_BYTES = 16  # of a record with no payload


def load_index(file: OpenFile, options: ReadOptions) -> FileIndex:
    """Return the index of a file, made only if the cache does not hold it."""
    if file.identity.size < _SMALLEST_COMPRESSED:
        return build_index(file, options)
    path = cache_path("index", file.path, options.allow_trailing_zeros, options.max_record_bytes)
    try:
        saved = _decode(path.read_bytes(), file.identity, options.max_record_bytes)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        saved = None
    if saved is not None and options.compression in ("auto", saved.compression):
        return replace(saved, saved_as=path)
    index = build_index(file, options)
    smallest = _SMALLEST_PLAIN if index.compression == "none" else _SMALLEST_COMPRESSED
    # Damage is looked at anew each time: somebody may be mending the file.
    # And with trailing zeros an index does not reach to the end of the file, by which saved ones are checked.
    if not index.damages and file.identity.size >= smallest and not options.allow_trailing_zeros:
        write_cached(path, [_encode(index)])
    return index


def _encode(index: FileIndex) -> bytes:
    sizes = np.diff(index.offsets)
    narrow = len(sizes) == 0 or int(sizes.max()) < 1 << 32
    body = sizes.astype("<u4" if narrow else "<u8").tobytes()
    header = {
        "version": _VERSION,
        "compression": index.compression,
        "identity": list(index.identity),
        "records": len(index),
        "item": "<u4" if narrow else "<u8",
        "crc32c": crc32c(body),
    }
    return json.dumps(header).encode() + b"\n" + body


def _decode(data: bytes, identity: FileIdentity, max_record_bytes: int) -> FileIndex | None:
    """Return the index, or None if it is of another file or version."""
    end = data.index(b"\n", 0, _LONGEST_HEADER)
    header = json.loads(data[:end])
    body = data[end + 1 :]
    if (
        header["version"] != _VERSION
        or tuple(header["identity"]) != identity
        or header["crc32c"] != crc32c(body)
    ):
        return None
    compression: Compression = header["compression"]
    if header["item"] not in ("<u4", "<u8") or compression not in ("none", "gzip", "zlib"):
        return None
    sizes: NDArray[np.uint64] = np.frombuffer(body, header["item"]).astype(np.uint64)
    offsets = np.zeros(len(sizes) + 1, np.uint64)
    np.cumsum(sizes, out=offsets[1:])
    # Records tile the file: an index that reaches another end, or has a frame of a size that none can have,
    # is no index of it. Memory is taken by these sizes, so they are held to the limit of scanned ones.
    if len(sizes) != header["records"] or bool(np.any(offsets[1:] < offsets[:-1])):
        return None
    if (
        len(sizes)
        and not _FRAME_BYTES <= int(sizes.min()) <= int(sizes.max()) <= max_record_bytes + _FRAME_BYTES
    ):
        return None
    if compression == "none" and int(offsets[-1]) != identity.size:
        return None
    return FileIndex(offsets, {}, compression, identity)
