"""The conversion job: `penstock.convert` in Python and `penstock convert` on the command line.

In: a source of raw data or TFRecords, and options. Out: a data set of TFRecord shards with a manifest, and
`Converted`, which describes what was done.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Unpack

from penstock import _native
from penstock.dataset import Dataset
from penstock.dataset import open as open_dataset
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.decode.reader import read_columns
from penstock.encode.raw_rows import RawPlan, RawRows, RowBlock
from penstock.errors import OptionError, PathError
from penstock.foundation.wording import show, unknown_name
from penstock.jobs.convert.stored_source import StoredSource, is_orderable, open_stored
from penstock.jobs.stored_data import is_stored
from penstock.plan.plan import ColumnPlan, Plan
from penstock.plan.plan_file import read_plan
from penstock.plan.planner import REQUESTED_DROPS, PlanOverrides, make_plan
from penstock.plan.survey import survey_column
from penstock.read.opening import open_files
from penstock.read.options import ReadOptions
from penstock.schema.field import Field
from penstock.schema.scalar import Number, Text
from penstock.schema.schema import Schema
from penstock.shards.content import read_content
from penstock.shards.conversion import (
    Conversion,
    ConversionProgress,
    FinalizeSchema,
    ManifestDetails,
    OnProgress,
)
from penstock.shards.engine import LocalEngine, MakeEngine
from penstock.shards.entry import SplitEntry
from penstock.shards.manifest import Manifest
from penstock.shards.options import ConvertChoices, ConvertOptions, make_options
from penstock.shards.output import check_output, make_staging
from penstock.shards.request import (
    Request,
    find_finished,
    load_finished,
    refuse_unrepeatable,
    request_raw,
    request_stored,
)
from penstock.shards.row_work import RowWork
from penstock.shards.split import SplitOptions
from penstock.shards.staging import Staging
from penstock.source.block import LARGE_BYTES, Block, PeekedSource, Source
from penstock.source.cutter import estimate_bytes
from penstock.source.opening import open_source
from penstock.statistics.statistics import Statistics, measure_block
from penstock.storage.paths import PathLike, find_real_path
from penstock.storage.store_path import AnyPath, as_path

_BLOCK_ROWS: Final = 4096
_BLOCK_BYTES: Final = 16 << 20


def measure_shards(folder: AnyPath, split: SplitEntry, schema: Schema, seed: int) -> dict[str, Any]:
    """Read the shards of a split once, and return its statistics for the manifest.

    Blocks have a fixed number of records and are merged in order, so that the result is deterministic.
    """
    plan = DecodePlan(schema)
    statistics = Statistics(schema)
    row = 0
    for shard in split.shards:  # one at a time: an index takes 8 bytes of memory per record
        (rows,) = open_files([folder / shard.name], ReadOptions()).splits.values()
        in_order = rows.in_order()
        for start, stop in in_order.blocks(_BLOCK_ROWS, _BLOCK_BYTES):
            columns, num_rows = read_columns(in_order, plan, Losses("raise", 0), start, stop)
            keys = _native.mix_rows(seed, row, num_rows)
            statistics.merge(measure_block(schema, columns, None, keys))
            row += num_rows
    return statistics.to_json()


_NAMES_SPLITS: Final = "names the splits"

_log = logging.getLogger("penstock")


_RESIZED_ROWS = 512


@dataclass(frozen=True)
class Converted:
    """Result of a conversion.

    Attributes:
        out: Folder of the data set.
        manifest: Manifest of the data set.
        plan: Plan of the columns; None if the source was TFRecords.
        num_rows: Number of rows of the source.
        notes: Notes for the user.
    """

    out: AnyPath
    manifest: Manifest
    plan: Plan | None
    num_rows: int
    notes: tuple[str, ...]


def convert(
    source: object,
    out: PathLike,
    schema: Schema | None = None,
    fields: Mapping[str, Field] | None = None,
    target: str | Sequence[str] | None = None,
    weight: str | None = None,
    id: str | None = None,
    **options: Unpack[ConvertChoices],
) -> Dataset:
    """Convert raw data to a data set of TFRecord shards, split and shuffled, and open it.

    Args:
        source: A path (CSV, TSV, Parquet, JSON lines, Arrow, a folder of images, TFRecords), several or a
            glob; a table of pandas, polars, pyarrow, or any object with an Arrow stream; a dict of
            arrays; an iterable of dicts, or a function that returns one.
        out: The folder to write. It appears when it is complete.
        schema: All fields to write; other columns are not written. Inferred by default.
        fields: Fields to declare instead of inferring them, by column: `{"photo": ps.fields.Image()}`.
        target: Name of the field or fields to predict.
        weight: Name of the field with the weight of each record.
        id: Name of the field that identifies each record; records are assigned to splits by it.
        options: All other options; see `penstock.options.ConvertOptions`.

    Raises:
        NoSuchPathError: The source does not exist.
        FieldError: A row does not fit its field.
        PathError: The output folder is not empty, and `overwrite` is not set.
        BusyError: Another process is writing to the output folder.
        WriteError: The disk is full, or writing fails.

    Example:
        >>> toys = convert({"price": [3.5, 4.0, 1.25], "sold": [1, 0, 1]}, "toys", target="sold")
        >>> sum(len(toys[name]) for name in toys.splits)
        3
    """
    overrides = PlanOverrides(schema=schema, fields=fields or {}, target=target, weight=weight, id=id)
    done = run_conversion(source, out, overrides, make_options(**options))
    for note in done.notes:
        _log.warning("%s", note)
    return open_dataset(done.out)


def run_conversion(
    source: object,
    out: PathLike,
    overrides: PlanOverrides,
    options: ConvertOptions,
    on_progress: OnProgress | None = None,
    on_plan: Callable[[Plan], None] | None = None,
) -> Converted:
    """Convert, and return the result with its plan and notes.

    Args:
        source: Source, as for `convert`.
        out: The folder to write.
        overrides: What was declared about the columns.
        options: How to convert.
        on_progress: Called with the progress of the conversion.
        on_plan: Called with the plan of raw data before rows are converted; an exception that it raises ends
            the conversion. A source that can be read only once is planned and converted in one pass.

    Raises:
        PenstockError: See `convert`.
    """
    overrides = combine_overrides(overrides, options)
    if is_stored(source):
        stored = open_stored(source, overrides, options)
        _refuse_own_source(out, stored.paths)
        return _run_stored(stored, out, options, on_progress)
    opened = open_source(source, options.source)
    if (folder := find_finished(out, options)) is not None:
        if not opened.is_repeatable:
            raise refuse_unrepeatable(opened.name, folder)
        return _confirm(_prepare_raw(opened, overrides, options, on_plan), folder, options, on_progress)
    staging = make_staging(out, overwrite=options.overwrite, resume=options.resume, clean=options.clean)
    with staging:  # locks the output folder before the source is read
        return _run(_prepare_raw(opened, overrides, options, on_plan), staging, options, on_progress)


def _run_stored(
    stored: StoredSource, out: PathLike, options: ConvertOptions, on_progress: OnProgress | None
) -> Converted:
    split = stored.split_options(options)
    prepared = _Prepared(
        request=request_stored(stored.schema, stored.names, options, split),
        work=RowWork(stored.schema, split, (), stored.sides),
        split=split,
        blocks=stored.blocks,
        num_bytes=stored.num_bytes,
        finalize_schema=lambda _: stored.schema,
        describe_source=stored.provenance,
        list_notes=lambda: stored.notes,
    )
    if (folder := find_finished(out, options)) is not None:
        return _confirm(prepared, folder, options, on_progress)
    staging = make_staging(out, overwrite=options.overwrite, resume=options.resume, clean=options.clean)
    with staging:
        return _run(prepared, staging, options, on_progress)


@dataclass(frozen=True, kw_only=True)
class _Prepared:
    """A conversion that is ready to read its first row.

    Attributes:
        request: Description of the requested data set.
        work: Work to do for each block.
        split: How to split the rows.
        blocks: Returns the blocks of the source.
        num_bytes: Number of bytes to read, or None if it is not known.
        finalize_schema: Returns the schema after all rows have been read.
        describe_source: Returns the description of the source after all rows have been read.
        list_notes: Returns the notes about source and plan after all rows have been read.
        plan: Plan of the columns; None if the source is TFRecords.
        plan_json: JSON form of the plan for the manifest.
    """

    request: Request
    work: RowWork
    split: SplitOptions
    blocks: Callable[[], Iterator[RowBlock]]
    num_bytes: int | None
    finalize_schema: FinalizeSchema
    describe_source: Callable[[], list[dict[str, Any]]]
    list_notes: Callable[[], tuple[str, ...]]
    plan: Plan | None = None
    plan_json: Mapping[str, Any] | None = None


def _prepare_raw(
    source: Source,
    overrides: PlanOverrides,
    options: ConvertOptions,
    on_plan: Callable[[Plan], None] | None = None,
) -> _Prepared:
    peeked = PeekedSource(source)
    plan, work, raw, split = prepare(make_plan(peeked, overrides), options, peeked.head)
    if on_plan is not None:
        on_plan(plan)
    request = request_raw(plan, options, split, work.deferred_names, peeked.name)
    return _Prepared(
        request=request,
        work=work,
        split=split,
        blocks=lambda: (RawRows(piece, raw) for block in peeked.blocks() for piece in _cut(block, options)),
        num_bytes=peeked.num_bytes,
        finalize_schema=plan.finalize_schema,
        describe_source=peeked.provenance,
        list_notes=lambda: (*peeked.notes, *list_losses(plan), *plan.warnings),
        plan=plan,
        plan_json=request.json_form["plan"],
    )


def _run(
    prepared: _Prepared, staging: Staging, options: ConvertOptions, on_progress: OnProgress | None
) -> Converted:
    """Write the data set."""
    staging.begin(prepared.request.journal_form)
    with open_engine(options, prepared.num_bytes) as make_engine:
        return _write(prepared, staging, options, on_progress, make_engine)


def _write(
    prepared: _Prepared,
    staging: Staging,
    options: ConvertOptions,
    on_progress: OnProgress | None,
    make_engine: MakeEngine,
) -> Converted:
    conversion = Conversion(
        prepared.work,
        prepared.split,
        options,
        staging,
        measure_shards=measure_shards,
        expected_bytes=prepared.num_bytes,
        on_progress=on_progress,
        make_engine=make_engine,
    )
    try:
        for block in prepared.blocks():
            conversion.add(block)
        details = ManifestDetails(prepared.request, prepared.plan_json, tuple(prepared.describe_source()))
        manifest = conversion.finish(prepared.finalize_schema, details)
    except BaseException as error:  # the journal records every failure with the number of rows read
        staging.journal.add_failure(conversion.num_rows, error)
        raise
    finally:
        conversion.close()
    notes = (*prepared.list_notes(), *conversion.notes)
    return Converted(staging.out, manifest, prepared.plan, conversion.num_rows, notes)


@contextmanager
def open_engine(options: ConvertOptions, num_bytes: int | None) -> Iterator[MakeEngine]:
    """Yield the function that makes the engine of a conversion, with a connection to Ray if that is chosen.

    Args:
        options: How to convert.
        num_bytes: Size of the source, if known.

    Raises:
        MissingPackageError: Ray is not installed.
        OptionError: There is no cluster at the address.
    """
    if options.engine == "local":
        yield LocalEngine
        return
    # Loaded late: Ray is an extra.
    from penstock.jobs.convert.ray_engine import RayEngine  # noqa: PLC0415
    from penstock.jobs.ray_cluster import Cluster  # noqa: PLC0415

    with Cluster(options.address, options.workers) as cluster:
        yield partial(RayEngine, cluster, num_bytes)


def _confirm(
    prepared: _Prepared, folder: AnyPath, options: ConvertOptions, on_progress: OnProgress | None
) -> Converted:
    """Check that the finished data set matches the request, and return it.

    Raises:
        OptionError: The data set was made with other options, or from other content of the source.
    """
    request = prepared.request
    request.check_options(load_finished(folder), folder)  # fails early, before all rows are read

    def report(num_rows: int, num_bytes: int, num_rejects: int) -> None:
        if on_progress is not None:
            on_progress(ConversionProgress("reading", num_rows, num_bytes, prepared.num_bytes, num_rejects))

    content, source = read_content(
        prepared.work, prepared.blocks(), options, prepared.describe_source, report
    )
    manifest = load_finished(folder)  # loaded again, because reading may take hours
    request.check_content(manifest, folder, content, source)
    check_output(folder, manifest, request.journal_form, clean=options.clean)
    num_rows = manifest.num_records + int(manifest.rejects.get("count", 0))
    notes = (*prepared.list_notes(), "The data set was already complete: nothing was written.")
    return Converted(folder, manifest, prepared.plan, num_rows, notes)


def list_losses(plan: Plan) -> Iterator[str]:
    """Yield a note for each column that is left out without a request of the user."""
    for column, why in plan.dropped.items():
        if why not in (*REQUESTED_DROPS, _NAMES_SPLITS):
            yield f"{show(column)} is left out: {why}"


def plan_conversion(source: object, overrides: PlanOverrides, options: ConvertOptions) -> Plan:
    """Return the plan of a conversion without converting.

    Raises:
        PenstockError: See `convert`.
    """
    if is_stored(source):
        raise OptionError(
            "plan",
            expected="raw data",
            got="TFRecords, whose fields are known",
            advice="To see the fields, run 'penstock inspect'.",
        )
    return make_plan(PeekedSource(open_source(source, options.source)), combine_overrides(overrides, options))


def combine_overrides(overrides: PlanOverrides, options: ConvertOptions) -> PlanOverrides:
    """Combine what was declared about the columns with the options about columns."""
    return replace(
        overrides,
        drop=(*overrides.drop, *options.drop),
        rename={**options.rename, **overrides.rename},
        form=overrides.form if options.plan is None else read_plan(options.plan),
        nan=options.nan,
        numbers=options.numbers,
    )


def prepare(
    plan: Plan, options: ConvertOptions, head: Sequence[Block]
) -> tuple[Plan, RowWork, RawPlan, SplitOptions]:
    """Find the columns that rows are split by, and return the plan, the work per block and the split."""
    columns = [*(each.column for each in plan), *plan.dropped]
    split_by = None
    if options.split_by is not None:
        split_by = ColumnPlan(_find_column(options.split_by, plan, columns), options.split_by, Text())
        written = tuple(each for each in plan.columns if each.column != split_by.column)
        if not written:
            raise OptionError("split_by", expected="at least one other column to write", got="none")
        named = [each.field.role for each in plan.columns if each.column == split_by.column]
        if named and named[0] in ("target", "weight"):
            raise OptionError("split_by", expected="a column that is not written", got=f"the {named[0]}")
        plan = Plan(written, {**plan.dropped, split_by.column: _NAMES_SPLITS})
    schema = plan.schema
    split = options.splits(schema)
    sides = [
        ColumnPlan(_find_column(name, plan, columns), name, Text(optional=True))
        for name in (split.group, split.stratify)
        if name is not None and name not in schema
    ]
    if split.time is not None:
        sides += _plan_time(split.time, schema, plan, head)
    late = [each.name for each in plan if each.form == "path" or _is_heavy(each, head)]
    work = RowWork(schema, split, late, {each.name: each.field for each in sides})
    raw = RawPlan(plan.columns, tuple(sides), split_by, options.encode, options.source)
    return plan, work, raw, split


def _cut(block: Block, options: ConvertOptions) -> Iterator[Block]:
    """Cut blocks into smaller ones if images are resized, as those stay in memory until written."""
    return iter([block]) if options.resize is None else block.cut(_RESIZED_ROWS)


def _is_heavy(plan: ColumnPlan, head: Sequence[Block]) -> bool:
    """Return whether a column in memory has values so large that they are better fetched at the end."""
    if plan.field.type_name not in ("image", "bytes") or not head or not head[0].is_resident:
        return False
    raw = head[0].columns[plan.column]
    sample = raw[:100]
    return sum(map(estimate_bytes, sample.tolist())) >= LARGE_BYTES * len(sample)


def _find_column(name: str, plan: Plan, columns: Sequence[str]) -> str:
    """Return the column with a field name or column name."""
    for each in plan:
        if each.name == name:
            return each.column
    if name not in columns:
        raise unknown_name(name, columns, what="column")
    return name


def _plan_time(name: str, schema: Schema, plan: Plan, head: Sequence[Block]) -> list[ColumnPlan]:
    """Check that a column can be ordered in time, and return its plan if it is not written."""
    field = schema.get(name)
    if field is not None and is_orderable(field):
        return []
    if field is None:
        column = _find_column(name, plan, [*(each.column for each in plan), *plan.dropped])
        parts = [block.columns[column] for block in head if block.num_rows]
        profile = survey_column(parts).profile
        numbers = None if profile.text is None else profile.text.numbers
        if profile.reads_as == "int":
            return [ColumnPlan(column, name, Number("int64", optional=True), numbers=numbers)]
        if profile.reads_as == "float":
            return [ColumnPlan(column, name, Number("float64", optional=True), numbers=numbers)]
        return [ColumnPlan(column, name, Number("int64", optional=True), "time")]
    raise OptionError(
        "time",
        field=name,
        expected="a column of numbers or dates",
        got=f"{show(name)}, a field of type {field.type_name!r}",
    )


def _refuse_own_source(out: PathLike, paths: Sequence[AnyPath]) -> None:
    """Refuse an output folder that contains the source."""
    folder = Path(find_real_path(as_path(out)))
    for path in paths:
        if Path(find_real_path(path)).is_relative_to(folder):
            raise PathError(
                "the output folder contains the source", path=out, advice="Choose another output folder."
            )
