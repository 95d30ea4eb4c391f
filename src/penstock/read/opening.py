"""Opens files: finds them, groups them into splits, indexes each, and looks at what is in them if need be.

In: what the caller named. Out: `OpenedFiles` with the rows of each split, and a survey of their records.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import numpy as np

from penstock import _native
from penstock.errors import NoSuchPathError
from penstock.read.declared import open_declared
from penstock.read.folder import DatasetFolder, declared_schema, find_folders
from penstock.read.index import Index
from penstock.read.naming import group_files
from penstock.read.options import OnError, ReadOptions
from penstock.read.rows import Rows
from penstock.read.saved import load_index
from penstock.read.shard import CompressedShard, Shard
from penstock.schema.schema import Schema
from penstock.schema.survey import Survey
from penstock.shards.entry import ShardEntry
from penstock.shards.manifest import Manifest
from penstock.storage.file import OpenFile
from penstock.storage.kept import KeptFiles
from penstock.storage.paths import PathLike, find_files
from penstock.types import Payload

# What opening looks at: all of a small data set, so that nothing can surprise; of a large one, stretches
# that are spread over each of its files.
SURVEY_BYTES = 64 << 20
_SURVEY_STRETCHES = 64

_STRANGER = "left out: the file is not in the manifest"

_File: TypeAlias = tuple[Path, ShardEntry | None]  # a file, and what a manifest says of it
_Groups: TypeAlias = dict[str, dict[str, _File]]  # files by split and real path


@dataclass
class OpenedFiles:
    """The files of a data set, by split.

    Attributes:
        splits: The rows of each split.
        folders: The folders with a manifest among what was named.
        is_described: Whether all files are in a manifest, which then says what they hold.
        notes: What is to be known of a file, by its name.
    """

    splits: Mapping[str, Rows]
    folders: Sequence[DatasetFolder] = ()
    is_described: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)
    _survey: Survey | None = field(default=None, repr=False)

    @property
    def payload(self) -> Payload:
        """What the records are."""
        if not self.is_described:
            return self.survey().payload
        if not any(len(rows) for rows in self.splits.values()):
            return "empty"
        payloads = {folder.manifest.payload for folder in self.folders}
        return "sequence_example" if "sequence_example" in payloads else "example"

    @property
    def manifest(self) -> Manifest | None:
        """The manifest, if one folder that has one is all that was named."""
        return self.folders[0].manifest if self.is_described and len(self.folders) == 1 else None

    def declared_schema(self) -> Schema | None:
        """Return what the manifests say that all records hold; None where there is no manifest.

        Raises:
            SchemaError: They do not agree.
        """
        return declared_schema(self.folders)

    def survey(self) -> Survey:
        """Count what is in the records; done once."""
        if self._survey is None:
            counter = _native.Survey()
            total = sum(rows.frame_bytes(0, len(rows)) for rows in self.splits.values())
            is_sample = total > SURVEY_BYTES
            for rows in (split.in_order() for split in self.splits.values()):
                for start, stop in _stretches(rows, SURVEY_BYTES / total if is_sample else 1.0):
                    wanted = _sound(rows, start, stop)
                    counter.add_records(rows.segments(start, stop) if wanted is None else rows.select(wanted))
            self._survey = Survey.from_counts(counter.counts(), is_sample=is_sample)
        return self._survey


def open_files(
    paths: PathLike | Iterable[PathLike], options: ReadOptions, on_error: OnError = "raise"
) -> OpenedFiles:
    """Find files, group them into splits and index them, by their manifests where they have such.

    Raises:
        ManifestError: A folder has a manifest that is none.
        CorruptRecordError: A shard is not what its manifest says, and `on_error` is "raise".
        PenstockError: A file is not there, is missing from its set, or is no TFRecord.
    """
    folders, rest = find_folders(paths)
    groups = _group_declared(folders)
    is_described = bool(folders) and not rest
    if not is_described:
        _add_bare(groups, rest)
    kept = KeptFiles()

    def open_one(file: _File) -> Shard:
        path, entry = file
        if entry is None:
            index: Index = load_index(OpenFile(path), options)
        else:
            index = open_declared(path, entry, options, is_strict=on_error == "raise")
        return (Shard if index.compression == "none" else CompressedShard)(path, index, kept)

    files = [file for group in groups.values() for file in group.values()]
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        shards = iter(list(pool.map(open_one, files)))
    splits = {name: Rows(list(islice(shards, len(group)))) for name, group in groups.items()}
    notes = {file.name: _STRANGER for folder in folders for file in folder.strangers()}
    for shard in (shard for rows in splits.values() for shard in rows.shards if shard.index.note):
        notes[shard.path.name] = shard.index.note
    return OpenedFiles(splits, folders, is_described, notes)


def _group_declared(folders: Iterable[DatasetFolder]) -> _Groups:
    groups: _Groups = {}
    for folder in folders:
        real = os.path.realpath(folder.path)
        for name, files in folder.splits().items():
            group = groups.setdefault(name, {})
            group.update({f"{real}{os.sep}{path.name}": (path, entry) for path, entry in files})
    return groups


def _add_bare(groups: _Groups, rest: PathLike | Iterable[PathLike]) -> None:
    """Add files that no manifest describes, but for those that are there already as shards of a data set."""
    try:
        files, named_singly = find_files(rest)
    except NoSuchPathError as error:
        raise _explain_missing(error) from None
    known = {path for group in groups.values() for path in group}
    for name, paths in group_files(files, named_singly=named_singly).items():
        added: dict[str, _File] = {os.path.realpath(path): (path, None) for path in paths}
        added = {real: file for real, file in added.items() if real not in known}
        if added:
            groups.setdefault(name, {}).update(added)


def _explain_missing(error: NoSuchPathError) -> NoSuchPathError:
    """Say of a path that leads nowhere if a conversion to it did not end."""
    place = Path(error.path or "")
    if error.path is None or not (place.parent / f".{place.name}.partial").is_dir():
        return error
    advice = "A conversion to it has not ended: wait for it, or run it again with resume."
    return NoSuchPathError(error.what, path=error.path, advice=advice)


def _stretches(rows: Rows, share: float) -> Iterable[tuple[int, int]]:
    """Yield ranges to look at: everything, or a share of each file."""
    if share >= 1:
        yield from rows.blocks(1024, 4 << 20)
        return
    first = 0
    for shard in rows.shards:
        # Of a compressed file, its beginning: what lies further on must be inflated up to there.
        pieces = 1 if shard.index.compression != "none" else max(1, _SURVEY_STRETCHES // len(rows.shards))
        length = max(1, int(len(shard) * share / pieces))
        last = 0
        for start in np.linspace(0, max(0, len(shard) - length), pieces).astype(int).tolist():
            if start >= last and start < len(shard):
                last = min(len(shard), start + length)
                yield first + start, first + last
        first += len(shard)


def _sound(rows: Rows, start: int, stop: int) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """Return the rows of a range that are not known to be damaged; None if all are."""
    damaged = {row for row, _, _ in rows.damages(start, stop)}
    if not damaged:
        return None
    return np.array([row for row in range(start, stop) if row not in damaged], np.int64)
