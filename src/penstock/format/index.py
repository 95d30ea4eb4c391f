"""The indexes of shards: one line of JSON, then the size of every frame; and text indexes of other tools.

In: sizes of frames, or the bytes of an index. Out: the other. The first line identifies the shard and has a
CRC of the sizes. Indexes of a data set are in its folder `index/`, of other files in the user's cache. In an
object store, `index/all.idx` has the sizes of all shards, so that the part of a shard can be read by itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import PurePath
from typing import Any, Final, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Compression
from penstock.format.entry import ShardEntry

INDEX_FOLDER: Final = "index"
INDEX_SUFFIX: Final = ".idx"
FRAME_BYTES: Final = 16
"""Number of bytes of a record in addition to its payload."""

LONGEST_HEADER: Final = 4096
"""Maximum size of the first line of an index, in bytes."""

_VERSION = 1

Identity: TypeAlias = Sequence[int | str]
"""Identifies one version of a file; its size on disk comes first."""

_TFINDEX_SUFFIX: Final = ".tfindex"
_OTHER_SUFFIXES = (".idx", ".index")
_MAX_LINE_BYTES = 2 * 20 + 2
_BLOCK_ROWS = 1 << 16
COMBINED_NAME: Final = f"{INDEX_FOLDER}/all.idx"
_COMBINED_VERSION: Final = 1
_CRC_BYTES: Final = 4


class IndexHeader(NamedTuple):
    """The first line of an index.

    Attributes:
        compression: Compression of the shard; the frames are frames of its decompressed bytes.
        num_records: Number of frames.
        item: Type of the sizes.
        crc: CRC32C of the sizes.
        num_header_bytes: Offset of the sizes.
    """

    compression: Compression
    num_records: int
    item: str
    crc: int
    num_header_bytes: int

    @property
    def num_bytes(self) -> int:
        """Size of the whole index."""
        return self.num_header_bytes + self.num_records * np.dtype(self.item).itemsize


def index_name(shard: str) -> str:
    """Return the path of a shard's index in its data set.

    Example:
        >>> index_name("train-00000-of-00002.tfrecord")
        'index/train-00000-of-00002.tfrecord.idx'
    """
    return f"{INDEX_FOLDER}/{shard}{INDEX_SUFFIX}"


def identify(shard: ShardEntry) -> Identity:
    """Return the identity of a shard of a data set: its size and its hash."""
    return shard.num_bytes, shard.sha256


def encode_index(sizes: NDArray[Any], compression: Compression, identity: Identity) -> bytes:
    """Return the bytes of an index for the sizes of all frames, each 16 bytes larger than its payload."""
    return b"".join(index_parts(sizes, compression, identity))


def index_parts(sizes: NDArray[Any], compression: Compression, identity: Identity) -> tuple[bytes, bytes]:
    """Return the header and the body of `encode_index`, which are written one after the other."""
    is_narrow = len(sizes) == 0 or int(sizes.max()) < 1 << 32
    item = "<u4" if is_narrow else "<u8"
    body = np.ascontiguousarray(sizes, item).tobytes()
    header = {
        "version": _VERSION,
        "compression": compression,
        "identity": list(identity),
        "records": len(sizes),
        "item": item,
        "crc32c": _native.crc32c(body),
    }
    return json.dumps(header).encode() + b"\n", body


def decode_header(data: bytes, identity: Identity) -> IndexHeader | None:
    """Return the header of an index that starts with `data`; None if it is not the index of that file."""
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
    """Return the offsets of the records, with the end of the last one, and the compression of the file.

    Returns None for an index that is damaged or cannot belong to that file: records must cover the file
    without gaps, and must not be smaller than a frame or larger than the limit, because memory is allocated
    by these sizes.
    """
    header = decode_header(data, identity)
    if header is None or header.num_bytes != len(data):
        return None
    body = data[header.num_header_bytes :]
    if header.crc != _native.crc32c(body):
        return None
    offsets = _add_up(np.frombuffer(body, header.item), max_record_bytes)
    if offsets is None or bool(np.any(offsets[1:] < offsets[:-1])):  # the second: beyond 64 bits
        return None
    if header.compression == "none" and int(offsets[-1]) != identity[0]:
        return None
    return offsets, header.compression


def _add_up(sizes: NDArray[Any], max_record_bytes: int) -> NDArray[np.uint64] | None:
    """Return the offsets of frames, and the end of the last; None if a size is out of the allowed range."""
    if (
        len(sizes)
        and not FRAME_BYTES <= int(sizes.min()) <= int(sizes.max()) <= max_record_bytes + FRAME_BYTES
    ):
        return None
    offsets = np.zeros(len(sizes) + 1, np.uint64)
    np.cumsum(sizes, dtype=np.uint64, out=offsets[1:])
    return offsets


def tfindex_name(shard: str) -> str:
    """Return the name of the text index next to a shard.

    Example:
        >>> tfindex_name("train-00000-of-00002.tfrecord")
        'train-00000-of-00002.tfindex'
    """
    return f"{shard.removesuffix('.gz').removesuffix('.tfrecord')}{_TFINDEX_SUFFIX}"


def list_tfindex_names(file: str) -> list[str]:
    """Return the names that the text index of a file can have, by the tool that wrote it.

    Example:
        >>> list_tfindex_names("a.tfrecord")[:3]
        ['a.tfindex', 'a.tfrecord.tfindex', 'a.idx']
    """
    stem = PurePath(file).stem
    names = [f"{base}{suffix}" for suffix in (_TFINDEX_SUFFIX, *_OTHER_SUFFIXES) for base in (stem, file)]
    return [name for name in names if name != file]


def encode_tfindex(sizes: NDArray[Any]) -> bytes:
    """Return the text index of contiguous frames of these sizes, from byte 0 on."""
    return b"".join(iter_tfindex(sizes))


def iter_tfindex(sizes: NDArray[Any]) -> Iterator[bytes]:
    """Yield the text of `encode_tfindex` in parts: the whole text takes more memory than the shard."""
    end = 0
    for start in range(0, len(sizes), _BLOCK_ROWS):
        lengths = np.ascontiguousarray(sizes[start : start + _BLOCK_ROWS], np.int64)
        lines, end = _native.text_index(lengths, end)
        yield lines.tobytes()


def max_tfindex_bytes(num_bytes: int) -> int:
    """Return the maximum size of the text index of a file of `num_bytes`."""
    return _MAX_LINE_BYTES * (num_bytes // FRAME_BYTES)


def decode_tfindex(text: bytes, num_bytes: int, max_record_bytes: int) -> NDArray[np.uint64] | None:
    """Return the offsets of the records of a file, with the end of the last one.

    Returns None for a text that is not an index of a file of `num_bytes`: records must cover the file without
    gaps, and must not be larger than the limit, because memory is allocated by their sizes.
    """
    if text.translate(None, b"0123456789 \t\r\n"):
        return None
    # A number of more than 64 bits is parsed as a different one, which fails the check below.
    numbers = np.fromstring(text, np.int64, sep=" ") if text.strip() else np.empty(0, np.int64)
    if len(numbers) % 2:
        return None
    offsets, lengths = numbers[::2], numbers[1::2]
    bounds = _add_up(lengths, max_record_bytes)
    if bounds is None or not np.array_equal(bounds[:-1].view(np.int64), offsets):
        return None
    return bounds if int(bounds[-1]) == num_bytes else None


def _hash_shards(shards: Sequence[ShardEntry]) -> str:
    return hashlib.sha256("".join(shard.sha256 for shard in shards).encode()).hexdigest()


def iter_combined(
    shards: Sequence[ShardEntry], read_sizes: Callable[[ShardEntry], NDArray[Any]]
) -> Iterator[bytes]:
    """Yield the bytes of the index of all shards, in the order of the manifest.

    `read_sizes`: returns the sizes of the frames of a shard, payload and 16 bytes; called twice for each
    shard, because all sizes together may not fit into memory.
    """
    is_narrow = all(shard.num_bytes < 1 << 32 for shard in shards)
    item = "<u4" if is_narrow else "<u8"
    crcs = [_native.crc32c(np.ascontiguousarray(read_sizes(shard), item).tobytes()) for shard in shards]
    table = np.array(crcs, "<u4").tobytes()
    header = {
        "version": _COMBINED_VERSION,
        "shards": len(shards),
        "item": item,
        "identity": _hash_shards(shards),
        "crc32c": _native.crc32c(table),
    }
    yield json.dumps(header).encode() + b"\n" + table
    for shard in shards:
        yield np.ascontiguousarray(read_sizes(shard), item).tobytes()


class CombinedHeader(NamedTuple):
    """The first part of the index of all shards: where the sizes of each shard are, and their CRC32C.

    Attributes:
        item: Type of the sizes.
        crcs: CRC32C of the sizes of each shard.
        starts: Offset of the sizes of each shard in the object, and the end of the last.
    """

    item: str
    crcs: NDArray[np.uint32]
    starts: NDArray[np.int64]

    def decode_part(self, number: int, data: memoryview, max_record_bytes: int) -> NDArray[np.uint64] | None:
        """Return the offsets of the records of a shard, and the end of the last; None if bytes are wrong."""
        if len(data) != self.starts[number + 1] - self.starts[number]:
            return None
        if _native.crc32c(bytes(data)) != self.crcs[number]:
            return None
        return _add_up(np.frombuffer(data, self.item), max_record_bytes)


def max_combined_header_bytes(shards: Sequence[ShardEntry]) -> int:
    """Return the maximum size of the first part of the index of all shards."""
    return LONGEST_HEADER + _CRC_BYTES * len(shards)


def max_combined_bytes(shards: Sequence[ShardEntry]) -> int:
    """Return the maximum size of the index of all shards, if no frame has 4 GiB or more."""
    return max_combined_header_bytes(shards) + 4 * sum(shard.num_records for shard in shards)


def decode_combined(data: memoryview, shards: Sequence[ShardEntry]) -> CombinedHeader | None:
    """Return the first part of an index of all shards; None if it does not fit the shards."""
    try:
        line = bytes(data[:LONGEST_HEADER])
        end = line.index(b"\n") + 1
        form = json.loads(line[:end])
        item, crc = form["item"], form["crc32c"]
        if (
            form["version"] != _COMBINED_VERSION
            or form["identity"] != _hash_shards(shards)
            or item not in ("<u4", "<u8")
        ):
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
