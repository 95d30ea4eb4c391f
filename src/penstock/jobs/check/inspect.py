"""Inspection of TFRecord files: counts, fields, and the first samples.

In: paths, and what is declared about the fields. Out: `Inspection`. Damaged records are skipped and listed
as faults.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from penstock import _native
from penstock.columns import Payload
from penstock.decode.plan import DecodePlan
from penstock.decode.sample import Sample, iterate_samples
from penstock.errors import OptionError
from penstock.jobs.check.file_check import (
    Fault,
    FileCheck,
    ReadableBytes,
    RecordCounter,
    check_file,
    compression_of,
)
from penstock.jobs.check.read_progress import Progress, ReadProgress
from penstock.jobs.stored_data import Declaration
from penstock.read.listing import declared_schema, list_files
from penstock.read.opening import open_files
from penstock.read.options import ReadOptions
from penstock.schema.inference import name_entries
from penstock.schema.resolution import resolve_schema
from penstock.schema.schema import Schema
from penstock.schema.survey import FieldSurvey, ListSurvey, Survey
from penstock.shards.manifest import Manifest
from penstock.storage.paths import PathLike, open_path
from penstock.storage.store_path import AnyPath

_FRAME_BYTES = 16
_HEADER_BYTES = 12


def read_frames(paths: Iterable[AnyPath], options: ReadOptions, payload: Payload) -> Iterator[bytes]:
    """Yield the frames of valid records, file by file."""
    is_example = payload in ("example", "sequence_example")
    for path in paths:
        file = open_path(path)
        compression = compression_of(file, options)
        walk = _native.RepairScanner(
            file.identity.size if compression == "none" else None,
            options.max_record_bytes,
            options.allow_trailing_zeros,
            is_example,
            payload == "sequence_example",
        )
        for chunk in ReadableBytes(file, compression):
            walk.feed(chunk)
            yield from _split_frames(walk.take()[0])


def read_head(
    paths: Iterable[AnyPath], options: ReadOptions, payload: Payload, num_records: int, enough_bytes: int
) -> list[bytes]:
    """Return the first frames.

    Args:
        paths: The files.
        options: How to read the files.
        payload: Type of the records.
        num_records: Number of requested frames.
        enough_bytes: Up to 100 frames are returned, even if fewer are requested, as long as they take no
            more than this number of bytes.
    """
    frames: list[bytes] = []
    num_bytes = 0
    for frame in islice(read_frames(paths, options, payload), max(num_records, 100)):
        if len(frames) >= num_records and num_bytes + len(frame) > enough_bytes:
            break
        frames.append(frame)
        num_bytes += len(frame)
    return frames


def decode_frames(frames: list[bytes], schema: Schema) -> list[Sample]:
    """Return the samples of frames, without those that do not fit the schema."""
    plan = DecodePlan(schema)
    while frames:
        bounds = np.cumsum([0, *map(len, frames)]).astype(np.uint64)
        segment = (-1, b"".join(frames), 0, bounds[:-1], np.diff(bounds), None)
        columns, faults = plan.decode([segment])
        if not faults:
            return list(iterate_samples(columns, schema=schema, num_rows=len(frames)))
        bad = {fault[0] for fault in faults}
        frames = [frame for row, frame in enumerate(frames) if row not in bad]
    return []


def payload_of(frame: bytes) -> bytes:
    """Return the payload of a frame."""
    return frame[_HEADER_BYTES : len(frame) - _FRAME_BYTES + _HEADER_BYTES]


def _split_frames(frames: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(frames):
        end = at + _FRAME_BYTES + int.from_bytes(frames[at : at + 8], "little")
        yield frames[at:end]
        at = end


_EXAMPLE_BYTES = 4 << 20  # of records are read to find a value of each field to show


@dataclass(frozen=True, kw_only=True)
class InspectOptions:
    """Options of `inspect`.

    Attributes:
        read: How to read the files.
        declaration: Types, shapes and roles of fields.
        num_samples: Number of requested samples.
    """

    read: ReadOptions = field(default_factory=ReadOptions)
    declaration: Declaration = field(default_factory=Declaration)
    num_samples: int = 0

    def __post_init__(self) -> None:
        if self.num_samples < 0:
            raise OptionError("num_samples", expected="a whole number of at least 0", got=self.num_samples)


@dataclass(frozen=True)
class Inspection:
    """Result of inspecting files.

    Attributes:
        splits: The files by split.
        survey: Counts over all valid records.
        schema: The fields, declared or inferred, without fields that have no single type.
        samples: The first samples: at least the requested number, if the files hold that many.
        payloads: The first payloads, if the records are not Examples.
        num_samples: Number of requested samples.
        manifest: Manifest of the folder, if the input is exactly one folder with a manifest.
    """

    splits: Mapping[str, tuple[FileCheck, ...]]
    survey: Survey
    schema: Schema
    samples: tuple[Sample, ...]
    payloads: tuple[bytes, ...]
    num_samples: int
    manifest: Manifest | None = None

    @property
    def files(self) -> tuple[FileCheck, ...]:
        """The files of all splits."""
        return tuple(file for files in self.splits.values() for file in files)

    @property
    def num_bytes(self) -> int:
        """Size of the files on disk."""
        return sum(file.identity.size for file in self.files)

    @property
    def compression(self) -> str:
        """Compression of the files: "none", "gzip", "zlib" or "mixed"."""
        found = {file.compression for file in self.files}
        return found.pop() if len(found) == 1 else "mixed"

    @property
    def faults(self) -> tuple[Fault, ...]:
        """All faults of the files."""
        return tuple(fault for file in self.files for fault in file.faults)

    @property
    def entries(self) -> dict[str, FieldSurvey | ListSurvey]:
        """Counts by field name; empty if the records are not Examples."""
        return {} if self.survey.payload in ("other", "empty") else name_entries(self.survey)

    def to_json(self) -> dict[str, Any]:
        """Return the result for `json.dumps`, without the samples."""
        fields, lists = {}, {}
        for name, entry in self.entries.items():
            if isinstance(entry, ListSurvey):
                steps = {"min_steps": entry.min_steps, "max_steps": entry.max_steps}
                lists[name] = {"kind": entry.steps.kind, **steps}
            else:
                fields[name] = {
                    "kind": entry.kind,
                    "type": self.schema[name].type_name if name in self.schema else None,
                    "records": entry.records,
                    "missing": entry.missing,
                    "min_len": entry.min_len,
                    "max_len": entry.max_len,
                }
        result: dict[str, Any] = {
            "files": len(self.files),
            "records": self.survey.records,
            "bytes": self.num_bytes,
            "compression": self.compression,
            "payload": self.survey.payload,
            "fields": fields,
        }
        if self.survey.payload == "sequence_example":
            result["feature_lists"] = lists
        if self.manifest is not None:
            result["manifest"] = _describe_manifest(self.manifest)
        return result


def _describe_manifest(manifest: Manifest) -> dict[str, Any]:
    """Return the content of a manifest without the list of its shards, which may be long."""
    return {
        "penstock": manifest.version,
        "splits": {
            name: {"records": split.num_records, "bytes": split.num_bytes, "shards": len(split.shards)}
            for name, split in manifest.splits.items()
        },
        "split": manifest.split,
        "order": manifest.order,
        "rejects": manifest.rejects,
        "source": list(manifest.source),
        "statistics": manifest.statistics,
    }


def inspect(
    paths: PathLike | Iterable[PathLike],
    options: InspectOptions | None = None,
    on_progress: Progress | None = None,
) -> Inspection:
    """Count records and fields of files, and infer the types of the fields.

    Damaged records are skipped and listed in `faults`.

    Raises:
        NoSuchPathError: A path does not match any file.
        MissingShardError: A file of an `-of-N` set is missing.
        NotTFRecordError: A file is not a TFRecord file.
        UnknownNameError: Something is declared about a field that does not exist.
        SchemaError: The records cannot hold a field as it is declared.

    Example:
        >>> found = inspect("pets/")
        >>> found.survey.records, found.schema["name"].type_name
        (3, 'text')
    """
    options = options or InspectOptions()
    listing = list_files(paths)
    folders, groups = listing.folders, listing.paths()
    in_order = [path for group in groups.values() for path in group]
    progress = ReadProgress(in_order, on_progress)
    counter = RecordCounter()
    splits: dict[str, list[FileCheck]] = {name: [] for name in groups}
    for name, path in ((name, path) for name, group in groups.items() for path in group):
        with progress.open(path) as file:
            splits[name].append(check_file(file, options.read, counter))
    survey = counter.survey()
    schema = _resolve(survey, declared_schema(folders), options.declaration)
    frames = read_head(in_order, options.read, survey.payload, options.num_samples, _EXAMPLE_BYTES)
    is_other = survey.payload == "other"
    samples = [] if is_other else decode_frames(frames, schema)
    payloads = [payload_of(frame) for frame in frames] if is_other else []
    checked = {name: tuple(files) for name, files in splits.items()}
    has_all = sum(len(list(folder.manifest.shards())) for folder in folders) == len(in_order)
    manifest = folders[0].manifest if len(folders) == 1 and folders[0].is_whole and has_all else None
    return Inspection(checked, survey, schema, tuple(samples), tuple(payloads), options.num_samples, manifest)


def read_schema(paths: PathLike | Iterable[PathLike], options: InspectOptions | None = None) -> Schema:
    """Return the schema without reading all records: from the manifest, or as `penstock.open` infers it.

    Raises:
        PenstockError: As for `inspect`.
    """
    options = options or InspectOptions()
    opened = open_files(paths, options.read)
    declared, given = opened.declared_schema(), options.declaration
    if declared is not None and opened.is_described and not (given.fields or given.types):
        return declared.with_roles(given.target, given.weight, given.id)
    return _resolve(opened.survey(), declared, given)


def _resolve(survey: Survey, declared: Schema | None, given: Declaration) -> Schema:
    fields = given.list_fields(survey)
    return resolve_schema(survey, declared, fields, given.target, given.weight, given.id).schema
