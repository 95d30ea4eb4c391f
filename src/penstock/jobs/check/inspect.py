"""Inspection of TFRecord files: counts, fields, and the first samples.

In: paths, and declarations of fields. Out: `Inspection`. Damaged records are skipped and listed
as faults.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from penstock import _native
from penstock.columns import Payload
from penstock.decode.plan import DecodePlan
from penstock.decode.sample import Sample, iterate_samples
from penstock.format.manifest import Manifest
from penstock.foundation.wording import show
from penstock.jobs.check.file_check import (
    Fault,
    FileCheck,
    Progress,
    ReadableBytes,
    ReadProgress,
    RecordCounter,
    check_file,
    compression_of,
)
from penstock.jobs.given_dataset import Declaration
from penstock.read.damage import naming_record
from penstock.read.dataset_files import declared_schema, list_files
from penstock.read.opened_files import open_files
from penstock.schema.array import Tensor
from penstock.schema.byte_array import (
    advise_declaration,
    find_array_format,
    find_conversion,
    find_odd_values,
    propose_arrays,
)
from penstock.schema.inference import name_entries
from penstock.schema.resolution import Resolution, resolve_schema
from penstock.schema.scalar import Bytes, Category
from penstock.schema.schema import Schema
from penstock.schema.survey import FieldSurvey, ListSurvey, Survey
from penstock.settings.advice import to_flags
from penstock.settings.groups import ReadOptions
from penstock.statistics.summary import load_statistics
from penstock.storage.paths import PathLike, open_path
from penstock.storage.store_path import AnyPath
from penstock.transform.class_codes import order_classes

_FRAME_BYTES = 16
_HEADER_BYTES = 12
_NUM_JUDGED = 16  # values of a field, to judge what arrays they may be
_EXAMPLE_BYTES = 4 << 20  # of records are read to find a value of each field to show


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
            with naming_record(path, walk):
                walk.feed(chunk)
                frames = list(_split_frames(walk.take()[0]))
            yield from frames


def read_head(
    paths: Iterable[AnyPath], options: ReadOptions, payload: Payload, num_records: int, enough_bytes: int
) -> list[bytes]:
    """Return the first frames.

    `enough_bytes`: up to 100 frames are returned, even if fewer are requested, as long as they take no more
    than this number of bytes.
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

    @property
    def classes(self) -> dict[str, tuple[Any, ...]]:
        """Classes of each target in the order of the codes that models get, where all of them are known."""
        stored = None if self.manifest is None else self.manifest.statistics
        known = {} if stored is None else load_statistics(stored, "$.statistics")
        found = {}
        for name in self.schema.targets:
            declared, entry = self.schema[name], self.entries.get(name)
            counted = known[name].frequencies if name in known else None
            if counted is not None and counted.is_complete:
                values: Any = counted.values  # values of the train split
            elif isinstance(entry, FieldSurvey) and not known:
                values = entry.int_values or _decode(entry.strings)
            else:
                values = None
            if values and isinstance(declared, Category):
                found[name] = order_classes(declared, values)
        return found

    @property
    def byte_values(self) -> dict[str, list[bytes]]:
        """Values of the samples of each bytes field whose values all have one length, by field name."""
        found = {}
        for name, each in self.schema.items():
            entry = self.entries.get(name)
            if isinstance(each, Bytes) and isinstance(entry, FieldSurvey):
                values = [sample[name] for sample in self.samples if sample.get(name)]
                if values and (entry.min_bytes == entry.max_bytes or find_array_format(values[0])):
                    found[name] = values[:_NUM_JUDGED]
        return found

    @property
    def proposals(self) -> dict[str, tuple[Tensor, ...]]:
        """The arrays that fields of bytes may hold, the most plausible first, by field name."""
        proposed = {name: propose_arrays(name, values) for name, values in self.byte_values.items()}
        return {name: tensors for name, tensors in proposed.items() if tensors}

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about declared arrays with odd elements, and about arrays in a format that no type reads."""
        notes = []
        for name, values in self.byte_values.items():
            if find_conversion(name, values) is not None:
                notes.append(f"field {name!r} is not read as an array. {advise_declaration(name, values)}")
        for name, each in self.schema.items():
            if isinstance(each, Tensor) and each.kind == "bytes":
                arrays = [sample[name] for sample in self.samples if sample.get(name) is not None]
                if arrays and (odd := find_odd_values(np.stack(arrays[:_NUM_JUDGED]))):
                    notes.append(f"field {name!r}: {odd}")
        return tuple(notes)

    def to_json(self) -> dict[str, object]:
        """Return the result for `json.dumps`, without the samples."""
        fields: dict[str, dict[str, object]] = {}
        lists = {}
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
        result: dict[str, object] = {
            "files": len(self.files),
            "records": self.survey.records,
            "bytes": self.num_bytes,
            "compression": self.compression,
            "payload": self.survey.payload,
            "fields": fields,
        }
        if self.survey.payload == "sequence_example":
            result["feature_lists"] = lists
        if self.classes:
            result["classes"] = {
                name: [show(label) if isinstance(label, bytes) else label for label in each]
                for name, each in self.classes.items()
            }
        for name, tensors in self.proposals.items():
            fields[name]["tensors"] = [{"shape": list(each.shape), "dtype": each.dtype} for each in tensors]
        if self.notes:
            result["notes"] = [*map(to_flags, self.notes)]
        if self.manifest is not None:
            result["manifest"] = _describe_manifest(self.manifest)
        return result


def _decode(strings: Iterable[bytes] | None) -> list[str] | None:
    return None if strings is None else [each.decode("utf-8", "replace") for each in strings]


def _describe_manifest(manifest: Manifest) -> dict[str, object]:
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
    declaration: Declaration | None = None,
    read: ReadOptions | None = None,
    *,
    num_samples: int = 0,
    on_progress: Progress | None = None,
) -> Inspection:
    """Count records and fields of files, and infer the types of the fields.

    Damaged records are skipped and listed in `faults`.

    Example:
        >>> found = inspect("pets/")
        >>> found.survey.records, found.schema["name"].type_name
        (3, 'text')
    """
    read, declaration = read or ReadOptions(), declaration or Declaration()
    listing = list_files(paths)
    folders, groups = listing.folders, listing.paths()
    in_order = [path for group in groups.values() for path in group]
    progress = ReadProgress(in_order, on_progress)
    counter = RecordCounter()
    splits: dict[str, list[FileCheck]] = {name: [] for name in groups}
    for name, path in ((name, path) for name, group in groups.items() for path in group):
        with progress.open(path) as file:
            splits[name].append(check_file(file, read, counter))
    survey = counter.survey()
    schema = _resolve(survey, declared_schema(folders), declaration)
    frames = read_head(in_order, read, survey.payload, num_samples, _EXAMPLE_BYTES)
    is_other = survey.payload == "other"
    samples = [] if is_other else decode_frames(frames, schema)
    payloads = [payload_of(frame) for frame in frames] if is_other else []
    checked = {name: tuple(files) for name, files in splits.items()}
    has_all = sum(len(list(folder.manifest.shards())) for folder in folders) == len(in_order)
    manifest = folders[0].manifest if len(folders) == 1 and folders[0].is_whole and has_all else None
    return Inspection(checked, survey, schema, tuple(samples), tuple(payloads), num_samples, manifest)


def read_schema(
    paths: PathLike | Iterable[PathLike],
    declaration: Declaration | None = None,
    read: ReadOptions | None = None,
) -> Schema:
    """Return the schema without reading all records: from the manifest, or as `penstock.open` infers it."""
    opened = open_files(paths, read or ReadOptions())
    declared, given = opened.declared_schema(), declaration or Declaration()
    if declared is not None and opened.is_described and not (given.fields or given.types):
        roles = declared.with_roles(given.target, given.weight, given.id)
        return Resolution(roles, {}).without_unlabelled(declared.targets).schema
    return _resolve(opened.survey(), declared, given)


def _resolve(survey: Survey, declared: Schema | None, given: Declaration) -> Schema:
    fields = given.list_fields(survey)
    found = resolve_schema(survey, declared, fields, given.target, given.weight, given.id)
    return found.without_unlabelled({*fields, *(() if declared is None else declared.targets)}).schema
