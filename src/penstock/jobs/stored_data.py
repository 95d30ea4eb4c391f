"""Stored data, that is, data sets and TFRecords: how to recognize it, and how to open it.

In: any data that a caller passes, and what is declared about its fields. Out: whether the data is stored or
raw, and the opened `Dataset`. The content of a file decides; its name decides only for a file that is empty,
damaged or missing.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.dataset import Dataset, Split
from penstock.dataset import open as open_dataset
from penstock.errors import OptionError, PathError, PenstockError, SchemaError
from penstock.foundation.option_checks import OnError
from penstock.foundation.wording import show
from penstock.read.opening import open_files
from penstock.read.options import ReadOptions
from penstock.schema.array import Sequence
from penstock.schema.declaration import ColumnDeclaration, TypeName, declare_field
from penstock.schema.field import Field
from penstock.schema.inference import infer_fields, name_entries
from penstock.schema.scalar import Bytes, Category, Image, Number, Text
from penstock.schema.schema import Schema
from penstock.schema.survey import FieldSurvey, ListSurvey, Survey
from penstock.shards.manifest import MANIFEST_NAME, load_manifest
from penstock.source.archive import split_member
from penstock.source.listing import (
    IMAGE_SUFFIXES,
    is_duckdb_url,
    is_packed_name,
    is_table_name,
    list_files,
    named_kind,
)
from penstock.source.options import SourceOptions
from penstock.storage.compression import FIRST_BYTES, begins_with_record
from penstock.storage.paths import (
    PathLike,
    find_local_files,
    find_matches,
    find_objects,
    is_named_like_tfrecord,
    is_tfrecord,
    open_path,
    refuse_missing,
)
from penstock.storage.store_path import AnyPath, StorePath, is_store_path, parse_store_path, split_pattern


def is_stored(given: object) -> bool:
    """Return whether data is a data set or TFRecords; any other data is raw data.

    Raises:
        OptionError: Some files are TFRecords and others are raw data.
        NoSuchPathError: One of several paths does not exist.
    """
    if isinstance(given, Dataset | Split):
        return True
    if is_duckdb_url(given):
        return False
    several = given if isinstance(given, list | tuple) else [given]
    named = [os.fspath(each) for each in several if isinstance(each, str | os.PathLike)]
    paths = [path for path in named if isinstance(path, str)]  # a PathLike may hold bytes
    if not several or len(paths) < len(several):
        return False
    if len(paths) > 1:
        for path in paths:
            is_member = split_member(Path(path))[1] is not None
            if not glob.has_magic(path) and not is_store_path(path) and not is_member:
                refuse_missing(Path(path))
    found = {entry: is_record for path in paths for entry, is_record in _classify(path).items()}
    if len(set(found.values())) > 1:
        raise _mixture(found)
    return all(found.values())


def is_raw(paths: SequenceOf[str]) -> bool:
    """Return whether all paths name raw data that can be converted: tables, folders of images, queries.

    A path that does not exist, or whose kind is unknown, is not raw data.
    """
    try:
        if is_stored(list(paths) if len(paths) != 1 else paths[0]):
            return False
    except PenstockError:
        return False  # opening them as TFRecords raises an error that names the problem
    return bool(paths) and all(map(_is_raw, paths))


def _is_raw(path: str) -> bool:
    if is_duckdb_url(path):
        return True
    if is_store_path(path):
        remote = parse_store_path(path)
        pattern = split_pattern(remote)
        return _is_named_raw(remote.name) or (pattern is None and _holds_raw(remote))
    if os.path.isdir(path):  # noqa: PTH112 - as above
        return _holds_raw(Path(path))
    return all(_is_named_raw(each.name) or _is_table(each) for each in find_matches(path) or [Path(path)])


def _is_named_raw(name: str) -> bool:
    return is_table_name(name) or is_packed_name(name)


def _is_table(path: Path) -> bool:
    """Return whether the content of a file with another name is that of a table."""
    try:
        from penstock.source.files import find_kind  # noqa: PLC0415 - with pyarrow

        find_kind(path, SourceOptions())
    except (PenstockError, ImportError):
        return False
    return True


def _holds_raw(folder: AnyPath) -> bool:
    files = list_files(folder)
    return any(file.is_image or is_table_name(file.name.rsplit("/", 1)[-1]) for file in files)


def _classify(path: str) -> dict[str, bool]:
    """Return whether each file or folder that a path matches holds TFRecords."""
    if is_store_path(path):
        return _classify_objects(parse_store_path(path))
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for a name that is too long
        return {path: (Path(path) / MANIFEST_NAME).is_file() or _holds_records(Path(path))}
    try:
        files = find_local_files(path)[0]
    except PathError:
        files = [Path(path)]
    return {str(file): is_tfrecord(file) for file in files}


def _classify_objects(path: StorePath) -> dict[str, bool]:
    """Return whether the objects that a path matches are TFRecords."""
    if named_kind(path) is None and load_manifest(path) is not None:
        return {str(path): True}
    found = find_objects(path)
    if found != [path] and split_pattern(path) is None:
        return {str(path): _holds_records(path)}
    return {str(each): _is_record_object(each) for each in found}


def _is_record_object(path: StorePath) -> bool:
    """Return whether an object is a TFRecord file, by its name or otherwise by its first bytes."""
    if is_named_like_tfrecord(path.name):
        return True
    if named_kind(path) is not None or path.name.lower().endswith(IMAGE_SUFFIXES):
        return False  # without a request
    return begins_with_record(open_path(path).read(0, FIRST_BYTES))


def _holds_records(folder: AnyPath) -> bool:
    """Return whether a folder holds TFRecords; it may also hold indexes and metadata files.

    In a store, names alone decide: a request per object would take too long.
    """
    record = raw = None
    for file in list_files(folder):
        if file.name.startswith("quarantine/"):
            continue  # damaged bytes from a repair
        path = folder / file.name
        is_table = named_kind(path) is not None and not file.name.endswith(".json")
        if is_table or file.is_image:
            raw = raw or file.name
        elif record is None:
            is_record = is_tfrecord(path) if isinstance(path, Path) else is_named_like_tfrecord(path.name)
            record = file.name if is_record else None
    if record is not None and raw is not None:
        raise _mixture({f"{folder}/{record}": True, f"{folder}/{raw}": False})
    return record is not None


def _mixture(found: dict[str, bool]) -> OptionError:
    record = next(path for path, is_record in found.items() if is_record)
    raw = next(path for path, is_record in found.items() if not is_record)
    return OptionError(
        "source",
        path=record,
        expected="only raw data or only TFRecords",
        got=f"TFRecords and raw data ({show(raw)})",
        advice="Pass only the files to use. To use both, convert the raw data first.",
    )


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """Declared types and roles of fields; empty by default.

    Attributes:
        types: Types by field name, with or without attributes.
        fields: Complete fields by name, as in `penstock.open`.
        target: Name of the field or fields to predict.
        weight: Name of the field with the weight of each record.
        id: Name of the field that identifies each record.
    """

    types: Mapping[str, TypeName | ColumnDeclaration] = field(default_factory=dict)
    fields: Mapping[str, Field] = field(default_factory=dict)
    target: str | SequenceOf[str] | None = None
    weight: str | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        twice = next((name for name in self.types if name in self.fields), None)
        if twice is not None:
            raise OptionError(f"field {twice!r}", field=twice, expected="one type", got="two")

    def __bool__(self) -> bool:
        """Return whether anything is declared."""
        return self != Declaration()

    def list_fields(self, survey: Survey) -> dict[str, Field]:
        """Return all declared fields; `resolve_schema` decides whether the records can hold them."""
        return {**declare_fields(survey, self.types), **self.fields}


def declare_fields(survey: Survey, types: Mapping[str, TypeName | ColumnDeclaration]) -> dict[str, Field]:
    """Return a field for each declared type.

    Raises:
        OptionError: The shape of a tensor is not declared and cannot be inferred from the records.
    """
    guesses = infer_fields(survey).fields
    entries = name_entries(survey)
    fields: dict[str, Field] = {}
    for name, given in types.items():
        wanted, attributes = (
            (given.type_name, given.attributes) if isinstance(given, ColumnDeclaration) else (given, {})
        )
        guess = guesses.get(name)
        if guess is not None and wanted in (None, guess.type_name) and not attributes:
            fields[name] = replace(guess, role="input")  # an identifier that is declared is an input
            continue
        entry = entries.get(name)
        counted = entry.steps if isinstance(entry, ListSurvey) else entry
        if wanted == "tensor":
            fields[name] = _declare_tensor(name, attributes, counted)
        elif attributes:
            fields[name] = declare_field(name, wanted or "bytes", attributes)
        else:
            fields[name] = _declare(wanted, counted)
    return fields


def _declare_tensor(name: str, attributes: Mapping[str, Any], entry: FieldSurvey | None) -> Field:
    kind = None if entry is None else entry.kind
    found = {"dtype": "int64"} if kind == "int64" else {}
    if "shape" not in attributes:
        if entry is None or kind == "bytes" or entry.min_len != entry.max_len:
            raise OptionError(
                f"shape of tensor {show(name)}",
                field=name,
                expected="a declared shape, because the records do not define one",
                got="none",
                advice=f"Declare it: --tensor {name}:64x64, in Python fields={{{name!r}: Tensor((64, 64))}}.",
            )
        return declare_field(name, "tensor", {"shape": [entry.max_len], **found, **attributes})
    return declare_field(name, "tensor", {**found, **attributes})


def _declare(wanted: TypeName | None, entry: FieldSurvey | None) -> Field:
    kind = None if entry is None else entry.kind
    if wanted == "number":
        return Number("int64" if kind == "int64" else "float32")
    if wanted == "category":
        if entry is not None and kind == "int64":
            return Category("int64", entry.int_values or None)
        return Category("string")
    if wanted == "sequence":
        if kind == "bytes":
            return Sequence("string" if entry is not None and entry.is_text else "bytes")
        return Sequence("float32" if kind == "float" else "int64")
    return {"text": Text(), "image": Image()}.get(wanted or "", Bytes())


def open_declared(
    paths: PathLike | Iterable[PathLike],
    declaration: Declaration,
    on_error: OnError = "raise",
    read: ReadOptions | None = None,
    schema: Mapping[str, Field] | None = None,
) -> Dataset:
    """Open TFRecords with declared fields.

    Raises:
        PenstockError: See `penstock.open` and `declare_fields`.
    """
    read = read or ReadOptions()
    fields = dict(declaration.fields)
    if declaration.types:
        fields = declaration.list_fields(open_files(paths, read, on_error).survey())
    return open_dataset(
        paths,
        None if schema is None else Schema(schema),
        fields or None,
        declaration.target,
        declaration.weight,
        declaration.id,
        on_error,
        read,
    )


def open_as_trained(
    paths: PathLike | Iterable[PathLike], schema: Mapping[str, Field], on_error: OnError = "raise"
) -> Dataset:
    """Open records with the fields that a run was trained with.

    Records without a manifest get the fields of the run. With a manifest, only fields whose type differs in
    the run are replaced.
    """
    dataset = open_dataset(paths, on_error=on_error)
    stored = dataset.schema
    known = {
        name: each
        for name, each in schema.items()
        if name in stored and (dataset.manifest is None or stored[name].type_name != each.type_name)
    }
    if all(stored[name] == each for name, each in known.items()):
        return dataset
    try:
        return open_dataset(paths, fields=known, on_error=on_error)
    except SchemaError:
        if dataset.manifest is None:
            raise
        return dataset  # the pipeline refuses fields of another type
