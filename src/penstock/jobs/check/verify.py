"""Whether a shard is what its manifest promises: its size, its hash, its records, its indexes.

In: a shard that was read to its last byte, and its entry. Out: a fault for each promise that is not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock.columns import Payload
from penstock.errors import ManifestError, PathError, PenstockError
from penstock.jobs.check.file_check import Fault, FileCheck, Tally, check_file, word_contrast
from penstock.jobs.check.read_progress import Meter, Progress
from penstock.read.index import build_index
from penstock.read.listing import find_folders
from penstock.read.naming import group_files
from penstock.read.options import ReadOptions
from penstock.shards.entry import ShardEntry
from penstock.shards.index import (
    LONGEST_HEADER,
    decode_index,
    decode_tfindex,
    identify,
    index_name,
    max_tfindex_bytes,
    tfindex_name,
)
from penstock.storage.open_file import OpenFile
from penstock.storage.paths import PathLike, find_files

_MOST_ITEM_BYTES = 8


def compare_shard(check: FileCheck, sha256: str, entry: ShardEntry) -> Iterator[Fault]:
    """Yield how a shard differs from what its manifest says."""
    for what, expected, got in (
        ("size of the shard, by the manifest", entry.num_bytes, check.identity.size),
        ("number of records, by the manifest", entry.num_records, check.num_records),
        ("SHA-256, by the manifest", entry.sha256, sha256),
    ):
        if expected != got:
            yield Fault(check.path, None, None, word_contrast(what, expected, got))


def compare_indexes(path: Path, entry: ShardEntry, options: ReadOptions) -> Iterator[Fault]:
    """Yield the indexes of a sound shard that are not its own; a shard need not have any."""
    offsets = build_index(OpenFile(path), options).offsets
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


def _read(path: Path, most: int) -> bytes | None:
    """Return what an index holds, a byte more than it can have at most; None if it is not there."""
    try:
        return OpenFile(path).read(0, most + 1)
    except PathError:
        return None


@dataclass(frozen=True)
class VerifiedFile:
    """One of the files.

    Attributes:
        path: The file.
        num_records: Its records, sound or damaged; a damaged stretch counts as one. 0 if it is no TFRecord.
        num_bytes: Its size on disk.
        payload: What its records are; of "other" only the frames were checked.
        faults: All that is wrong with it.
    """

    path: Path
    num_records: int
    num_bytes: int
    payload: Payload
    faults: tuple[Fault, ...]


@dataclass(frozen=True)
class Verification:
    """What was found.

    Attributes:
        files: The files, in the order in which they were looked at.
        faults: All faults of all files, and of the set itself.
        advice: What to do about a manifest that cannot be read; empty if there is none.
    """

    files: tuple[VerifiedFile, ...]
    faults: tuple[Fault, ...]
    advice: str = ""

    @property
    def num_records(self) -> int:
        """The records of all files."""
        return sum(file.num_records for file in self.files)

    @property
    def num_bytes(self) -> int:
        """What all files take on disk."""
        return sum(file.num_bytes for file in self.files)

    @property
    def num_other(self) -> int:
        """The records of files whose records are no Examples: only their frames were checked."""
        return sum(file.num_records for file in self.files if file.payload == "other")

    @property
    def num_bad_files(self) -> int:
        """How many of the files have faults."""
        return sum(bool(file.faults) for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """Return the findings for `json.dumps`."""
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
    """Look at every byte of every file.

    A record is sound if its frame is, with both CRCs, and if it is an Example in a file of Examples, or a
    SequenceExample in a file of such. A file of something else need only have sound frames. The shards of a
    folder with a manifest must also be what that says, and their indexes must be theirs.

    Raises:
        NoSuchPathError: A path leads to no file.

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
        faults.append(Fault.from_error(Path(error.path or ""), error))
        advice = error.advice
        folders, rest = [], named
    shards = [shard for folder in folders for files in folder.splits().values() for shard in files]
    bare: list[Path] = []
    if rest or not folders:
        bare, named_singly = find_files(rest)
        try:
            group_files(bare, named_singly=named_singly)
        except PenstockError as error:
            faults.append(Fault.from_error(Path(error.path or ""), error))
    meter = Meter([*(path for path, _ in shards), *bare], on_progress)
    verified = [_verify_file(path, options, meter, entry) for path, entry in shards]
    verified += [_verify_file(path, options, meter) for path in bare]
    faults += [fault for file in verified for fault in file.faults]
    return Verification(tuple(verified), tuple(faults), advice)


def _verify_file(
    path: Path, options: ReadOptions, meter: Meter, entry: ShardEntry | None = None
) -> VerifiedFile:
    """Look at every byte of a file, and compare it with what a manifest says of it."""
    num_bytes = 0
    promises: list[Fault] = []
    try:
        with meter.open(path) as file:
            num_bytes = file.identity.size
            if entry is None:
                check = check_file(file, options, Tally())
            else:
                file.begin_hash()
                check = check_file(file, options, Tally())
                promises += compare_shard(check, file.finish_hash(), entry)
                if not check.faults and not promises:
                    promises += compare_indexes(path, entry, options)
    except (PenstockError, OSError) as error:
        return VerifiedFile(path, 0, num_bytes, "empty", (Fault.from_error(path, error),))
    return VerifiedFile(path, check.num_records, num_bytes, check.payload, (*check.faults, *promises))
