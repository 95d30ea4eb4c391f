"""The data that the viewer shows: a data set, TFRecord files of any writer, or the data of a run.

In: paths. Out: `OpenedData`, with the rows of each split and one schema. Nothing is read ahead: indexes of a
data set are loaded when a record of their file is first shown, and no file is mapped into memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from penstock.columns import Payload
from penstock.errors import NoSuchPathError, PenstockError, SchemaError, StateError
from penstock.foundation.wording import list_choices, unknown_name
from penstock.jobs.given_dataset import Declaration
from penstock.read.opened_files import OpenedFiles, Origin, open_files
from penstock.read.shard import Shard
from penstock.schema.field import Field
from penstock.schema.resolution import Resolution
from penstock.schema.schema import Schema
from penstock.settings.groups import ReadOptions
from penstock.settings.loading import OpenCall
from penstock.statistics.summary import FieldStatistics, load_statistics
from penstock.storage.paths import locate, may_be_folder
from penstock.storage.store_path import AnyPath, as_path, name_folder
from penstock.training.left_out import LeftOutPart, find_unread, read_parts
from penstock.training.run_files import CONFIG_NAME, PIPELINE_NAME, copy_run, find_data, read_config
from penstock.transform.pipeline import Pipeline
from penstock.view.bounded_rows import BoundedRows, find_record_limit

TRAIN: Final = "train"
"""Split whose statistics a manifest holds."""


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
    fields: dict[str, Field] = dict(declaration.fields)
    if declaration.types:
        fields = declaration.list_fields(open_files(paths, options, "collect").survey())
    call = OpenCall(
        fields=fields or None,
        target=declaration.target,
        weight=declaration.weight,
        id=declaration.id,
        on_error="collect",
        options=options,
    )
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
