"""The conversion job: `penstock.convert` in Python and `penstock convert` on the command line.

In: a source of raw data or TFRecords, and options. Out: a data set of TFRecord shards with a manifest, and
`Converted`, which describes what was done.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from penstock import _native
from penstock.dataset import Dataset
from penstock.dataset import open as open_dataset
from penstock.decode.losses import Losses
from penstock.decode.plan import DecodePlan
from penstock.decode.reader import read_columns
from penstock.encode.raw_rows import RowBlock
from penstock.errors import OptionError, PathError, PenstockError
from penstock.format.entry import SplitEntry
from penstock.format.manifest import Manifest
from penstock.jobs.convert.dataset_source import open_dataset_source
from penstock.jobs.convert.raw_source import RawSource
from penstock.plan.plan import Plan
from penstock.plan.plan_file import read_plan
from penstock.plan.planner import PlanOverrides, make_plan
from penstock.read.opened_files import open_files
from penstock.schema.schema import Schema
from penstock.settings.conversion import ConvertCall, ConvertOptions
from penstock.settings.groups import ReadOptions, Splits
from penstock.settings.keywords import takes
from penstock.shards.content import read_content
from penstock.shards.conversion import (
    Conversion,
    ConversionProgress,
    ManifestDetails,
    OnProgress,
)
from penstock.shards.engine import LocalEngine, MakeEngine
from penstock.shards.request import (
    Request,
    find_finished,
    load_finished,
    refuse_unrepeatable,
)
from penstock.shards.row_work import RowWork
from penstock.shards.staging.staging import Staging, check_finished
from penstock.source.listing import share_listings
from penstock.source.opening import open_source
from penstock.source.recognition import is_dataset
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


_log = logging.getLogger("penstock")


@dataclass(frozen=True)
class Converted:
    """Result of a conversion.

    Attributes:
        out: Folder of the data set.
        manifest: Manifest of the data set.
        plan: Plan of the columns; None if the source was TFRecords.
        num_rows: Number of rows of the source.
        notes: Notes for the user.
        cautions: Those notes that are about values of the source which were lost.
        rejected: Errors of the rows that were left out, at most 1,000.
    """

    out: AnyPath
    manifest: Manifest
    plan: Plan | None
    num_rows: int
    notes: tuple[str, ...]
    rejected: tuple[PenstockError, ...] = ()
    cautions: tuple[str, ...] = ()

    def describe_rejects(self) -> str:
        """Return how many rows were left out, and where they are; "" if none were."""
        rejects = self.manifest.rejects
        if not rejects.get("count"):
            return ""
        number = rejects["count"]
        where = f", see {rejects['file']}" if rejects.get("file") else ""
        return f"{number:,} {'row' if number == 1 else 'rows'} rejected{where}"


@takes(ConvertCall)
def convert(source: object, out: PathLike, *, options: ConvertCall) -> Dataset:
    """Convert raw data to a data set of TFRecord shards, split and shuffled, and open it.

    Args:
        source: A path (CSV, TSV, Parquet, JSON lines, Arrow, a folder of images, TFRecords), several or a
            glob; a table of pandas, polars, pyarrow, or any object with an Arrow stream; a dict of
            arrays; an iterable of dicts, or a function that returns one.
        out: The folder to write. It appears when it is complete.
        options: Declarations of columns, and how to split and write the records.

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
    overrides = PlanOverrides(
        schema=options.schema,
        fields=options.fields or {},
        target=options.target,
        weight=options.weight,
        id=options.id,
    )
    done = run_conversion(source, out, overrides, options)
    for note in done.notes:
        _log.warning("%s", note)
    if rejects := done.describe_rejects():
        _log.warning("%s", rejects)
    return open_dataset(done.out).with_rejected(done.rejected)


def run_conversion(
    source: object,
    out: PathLike,
    overrides: PlanOverrides,
    options: ConvertOptions,
    on_progress: OnProgress | None = None,
    on_plan: Callable[[Plan], None] | None = None,
) -> Converted:
    """Convert, and return the result with its plan and notes.

    `source`: source, as for `convert`. `on_plan`: called with the plan of raw data before rows are converted;
    an exception that it raises ends the conversion. A source that can be read only once is planned and
    converted in one pass.
    """
    if options.plan is not None:  # a fault in the file is found before anything is read or locked
        options = options.replace(plan=read_plan(options.plan))
    made: ConversionSource
    with share_listings():
        opened = None if is_dataset(source) else open_source(source, options)
    if opened is None:
        made = open_dataset_source(source, overrides, options)
        _refuse_own_source(out, made.paths)
        return _convert(lambda: made, None, out, options, on_progress)

    def plan_raw() -> ConversionSource:
        made = RawSource(opened, overrides, options)
        if on_plan is not None:
            on_plan(made.plan)
        return made

    return _convert(plan_raw, None if opened.is_repeatable else opened.name, out, options, on_progress)


class ConversionSource(Protocol):
    """What is converted: rows that are ready to be read, and the request that describes the data set.

    `DatasetSource` has the records of a data set or of TFRecords, `RawSource` the rows of anything else.
    """

    @property
    def request(self) -> Request:
        """Description of the requested data set."""

    @property
    def work(self) -> RowWork:
        """Work to do for each block."""

    @property
    def split(self) -> Splits:
        """How to split the rows."""

    @property
    def num_bytes(self) -> int | None:
        """Number of bytes to read, or None if it is not known."""

    @property
    def plan(self) -> Plan | None:
        """Plan of the columns; None for a data set."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user; complete once all rows were read."""

    @property
    def cautions(self) -> tuple[str, ...]:
        """Those notes that are about values of the source which were lost."""

    def blocks(self) -> Iterator[RowBlock]:
        """Yield all rows in order."""

    def finalize_schema(self, num_missing: Mapping[str, int], /) -> Schema:
        """Return the schema, given the number of rows in which each field is missing."""

    def provenance(self) -> list[dict[str, Any]]:
        """Return the description of the source for the manifest; complete once all rows were read."""


def _convert(
    make: Callable[[], ConversionSource],
    unrepeatable: str | None,
    out: PathLike,
    options: ConvertOptions,
    on_progress: OnProgress | None,
) -> Converted:
    """Write the data set, or confirm that a finished one is the requested one.

    `make`: returns the source; called when the output folder is locked, because it may read rows.
    `unrepeatable`: name of a source that can be read only once; None for other sources.
    """
    if (folder := find_finished(out, options)) is not None:
        if unrepeatable is not None:
            raise refuse_unrepeatable(unrepeatable, folder)
        return _confirm(make(), folder, options, on_progress)
    staging = Staging(out, overwrite=options.overwrite, resume=options.resume, clean=options.clean)
    with staging:
        return _run(make(), staging, options, on_progress)


def _run(
    source: ConversionSource, staging: Staging, options: ConvertOptions, on_progress: OnProgress | None
) -> Converted:
    """Write the data set."""
    staging.begin(source.request.journal_form)
    with open_engine(options, source.num_bytes) as make_engine:
        return _write(source, staging, options, on_progress, make_engine)


def _write(
    source: ConversionSource,
    staging: Staging,
    options: ConvertOptions,
    on_progress: OnProgress | None,
    make_engine: MakeEngine,
) -> Converted:
    conversion = Conversion(
        source.work,
        source.split,
        options,
        staging,
        measure_shards=measure_shards,
        expected_bytes=source.num_bytes,
        on_progress=on_progress,
        make_engine=make_engine,
    )
    try:
        for block in source.blocks():
            conversion.add(block)
        details = ManifestDetails(
            source.request, source.request.json_form.get("plan"), tuple(source.provenance())
        )
        manifest = conversion.finish(source.finalize_schema, details)
    except BaseException as error:  # the journal records every failure with the number of rows read
        staging.journal.add_failure(conversion.num_rows, error)
        raise
    finally:
        conversion.close()
    notes, cautions = (*source.notes, *conversion.notes), source.cautions
    rejected = tuple(conversion.rejects.errors)
    return Converted(staging.out, manifest, source.plan, conversion.num_rows, notes, rejected, cautions)


@contextmanager
def open_engine(options: ConvertOptions, num_bytes: int | None) -> Iterator[MakeEngine]:
    """Yield the function that makes the engine of a conversion, with a connection to Ray if that is chosen.

    `num_bytes`: size of the source, if known.
    """
    if options.engine == "local":
        yield LocalEngine
        return
    # Loaded late: Ray is an extra.
    from penstock.distributed.ray_cluster import Cluster  # noqa: PLC0415
    from penstock.distributed.ray_engine import RayEngine  # noqa: PLC0415

    with Cluster(options.address, options.num_threads) as cluster:
        yield partial(RayEngine, cluster, num_bytes)


def _confirm(
    source: ConversionSource, folder: AnyPath, options: ConvertOptions, on_progress: OnProgress | None
) -> Converted:
    """Check that the finished data set matches the request, and return it."""
    request = source.request
    request.check_options(load_finished(folder), folder)  # fails early, before all rows are read

    def report(num_rows: int, num_bytes: int, num_rejects: int) -> None:
        if on_progress is not None:
            on_progress(ConversionProgress("reading", num_rows, num_bytes, source.num_bytes, num_rejects))

    content, provenance = read_content(source.work, source.blocks(), options, source.provenance, report)
    manifest = load_finished(folder)  # loaded again, because reading may take hours
    request.check_content(manifest, folder, content, provenance)
    check_finished(folder, manifest, request.journal_form, clean=options.clean)
    num_rows = manifest.num_records + int(manifest.rejects.get("count", 0))
    notes = (*source.notes, "The data set was already complete: nothing was written.")
    return Converted(folder, manifest, source.plan, num_rows, notes)


def plan_conversion(source: object, overrides: PlanOverrides, options: ConvertOptions) -> Plan:
    """Return the plan of a conversion without converting."""
    if is_dataset(source):
        raise OptionError(
            "plan",
            expected="raw data",
            got="TFRecords, whose fields are known",
            advice="To see the fields, run 'penstock inspect'.",
        )
    return make_plan(open_source(source, options), overrides, options)


def _refuse_own_source(out: PathLike, paths: Sequence[AnyPath]) -> None:
    """Refuse an output folder that contains the source."""
    folder = Path(find_real_path(as_path(out)))
    for path in paths:
        if Path(find_real_path(path)).is_relative_to(folder):
            raise PathError(
                "the output folder contains the source", path=out, advice="Choose another output folder."
            )
