"""Opens data to predict on: a split, a data set, TFRecords, or raw data of any kind.

In: the data. Out: `NewRows`. `NewRecords` reads the records of a split, in order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.columns import CodedColumn, Columns
from penstock.dataset import Dataset, Split
from penstock.decode.arrow import arrow_schema, make_batch
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.decode.reader import read_columns
from penstock.errors import FieldError, PenstockError, SourceError
from penstock.foundation.wording import list_choices, show, unknown_name
from penstock.jobs.given_dataset import open_as_trained
from penstock.jobs.predict.data_columns import Keeping, find_absent, make_absent, note_empty
from penstock.jobs.predict.new_raw_rows import NewRawRows, RequestRules
from penstock.jobs.predict.new_rows import DataBlock, NewRows, Refusal
from penstock.jobs.predict.raw_layout import IMAGE, Recipe, Wanted
from penstock.read.rows import Rows
from penstock.schema.declaration import Representation
from penstock.schema.field import Field
from penstock.schema.schema import Schema
from penstock.settings.conversion import RecordedFormat
from penstock.settings.groups import TextFiles
from penstock.settings.prediction import PredictOptions
from penstock.source.arrays import open_dict
from penstock.source.block import Block, Source
from penstock.source.csv_dialect import DELIMITERS
from penstock.source.folder import ImageFolderSource
from penstock.source.listing import is_image_name
from penstock.source.opening import open_source
from penstock.source.recognition import is_dataset
from penstock.storage.paths import find_files, find_matches
from penstock.transform.pipeline import Pipeline

_BLOCK_ROWS: Final = 8192
_BLOCK_BYTES: Final = 16 << 20


def open_new_data(
    data: object,
    inputs: Pipeline,
    recipe: Recipe,
    options: PredictOptions,
    batch_size: int,
    rules: RequestRules | None = None,
) -> NewRows:
    """Open data to predict on.

    `data`: a `Split`, a `Dataset`, paths, a table, a dict of arrays, or an iterable of dicts. `batch_size`:
    maximum number of rows that are read at once if their values are large. `rules`: how values of rows and
    tables in memory are read, if they may come from clients of the program; files that `data` names are read
    as without it.
    """
    if is_dataset(data):
        return NewRecords(_find_split(data, recipe, options), inputs, options)
    if options.split is not None:
        raise options.refuse("split", "none for raw data, which has no splits")
    reading = _recall_format(options, recipe.format)
    source, is_images = _open_raw(data, reading)
    given = (options.numbers, options.date_order, options.allow_missing_columns)
    wanted = Wanted(inputs, recipe, tuple(options.keep), is_images, *given)
    return NewRawRows(source, wanted, reading, batch_size, None if _is_paths(data) else rules)


def _recall_format(options: PredictOptions, recorded: RecordedFormat) -> TextFiles:
    """Return how new data is read: as given, otherwise in some ways as the data of the run was."""
    recalled: dict[str, Any] = {}
    if options.missing is None:
        recalled["missing"] = recorded.missing
    if options.delimiter is None and recorded.delimiter not in DELIMITERS:  # others are detected in each file
        recalled["delimiter"] = recorded.delimiter
    if options.comment is None:
        recalled["comment"] = recorded.comment
    if recorded.header == "none":
        recalled["header"] = "none"
    return options.narrow(TextFiles, **recalled)


def _find_split(data: Any, recipe: Recipe, options: PredictOptions) -> Split:
    if isinstance(data, Split):
        return data
    dataset = data if isinstance(data, Dataset) else open_as_trained(data, recipe.schema, options.on_error)
    if options.split is None and len(dataset) == 1:
        return dataset[dataset.splits[0]]
    if options.split is None:
        raise options.refuse(
            "split", list_choices(dataset.splits), "none", "Name one, such as `split='test'`."
        )
    return dataset[options.split]


def _open_raw(data: Any, options: TextFiles) -> tuple[Source, bool]:
    """Return a source, and whether it has only images."""
    if isinstance(data, list | tuple) and not data:
        return NoRows("list"), False
    paths = _list_images(data)
    try:
        if paths:
            return open_dict({IMAGE: paths}), True
        source = open_source(data, options)
    except SourceError as error:
        if error.expected != "at least one row":
            raise
        return NoRows(type(data).__name__), False
    return source, isinstance(source, ImageFolderSource)


class NoRows:
    """A source without rows, whose columns are unknown."""

    is_repeatable = True
    num_rows: int | None = 0
    num_bytes: int | None = 0
    notes: tuple[str, ...] = ()

    def __init__(self, name: str) -> None:
        self.name = name
        self.declared: Mapping[str, Field] = {}
        self.forms: Mapping[str, Representation] = {}

    def blocks(self) -> Iterator[Block]:
        """Yield nothing."""
        return iter(())

    def provenance(self) -> list[dict[str, Any]]:
        """Return nothing."""
        return []


def _list_images(data: Any) -> list[str]:
    """Return the image files of paths or a glob; an empty list for other data."""
    if not _is_paths(data):
        return []
    given = data if isinstance(data, list | tuple) else [data]
    matched = [path for each in given for path in find_matches(each) or [Path(each)]]
    if not all(is_image_name(path.name) for path in matched):
        return []
    return [str(path) for path in find_files(matched)[0]]


def _is_paths(data: Any) -> bool:
    """Whether data is a path, or several."""
    given = data if isinstance(data, list | tuple) else [data]
    return all(isinstance(each, str | os.PathLike) for each in given)


class NewRecords:
    """Records of a split in stored order, without the columns of its targets."""

    def __init__(self, split: Split, inputs: Pipeline, options: PredictOptions) -> None:
        """Match the fields of the split with the inputs."""
        loaded = split.as_source()
        self._rows, self._any_order = loaded.rows.in_order(), loaded.rows
        self._inputs = inputs
        self._options = options
        schema, columns = split.schema, list(split.schema)
        name = f"split {split.name!r}"
        self.absent: tuple[str, ...] = ()
        if len(split):
            there = {each: each for each in columns if each in inputs.schema}
            is_allowed = options.allow_missing_columns
            self.absent = tuple(find_absent(inputs, there, columns, name, is_allowed=is_allowed))
        known = {each: schema[each] for each in inputs.fields if each in schema}
        inputs.assembly.check_schema(Schema({**inputs.schema, **known}))
        self._num_read = 0
        self._filled: set[str] = set()
        self._keeping = self._find_kept(schema)
        fed = [each for each in inputs.fields if each in schema]
        self._schema = schema.select(dict.fromkeys([*fed, *self._keeping.fields]))
        self._plan = DecodePlan(self._schema, strict=loaded.strict)
        self._kept_fields = schema.select(self._keeping.fields)
        self.kept = self._keeping.find_types({})
        self.num_bytes: int | None = self._rows.frame_bytes(0, len(self._rows)) if len(split) else 0

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about the data: none."""
        return ()

    @property
    def cautions(self) -> tuple[str, ...]:
        """Notes that may change predictions."""
        return (*map(note_absent, self.absent), *map(note_empty, self._list_empty()))

    def _list_empty(self) -> Iterator[str]:
        """Yield the inputs that were empty in all records; one record is no column."""
        if self._num_read > 1:
            yield from (name for name in self._inputs.fields if name not in self._filled | {*self.absent})

    def blocks(self) -> Iterator[Callable[[], DataBlock]]:
        """Yield functions that make the blocks, in the order of the records."""
        for start, stop in self._rows.blocks(_BLOCK_ROWS, _BLOCK_BYTES):
            # Reading in order takes one thread.
            yield partial(self._make, *self._read(start, stop), self._rows.frame_bytes(start, stop))

    def _make(
        self, columns: Columns, rows: NDArray[np.int64], refusals: tuple[Refusal, ...], num_bytes: int
    ) -> DataBlock:
        fed: dict[str, CodedColumn] = dict(columns)
        for name in self.absent:
            fed[name] = make_absent(self._inputs.schema[name], len(rows))
        kept = self._keep(columns, rows)
        return DataBlock(fed, rows, kept, refusals, partial(_locate, self._any_order), num_bytes)

    def _read(self, start: int, stop: int) -> tuple[Columns, NDArray[np.int64], tuple[Refusal, ...]]:
        lost = Losses("collect", stop - start)
        columns, num_rows = read_columns(self._rows, self._plan, lost, start, stop)
        self._num_read += num_rows
        self._filled |= {name for name, each in columns.items() if _has_values(self._schema[name], each)}
        rows = np.arange(start, stop, dtype=np.int64)
        if not len(lost):
            return columns, rows, ()
        refusals = []
        for row in range(start, stop):  # one by one: only the error of a record shows that it is damaged
            alone = Losses("collect", 1)
            read_columns(self._any_order, self._plan, alone, row, row + 1)
            if len(alone):
                refusals.append(Refusal(row, partial(_give, alone.errors()[0])))
        return columns, np.setdiff1d(rows, [each.row for each in refusals]), tuple(refusals)

    def _find_kept(self, schema: Schema) -> Keeping:
        keeping = Keeping()
        if schema.id is None:
            keeping.add_row()
        for name in dict.fromkeys([*([] if schema.id is None else [schema.id]), *self._options.keep]):
            if name not in schema:
                raise unknown_name(name, schema)
            keeping.add_field(name, name, schema[name])
        return keeping

    def _keep(self, columns: Columns, rows: NDArray[np.int64]) -> pa.RecordBatch:
        batch = make_batch(
            {name: columns[name] for name in self._kept_fields},
            self._kept_fields,
            arrow_schema(self._kept_fields),
        )
        arrays: list[Any] = [
            pa.array(rows) if each.is_row else batch.column(name)
            for name, each in self._keeping.entries.items()
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.kept)


def _has_values(field: Field, column: CodedColumn) -> bool:
    return column.present is None or field.default is not None or bool(column.present.any())


def declare_absent(split: Split, pipeline: Pipeline, *, is_allowed: bool) -> tuple[Split, list[str]]:
    """Return a split with the inputs that it lacks as fields without any value, and their names."""
    columns = list(split.schema)
    there, name = {each: each for each in columns if each in pipeline.schema}, f"split {split.name!r}"
    absent = find_absent(pipeline, there, columns, name, is_allowed=is_allowed)
    if not absent:
        return split, []
    fields = {each: replace(pipeline.schema[each], optional=True, default=None) for each in absent}
    return split.with_schema(Schema({**split.schema, **fields})), absent


def note_absent(name: str) -> str:
    """Return the note on an input that records do not have."""
    return f"no field {show(name)}: it counts as missing in all records"


def _give(error: PenstockError) -> PenstockError:
    return error


def _locate(rows: Rows, row: int, error: FieldError) -> PenstockError:
    shard, record = rows.locate(row)
    attributes = {name: getattr(error, name) for name in ("field", "expected", "got", "advice")}
    offset = int(shard.index.offsets[record])
    return type(error)(error.what, path=str(shard.path), record=record, offset=offset, **attributes)
