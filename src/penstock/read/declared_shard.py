"""Shards that a manifest declares: there, of that size, with so many records, or refused.

In: a path, and what the manifest says of the file. Out: a `Shard`. Nothing is scanned where the index of the
data set fits; of that, the first line is looked at now, and the rest is loaded with the first record.
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
from penstock.foundation.wording import count
from penstock.read.damage import Damage
from penstock.read.index import FileIndex, Index, build_index, check_compression, read_neighbour
from penstock.read.options import ReadOptions
from penstock.shards.entry import ShardEntry
from penstock.shards.index import LONGEST_HEADER, decode_header, decode_index, identify, index_name
from penstock.storage.compression import FIRST_BYTES
from penstock.storage.open_file import FileIdentity, OpenFile


class DeclaredIndex:
    """The index of a shard that is what its manifest says; where the records are is found with the first."""

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
        """The numbers of what is damaged: nothing is known of any damage."""
        return []

    @cached_property
    def offsets(self) -> NDArray[np.uint64]:
        """Where each record begins, and the last ends.

        Raises:
            CorruptRecordError: The index of the data set is of no use, and the file is damaged too.
            ChangedFileError: The file is another than it was.
        """
        offsets = _read_offsets(self._path, self._entry, self._options)
        if offsets is not None:
            return offsets
        file = OpenFile(self._path)
        file.check_unchanged(self.identity)
        index = _index_anew(file, self._entry, self._options, is_strict=True)
        for damage in index.damages.values():  # too late to count it as a bad record
            raise damage.error(self._path)
        return index.offsets

    def distrust(self) -> None:
        """Do nothing: the index is a part of the data set, and `penstock verify` names what is wrong."""


def open_declared(path: Path, entry: ShardEntry, options: ReadOptions, *, is_strict: bool) -> Index:
    """Return the index of a shard that a manifest declares.

    Args:
        path: The file.
        entry: What the manifest says of it.
        options: How to read it.
        is_strict: Whether a file of another size or count is refused; else it is scanned, and what is damaged
            in it counts as a bad record.

    Raises:
        MissingShardError: The file is not there.
        CorruptRecordError: It has another size, or another number of records.
    """
    try:
        file = OpenFile(path)
    except NoSuchPathError as error:
        raise MissingShardError(
            f"shard {path.name} is missing",
            path=path.parent,
            expected=_describe(entry),
            got="no file",
            advice="Get the data set anew from where it comes.",
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
    return _index_anew(file, entry, options, is_strict=is_strict)


def _index_anew(file: OpenFile, entry: ShardEntry, options: ReadOptions, *, is_strict: bool) -> FileIndex:
    """Index a shard by the text index beside it, else by its headers, and compare the count."""
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
    """Tell by its first line whether the data set has an index of this very shard."""
    try:
        file = OpenFile(path.parent / index_name(entry.name))
    except PathError:
        return False
    header = decode_header(file.read(0, LONGEST_HEADER), identify(entry))
    return header is not None and header.num_records == entry.num_records and header.num_bytes == file.size


def _read_offsets(path: Path, entry: ShardEntry, options: ReadOptions) -> NDArray[np.uint64] | None:
    if not _has_index(path, entry):  # and so of no other size than the records of the shard can need
        return None
    file = OpenFile(path.parent / index_name(entry.name))
    decoded = decode_index(file.read(0, file.size), identify(entry), options.max_record_bytes)
    return None if decoded is None else decoded[0]


def _describe(entry: ShardEntry) -> str:
    return f"{count(entry.num_bytes, 'byte')} with {count(entry.num_records, 'record')}"


def _misfit(path: Path, what: str, expected: str, got: str) -> CorruptRecordError:
    advice = f"Run 'penstock verify {path.parent}', and get the data set anew from where it comes."
    return CorruptRecordError(what, path=path, field="manifest", expected=expected, got=got, advice=advice)
