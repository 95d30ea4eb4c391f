"""Opening of shards in object stores. Loaded with the first of them, because it needs `obstore`.

In: the files of a listing. Out: shards. Those that a manifest declares need no request yet.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import CorruptRecordError
from penstock.read.index import Index
from penstock.read.listing import DatasetFolder
from penstock.read.options import ReadOptions
from penstock.read.remote_index import CombinedIndex, RemoteIndex, scan_object
from penstock.read.remote_shard import RemoteCompressedShard, RemoteShard, ShardObject
from penstock.read.shard import Shard
from penstock.shards.entry import ShardEntry
from penstock.shards.manifest import ManifestCompression
from penstock.storage.open_file import KeptFiles
from penstock.storage.range_cache import find_cache
from penstock.storage.remote_file import RemoteFile
from penstock.storage.store_path import StorePath


class RemoteShards:
    """Opens the shards of data sets in object stores; safe to use from several threads."""

    def __init__(self, folders: Sequence[DatasetFolder], options: ReadOptions, kept: KeptFiles) -> None:
        """Note the manifests.

        Args:
            folders: Folders with a manifest.
            options: Options for reading.
            kept: Open copies of compressed shards.

        Raises:
            CorruptRecordError: The options declare another compression than a manifest.
        """
        self._options = options
        self._kept = kept
        self._cache = find_cache(options.store_cache_bytes)
        self._declared: dict[StorePath, tuple[CombinedIndex, int, ManifestCompression]] = {}
        for folder in folders:
            at = folder.shards_path
            if isinstance(at, StorePath):
                shards = list(folder.manifest.shards())
                combined = CombinedIndex(at, shards, options)
                compression = folder.manifest.compression
                _check_compression(folder, options)
                self._declared |= {
                    at / shard.name: (combined, number, compression) for number, shard in enumerate(shards)
                }

    def open(self, path: StorePath, entry: ShardEntry | None) -> Shard:
        """Return a shard.

        Args:
            path: Path of the object.
            entry: Entry of the object in a manifest; None scans the object.

        Raises:
            PenstockError: The object does not exist, or is not a TFRecord file.
        """
        if entry is None:
            file = RemoteFile(path)
            file.refuse_missing_version()
            file.use_cache(self._cache, file.version)
            index: Index = scan_object(file, self._options)
            version = file.version
        else:
            combined, number, compression = self._declared[path]
            file = ShardObject(path, entry.num_bytes)
            file.use_cache(self._cache, entry.sha256)
            index = RemoteIndex(file, entry, compression, self._options, (combined, number))
            version = entry.sha256
        if index.compression == "none":
            return RemoteShard(file, index)
        return RemoteCompressedShard(file, index, version, self._kept)


def _check_compression(folder: DatasetFolder, options: ReadOptions) -> None:
    if options.compression not in ("auto", folder.manifest.compression):
        raise CorruptRecordError(
            "compression",
            path=folder.path,
            field="compression",
            expected=options.compression,
            got=folder.manifest.compression,
            advice="Leave out 'compression' to detect it.",
        )
