"""Shards declared in a manifest: check that each exists with the declared size and record count.

In: a path and its manifest entry. Out: an `Index`. A shard whose stored index matches is not scanned: only
the header of the index is read now, the rest together with the first record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Compression
from penstock.errors import CorruptRecordError, MissingShardError, NoSuchPathError, PathError
from penstock.format.entry import ShardEntry
from penstock.format.index import LONGEST_HEADER, decode_header, decode_index, identify, index_name
from penstock.foundation.wording import count
from penstock.read.damage import Damage
from penstock.read.index import FileIndex, Index, build_index, check_compression, read_neighbour
from penstock.settings.groups import ReadOptions
from penstock.storage.compression import FIRST_BYTES
from penstock.storage.open_file import FileIdentity, OpenFile

_MOST_ITEM_BYTES = 8  # of an index, per record


class DeclaredIndex:
    """The index of a shard that matches its manifest; offsets are loaded with the first record."""

    is_scanned = False
    note = ""
    damages: Mapping[int, Damage] = MappingProxyType({})

    def __init__(
        self,
        path: Path,
        entry: ShardEntry,
        compression: Compression,
        identity: FileIdentity,
        options: ReadOptions,
    ) -> None:
        self.compression = compression
        self.identity = identity
        self._path = path
        self._entry = entry
        self._options = options

    def __len__(self) -> int:
        return self._entry.num_records

    @property
    def damaged(self) -> list[int]:
        """Numbers of the damaged records; always empty, as no damage is known."""
        return []

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

    def distrust(self) -> None:
        """Do nothing: the index is part of the data set, and `penstock verify` reports the problem."""


def open_declared(path: Path, entry: ShardEntry, options: ReadOptions, *, is_strict: bool) -> Index:
    """Return the index of a shard that a manifest declares.

    `is_strict`: whether a different size or record count is an error; otherwise the file is scanned, and
    damaged ranges count as bad records.
    """
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
