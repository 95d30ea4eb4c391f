"""Where the records of a shard are, as a compact file: one line of JSON, then the size of every frame.

In: sizes of frames, or the bytes of such a file. Out: the other. The sizes are little-endian uint32, or
uint64 where one needs it; the line says of which file they are, and has a CRC of them. The data set's own
indexes lie in its folder `index/`, those of other files in the user's cache.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from penstock._native import crc32c
from penstock.shards.entry import ShardEntry
from penstock.types import Compression

INDEX_FOLDER: Final = "index"
FRAME_BYTES: Final = 16
"""What a record takes beside its payload."""

LONGEST_HEADER: Final = 4096
"""How many bytes the first line of an index takes at most."""

_VERSION = 1

Identity: TypeAlias = Sequence[int | str]
"""What tells a file from others and from what it was before; its size on disk comes first."""


class IndexHeader(NamedTuple):
    """The first line of an index.

    Attributes:
        compression: How the shard is compressed; the frames are those of its inflated bytes.
        num_records: How many frames there are.
        item: The type of the sizes.
        crc: CRC32C of the sizes.
        num_header_bytes: Where the sizes begin.
    """

    compression: Compression
    num_records: int
    item: str
    crc: int
    num_header_bytes: int

    @property
    def num_bytes(self) -> int:
        """The size of the whole index."""
        return self.num_header_bytes + self.num_records * np.dtype(self.item).itemsize


def index_name(shard: str) -> str:
    """Return the path of a shard's index in its data set.

    Example:
        >>> index_name("train-00000-of-00002.tfrecord")
        'index/train-00000-of-00002.tfrecord.idx'
    """
    return f"{INDEX_FOLDER}/{shard}.idx"


def identify(shard: ShardEntry) -> Identity:
    """Return the identity of a shard of a data set: its size and its hash."""
    return shard.num_bytes, shard.sha256


def encode_index(sizes: NDArray[Any], compression: Compression, identity: Identity) -> bytes:
    """Return the bytes of an index.

    Args:
        sizes: Of all frames in their order: payload and 16 bytes, before compression.
        compression: How the file is compressed.
        identity: What the file is; of a shard of a data set, `identify(entry)`.
    """
    return b"".join(index_parts(sizes, compression, identity))


def index_parts(sizes: NDArray[Any], compression: Compression, identity: Identity) -> tuple[bytes, bytes]:
    """Return the header and the body of `encode_index`, to be written one after the other."""
    is_narrow = len(sizes) == 0 or int(sizes.max()) < 1 << 32
    item = "<u4" if is_narrow else "<u8"
    body = np.ascontiguousarray(sizes, item).tobytes()
    header = {
        "version": _VERSION,
        "compression": compression,
        "identity": list(identity),
        "records": len(sizes),
        "item": item,
        "crc32c": crc32c(body),
    }
    return json.dumps(header).encode() + b"\n", body


def decode_header(data: bytes, identity: Identity) -> IndexHeader | None:
    """Return the header of an index that begins with `data`; None if it is no index of that very file."""
    try:
        end = data.index(b"\n", 0, LONGEST_HEADER)
        form = json.loads(data[:end])
        if form["version"] != _VERSION or form["identity"] != list(identity):
            return None
        header = IndexHeader(form["compression"], form["records"], form["item"], form["crc32c"], end + 1)
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    is_count = isinstance(header.num_records, int) and header.num_records >= 0
    is_known = header.item in ("<u4", "<u8") and header.compression in get_args(Compression)
    return header if is_count and is_known else None


def decode_index(
    data: bytes, identity: Identity, max_record_bytes: int
) -> tuple[NDArray[np.uint64], Compression] | None:
    """Return where each record begins, and the last ends, and how the file is compressed.

    Returns None for what is damaged, is an index of something else, or cannot be the index of that file:
    records tile it, none is smaller than its frame, and memory is taken by these sizes, so that they are held
    to the limit of records.
    """
    header = decode_header(data, identity)
    if header is None or header.num_bytes != len(data):
        return None
    body = data[header.num_header_bytes :]
    if header.crc != crc32c(body):
        return None
    sizes = np.frombuffer(body, header.item)
    most = max_record_bytes + FRAME_BYTES
    if len(sizes) and not FRAME_BYTES <= int(sizes.min()) <= int(sizes.max()) <= most:
        return None
    offsets = np.zeros(len(sizes) + 1, np.uint64)
    np.cumsum(sizes, out=offsets[1:])
    if bool(np.any(offsets[1:] < offsets[:-1])):  # beyond 64 bits
        return None
    if header.compression == "none" and int(offsets[-1]) != identity[0]:
        return None
    return offsets, header.compression
