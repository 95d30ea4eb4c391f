"""Indexes of shards in an object store, loaded with the first record.

In: the manifest of a data set, or an object without one. Out: an `Index` per shard. The index of all shards
is one object; without it, the index of each shard is read, and without that the shard is scanned.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Compression
from penstock.errors import ChangedFileError, CorruptRecordError, NoSuchPathError
from penstock.format.entry import ShardEntry
from penstock.format.index import (
    COMBINED_NAME,
    CombinedHeader,
    decode_combined,
    decode_index,
    identify,
    index_name,
    max_combined_bytes,
    max_combined_header_bytes,
)
from penstock.foundation.process import ProcessLock
from penstock.read.damage import Damage, holds_no_record, not_tfrecord, refuse_foreign
from penstock.read.index import FileIndex, Index, ManifestIndex, check_compression, walk_stream
from penstock.read.range_buffers import cut_ranges
from penstock.settings.groups import ReadOptions
from penstock.storage.compression import FIRST_BYTES, inflate
from penstock.storage.open_file import FileIdentity
from penstock.storage.paths import locate
from penstock.storage.remote_file import RemoteFile, SequentialReader
from penstock.storage.request_threads import call_all
from penstock.storage.store_path import AnyPath

# A combined index of up to this size is read whole: eight million records.
_WHOLE_BYTES: Final = 32 << 20


class CombinedIndex:
    """The index of all shards of a data set; safe to use from several threads.

    Attributes:
        path: Path of the index.
        exists: Whether there was one when offsets were first read.
    """

    def __init__(self, folder: AnyPath, shards: Sequence[ShardEntry], options: ReadOptions) -> None:
        """Name the index of all shards, in the order of the manifest; nothing is read yet."""
        self.path = folder / COMBINED_NAME
        self._at = locate(self.path)
        self.exists = False
        self._shards = tuple(shards)
        self._max_record_bytes = options.max_record_bytes
        self._lock = ProcessLock()
        self._is_read = False
        self._header: CombinedHeader | None = None
        self._data: memoryview | None = None  # of the whole object, if it is small
        self._version: str | None = None

    def read_offsets(self, numbers: Sequence[int]) -> dict[int, NDArray[np.uint64]]:
        """Return the offsets of the records of shards, by number.

        Parts that are near to each other in the index are read by one request, and several requests are sent
        at a time. Shards are left out if the index is missing, or if their part does not fit.
        """
        with self._lock:
            if not self._is_read:
                self._read_header()
                self._is_read = True
        header = self._header
        if header is None or not numbers:
            return {}
        wanted = np.unique(np.array(numbers, np.int64))
        begins, ends = header.starts[wanted], header.starts[wanted + 1]
        if self._data is not None:
            return self._decode(header, wanted, 0, self._data)
        groups = cut_ranges(begins, ends)
        calls = [partial(self._fetch, int(begins[first]), int(ends[last - 1])) for first, last in groups]
        # One range is read by this thread, which may itself be one of those that send requests.
        answers = [calls[0]()] if len(calls) == 1 else call_all(calls)
        found: dict[int, NDArray[np.uint64]] = {}
        for (first, last), data in zip(groups, answers, strict=True):
            if data is not None:
                found |= self._decode(header, wanted[first:last], int(begins[first]), data)
        return found

    def _fetch(self, start: int, stop: int) -> memoryview | None:
        """Return a range of the index; None if it is no longer the one whose header was read."""
        try:
            return self._at.fetch(start, stop, version=self._version).data
        except (ChangedFileError, NoSuchPathError):
            return None

    def _decode(
        self, header: CombinedHeader, numbers: NDArray[np.int64], offset: int, data: memoryview
    ) -> dict[int, NDArray[np.uint64]]:
        """Return the offsets of the records of shards from a range of the index that begins at `offset`."""
        found = {}
        for number in numbers.tolist():
            start, stop = int(header.starts[number]) - offset, int(header.starts[number + 1]) - offset
            offsets = header.decode_part(number, data[start:stop], self._max_record_bytes)
            if offsets is not None:
                found[number] = offsets
        return found

    def _read_header(self) -> None:
        is_small = max_combined_bytes(self._shards) <= _WHOLE_BYTES
        try:
            view, version = self._at.fetch(0, None if is_small else max_combined_header_bytes(self._shards))
        except NoSuchPathError:
            return
        self.exists = True
        self._header, self._version = decode_combined(view, self._shards), version
        self._data = view if is_small else None


class RemoteIndex(ManifestIndex):
    """The index of a shard in an object store; offsets are loaded with the first record.

    Attributes:
        combined: Index of all shards, and the number of this shard in it.
    """

    def __init__(
        self,
        file: RemoteFile,
        entry: ShardEntry,
        compression: Compression,
        options: ReadOptions,
        combined: tuple[CombinedIndex, int],
    ) -> None:
        super().__init__(entry, compression, options)
        self._file = file
        self.combined = combined
        self._lock = ProcessLock()
        self._offsets: NDArray[np.uint64] | None = None

    @property
    def identity(self) -> FileIdentity:
        """Size of the shard, by the manifest."""
        return self._file.identity

    @property
    def offsets(self) -> NDArray[np.uint64]:
        """Offset of each record, and the end of the last one."""
        with self._lock:
            if self._offsets is None:
                self._offsets = self._load()
            return self._offsets

    @property
    def is_loaded(self) -> bool:
        """Whether the offsets are in memory."""
        return self._offsets is not None

    def set_offsets(self, offsets: NDArray[np.uint64]) -> None:
        """Set the offsets that the index of all shards has; they are ignored if they do not fit the shard."""
        with self._lock:
            if self._offsets is None and self._fits(offsets):
                self._offsets = offsets

    def _fits(self, offsets: NDArray[np.uint64]) -> bool:
        return self.compression != "none" or int(offsets[-1]) == self._entry.num_bytes

    def _load(self) -> NDArray[np.uint64]:
        combined, number = self.combined
        offsets = combined.read_offsets([number]).get(number)
        if offsets is None or not self._fits(offsets):
            offsets = self._read_own()
        if offsets is not None and len(offsets) == len(self) + 1:
            return offsets
        index = scan_object(self._file, self._options)
        for damage in index.damages.values():
            raise damage.error(self._file.path)
        if len(index) != len(self):
            raise CorruptRecordError(
                "number of records in the shard",
                path=self._file.path,
                field="manifest",
                expected=len(self),
                got=len(index),
                advice=f"Run 'penstock verify {self._file.path.parent}'.",
            )
        return index.offsets

    def _read_own(self) -> NDArray[np.uint64] | None:
        """Return the offsets of the index of this shard alone; None without an index that fits."""
        try:
            data = locate(self._file.path.parent / index_name(self._entry.name)).read()
        except NoSuchPathError:
            return None
        decoded = decode_index(data, identify(self._entry), self._options.max_record_bytes)
        return None if decoded is None else decoded[0]


def load_offsets(indexes: Sequence[Index]) -> None:
    """Load indexes of several shards, with as few requests as possible, and several at a time."""
    missing = [index for index in indexes if isinstance(index, RemoteIndex) and not index.is_loaded]
    groups: dict[CombinedIndex, dict[int, RemoteIndex]] = {}
    for index in missing:
        combined, number = index.combined
        groups.setdefault(combined, {})[number] = index
    for combined, mine in groups.items():
        for number, offsets in combined.read_offsets(list(mine)).items():
            mine[number].set_offsets(offsets)
    # The others have a separate index, or are scanned.
    rest = [partial(getattr, index, "offsets") for index in missing if not index.is_loaded]
    for _ in call_all(rest):
        pass


def scan_object(file: RemoteFile, options: ReadOptions) -> FileIndex:
    """Build the index of an object from its record headers; all of it is read."""
    first = bytes(SequentialReader(file).read(0, FIRST_BYTES))
    compression = check_compression(file.path, first, options.compression)
    if compression == "none":
        refuse_foreign(file.path, first)
    chunks = file.chunks() if compression == "none" else inflate(InflateSource(file), compression)
    limits = (options.max_record_bytes, options.allow_trailing_zeros)
    offsets, found, failure = walk_stream(file.path, chunks, limits)
    if failure is not None:
        raise failure
    damages = {each[0]: Damage.from_core(each) for each in found}
    if holds_no_record(len(offsets) - 1 - len(damages), damages):
        raise not_tfrecord(file.path, first, damages)
    return FileIndex(offsets, damages, compression, file.identity)


class InflateSource:
    """An object as `inflate` reads it: small pieces in order, read ahead in large ones."""

    def __init__(self, file: RemoteFile) -> None:
        self.path = file.path
        self._reader = SequentialReader(file)

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`; fewer only at the end of the object."""
        return bytes(self._reader.read(offset, size))
