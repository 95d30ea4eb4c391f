"""Opening files: find them, group them into splits, index each one, and survey their records if needed.

In: the paths that the caller gave. Out: `OpenedFiles` with the rows of each split, and a survey of them. An
`Origin` keeps the arguments of `open` as plain values: a data set is pickled by reference to its files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from penstock import _native
from penstock.columns import Payload
from penstock.errors import ChangedFileError, SchemaError
from penstock.format.index import decode_index, encode_index
from penstock.format.manifest import Manifest
from penstock.foundation.process import paused_collection
from penstock.foundation.wording import show
from penstock.read.dataset_files import DatasetFolder, File, declared_schema, list_files, list_parents
from penstock.read.index import (
    FileIndex,
    Index,
    build_index,
    check_compression,
    open_declared,
    read_neighbour,
)
from penstock.read.remote_shards import RemoteShards
from penstock.read.rows import Rows, naming_largest
from penstock.read.shard import Shard
from penstock.read.shard_list import ShardList, make_shard, open_many
from penstock.schema.json_form import dump_fields, load_fields
from penstock.schema.resolution import Resolution, resolve_schema
from penstock.schema.schema import Schema
from penstock.schema.survey import Survey
from penstock.settings.groups import OnError, ReadOptions
from penstock.settings.loading import OpenCall
from penstock.storage.cache import cache_path, write_cached
from penstock.storage.compression import FIRST_BYTES
from penstock.storage.open_file import KeptFiles, OpenFile
from penstock.storage.paths import PathLike, locate
from penstock.storage.store_path import make_absolute

# Below these sizes a scan is faster than the cache. Scanning a compressed file decompresses it, so the cache
# pays off sooner there.
_SMALLEST_PLAIN = 32 << 20
_SMALLEST_COMPRESSED = 1 << 20

# With more shards than these, their indexes are not checked when they are opened, but when they are used:
# opening two files for each of 100,000 shards takes 10 s.
_MOST_CHECKED = 1024

# Opening surveys all of a small data set, so that no later record differs; of a large one, ranges spread
# over each of its files.
SURVEY_BYTES = 64 << 20
_SURVEY_RANGES = 64


def load_index(file: OpenFile, options: ReadOptions) -> FileIndex:
    """Return the index of a file; build it only if neither the cache nor the folder of the file has one."""
    if file.identity.size < _SMALLEST_COMPRESSED:
        return build_index(file, options)
    path = cache_path("index", file.path, options.allow_trailing_zeros, options.max_record_bytes)
    try:
        saved = decode_index(path.read_bytes(), file.identity, options.max_record_bytes)
    except OSError:
        saved = None
    if saved is not None and options.compression in ("auto", saved[1]):
        return FileIndex(saved[0], {}, saved[1], file.identity, saved_as=path, is_scanned=False)
    text_index, note = _read_text_index(file, options)
    if text_index is not None:
        return text_index
    index = replace(build_index(file, options), note=note)
    smallest = _SMALLEST_PLAIN if index.compression == "none" else _SMALLEST_COMPRESSED
    # The index of a damaged file is not saved: the file may be repaired in the meantime.
    # With trailing zeros an index ends before the end of the file, by which saved indexes are checked.
    if not index.damages and file.identity.size >= smallest and not options.allow_trailing_zeros:
        write_cached(path, [encode_index(np.diff(index.offsets), index.compression, file.identity)])
    return index


def _read_text_index(file: OpenFile, options: ReadOptions) -> tuple[FileIndex | None, str]:
    """Return the index from a text index next to a large plain file, and a note if one is not used."""
    if file.identity.size < _SMALLEST_PLAIN:
        return None, ""
    compression = check_compression(file.path, file.read(0, FIRST_BYTES), options.compression)
    if compression != "none":  # whether such an index counts compressed or decompressed bytes is unknown
        return None, ""
    offsets, note = read_neighbour(file, options.max_record_bytes)
    if offsets is None:
        return None, note
    return FileIndex(offsets, {}, compression, file.identity, is_scanned=False), ""


@dataclass
class OpenedFiles:
    """The files of a data set, by split.

    Attributes:
        splits: Rows of each split.
        folders: Folders whose manifests describe files of the data set, all of their shards or some.
        is_described: Whether manifests describe all files.
        notes: Remarks by file name.
    """

    splits: Mapping[str, Rows]
    folders: Sequence[DatasetFolder] = ()
    is_described: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)
    _survey: Survey | None = field(default=None, repr=False)

    @property
    def payload(self) -> Payload:
        """Kind of the records."""
        if not self.is_described:
            return self.survey().payload
        if not any(len(rows) for rows in self.splits.values()):
            return "empty"
        payloads = {folder.manifest.payload for folder in self.folders}
        return "sequence_example" if "sequence_example" in payloads else "example"

    @property
    def manifest(self) -> Manifest | None:
        """Manifest of the data set if it is exactly one folder with a manifest; None otherwise."""
        is_one = self.is_described and len(self.folders) == 1 and self.folders[0].is_whole
        return self.folders[0].manifest if is_one else None

    def declared_schema(self) -> Schema | None:
        """Return the schema that the manifests declare; None if there is no manifest."""
        return declared_schema(self.folders)

    def survey(self) -> Survey:
        """Return a survey of the fields in the records; done once."""
        if self._survey is None:
            counter = _native.Survey()
            total = sum(rows.frame_bytes(0, len(rows)) for rows in self.splits.values())
            is_sample = total > SURVEY_BYTES
            for rows in (split.in_order() for split in self.splits.values()):
                for start, stop in _survey_ranges(rows, SURVEY_BYTES / total if is_sample else 1.0):
                    wanted = _find_intact(rows, start, stop)
                    with naming_largest(rows, np.arange(start, stop) if wanted is None else wanted):
                        segments = rows.segments(start, stop) if wanted is None else rows.select(wanted)
                        counter.add_records(segments)
            self._survey = Survey.from_counts(counter.counts(), is_sample=is_sample)
        return self._survey


def open_files(
    paths: PathLike | Iterable[PathLike], options: ReadOptions, on_error: OnError = "raise"
) -> OpenedFiles:
    """Find files, group them into splits and index them, using manifests where there are any."""
    with paused_collection():
        listing = list_files(paths)
    kept = KeptFiles()
    num_files = sum(map(len, listing.groups.values()))
    is_strict = on_error == "raise"

    parents = list_parents(chain.from_iterable(listing.groups.values()))
    unmapped = {folder for folder in parents if not locate(folder).has_folders}
    remote = RemoteShards(listing.folders, options, kept) if unmapped else None

    def open_one(file: File) -> Shard:
        if remote is not None and file.folder in unmapped:
            return remote.open(file.folder, file.name, file.entry)
        path = file.path
        if file.entry is None:
            index: Index = load_index(OpenFile(Path(path)), options)
        else:
            index = open_declared(Path(path), file.entry, options, is_strict=is_strict)
        return make_shard(Path(path), index, kept)

    def open_group(files: Sequence[File], pool: ThreadPoolExecutor) -> ShardList:
        if is_strict and remote is None and num_files > _MOST_CHECKED and _is_declared(files, options):
            return open_many(files, options, kept)
        declared = None if remote is None else remote.open_many(files)
        return ShardList(list(pool.map(open_one, files))) if declared is None else declared

    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        splits = {
            name: Rows(open_group(files, pool), can_map=remote is None)
            for name, files in listing.groups.items()
        }
    notes = dict(listing.notes)
    for rows in splits.values():
        notes |= rows.shards.notes
    return OpenedFiles(splits, listing.folders, listing.is_described, notes)


def _is_declared(files: Sequence[File], options: ReadOptions) -> bool:
    """Return whether manifests declare all files, with a compression that the options allow."""
    allowed = (options.compression,) if options.compression != "auto" else ("none", "gzip")
    return all(file.entry is not None and file.compression in allowed for file in files)


def _survey_ranges(rows: Rows, share: float) -> Iterable[tuple[int, int]]:
    """Yield the ranges of rows to survey: all rows, or a share of each file."""
    if share >= 1:
        yield from rows.blocks(1024, 4 << 20)
        return
    first = 0
    for shard in rows.shards:
        # Of a compressed file, only its beginning: to read a later record, all before it is decompressed.
        pieces = 1 if shard.index.compression != "none" else max(1, _SURVEY_RANGES // len(rows.shards))
        length = max(1, int(len(shard) * share / pieces))
        last = 0
        for start in np.linspace(0, max(0, len(shard) - length), pieces).astype(int).tolist():
            if start >= last and start < len(shard):
                last = min(len(shard), start + length)
                yield first + start, first + last
        first += len(shard)


def _find_intact(rows: Rows, start: int, stop: int) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
    """Return the rows of a range without known damage; None if no row of it is damaged."""
    damaged = {row for row, _, _ in rows.damages(start, stop)}
    if not damaged:
        return None
    return np.array([row for row in range(start, stop) if row not in damaged], np.int64)


def _find_current_folder() -> str:
    try:
        return os.fspath(Path.cwd())
    except OSError:  # it was deleted; absolute paths work without it
        return ""


@dataclass(frozen=True)
class Origin:
    """Arguments that a data set was opened with; see `penstock.open`.

    Attributes:
        path: Path, or list of paths; absolute in the JSON form.
        options: Options of `penstock.open`.
        folder: Current folder when the data set was opened; relative paths start from it.
    """

    path: PathLike | Iterable[PathLike]
    options: OpenCall = field(default_factory=OpenCall)
    folder: str = field(default_factory=_find_current_folder)

    def __post_init__(self) -> None:
        for argument in ("schema", "fields"):
            given = getattr(self.options, argument)
            if given is not None and not isinstance(given, Mapping):
                raise SchemaError(
                    argument,
                    expected="fields by name",
                    got=show(given),
                    advice="Write them as {'age': ps.fields.Number('int64')}.",
                )
        if not isinstance(self.path, str | bytes | os.PathLike) and isinstance(self.path, Iterable):
            object.__setattr__(self, "path", list(self.path))  # an iterator is exhausted by the first use

    def open(self) -> tuple[OpenedFiles, Resolution]:
        """Open the files and resolve their schema."""
        options = self.options
        opened = open_files(self.path, options.read_options, options.on_error)
        roles = (options.target, options.weight, options.id)
        declared = opened.declared_schema() if options.schema is None else options.schema
        is_declared = opened.is_described and options.schema is None and not options.fields
        targets = declared.targets if isinstance(declared, Schema) else ()
        known = {*targets, *(options.schema or ()), *(options.fields or ())}
        if is_declared and isinstance(declared, Schema):
            notes = dict.fromkeys(declared, "declared in the manifest")
            resolution = Resolution(declared.with_roles(*roles), notes)
        else:
            resolution = resolve_schema(opened.survey(), declared, options.fields, *roles)
        return opened, resolution.without_unlabelled(known)

    def to_json(self) -> dict[str, Any]:
        """Return the arguments as dicts, lists and scalars."""
        if isinstance(self.path, str | os.PathLike):
            path: str | list[str] = self._make_absolute(self.path)
        else:
            path = [self._make_absolute(each) for each in self.path]
        schema, fields = self.options.schema, self.options.fields
        return {
            **self.options.to_json(),
            "path": path,
            "schema": None if schema is None else dump_fields(schema),
            "fields": None if fields is None else dump_fields(fields),
            "options": self.options.read_options.to_json(only_given=True),
        }

    def _make_absolute(self, path: PathLike) -> str:
        return make_absolute(path, self.folder)

    @classmethod
    def from_json(cls, json_form: Mapping[str, Any]) -> Origin:
        """Return the origin from the JSON form that `to_json` makes."""
        given = dict(json_form)
        path, schema, fields = given.pop("path"), given.pop("schema"), given.pop("fields")
        return cls(
            path,
            OpenCall(
                **given
                | {
                    "schema": None if schema is None else Schema(load_fields(schema)),
                    "fields": None if fields is None else load_fields(fields),
                    "options": ReadOptions(**given["options"]),
                }
            ),
        )

    def check(self, expected: Mapping[str, str], found: Mapping[str, str]) -> None:
        """Compare the fingerprints of a pickled data set with the files now."""
        for name in {**expected, **found}:
            before, now = expected.get(name, "none"), found.get(name, "none")
            if before != now:
                raise ChangedFileError(
                    f"{name} of the data set",
                    path=self.path if isinstance(self.path, str | os.PathLike) else None,
                    expected=f"{before[:12]}, as when it was pickled",
                    got=now[:12],
                    advice="The files have changed. Open the data set again with ps.open(…).",
                )
