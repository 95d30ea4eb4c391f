"""The index of a file: the byte offset of each record.

In: an open file, and its entry in a manifest, if there is one. Out: an `Index`. Of a shard whose stored index
matches its manifest, only the header of the index is read now; otherwise record headers are read once.
Records and damaged ranges cover the file without gaps, so reading detects a wrong index: the bytes take
precedence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock._native import masked_crc32c
from penstock.columns import Compression
from penstock.errors import CorruptRecordError, MissingShardError, NoSuchPathError, PathError
from penstock.format.entry import ShardEntry
from penstock.format.index import (
    FRAME_BYTES,
    LONGEST_HEADER,
    decode_header,
    decode_index,
    decode_tfindex,
    identify,
    index_name,
    list_tfindex_names,
    max_tfindex_bytes,
)
from penstock.foundation.wording import count
from penstock.read.damage import (
    Damage,
    holds_no_record,
    naming_record,
    not_tfrecord,
    refuse_foreign,
    too_large_for_memory,
)
from penstock.settings.groups import ReadOptions
from penstock.storage.compression import (
    FIRST_BYTES,
    find_compression,
    inflate,
)
from penstock.storage.open_file import FileIdentity, OpenFile
from penstock.storage.store_path import AnyPath

# A file that was rewritten with its records in another order may keep its size, so that its old index still
# covers it. Checking some of the headers detects that.
_NUM_PROBES = 32
_HEADER_BYTES = 12

_MOST_ITEM_BYTES = 8  # of an index, per record


def read_neighbour(file: OpenFile, max_record_bytes: int) -> tuple[NDArray[np.uint64] | None, str]:
    """Return the offsets from the first text index that fits, or None, and a note if one does not fit."""
    note = ""
    size = file.identity.size
    for name in list_tfindex_names(file.path.name):
        try:
            index = OpenFile(file.path.with_name(name))
        except PathError:
            continue
        fits = index.size <= max_tfindex_bytes(size)
        offsets = decode_tfindex(index.read(0, index.size), size, max_record_bytes) if fits else None
        if offsets is not None and _leads_to_headers(file, offsets):
            return offsets, ""
        note = note or f"{name} is not used: it is not the index of {file.path.name}"
    return None, note


def _leads_to_headers(file: OpenFile, offsets: NDArray[np.uint64]) -> bool:
    num_records = len(offsets) - 1
    for record in np.linspace(0, num_records - 1, min(num_records, _NUM_PROBES)).astype(int).tolist():
        begin, end = int(offsets[record]), int(offsets[record + 1])
        header = file.read(begin, _HEADER_BYTES)
        if int.from_bytes(header[:8], "little") != end - begin - FRAME_BYTES:
            return False
        if int.from_bytes(header[8:], "little") != masked_crc32c(header[:8]):
            return False
    return True


class Index(Protocol):
    """Locations of the records of one file: a `FileIndex`, or an index that is loaded on first use."""

    @property
    def offsets(self) -> NDArray[np.uint64]:
        """Offset of each record, and the end of the last one."""

    @property
    def damages(self) -> Mapping[int, Damage]:
        """Damaged ranges by record number."""

    @property
    def damaged(self) -> list[int]:
        """Numbers of the damaged records, in order."""

    @property
    def compression(self) -> Compression:
        """Compression of the file."""

    @property
    def identity(self) -> FileIdentity:
        """Identity of the file when it was indexed."""

    @property
    def is_scanned(self) -> bool:
        """Whether the index was just built from the bytes of the file."""

    @property
    def note(self) -> str:
        """Remark for the user on how the index was made, or ""."""

    def __len__(self) -> int:
        """Return the number of records, intact or damaged."""

    def distrust(self) -> None:
        """React to bytes that contradict the index."""


@dataclass(frozen=True)
class FileIndex:
    """Locations of the records of one file.

    Attributes:
        offsets: Offset of each record, in the decompressed bytes of a compressed file, and the end of the
            last record.
        damages: Damaged ranges by record number. Damage of a payload is unknown until it is read.
        compression: Compression of the file.
        identity: Identity of the file when it was indexed.
        saved_as: Path of the cache file that the index comes from, or None.
        is_scanned: Whether the index was just built from the bytes of the file.
        note: Remark for the user on how the index was made, or "".
    """

    offsets: NDArray[np.uint64]
    damages: Mapping[int, Damage]
    compression: Compression
    identity: FileIdentity
    saved_as: Path | None = None
    is_scanned: bool = True
    note: str = ""

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def distrust(self) -> None:
        """Delete the cache file that the index comes from, because the bytes contradict it."""
        if self.saved_as is not None:
            self.saved_as.unlink(missing_ok=True)

    @cached_property
    def damaged(self) -> list[int]:
        """Numbers of the damaged records, in order."""
        return sorted(self.damages)


def check_compression(path: AnyPath, first: bytes, declared: Literal["auto"] | Compression) -> Compression:
    """Return the compression of a file that begins with the bytes `first`."""
    found = find_compression(first)
    if declared in ("auto", found) or not first:
        return found if declared == "auto" else declared
    raise CorruptRecordError(
        "compression",
        path=path,
        field="compression",
        expected=declared,
        got=found,
        advice="To detect it: `compression='auto'`.",
    )


def build_index(file: OpenFile, options: ReadOptions) -> FileIndex:
    """Build the index of a file from its record headers."""
    first = file.read(0, FIRST_BYTES)
    compression = check_compression(file.path, first, options.compression)
    limits = (options.max_record_bytes, options.allow_trailing_zeros)
    if compression == "none":
        refuse_foreign(file.path, first)
        try:
            offsets, found = _native.scan_file(file.fd, file.identity.size, *limits)
        except MemoryError:  # to look for the next record inside one that was cut short
            raise too_large_for_memory(file.path) from None
        failure = None
    else:
        offsets, found, failure = walk_stream(file.path, inflate(file, compression), limits)
    if len(found) > _native.MOST_DAMAGES:
        raise _too_many(file.path)
    damages = {each[0]: Damage.from_core(each) for each in found}
    if failure is not None:
        offsets, damages = _add_failure(offsets, damages, failure)
    file.check_unchanged(file.identity)
    if holds_no_record(len(offsets) - 1 - len(damages), damages):
        raise failure or not_tfrecord(file.path, first, damages)
    return FileIndex(offsets, damages, compression, file.identity)


def walk_stream(
    path: AnyPath, chunks: Iterator[bytes] | Iterator[memoryview], limits: tuple[int, bool]
) -> tuple[NDArray[np.uint64], list[_native.Damage], CorruptRecordError | None]:
    """Scan the chunks of a file; return offsets, damage, and the error that ended a compressed stream."""
    walk = _native.IndexScanner(*limits)
    failure = None
    try:
        for chunk in chunks:
            with naming_record(path, walk):
                walk.feed(chunk)
    except CorruptRecordError as error:
        failure = error
    return *walk.finish(), failure


def _add_failure(
    offsets: NDArray[np.uint64], damages: dict[int, Damage], failure: CorruptRecordError
) -> tuple[NDArray[np.uint64], dict[int, Damage]]:
    """Add the error of the compressed stream, as damage after its last record."""
    count = len(offsets) - 1
    damage = Damage.from_stream(failure, damages.get(count - 1), count, int(offsets[-1]))
    if damage.record == count:
        offsets = np.append(offsets, offsets[-1])
    return offsets, {**damages, damage.record: damage}


def _too_many(path: AnyPath) -> CorruptRecordError:
    return CorruptRecordError(
        "number of damaged ranges",
        path=path,
        field="length",
        expected=f"at most {_native.MOST_DAMAGES}",
        got="more",
        advice=f"Copy the intact records with 'penstock repair {path} OUT'.",
    )


class ManifestIndex:
    """Base of the indexes of shards that match their manifest; no damage of them is known."""

    is_scanned = False
    note = ""
    damages: Mapping[int, Damage] = MappingProxyType({})

    def __init__(self, entry: ShardEntry, compression: Compression, options: ReadOptions) -> None:
        self.compression = compression
        self._entry = entry
        self._options = options

    def __len__(self) -> int:
        return self._entry.num_records

    @property
    def damaged(self) -> list[int]:
        """Numbers of the damaged records: none."""
        return []

    def distrust(self) -> None:
        """Do nothing: the index is part of the data set, and `penstock verify` reports the problem."""


class DeclaredIndex(ManifestIndex):
    """The index of a shard on a disk; offsets are loaded with the first record."""

    def __init__(
        self,
        path: Path,
        entry: ShardEntry,
        compression: Compression,
        identity: FileIdentity,
        options: ReadOptions,
    ) -> None:
        super().__init__(entry, compression, options)
        self.identity = identity
        self._path = path

    @cached_property
    def offsets(self) -> NDArray[np.uint64]:
        """Offset of each record, and the end of the last one."""
        offsets = _read_offsets(self._path, self._entry, self._options)
        if offsets is not None:
            return offsets
        file = OpenFile(self._path)
        file.check_unchanged(self.identity)
        index = _rebuild_index(file, self._entry, self._options, is_strict=True)
        for damage in index.damages.values():  # too late to count as a bad record
            raise damage.error(self._path)
        return index.offsets


def open_declared(path: Path, entry: ShardEntry, options: ReadOptions, *, is_strict: bool) -> Index:
    """Return the index of a declared shard; one that differs is an error if `is_strict`, or scanned."""
    try:
        file = OpenFile(path)
    except NoSuchPathError as error:
        raise MissingShardError(
            f"shard {path.name} is missing",
            path=path.parent,
            expected=_describe(entry),
            got="no file",
            advice="Restore the file, or copy the data set again.",
        ) from error
    size = file.identity.size
    if size != entry.num_bytes:
        misfit = _misfit(path, "size of the shard", _describe(entry), count(size, "byte"))
        if is_strict:
            raise misfit
        return replace(build_index(file, options), note=str(misfit))
    compression = check_compression(path, file.read(0, FIRST_BYTES), options.compression)
    if is_strict and _has_index(path, entry):
        return DeclaredIndex(path, entry, compression, file.identity, options)
    offsets = _read_offsets(path, entry, options)
    if offsets is not None:
        return FileIndex(offsets, {}, compression, file.identity, is_scanned=False)
    return _rebuild_index(file, entry, options, is_strict=is_strict)


def _rebuild_index(file: OpenFile, entry: ShardEntry, options: ReadOptions, *, is_strict: bool) -> FileIndex:
    """Index a shard from its text index, or else its record headers, and check the record count."""
    compression = check_compression(file.path, file.read(0, FIRST_BYTES), options.compression)
    if compression == "none":
        offsets, _ = read_neighbour(file, options.max_record_bytes)
        if offsets is not None and len(offsets) - 1 == entry.num_records:
            return FileIndex(offsets, {}, compression, file.identity, is_scanned=False)
    index = build_index(file, options)
    if len(index) == entry.num_records:
        return index
    misfit = _misfit(file.path, "number of records in the shard", str(entry.num_records), str(len(index)))
    if is_strict:
        raise misfit
    return replace(index, note=str(misfit))


def _has_index(path: Path, entry: ShardEntry) -> bool:
    """Return whether the data set has a stored index of exactly this shard, by the header of the index."""
    try:
        file = OpenFile(path.parent / index_name(entry.name))
    except PathError:
        return False
    header = decode_header(file.read(0, LONGEST_HEADER), identify(entry))
    return header is not None and header.num_records == entry.num_records and header.num_bytes == file.size


def _read_offsets(path: Path, entry: ShardEntry, options: ReadOptions) -> NDArray[np.uint64] | None:
    try:
        file = OpenFile(path.parent / index_name(entry.name))
    except PathError:
        return None
    if file.identity.size > LONGEST_HEADER + _MOST_ITEM_BYTES * entry.num_records:
        return None
    decoded = decode_index(file.read(0, file.identity.size), identify(entry), options.max_record_bytes)
    return None if decoded is None or len(decoded[0]) - 1 != entry.num_records else decoded[0]


def _describe(entry: ShardEntry) -> str:
    return f"{count(entry.num_bytes, 'byte')} with {count(entry.num_records, 'record')}"


def _misfit(path: Path, what: str, expected: str, got: str) -> CorruptRecordError:
    advice = f"Run 'penstock verify {path.parent}', and copy the damaged files again."
    return CorruptRecordError(what, path=path, field="manifest", expected=expected, got=got, advice=advice)
