"""Writes one shard with its indexes, and checks written shards.

In: frames and their sizes, in order. Out: the shard and its indexes, either complete and on disk or not at
all, and the `ShardEntry`. The same frames give the same bytes, compressed or not.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from penstock.errors import WriteError
from penstock.format.entry import ShardEntry
from penstock.format.index import (
    INDEX_FOLDER,
    decode_index,
    encode_tfindex,
    identify,
    index_name,
    index_parts,
    iter_tfindex,
    tfindex_name,
)
from penstock.format.manifest import ManifestCompression
from penstock.shards.sha256 import make_sha256, update_all
from penstock.storage.atomic import AtomicFile, sync_folder, write_failure

_GZIP_LEVEL: Final = 6
_GZIP_WINDOW: Final = 31  # the largest, in a gzip stream; its header has no name, and 0 for the time
_ANY_SIZE = 1 << 62

Frames: TypeAlias = tuple["memoryview | bytes | NDArray[np.uint8]", NDArray[Any]]
"""Concatenated frames, and the size of each."""


class ShardFile:
    """A shard that one thread at a time appends to; `with` removes it unless it was committed.

    Attributes:
        name: Name of the file.
        num_records: Number of records so far.
    """

    def __init__(
        self, folder: Path, name: str, compression: ManifestCompression = "none", *, planned_bytes: int = 0
    ) -> None:
        """Create a shard.

        `planned_bytes`: size of all frames, if known: the error for a full disk reports it.
        """
        self.name = name
        self.num_records = 0
        self._entry: ShardEntry | None = None
        self._is_committed = False
        self._folder = folder
        self._compression = compression
        self._sizes: list[NDArray[Any]] = []
        self._hash = make_sha256()
        self._deflate = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
        planned = planned_bytes if compression == "none" else 0
        self._file = AtomicFile(folder / name, planned_bytes=planned, syncs_folder=False)

    def write(self, frames: memoryview | bytes | NDArray[np.uint8], sizes: NDArray[Any]) -> None:
        """Append complete frames."""
        write_frames([self], [(frames, sizes)])

    def _take(self, frames: Frames) -> bytes | memoryview:
        """Note the sizes of frames; return the bytes to append to the file."""
        self._refuse_closed()
        frame_bytes, sizes = frames
        data = frame_bytes.data if isinstance(frame_bytes, np.ndarray) else memoryview(frame_bytes)
        if int(sizes.sum()) != data.nbytes:
            raise WriteError("sum of sizes", path=self._file.path, expected=data.nbytes, got=sizes.sum())
        # A copy, because the array may be a view of a larger one; narrow, because there may be millions.
        is_narrow = not len(sizes) or int(sizes.max()) < 1 << 32
        self._sizes.append(np.array(sizes, np.uint32 if is_narrow else np.int64))
        self.num_records += len(sizes)
        return data if self._compression == "none" else self._deflate.compress(data)

    def _refuse_closed(self) -> None:
        if self._file.is_closed or self._entry is not None:
            raise WriteError("is already closed", path=self._file.path)

    def seal(self) -> ShardEntry:
        """End the shard, and return its entry for the manifest; `commit` writes the indexes and the names.

        A second call only returns the same entry.
        """
        if self._entry is None:
            self._refuse_closed()
            if self._compression == "gzip":
                data = self._deflate.flush()
                self._hash.update(data)
                self._file.write(data)
            sha256 = self._hash.digest().hex()
            self._entry = ShardEntry(self.name, self.num_records, self._file.num_bytes, sha256)
        return self._entry

    def commit(self) -> ShardEntry:
        """Give the shard and its indexes their names, and return the entry for the manifest.

        A second call only returns the same entry.
        """
        entry = self.seal()
        if self._file.is_closed:
            if self._is_committed:
                return entry
            raise WriteError("is already closed", path=self._file.path)
        self._file.commit()
        sizes = np.concatenate(self._sizes) if self._sizes else np.empty(0, np.int64)
        self._sizes.clear()
        for name, parts in _encode_indexes(entry, self._compression, sizes).items():
            with AtomicFile(self._folder / name, syncs_folder=False) as file:
                for part in parts:
                    file.write(part)
        for folder in (self._folder / INDEX_FOLDER, self._folder):
            try:
                sync_folder(folder)
            except OSError as error:
                raise write_failure(folder, error) from error
        self._is_committed = True
        return entry

    def discard(self) -> None:
        """Remove the file unless it was committed."""
        self._file.discard()

    def __enter__(self) -> ShardFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.discard()


def write_frames(
    shards: Sequence[ShardFile], frames: Sequence[Frames], hashers: Executor | None = None
) -> None:
    """Append frames to each of several shards.

    `shards`: the shards, at most one time each. Two of them are hashed in the time of one. `hashers`: threads
    that compute the SHA-256 while the calling thread writes; None hashes in the calling thread.
    """
    hashes = [shard._hash for shard in shards]
    pieces = [shard._take(each) for shard, each in zip(shards, frames, strict=True)]
    hashing = None if hashers is None else hashers.submit(update_all, hashes, pieces)
    try:
        for shard, piece in zip(shards, pieces, strict=True):
            shard._file.write(piece)
    finally:
        if hashing is None:
            update_all(hashes, pieces)
        else:
            hashing.result()


def _encode_indexes(
    shard: ShardEntry, compression: ManifestCompression, sizes: NDArray[Any]
) -> dict[str, Iterable[bytes]]:
    """Return the bytes of the indexes of a shard in parts, by relative path."""
    found: dict[str, Iterable[bytes]] = {
        index_name(shard.name): index_parts(sizes, compression, identify(shard))
    }
    if compression == "none":  # other programs use it to seek in the file
        found[tfindex_name(shard.name)] = iter_tfindex(sizes)
    return found


def name_files(shard: ShardEntry) -> list[str]:
    """Return the relative paths of a shard and of all indexes that it can have."""
    return [shard.name, index_name(shard.name), tfindex_name(shard.name)]


def is_complete(folder: Path, shard: ShardEntry) -> bool:
    """Return whether a shard in a folder and its indexes are complete and match the entry."""
    with contextlib.suppress(OSError):
        found = decode_index((folder / index_name(shard.name)).read_bytes(), identify(shard), _ANY_SIZE)
        if found is None or len(found[0]) != shard.num_records + 1:
            return False
        offsets, compression = found
        if compression == "none":
            text = encode_tfindex(np.diff(offsets))
            if (folder / tfindex_name(shard.name)).read_bytes() != text:
                return False
        return has_bytes(folder, shard)
    return False


def has_bytes(folder: Path, shard: ShardEntry) -> bool:
    """Return whether a shard has the size and the SHA-256 of its entry; indexes are not checked."""
    path = folder / shard.name
    with contextlib.suppress(OSError):
        return path.stat().st_size == shard.num_bytes and _hash_file(path) == shard.sha256
    return False


def _hash_file(path: Path) -> str:
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
