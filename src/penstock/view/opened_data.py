"""The data that the viewer shows: a data set, TFRecord files of any writer, or the data of a run.

In: paths. Out: `OpenedData`, with the rows of each split and one schema. Nothing is read ahead: indexes of a
data set are loaded when a record of their file is first shown, and no file is mapped into memory. Oversized
records are treated as unreadable, so that the memory of the viewer does not depend on what a file holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.columns import Payload
from penstock.errors import NoSuchPathError, OptionError, PenstockError, SchemaError, StateError
from penstock.foundation.wording import list_choices, unknown_name
from penstock.jobs.given_dataset import Declaration
from penstock.read.damage import Damage
from penstock.read.opened_files import OpenedFiles, Origin
from penstock.read.rows import Rows
from penstock.read.shard import Shard
from penstock.schema.array import Sequence as SequenceField
from penstock.schema.resolution import Resolution
from penstock.schema.schema import Schema
from penstock.settings.groups import ReadOptions
from penstock.statistics.summary import FieldStatistics, load_statistics
from penstock.storage.paths import locate, may_be_folder
from penstock.storage.store_path import AnyPath, as_path, name_folder
from penstock.training.left_out import LeftOutPart, find_unread, read_parts
from penstock.training.run_files import CONFIG_NAME, PIPELINE_NAME, copy_run, find_data, read_config
from penstock.transform.pipeline import Pipeline

MAX_RECORD_BYTES: Final = 32 << 20
"""Larger records are not decoded: their bytes, columns and values take about four times as much memory."""

MAX_LIST_RECORD_BYTES: Final = 6 << 20
"""The same for records with lists of integers or strings: two bytes become a Python object of fifty."""

SCAN_BYTES: Final = 2 << 20
"""Bytes of records that a thread of a scan decodes together."""

_LARGE_BYTES: Final = 4 << 20
_MOST_THREADS: Final = 4

TRAIN: Final = "train"
"""Split whose statistics a manifest holds."""


def find_record_limit(schema: Schema, payload: Payload) -> int:
    """Return the largest size in bytes of records that are decoded."""
    lists = [field for field in schema.values() if isinstance(field, SequenceField)]
    is_dense = payload == "example" and all(field.kind == "float" for field in lists)
    return MAX_RECORD_BYTES if is_dense or not lists else MAX_LIST_RECORD_BYTES


@dataclass(frozen=True)
class _TooLarge(Damage):
    """A record that is intact as far as is known, but too large to show."""

    def error(self, path: AnyPath) -> OptionError:  # type: ignore[override]  # it is not corrupt
        """Return the error of the record."""
        return OptionError(
            "size",
            path=path,
            record=self.record,
            offset=self.offset,
            field=self.field,
            expected=self.expected,
            got=self.got,
        )


class _Sizes(NamedTuple):
    """Size of the largest record of a file, and the numbers of the records above the limit, ascending."""

    largest: int
    too_large: NDArray[np.int64]


def cut_by_bytes(
    rows: Rows, wanted: NDArray[np.int64], most_bytes: int, most_rows: int | None = None
) -> Iterator[NDArray[np.int64]]:
    """Yield row numbers in groups whose records have a limited size, or one record."""
    start, num_bytes = 0, 0
    for at, row in enumerate(wanted.tolist()):
        size = rows.frame_bytes(row, row + 1)
        if at > start and (at - start == most_rows or num_bytes + size > most_bytes):
            yield wanted[start:at]
            start, num_bytes = at, 0
        num_bytes += size
    if start < len(wanted):
        yield wanted[start:]


class BoundedRows(Rows):
    """Rows of several shards, without mappings of files; records of more than `limit` bytes are not read."""

    def __init__(self, shards: Sequence[Shard], limit: int) -> None:
        super().__init__(shards, can_map=False)
        self.limit = limit
        self._sizes: dict[AnyPath, _Sizes] = {}

    @property
    def largest(self) -> int:
        """Size in bytes of the largest record that is read; loads the index of every file."""
        sizes = (self._measure(shard) for shard in self.shards)
        return min(self.limit, max((each.largest for each in sizes), default=0))

    @property
    def num_threads(self) -> int:
        """Number of threads for a scan: one, if single records take much memory."""
        return 1 if self.largest > _LARGE_BYTES else min(_MOST_THREADS, os.cpu_count() or 1)

    def in_order(self) -> BoundedRows:
        """Return the same rows, to be read once from the first to the last."""
        return self._derive([shard.in_order() for shard in self.shards])

    def of_file(self, number: int) -> BoundedRows:
        """Return the rows of one file."""
        return self._derive([self.shards[number]])

    def damages(self, start: int, stop: int) -> Iterator[tuple[int, Shard, Damage]]:
        """Yield the rows of a range that are damaged or too large, in order."""
        found = list(super().damages(start, stop))
        known = {row for row, _, _ in found}
        for shard, first, begin, end in self._parts(start, stop):
            numbers = self._measure(shard).too_large
            for record in numbers[slice(*np.searchsorted(numbers, (begin, end)))].tolist():
                if first + record - begin not in known:
                    found.append((first + record - begin, shard, self._describe(shard, record)))
        yield from sorted(found, key=lambda each: each[0])

    def damaged(self, rows: NDArray[np.int64]) -> list[tuple[int, Shard, Damage]]:
        """Return which of some rows are damaged or too large: (index in `rows`, shard, damage)."""
        found = super().damaged(rows)
        known = {at for at, _, _ in found}
        for at, row in enumerate(rows.tolist()):
            shard, record = self.locate(row)
            numbers = self._measure(shard).too_large
            if at not in known and len(numbers) and record in numbers:
                found.append((at, shard, self._describe(shard, record)))
        return found

    def _derive(self, shards: Sequence[Shard]) -> BoundedRows:
        made = BoundedRows(shards, self.limit)
        made._sizes = self._sizes
        return made

    def _measure(self, shard: Shard) -> _Sizes:
        found = self._sizes.get(shard.path)
        if found is None:
            index = shard.index
            if index.compression == "none" and index.identity.size <= self.limit:
                found = _Sizes(index.identity.size, np.empty(0, np.int64))  # without a look at the offsets
            else:
                sizes = np.diff(index.offsets.astype(np.int64))
                found = _Sizes(int(sizes.max(initial=0)), np.flatnonzero(sizes > self.limit))
            self._sizes[shard.path] = found
        return found

    def _describe(self, shard: Shard, record: int) -> _TooLarge:
        offset, end = (int(each) for each in shard.index.offsets[record : record + 2])
        expected = f"at most {self.limit:,} bytes to show its values"
        return _TooLarge(record, offset, end - offset, "bytes", "size", expected, f"{end - offset:,}")


@dataclass(frozen=True)
class OpenedData:
    """Opened data and its metadata.

    Attributes:
        name: Name of the folder, the file or the run.
        schema: Schema of the records; empty if they are not Examples.
        payload: Kind of the records.
        splits: Rows of each split.
        notes: Remarks by field or file name.
        statistics: Statistics of the train split, if a manifest has them.
        run: Folder of the run; None if no run was opened.
        paths: Paths of the data, for a process that opens it again.
        targets: Names of the targets of the run, if it has one.
        left_out: Parts of the inputs that the model of the run does not read.
        unread: Fields that the model of the run does not read.
        model: Function that builds the model of the run, as `FILE:FUNCTION`; None for a model that was built.
        strict: Whether to reject records that no correct writer produces.
    """

    name: str
    schema: Schema
    payload: Payload
    splits: Mapping[str, BoundedRows]
    notes: Mapping[str, str] = field(default_factory=dict)
    statistics: Mapping[str, FieldStatistics] = field(default_factory=dict)
    run: Path | None = None
    paths: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    left_out: tuple[LeftOutPart, ...] = ()
    unread: tuple[str, ...] = ()
    model: str | None = None
    strict: bool = False

    @property
    def num_records(self) -> int:
        """Number of records in all splits."""
        return sum(len(rows) for rows in self.splits.values())

    @property
    def is_example(self) -> bool:
        """Whether the records are Examples, and so have fields."""
        return self.payload in ("example", "sequence_example")

    def rows(self, split: str) -> BoundedRows:
        """Return the rows of a split."""
        if split not in self.splits:
            raise unknown_name(split, self.splits, what="split")
        return self.splits[split]

    def shards(self, split: str) -> Sequence[Shard]:
        """Return the files of a split."""
        return self.rows(split).shards


def open_data(
    paths: Sequence[str], declaration: Declaration | None = None, options: ReadOptions | None = None
) -> OpenedData:
    """Open a data set, TFRecord files, or a run and its data.

    Damaged records do not prevent opening: each is shown as such.

    `paths`: files, glob patterns or folders; or the folder of a run, and optionally the paths of other data
    to show with it.
    """
    declaration, options = declaration or Declaration(), options or ReadOptions()
    folder = as_path(paths[0])
    if may_be_folder(folder) and (locate(folder) / CONFIG_NAME).exists():
        return _open_run(copy_run(folder), folder, list(paths[1:]), declaration, options)
    return _open_files(list(paths), declaration, options)


def _open_files(paths: list[str], declaration: Declaration, options: ReadOptions) -> OpenedData:
    call = declaration.make_call(paths, "collect", options)
    origin = Origin(paths if len(paths) > 1 else paths[0], call)
    return _describe(paths, *origin.open(), options)


def _describe(
    paths: list[str], opened: OpenedFiles, resolution: Resolution, options: ReadOptions
) -> OpenedData:
    manifest = opened.manifest
    stored = None if manifest is None else manifest.statistics
    name = Path(paths[0]).resolve().name or paths[0]
    limit = find_record_limit(resolution.schema, opened.payload)
    return OpenedData(
        name if len(paths) == 1 else f"{name} and {len(paths) - 1} more",
        resolution.schema,
        opened.payload,
        {split: BoundedRows(rows.shards, limit) for split, rows in opened.splits.items()},
        {**resolution.notes, **opened.notes},
        {} if stored is None else load_statistics(stored, "$.statistics"),
        paths=tuple(paths),
        strict=options.strict,
    )


def _open_run(
    folder: Path, origin: AnyPath, others: list[str], declaration: Declaration, options: ReadOptions
) -> OpenedData:
    """Open a run, whose files are in a local folder, and its data."""
    config = read_config(folder / CONFIG_NAME)
    if config.folds is not None:
        raise _refuse_folds(folder, origin)
    stored = find_data(origin, config)
    paths = others or [str(path) for path in (stored if isinstance(stored, list) else [stored])]
    try:
        opened = _open_files(paths, declaration, options)
    except NoSuchPathError as error:
        if others:
            raise
        raise NoSuchPathError(
            "the data that the run was trained on no longer exists",
            path=error.path,
            advice=f"Pass its new path: penstock view {origin} DATASET.",
        ) from error
    pipeline = _load_pipeline(folder)
    more: dict[str, Any] = {"left_out": read_parts(config, opened.schema).left_out}
    if pipeline is not None:
        opened = _use_trained_fields(pipeline.schema, paths, opened, declaration, options)
        targets = (name for name, each in pipeline.schema.items() if each.role == "target")
        more["targets"] = tuple(name for name in targets if name in opened.schema)
        more["unread"] = find_unread(opened.schema, pipeline.fields)
    return OpenedData(**{**vars(opened), "name": name_folder(origin), "run": folder, **more})


def _load_pipeline(folder: Path) -> Pipeline | None:
    try:
        return Pipeline.load(folder / PIPELINE_NAME)
    except (PenstockError, OSError):
        return None  # there are no predictions either, and their page says why


def _refuse_folds(folder: Path, origin: AnyPath) -> StateError:
    """Return the error for a cross-validation, which has a model and a division of the data for each fold."""
    folds = sorted((path.parent for path in folder.glob(f"*/{CONFIG_NAME}")), key=_fold_number)
    advice = f"Pass one fold: {list_choices([str(origin / each.name) for each in folds])}." if folds else ""
    return StateError(
        "run",
        path=origin,
        expected="the folder of one run",
        got="a cross-validation",
        advice=advice or f"Continue it: `ps.train(None, out={str(origin)!r}, resume=True)`.",
    )


def _fold_number(folder: Path) -> tuple[int, str]:
    number = folder.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0, folder.name


def _use_trained_fields(
    trained: Schema, paths: list[str], opened: OpenedData, declaration: Declaration, options: ReadOptions
) -> OpenedData:
    """Open records without a manifest again with the field types that the run was trained with."""
    known = {
        name: each
        for name, each in trained.items()
        if name in opened.schema and opened.schema[name].type_name != each.type_name
    }
    if not known or declaration:
        return opened
    try:
        return _open_files(paths, Declaration(fields=known), options)
    except SchemaError:
        return opened
