"""The shards of a split: opened one by one, or declared in a manifest and made when they are needed.

In: shards, or files with their manifest entries. Out: a sequence of shards, and properties of all of them
without making each. A data set may have 100,000 shards, so nothing here takes long per shard.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.format.entry import ShardEntry
from penstock.format.index import INDEX_FOLDER, INDEX_SUFFIX
from penstock.read.dataset_files import File
from penstock.read.index import DeclaredIndex, Index, open_declared
from penstock.read.range_buffers import RangeFile
from penstock.read.shard import CompressedShard, Shard
from penstock.settings.groups import ReadOptions
from penstock.storage.open_file import FileIdentity, KeptFiles
from penstock.storage.request_threads import call_all
from penstock.storage.store_path import AnyPath

_TASK_FILES = 1024  # number of files per task
_MOST_TASKS = 16  # at the same time: on a network file system most of the time is spent waiting


class ShardList(Sequence[Shard]):
    """Shards that are opened."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._shards = tuple(shards)

    def __len__(self) -> int:
        return len(self._shards)

    @overload
    def __getitem__(self, index: int) -> Shard: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Shard]: ...
    def __getitem__(self, index: int | slice) -> Shard | Sequence[Shard]:
        if isinstance(index, slice):
            return [self._find(number) for number in range(*index.indices(len(self)))]
        return self._find(range(len(self))[index])

    def _find(self, number: int) -> Shard:
        return self._shards[number]

    def __iter__(self) -> Iterator[Shard]:
        return map(self._find, range(len(self)))

    @cached_property
    def num_records(self) -> list[int]:
        """Number of records of each shard."""
        return [len(shard) for shard in self._shards]

    @cached_property
    def num_bytes(self) -> int:
        """Size of all shards on disk, in bytes."""
        return sum(shard.index.identity.size for shard in self._shards)

    @cached_property
    def has_damage(self) -> bool:
        """Whether a record is known to be damaged."""
        return any(shard.index.damages for shard in self._shards)

    @cached_property
    def is_remote(self) -> bool:
        """Whether all shards are in an object store, and not compressed."""
        return bool(self._shards) and all(shard.ranges is not None for shard in self._shards)

    def find_ranges(self, number: int) -> RangeFile:
        """Return a shard in an object store as a file that is read by ranges."""
        shard = self[number]
        if shard.ranges is None:
            raise TypeError(f"{shard.path} is not read by ranges")
        return shard.ranges

    @property
    def paths(self) -> list[AnyPath]:
        """Path of each shard."""
        return [shard.path for shard in self._shards]

    @property
    def names(self) -> list[str]:
        """File name of each shard."""
        return [shard.path.name for shard in self._shards]

    @property
    def notes(self) -> dict[str, str]:
        """Remarks by file name."""
        return {shard.path.name: shard.index.note for shard in self._shards if shard.index.note}

    def in_order(self) -> ShardList:
        """Return the shards to read once from the first record to the last."""
        return ShardList([shard.in_order() for shard in self._shards])

    def list_plain(self) -> list[bytes]:
        """Return the encoded path of each shard that is not compressed; b"" for others."""
        return [os.fsencode(shard.path) if type(shard) is Shard else b"" for shard in self._shards]

    def list_identities(self) -> NDArray[np.int64]:
        """Return size, modification time and inode of each shard."""
        identities = [shard.index.identity[:3] for shard in self._shards]
        return np.array(identities, np.int64).reshape(len(self), 3)

    def find_suspects(self) -> list[int]:
        """Return the numbers of the shards that may have changed, to be checked one by one."""
        return list(range(len(self)))

    def load_indexes(self, numbers: Sequence[int]) -> None:
        """Load the indexes of shards, several at a time; useful if each is a request."""
        for _ in call_all([partial(getattr, self[number].index, "offsets") for number in numbers]):
            pass


class LazyShards(ShardList):
    """Shards that a manifest declares, each made when it is first used.

    Args:
        files: The files, each with its entry in a manifest.
        made: Shards that are made already, by number.
    """

    def __init__(self, files: Sequence[File], made: Mapping[int, Shard]) -> None:
        self._files = files
        self._entries = list_entries(files)
        self._made = OrderedDict(made)

    def __len__(self) -> int:
        return len(self._files)

    def _find(self, number: int) -> Shard:
        made = self._made.get(number)
        if made is None:
            # Another thread may have made it too: all use the first one, which caches its index.
            made = self._made.setdefault(number, self._make(number))
            self._drop_some()
        return made

    def _make(self, number: int) -> Shard:
        raise NotImplementedError

    def _drop_some(self) -> None:
        """Forget shards that are not needed any more; by default none."""

    @cached_property
    def num_records(self) -> list[int]:
        """Number of records of each shard."""
        return [entry.num_records for entry in self._entries]

    @property
    def paths(self) -> list[AnyPath]:
        """Path of each shard."""
        return [file.path for file in self._files]

    @property
    def names(self) -> list[str]:
        """File name of each shard."""
        return [file.name for file in self._files]


class DeclaredShards(LazyShards):
    """Shards that match their manifest, each made when it is first used.

    Args:
        files: The files.
        identities: Identity of each file, in the order of `FileIdentity`.
        opened: Shards that are opened already, by number.
        options: Options for reading.
        kept: Files that stay open.
    """

    def __init__(
        self,
        files: Sequence[File],
        identities: NDArray[np.int64],
        opened: Mapping[int, Shard],
        options: ReadOptions,
        kept: KeptFiles,
    ) -> None:
        super().__init__(files, opened)
        self._identities = identities
        self._options = options
        self._kept = kept
        self._remarks = {shard.path.name: shard.index.note for shard in opened.values() if shard.index.note}

    def _make(self, number: int) -> Shard:
        file = self._files[number]
        identity = FileIdentity(*self._identities[number].tolist())
        path, entry, compression = Path(file.path), self._entries[number], file.compression or "none"
        declared = DeclaredIndex(path, entry, compression, identity, self._options)
        return make_shard(path, declared, self._kept)

    @cached_property
    def num_bytes(self) -> int:
        """Size of all shards on disk, in bytes."""
        return int(self._identities[:, 0].sum())

    @cached_property
    def has_damage(self) -> bool:
        """Whether a record is known to be damaged."""
        return any(shard.index.damages for shard in list(self._made.values()))

    @property
    def is_remote(self) -> bool:
        """Whether all shards are in an object store, and not compressed."""
        return False

    @property
    def notes(self) -> dict[str, str]:
        """Remarks by file name."""
        return self._remarks

    def in_order(self) -> ShardList:
        """Return the shards to read once from the first record to the last."""
        is_plain = all(file.compression == "none" for file in self._files)
        return self if is_plain else ShardList([shard.in_order() for shard in self])

    def list_plain(self) -> list[bytes]:
        """Return the encoded path of each shard that is not compressed; b"" for others."""
        paths: list[bytes] = []
        for folder, group in groupby(self._files, key=lambda file: file.folder):
            start = os.fsencode(folder) + os.sep.encode()
            paths += [start + file.name.encode() if file.compression == "none" else b"" for file in group]
        return paths

    def list_identities(self) -> NDArray[np.int64]:
        """Return size, modification time and inode of each shard."""
        return np.ascontiguousarray(self._identities[:, :3])

    def find_suspects(self) -> list[int]:
        """Return the numbers of the shards that may have changed, to be checked one by one."""
        now = _identify_files(self._files)
        changed = np.any(now[:, :3] != self._identities[:, :3], axis=1)
        return np.flatnonzero(changed).tolist()


def open_many(files: Sequence[File], options: ReadOptions, kept: KeptFiles) -> DeclaredShards:
    """Open shards that a manifest declares, whose indexes are checked when they are used.

    Each shard must exist with its declared size. Shards without a stored index are indexed now.
    """
    identities, entries = _identify_files(files), list_entries(files)
    sizes = np.array([entry.num_bytes for entry in entries], np.int64)
    special = np.flatnonzero(identities[:, 0] != sizes).tolist()
    for folder, group in groupby(enumerate(files), key=lambda item: item[1].folder):
        indexes = _list_indexes(Path(folder))
        special += [number for number, file in group if f"{file.name}{INDEX_SUFFIX}" not in indexes]

    def open_one(number: int) -> Shard:
        path = Path(files[number].path)
        return make_shard(path, open_declared(path, entries[number], options, is_strict=True), kept)

    numbers = sorted(set(special))
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        opened = dict(zip(numbers, pool.map(open_one, numbers), strict=True))
    for number, shard in opened.items():  # a file may have come back since its status was read
        identities[number] = shard.index.identity
    return DeclaredShards(files, identities, opened, options, kept)


def make_shard(path: Path, index: Index, kept: KeptFiles) -> Shard:
    """Return a shard with the class for its compression."""
    return (Shard if index.compression == "none" else CompressedShard)(path, index, kept)


def _identify_files(files: Sequence[File]) -> NDArray[np.int64]:
    """Return the identity of each file, in the order of `FileIdentity`; -1 for one that cannot be read."""
    tasks = []
    for folder, group in groupby(files, key=lambda file: file.folder):
        names = [file.name for file in group]
        tasks += [
            (os.fsencode(folder), names[start : start + _TASK_FILES])
            for start in range(0, len(names), _TASK_FILES)
        ]
    with ThreadPoolExecutor(max_workers=_MOST_TASKS) as pool:
        found = list(pool.map(lambda task: _native.identify_files(*task), tasks))
    return np.concatenate([np.empty(0, np.int64), *found]).reshape(-1, 4)


def _list_indexes(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder / INDEX_FOLDER))  # noqa: PTH208 - many names, and no paths are needed
    except OSError:
        return set()


def list_entries(files: Sequence[File]) -> list[ShardEntry]:
    """Return the manifest entries of files; every file must have one."""
    entries = [file.entry for file in files if file.entry is not None]
    if len(entries) < len(files):
        raise TypeError("a file has no entry in a manifest")
    return entries
