"""Shards in object stores, which are read by ranges; the core gets their frames as buffers.

In: the files of a listing. Out: shards. Those that a manifest declares need no request yet, and are made when
they are used: a data set may have 100,000 of them. Rows that are read in order are read ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import repeat
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.errors import CorruptRecordError, MissingShardError, NoSuchPathError
from penstock.format.entry import ShardEntry
from penstock.format.manifest import ManifestCompression
from penstock.foundation.process import ProcessLock
from penstock.read.dataset_files import DatasetFolder, File, list_parents
from penstock.read.index import Index
from penstock.read.remote_index import CombinedIndex, InflateSource, RemoteIndex, load_offsets, scan_object
from penstock.read.shard import Access, CompressedShard, Selection, Shard
from penstock.read.shard_list import LazyShards, ShardList
from penstock.settings.groups import ReadOptions
from penstock.storage.cache import cache_path, find_cache
from penstock.storage.open_file import KeptFiles, OpenFile, Readable
from penstock.storage.paths import locate
from penstock.storage.remote_file import RemoteFile, SequentialReader
from penstock.storage.store_path import AnyPath, StorePath


class ShardObject(RemoteFile):
    """The object of a shard that a manifest declares: it must exist with the declared size."""

    def fetch(self, start: int, stop: int) -> memoryview:
        """Return a range of bytes by one request."""
        try:
            return super().fetch(start, stop)
        except NoSuchPathError as error:
            raise MissingShardError(
                f"shard {self.path.name} is missing",
                path=self.path.parent,
                expected=f"{self.size} bytes",
                got="no object",
                advice="Restore the object, or open the data set again.",
            ) from error


class _RemoteShard(Shard):
    """A shard in an object store; safe to use from several threads."""

    def __init__(self, file: RemoteFile, index: Index, *, is_ahead: bool = False) -> None:
        """Describe a shard; nothing is read yet.

        `is_ahead`: whether it is read once, in order, by one thread: then it is read ahead.
        """
        self.path = file.path
        self.index = index
        self.ranges = self._object = file
        self._reader = SequentialReader(file) if is_ahead else None

    def segment(self, selection: Selection, access: Access = "read") -> _native.Segment:  # noqa: ARG002
        """Return the frames of the selected records, read now."""
        begins, sizes = self._frames(selection)
        if len(begins) == 0:
            return -1, b"", 0, begins, sizes, None
        first, last = int(begins.min()), int((begins + sizes).max())
        read = self._object.read if self._reader is None else self._reader.read
        return -1, read(first, last - first), first, begins, sizes, None

    def in_order(self) -> Shard:
        """Return a shard that is read ahead."""
        return _RemoteShard(self._object, self.index, is_ahead=True)

    def file(self) -> OpenFile | None:
        """Return None: there is no file."""
        return None

    def check(self) -> None:
        """Do nothing: each request demands the version of the object that was read first."""


class _RemoteCompressedShard(CompressedShard):
    """A gzip or zlib object: decompressed on the fly when read in order, into the cache for other orders."""

    def __init__(
        self,
        file: RemoteFile,
        index: Index,
        version: str,
        files: KeptFiles | None = None,
        *,
        goes_forward: bool = False,
    ) -> None:
        """Describe a shard; nothing is read yet.

        `version`: identifies the content of the object: a copy in the cache is found by it. `goes_forward`:
        whether it is read once, in order.
        """
        self._object = file
        self._version = version
        super().__init__(file.path, index, files, goes_forward=goes_forward)
        self._copy = cache_path("inflated", file.path, index.identity.size, version)

    def in_order(self) -> Shard:
        """Return a shard with its own stream."""
        return _RemoteCompressedShard(self._object, self.index, self._version, self._files, goes_forward=True)

    def check(self) -> None:
        """Do nothing: each request demands the version of the object that was read first."""

    def _source(self) -> Readable:
        return InflateSource(self._object)


# A shard that is read in order keeps the last range of it in memory.
_MOST_IN_ORDER: Final = 4


class RemoteShards:
    """Opens the shards of data sets in object stores; safe to use from several threads."""

    def __init__(self, folders: Sequence[DatasetFolder], options: ReadOptions, kept: KeptFiles) -> None:
        """Note the manifests."""
        self._options = options
        self._kept = kept
        self._cache = find_cache(options.store_cache_bytes)
        self._declared: dict[AnyPath, dict[str, tuple[CombinedIndex, int, ManifestCompression]]] = {}
        for folder in folders:
            at = folder.shards_path
            if not locate(at).has_folders:
                shards = list(folder.manifest.shards())
                combined = CombinedIndex(at, shards, options)
                compression = folder.manifest.compression
                _check_compression(folder, options)
                names = [shard.name for shard in shards]
                numbered = zip(repeat(combined), range(len(shards)), repeat(compression), strict=False)
                self._declared.setdefault(at, {}).update(zip(names, numbered, strict=True))

    def open_many(self, files: Sequence[File]) -> ShardList | None:
        """Return shards, each made when it is first used; None if not all are declared and in a store."""
        if all(file.entry is not None for file in files) and list_parents(files) <= self._declared.keys():
            return DeclaredObjects(files, self.open)
        return None

    def open(self, folder: AnyPath, name: str, entry: ShardEntry | None) -> Shard:
        """Return a shard, scanned if no manifest has an entry for it."""
        path = cast("StorePath", folder / name)
        if entry is None:
            file = RemoteFile(path)
            file.refuse_missing_version()
            file.use_cache(self._cache, file.version)
            index: Index = scan_object(file, self._options)
            version = file.version
        else:
            combined, number, compression = self._declared[folder][name]
            file = ShardObject(path, entry.num_bytes)
            file.use_cache(self._cache, entry.sha256)
            index = RemoteIndex(file, entry, compression, self._options, (combined, number))
            version = entry.sha256
        if index.compression == "none":
            return _RemoteShard(file, index)
        return _RemoteCompressedShard(file, index, version, self._kept)


class DeclaredObjects(LazyShards):
    """Shards in object stores that manifests declare, each made when it is first used.

    Args:
        files: The files.
        open_one: Makes a shard from its folder, its name and its entry in a manifest.
        base: Shards to read once from the first record to the last; then only the most recent ones are kept.
    """

    def __init__(
        self,
        files: Sequence[File],
        open_one: Callable[[AnyPath, str, ShardEntry], Shard],
        base: DeclaredObjects | None = None,
    ) -> None:
        super().__init__(files, {})
        self._open_one = open_one
        self._base = base
        self._lock = ProcessLock()

    def _make(self, number: int) -> Shard:
        if self._base is not None:
            return self._base[number].in_order()
        folder, name, *_ = self._files[number]
        return self._open_one(folder, name, self._entries[number])

    def _drop_some(self) -> None:
        while self._base is not None and len(self._made) > _MOST_IN_ORDER:
            self._made.popitem(last=False)

    @cached_property
    def num_bytes(self) -> int:
        """Size of all shards, in bytes."""
        return sum(entry.num_bytes for entry in self._entries)

    @property
    def has_damage(self) -> bool:
        """Whether a record is known to be damaged; no index of a store has damaged records."""
        return False

    @cached_property
    def is_remote(self) -> bool:
        """Whether all shards are in an object store, and not compressed."""
        return bool(self._files) and all(file.compression == "none" for file in self._files)

    @property
    def notes(self) -> dict[str, str]:
        """Remarks by file name."""
        return {}

    def in_order(self) -> ShardList:
        """Return the shards to read once from the first record to the last."""
        return DeclaredObjects(self._files, self._open_one, self)

    def list_plain(self) -> list[bytes]:
        """Return b"" for each shard: none is a file on a disk."""
        return [b""] * len(self)

    def list_identities(self) -> NDArray[np.int64]:
        """Return size, modification time and inode of each shard; the last two are 0."""
        identities = np.zeros((len(self), 3), np.int64)
        identities[:, 0] = [entry.num_bytes for entry in self._entries]
        return identities

    def find_suspects(self) -> list[int]:
        """Return no shard: each request demands the version of the object that was read first."""
        return []

    def load_indexes(self, numbers: Sequence[int]) -> None:
        """Load the indexes of shards, with as few requests as possible."""
        with self._lock:  # threads of a loader often need the same ones
            load_offsets([self[number].index for number in numbers])


def _check_compression(folder: DatasetFolder, options: ReadOptions) -> None:
    if options.compression not in ("auto", folder.manifest.compression):
        raise CorruptRecordError(
            "compression",
            path=folder.path,
            field="compression",
            expected=options.compression,
            got=folder.manifest.compression,
            advice="To detect it: `compression='auto'`.",
        )
