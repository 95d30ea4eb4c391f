"""Verification of TFRecord files and data sets: frames, CRCs, records, and agreement with the manifest.

In: paths. Out: `Verification`, with all faults of all files. Of a shard in a manifest, size, hash, number of
records and indexes are compared as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock import _native
from penstock.columns import Payload
from penstock.errors import ManifestError, NoSuchPathError, PathError, PenstockError
from penstock.format.entry import ShardEntry, group_files
from penstock.format.index import (
    LONGEST_HEADER,
    decode_index,
    decode_tfindex,
    identify,
    index_name,
    max_tfindex_bytes,
    tfindex_name,
)
from penstock.jobs.check.file_check import (
    Fault,
    FileCheck,
    Progress,
    ReadProgress,
    RecordCounter,
    check_file,
    word_contrast,
)
from penstock.read.dataset_files import DatasetFolder, find_folders
from penstock.read.index import build_index
from penstock.read.remote_index import CombinedIndex
from penstock.settings.groups import ReadOptions
from penstock.storage.open_file import OpenFile
from penstock.storage.paths import PathLike, find_files, locate, open_path
from penstock.storage.store_path import AnyPath, as_path

_MOST_ITEM_BYTES = 8
_COMPARED_SHARDS = 64  # whose offsets are in memory at the same time


def compare_shard(check: FileCheck, sha256: str, entry: ShardEntry) -> Iterator[Fault]:
    """Yield a fault for each difference between a shard and its entry in the manifest."""
    for what, expected, got in (
        ("size of the shard, by the manifest", entry.num_bytes, check.identity.size),
        ("number of records, by the manifest", entry.num_records, check.num_records),
        ("SHA-256, by the manifest", entry.sha256, sha256),
    ):
        if expected != got:
            yield Fault(check.path, None, None, word_contrast(what, expected, got))


def compare_indexes(
    path: AnyPath, entry: ShardEntry, offsets: NDArray[np.uint64], options: ReadOptions
) -> Iterator[Fault]:
    """Yield a fault for each index that does not match its valid shard; indexes are optional."""
    limit = options.max_record_bytes
    own, text = path.parent / index_name(entry.name), path.parent / tfindex_name(entry.name)
    data = _read(own, LONGEST_HEADER + _MOST_ITEM_BYTES * entry.num_records)
    if data is not None:
        decoded = decode_index(data, identify(entry), limit)
        if decoded is None or not np.array_equal(decoded[0], offsets):
            yield Fault(own, None, None, f"is not the index of {path.name}")
    data = _read(text, max_tfindex_bytes(int(offsets[-1])))
    if data is not None:
        found = decode_tfindex(data, int(offsets[-1]), limit)
        if found is None or not np.array_equal(found, offsets):
            yield Fault(text, None, None, f"is not the index of {path.name}")


def _read(path: AnyPath, most: int) -> bytes | None:
    """Return the content of an index, up to one byte more than `most`; None if it does not exist."""
    try:
        return open_path(path).read(0, most + 1)
    except PathError:
        return None


@dataclass(frozen=True)
class VerifiedFile:
    """Result of verifying one file.

    Attributes:
        path: Path of the file.
        num_records: Number of records, valid or damaged; a damaged stretch counts as one. 0 if the file is
            not a TFRecord file.
        num_bytes: Size of the file on disk.
        payload: Type of the records; for "other", only the frames were checked.
        faults: All faults of the file.
    """

    path: AnyPath
    num_records: int
    num_bytes: int
    payload: Payload
    faults: tuple[Fault, ...]


@dataclass(frozen=True)
class Verification:
    """Result of verifying files; `advice` is about a manifest that cannot be read."""

    files: tuple[VerifiedFile, ...]
    faults: tuple[Fault, ...]
    advice: str = ""

    @property
    def num_records(self) -> int:
        """Number of records of all files."""
        return sum(file.num_records for file in self.files)

    @property
    def num_bytes(self) -> int:
        """Size of all files on disk."""
        return sum(file.num_bytes for file in self.files)

    @property
    def num_other(self) -> int:
        """Number of records that are not Examples: only their frames were checked."""
        return sum(file.num_records for file in self.files if file.payload == "other")

    @property
    def num_bad_files(self) -> int:
        """Number of files with faults."""
        return sum(bool(file.faults) for file in self.files)

    def to_json(self) -> dict[str, object]:
        """Return the result for `json.dumps`."""
        return {
            "files": len(self.files),
            "records": self.num_records,
            "bytes": self.num_bytes,
            "faults": [fault.to_json() for fault in self.faults],
        }


def verify(
    paths: PathLike | Iterable[PathLike],
    options: ReadOptions | None = None,
    on_progress: Progress | None = None,
) -> Verification:
    """Read and check every byte of every file.

    A record is valid if its frame and both CRCs are valid and if, in a file of Examples or SequenceExamples,
    it can be parsed as one. In files of other payloads only the frames are checked. The shards of a folder
    with a manifest must also match the manifest, and their indexes must match the shards.

    Example:
        >>> verify("pets/").faults
        ()
    """
    options = options or ReadOptions()
    named = list(paths) if isinstance(paths, Iterable) and not isinstance(paths, str | bytes) else paths
    faults: list[Fault] = []
    advice = ""
    try:
        folders, rest = find_folders(named)
    except ManifestError as error:
        faults.append(Fault.from_error(as_path(error.path or ""), error))
        advice = error.advice
        folders, rest = [], named
    shards = [shard for folder in folders for files in folder.splits().values() for shard in files]
    bare: list[AnyPath] = []
    if rest or not folders:
        try:
            bare, named_singly = find_files(rest)
        except NoSuchPathError:
            if not faults:  # a store has shards in a folder that only the manifest names
                raise
            named_singly = False
        try:
            group_files(bare, named_singly=named_singly)
        except PenstockError as error:
            faults.append(Fault.from_error(as_path(error.path or ""), error))
    progress = ReadProgress([*(shard.path for shard in shards), *bare], on_progress)
    verified = [_verify_file(shard.path, options, progress, shard.entry) for shard in shards]
    verified += [_verify_file(path, options, progress) for path in bare]
    faults += [fault for file in verified for fault in file.faults]
    faults += [fault for folder in folders for fault in _compare_combined(folder, options)]
    return Verification(tuple(verified), tuple(faults), advice)


def _compare_combined(folder: DatasetFolder, options: ReadOptions) -> Iterator[Fault]:
    """Yield a fault if the index of all shards in an object store does not match them; it is optional."""
    at = folder.shards_path
    if locate(at).has_folders:
        return
    shards = list(folder.manifest.shards())
    index = CombinedIndex(at, shards, options)
    is_plain = folder.manifest.compression == "none"
    for start in range(0, len(shards), _COMPARED_SHARDS):
        numbers = range(start, min(start + _COMPARED_SHARDS, len(shards)))
        try:
            found = index.read_offsets(numbers)
        except PenstockError as error:
            yield Fault.from_error(index.path, error)
            return
        if not index.exists:
            return
        for number in numbers:
            offsets = found.get(number)
            if offsets is None or (is_plain and int(offsets[-1]) != shards[number].num_bytes):
                yield Fault(index.path, None, None, f"is not the index of {shards[number].name}")
                return


def _verify_file(
    path: AnyPath, options: ReadOptions, progress: ReadProgress, entry: ShardEntry | None = None
) -> VerifiedFile:
    """Check every byte of a file, and compare the file with its entry in a manifest."""
    num_bytes = 0
    differences: list[Fault] = []
    try:
        with progress.open(path) as file:
            num_bytes = file.identity.size
            if entry is None:
                check = check_file(file, options, RecordCounter())
            else:
                scanner = _native.IndexScanner(options.max_record_bytes, options.allow_trailing_zeros)
                # A file of a disk is read again for its index, which is fast; an object is not.
                local = Path(path) if locate(path).has_folders else None
                file.begin_hash(scanner if local is None else None)
                check = check_file(file, options, RecordCounter())
                differences += compare_shard(check, file.finish_hash(), entry)
                if not check.faults and not differences and local is not None:
                    differences += compare_indexes(
                        path, entry, build_index(OpenFile(local), options).offsets, options
                    )
                elif not check.faults and not differences and check.compression == "none":
                    differences += compare_indexes(path, entry, scanner.finish()[0], options)
    except (PenstockError, OSError) as error:
        return VerifiedFile(path, 0, num_bytes, "empty", (Fault.from_error(path, error),))
    return VerifiedFile(path, check.num_records, num_bytes, check.payload, (*check.faults, *differences))
