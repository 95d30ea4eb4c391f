"""TFRecords and data sets as the source of a conversion, with other shards, splits or field names.

In: paths, and what is declared about the fields. Out: blocks of columns. The splits of the source are kept
unless other splits are requested.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.columns import Bytes, Column, Columns, Dense
from penstock.dataset import Dataset
from penstock.encode.file_check import FileThreads
from penstock.encode.plain import CellFault
from penstock.encode.raw_rows import EncodedRows
from penstock.errors import FieldError, OptionError, PayloadError, PenstockError
from penstock.foundation.wording import show, unknown_name
from penstock.jobs.given_dataset import Declaration, open_declared
from penstock.plan.plan import Plan
from penstock.plan.planner import PlanOverrides
from penstock.schema.date import Date
from penstock.schema.field import Field
from penstock.schema.scalar import Category, Number, find_labelled_rows
from penstock.schema.schema import Schema
from penstock.settings.conversion import ConvertOptions
from penstock.settings.groups import ReadOptions, Splits
from penstock.shards.request import request_dataset
from penstock.shards.row_work import RowWork
from penstock.shards.splits.split import name_strata
from penstock.storage.open_file import OpenFile
from penstock.storage.paths import identify_local

_KEPT = "the splits of the source"


class DatasetSource:
    """Records of a data set or of TFRecords that are converted again; see `ConversionSource`.

    Attributes:
        schema: Fields to write.
        sides: Fields that records are split by but that are not written.
        names: New name of each field that is kept, by its current name.
        paths: Paths of the files.
    """

    plan: Plan | None = None
    cautions: tuple[str, ...] = ()

    def __init__(self, dataset: Dataset, options: ConvertOptions) -> None:
        self.paths = list(dataset.paths)
        found = {path: identify_local(path) for path in self.paths}
        self._identities = {Path(path): each for path, each in found.items() if each is not None}
        shards = [shard for name in dataset.splits for shard in dataset[name].as_source().rows.shards]
        self._sizes = {shard.path: shard.index.identity.size for shard in shards}
        self._dataset = dataset
        self.names = _name_fields(dataset.schema, options)
        self.schema = Schema({new: replace(dataset.schema[old], key=None) for old, new in self.names.items()})
        self._keeps_splits = _keeps_splits(dataset, options)
        self._split_by = options.split_by
        requested = [options.group, options.split_by, options.time]
        requested.append(options.stratify if isinstance(options.stratify, str) else None)
        self.sides = {
            name: replace(self._find(name), role="input", key=None)
            for name in requested
            if name is not None and name not in self.schema
        }
        self._check_time(options.time)
        self.split = Splits(split_by=_KEPT) if self._keeps_splits else name_strata(options, self.schema)
        self.work = RowWork(self.schema, self.split, options.seed, (), self.sides)
        self.request = request_dataset(self.schema, self.names, options, self.split)

    def _check_time(self, name: str | None) -> None:
        """Refuse to split by time with a field that cannot be ordered."""
        field = None if name is None else self.schema.get(name, self.sides.get(name))
        if field is not None and not is_orderable(field):
            raise OptionError(
                "time",
                field=name,
                expected="a column of numbers or dates",
                got=f"{show(name)}, a field of type {field.type_name!r}",
            )

    def _find(self, name: str) -> Field:
        if name not in self._dataset.schema:
            raise unknown_name(name, self._dataset.schema)
        return self._dataset.schema[name]

    @property
    def num_bytes(self) -> int:
        """Number of bytes to read."""
        return sum(self._sizes.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user."""
        lost = sum(self._dataset[name].num_skipped for name in self._dataset.splits)
        return (f"{lost} damaged records of the source were skipped",) if lost else ()

    def finalize_schema(self, _: Mapping[str, int]) -> Schema:
        """Return the schema, which does not depend on the number of missing values."""
        return self.schema

    def provenance(self) -> list[dict[str, Any]]:
        """Return the description of the source for the manifest."""
        manifest = self._dataset.manifest
        hashes = {} if manifest is None else {shard.name: shard.sha256 for shard in manifest.shards()}
        return [
            {"name": path.name, "bytes": self._sizes[path], "sha256": hashes.get(path.name)}
            for path in self.paths
        ]

    def blocks(self) -> Iterator[DatasetRows]:
        """Yield all records, split by split."""
        row = 0
        for name in self._dataset.splits:
            for columns, num_rows, num_bytes in self._dataset[name].blocks():
                if not num_rows:
                    continue
                yield DatasetRows(row, num_rows, num_bytes, self._encode(columns, name))
                row += num_rows
        for path, identity in self._identities.items():
            OpenFile(path).check_untouched(identity)

    def _encode(self, columns: Columns, split: str) -> EncodedRows:
        rows = EncodedRows(
            {new: _drop_unlabelled(self.schema[new], columns[old]) for old, new in self.names.items()}
        )
        rows.split_columns = {name: columns[name] for name in self.sides}
        if self._keeps_splits:
            rows.splits = split
        elif self._split_by is not None:
            rows.splits = _as_names(self._split_by, columns[self._split_by])
        return rows


def _drop_unlabelled(field: Field, column: Column) -> Column:
    """Return the column of a target in which texts of records without a label are missing."""
    if not isinstance(field, Category) or not field.unlabelled:
        return column
    return replace(Bytes.of(column), present=find_labelled_rows(field, column))


def is_orderable(field: Field) -> bool:
    """Return whether rows can be ordered in time by a field: it holds one number per row."""
    return isinstance(field, Number | Date) or (isinstance(field, Category) and field.dtype == "int64")


def open_dataset_source(source: Any, overrides: PlanOverrides, options: ConvertOptions) -> DatasetSource:
    """Open TFRecords as a source."""
    if options.plan is not None:
        raise OptionError(
            "plan",
            expected="raw data as the source",
            got="TFRecords, whose fields are known",
            advice="Declare types instead, such as `fields={NAME: ps.fields.Text()}`.",
        )
    declared = Declaration(
        types=overrides.types,
        fields=overrides.fields,
        target=overrides.target,
        weight=overrides.weight,
        id=overrides.id,
    )
    read = ReadOptions(max_skipped=options.max_skipped)
    dataset = open_declared(source, declared, options.on_error, read, overrides.schema)
    if dataset.payload == "other":
        raise PayloadError("records cannot be converted", expected="Examples", got="other payloads")
    return DatasetSource(dataset, options)


@dataclass(frozen=True)
class DatasetRows:
    """A block of decoded records."""

    first_row: int
    num_rows: int
    num_bytes: int
    rows: EncodedRows
    path: str | None = None

    def encode(self, threads: FileThreads | None = None) -> EncodedRows:  # noqa: ARG002 - no row names a file
        """Return the columns."""
        return self.rows

    def refuse(self, fault: CellFault) -> PenstockError:
        """Return the error for a cell that does not fit."""
        what = f"field {show(fault.column)} of record {self.first_row + fault.row}"
        return FieldError(what, field=fault.column, expected=fault.expected, got=fault.got)

    def show(self, row: int) -> dict[str, Any]:
        """Return a description of a row that can be written as JSON."""
        return {"record": self.first_row + row}


def _name_fields(schema: Schema, options: ConvertOptions) -> dict[str, str]:
    """Return the new name of each field that is kept."""
    for name in (*options.drop, *options.rename):
        if name not in schema:
            raise unknown_name(name, schema)
    dropped = {*options.drop, *([options.split_by] if options.split_by is not None else [])}
    names = {name: options.rename.get(name, name) for name in schema if name not in dropped}
    if not names:
        raise OptionError("fields", expected="at least one field to keep", got="none")
    found = list(names.values())
    for old, new in names.items():
        if found.count(new) > 1:
            raise OptionError(
                f"name of field {show(old)}",
                field=old,
                expected="a unique name",
                got=f"{show(new)} twice",
            )
    return names


def _keeps_splits(dataset: Dataset, options: Splits) -> bool:
    is_requested = any((options.group, options.stratify, options.split_by, options.time))
    return options.split is None and not is_requested and dataset.splits != ("all",)


def _as_names(name: str, column: Any) -> Bytes:
    if isinstance(column, Bytes):
        return column
    if isinstance(column, Dense) and column.values.ndim == 1:
        texts = [str(value).encode() for value in column.values.tolist()]
        return Bytes.from_values(texts, column.present)
    raise OptionError("split_by", field=name, expected="a field of texts or numbers", got="another field")
