"""The index of all shards of a data set in an object store, as one object: `index/all.idx`.

In: the sizes of the frames of each shard, or parts of the object. Out: the other. One line of JSON, then a
CRC32C per shard, then the sizes of all frames in the order of the manifest, so that the part of a shard can
be read by itself. It identifies its shards by their hashes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.format.entry import ShardEntry
from penstock.format.index import FRAME_BYTES, INDEX_FOLDER, LONGEST_HEADER

COMBINED_NAME: Final = f"{INDEX_FOLDER}/all.idx"

_VERSION: Final = 1
_CRC_BYTES: Final = 4


def _identify(shards: Sequence[ShardEntry]) -> str:
    return hashlib.sha256("".join(shard.sha256 for shard in shards).encode()).hexdigest()


def iter_combined(
    shards: Sequence[ShardEntry], read_sizes: Callable[[ShardEntry], NDArray[Any]]
) -> Iterator[bytes]:
    """Yield the bytes of the index.

    `shards`: entries of all shards, in the order of the manifest. `read_sizes`: returns the sizes of the
    frames of a shard, payload and 16 bytes; called twice for each shard, because all sizes together may not
    fit into memory.
    """
    is_narrow = all(shard.num_bytes < 1 << 32 for shard in shards)
    item = "<u4" if is_narrow else "<u8"
    crcs = [_native.crc32c(np.ascontiguousarray(read_sizes(shard), item).tobytes()) for shard in shards]
    table = np.array(crcs, "<u4").tobytes()
    header = {
        "version": _VERSION,
        "shards": len(shards),
        "item": item,
        "identity": _identify(shards),
        "crc32c": _native.crc32c(table),
    }
    yield json.dumps(header).encode() + b"\n" + table
    for shard in shards:
        yield np.ascontiguousarray(read_sizes(shard), item).tobytes()


class CombinedHeader(NamedTuple):
    """The first part of the index: where the sizes of each shard are, and their CRC32C.

    Attributes:
        item: Type of the sizes.
        crcs: CRC32C of the sizes of each shard.
        starts: Offset of the sizes of each shard in the object, and the end of the last.
    """

    item: str
    crcs: NDArray[np.uint32]
    starts: NDArray[np.int64]

    def decode_part(
        self, number: int, shard: ShardEntry, data: memoryview, largest: int
    ) -> NDArray[np.uint64] | None:
        """Return the offsets of the records of a shard, and the end of the last; None if the part is wrong.

        `data`: the bytes from `starts[number]` to `starts[number + 1]`.
        """
        if len(data) != self.starts[number + 1] - self.starts[number]:
            return None
        if _native.crc32c(bytes(data)) != self.crcs[number]:
            return None
        sizes = np.frombuffer(data, self.item)
        if len(sizes) and not FRAME_BYTES <= int(sizes.min()) <= int(sizes.max()) <= largest:
            return None
        offsets = np.zeros(shard.num_records + 1, np.uint64)
        np.cumsum(sizes, out=offsets[1:])
        return offsets


def header_bytes(shards: Sequence[ShardEntry]) -> int:
    """Return the maximum size of the first part."""
    return LONGEST_HEADER + _CRC_BYTES * len(shards)


def max_bytes(shards: Sequence[ShardEntry]) -> int:
    """Return the maximum size of the whole index, if no frame has 4 GiB or more."""
    return header_bytes(shards) + 4 * sum(shard.num_records for shard in shards)


def decode_combined(data: memoryview, shards: Sequence[ShardEntry]) -> CombinedHeader | None:
    """Return the first part of an index that starts with `data`; None if it does not fit the shards."""
    try:
        line = bytes(data[:LONGEST_HEADER])
        end = line.index(b"\n") + 1
        form = json.loads(line[:end])
        item, crc = form["item"], form["crc32c"]
        if form["version"] != _VERSION or form["identity"] != _identify(shards) or item not in ("<u4", "<u8"):
            return None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    table = bytes(data[end : end + _CRC_BYTES * len(shards)])
    if len(table) != _CRC_BYTES * len(shards) or _native.crc32c(table) != crc:
        return None
    starts = np.zeros(len(shards) + 1, np.int64)
    np.cumsum([shard.num_records for shard in shards], out=starts[1:])
    starts = starts * np.dtype(item).itemsize + end + len(table)
    return CombinedHeader(item, np.frombuffer(table, "<u4"), starts)
