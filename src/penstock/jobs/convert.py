"""From raw data to a data set: the job behind `penstock.convert` and `penstock convert`.

In: a source, an output folder, and choices. Out: a data set that is complete, or an error and no data set.
"""

from __future__ import annotations

import glob
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Unpack

from penstock.dataset import Dataset
from penstock.dataset import open as open_dataset
from penstock.errors import OptionError, PathError
from penstock.jobs.conversion import Conversion, Facts, OnProgress
from penstock.jobs.plan import ASKED_FOR, PlanOverrides, make_plan
from penstock.jobs.planfile import read_plan
from penstock.jobs.rawrows import RawPlan, RawRows
from penstock.jobs.restore import StoredSource, open_stored
from penstock.jobs.rowwork import Incoming, RowWork
from penstock.jobs.settings import ConvertChoices, ConvertOptions, make_options
from penstock.schema.field import Field
from penstock.schema.nearest import unknown_name
from penstock.schema.plan import ColumnPlan, Plan
from penstock.schema.refusal import show
from penstock.schema.scalar import Number, Text
from penstock.schema.schema import Schema
from penstock.shards.manifest import MANIFEST_NAME, Manifest, load_manifest
from penstock.shards.place import find_place
from penstock.shards.split import SplitOptions
from penstock.shards.staging import Staging
from penstock.source.block import LARGE_BYTES, Block, Source
from penstock.source.cutter import estimate_bytes
from penstock.source.opening import is_tfrecord_source, open_source
from penstock.source.peek import Peeked
from penstock.storage.paths import PathLike, refuse_missing

_NAMES_SPLITS: Final = "names the splits"

_log = logging.getLogger("penstock")


_RESIZED_ROWS = 512


@dataclass(frozen=True)
class Converted:
    """What a conversion has done.

    Attributes:
        out: The data set.
        manifest: What it says of itself.
        plan: What became of each column; None where the source was TFRecords.
        num_rows: How many rows the source had.
        notes: What a person should hear.
    """

    out: Path
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
    """Convert raw data to TFRecord shards that describe themselves, split and shuffled, and open them.

    Args:
        source: A path (CSV, TSV, Parquet, JSON lines, Arrow, a folder of images, TFRecords), several or a
            glob; a table of pandas, polars, pyarrow, or anything that offers an Arrow stream; a dict of
            arrays; an iterable of dicts, or a function that returns one.
        out: The folder to write. It appears when it is complete.
        schema: The fields, all of them; other columns are not written. Inferred if not given.
        fields: Fields that inference should not guess, by column: `{"photo": ps.fields.Image()}`.
        target: The field or fields that a model is to predict.
        weight: The field that weighs each record.
        id: The field that identifies each record; splits are made by it.
        options: Everything else; see `penstock.ConvertOptions`.

    Raises:
        NoSuchPathError: The source is not there.
        FieldError: A row does not fit its field.
        PathError: The output folder holds something, and may not be overwritten.
        BusyError: Another process is writing it.
        WriteError: The disk is full, or fails.

    Example:
        >>> toys = convert({"price": [3.5, 4.0, 1.25], "sold": [1, 0, 1]}, "toys", target="sold")
        >>> sum(len(toys[name]) for name in toys.splits)
        3
    """
    told = PlanOverrides(schema=schema, fields=fields or {}, target=target, weight=weight, id=id)
    done = run_conversion(source, out, told, make_options(**options))
    for note in () if done.plan is None else list_losses(done.plan):
        _log.warning("%s", note)
    return open_dataset(done.out)


def run_conversion(
    source: object,
    out: PathLike,
    told: PlanOverrides,
    options: ConvertOptions,
    on_progress: OnProgress | None = None,
) -> Converted:
    """Convert, and return what was done.

    Raises:
        PenstockError: See `convert`.
    """
    told = _override(told, options)
    place = find_place(out)
    if is_tfrecord_source(source):
        stored = open_stored(source, told, options)
        _refuse_own_source(Path(out), stored.paths)
        return _run_stored(stored, out, options, on_progress)
    _refuse_mixture(source)
    opened = open_source(source, options.source)
    if (finished := _find_finished(opened, place, told, options)) is not None:
        return finished
    staging = Staging(out, overwrite=options.overwrite, resume=options.resume)
    with staging:  # from here on nobody else writes there
        peeked = Peeked(opened)
        plan, work, raw, split = prepare(make_plan(peeked, told), options, peeked.head)
        of_source = [peeked.name, peeked.num_rows, peeked.num_bytes]
        staging.begin(describe_request(plan.to_form(), options, of_source))
        conversion = Conversion(
            work, split, options, staging, expected_bytes=peeked.num_bytes, on_progress=on_progress
        )
        manifest = _feed(
            conversion,
            staging,
            (RawRows(piece, raw) for block in peeked.blocks() for piece in _cut(block, options)),
            lambda: conversion.finish(
                plan.settle, Facts(describe_plan(plan, options), tuple(peeked.provenance()))
            ),
        )
    notes = (*peeked.notes, *list_losses(plan), *plan.warnings, *conversion.notes)
    return Converted(staging.out, manifest, plan, conversion.num_rows, notes)


def _find_finished(
    source: Source, out: Path, told: PlanOverrides, options: ConvertOptions
) -> Converted | None:
    """Return what a run that is to be resumed has made, if it came to its end with the same request."""
    if (
        not options.resume
        or options.overwrite
        or not source.is_repeatable
        or not (out / MANIFEST_NAME).is_file()
    ):
        return None
    manifest = load_manifest(out)
    peeked = Peeked(source)
    plan = prepare(make_plan(peeked, told), options, peeked.head)[0]
    is_same = (
        manifest is not None
        and manifest.plan == describe_plan(plan, options)
        and _name_sources(manifest.source) == _name_sources(source.provenance())
        and manifest.split.get("shares") == options.shares
        and manifest.split.get("seed") == options.seed
        and manifest.order == options.describe_order()
        and manifest.compression == options.compression
    )
    if manifest is None or not is_same:
        return None
    with Staging(out, overwrite=True):
        pass  # a run that was killed at its very end has left its folder: entering clears that alone
    num_rows = manifest.num_records + int(manifest.rejects.get("count", 0))
    notes = ("the data set was complete already: nothing was done",)
    return Converted(out, manifest, plan, num_rows, notes)


def _name_sources(source: Iterable[Mapping[str, Any]]) -> list[tuple[Any, Any]]:
    return [(each.get("name"), each.get("sha256", each.get("bytes"))) for each in source]


def list_losses(plan: Plan) -> Iterator[str]:
    """Yield a note for each column that nobody asked to leave out."""
    for column, why in plan.dropped.items():
        if why not in (*ASKED_FOR, _NAMES_SPLITS):
            yield f"{show(column)} is left out: {why}"


def plan_conversion(source: object, told: PlanOverrides, options: ConvertOptions) -> Plan:
    """Return what a conversion would do with each column, without doing it.

    Raises:
        PenstockError: See `convert`.
    """
    if is_tfrecord_source(source):
        raise OptionError(
            "plan",
            expected="raw data",
            got="TFRecords, whose fields are known",
            advice="See 'penstock inspect'.",
        )
    _refuse_mixture(source)
    return make_plan(Peeked(open_source(source, options.source)), _override(told, options))


def _feed(
    conversion: Conversion,
    staging: Staging,
    blocks: Iterator[Incoming],
    finish: Callable[[], Manifest],
) -> Manifest:
    """Give a conversion all blocks; what goes wrong is in the journal, with the row it came to."""
    try:
        for block in blocks:
            conversion.add(block)
        return finish()
    except BaseException as error:
        staging.journal.add_failure(conversion.num_rows, error)
        raise
    finally:
        conversion.close()


def _run_stored(
    stored: StoredSource, out: PathLike, options: ConvertOptions, on_progress: OnProgress | None
) -> Converted:
    staging = Staging(out, overwrite=options.overwrite, resume=options.resume)
    split = stored.split_options(options)
    work = RowWork(stored.schema, split, (), stored.sides)
    request = describe_request(stored.schema.to_json(), options, stored.identity())
    with staging:
        staging.begin(request)
        conversion = Conversion(
            work, split, options, staging, expected_bytes=stored.num_bytes, on_progress=on_progress
        )
        manifest = _feed(
            conversion,
            staging,
            stored.blocks(),
            lambda: conversion.finish(lambda _: stored.schema, Facts(None, tuple(stored.provenance()))),
        )
    return Converted(staging.out, manifest, None, conversion.num_rows, (*stored.notes, *conversion.notes))


def _override(told: PlanOverrides, options: ConvertOptions) -> PlanOverrides:
    """Join what was told of the columns with what the options say of them."""
    return replace(
        told,
        drop=(*told.drop, *options.drop),
        rename={**options.rename, **told.rename},
        form=told.form if options.plan is None else read_plan(options.plan),
    )


def prepare(
    plan: Plan, options: ConvertOptions, head: Sequence[Block]
) -> tuple[Plan, RowWork, RawPlan, SplitOptions]:
    """Find the columns that rows are split by, and say what is done with each block."""
    columns = [*(each.column for each in plan), *plan.dropped]
    split_by = None
    if options.split_by is not None:
        split_by = ColumnPlan(_find_column(options.split_by, plan, columns), options.split_by, Text())
        written = tuple(each for each in plan.columns if each.column != split_by.column)
        if not written:
            raise OptionError("split_by", expected="a column beside it to write", got="none")
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
        sides += _plan_time(split.time, schema, plan)
    late = [each.name for each in plan if each.form == "path" or _is_heavy(each, head)]
    work = RowWork(schema, split, late, {each.name: each.field for each in sides})
    raw = RawPlan(plan.columns, tuple(sides), split_by, options.encode, options.source)
    return plan, work, raw, split


def _cut(block: Block, options: ConvertOptions) -> Iterator[Block]:
    """Cut blocks smaller whose images are shrunk: those are in memory until they are written."""
    return iter([block]) if options.resize is None else block.cut(_RESIZED_ROWS)


def _is_heavy(plan: ColumnPlan, head: Sequence[Block]) -> bool:
    """Tell whether a column in memory holds values that are better fetched late than moved about."""
    if plan.field.type_name not in ("image", "bytes") or not head or not head[0].is_resident:
        return False
    raw = head[0].columns[plan.column]
    sample = raw[:100]
    return sum(map(estimate_bytes, sample.tolist())) >= LARGE_BYTES * len(sample)


def _find_column(name: str, plan: Plan, columns: Sequence[str]) -> str:
    """Return the column that a field or column name means."""
    for each in plan:
        if each.name == name:
            return each.column
    if name not in columns:
        raise unknown_name(name, columns, what="column")
    return name


def _plan_time(name: str, schema: Schema, plan: Plan) -> list[ColumnPlan]:
    """Check that a column can be told in time, and return its plan if it is not written."""
    field = schema.get(name)
    if isinstance(field, Number):
        return []
    if field is None:
        column = _find_column(name, plan, [*(each.column for each in plan), *plan.dropped])
        return [ColumnPlan(column, name, Number("int64"), "time")]
    raise OptionError(
        "time",
        field=name,
        expected="a column of numbers or dates",
        got=f"{show(name)}, a field of type {field.type_name!r}",
    )


def describe_plan(plan: Plan, options: ConvertOptions) -> dict[str, Any]:
    """Return what new rows need to become fields as these did: the plan, and choices that change meaning.

    Words for what is missing are told where they are not the usual ones.
    """
    return {**plan.to_form(), "resize": options.resize, **_tell_missing(options)}


def _tell_missing(options: ConvertOptions) -> dict[str, list[str]]:
    words = sorted(set(options.missing))
    return {} if words == [""] else {"missing": words}


def describe_request(plan: Any, options: ConvertOptions, source: Any) -> dict[str, Any]:
    """Return all that decides the bytes, so that only the same request is resumed."""
    return {
        "plan": plan,
        "source": source,
        "split": {
            "shares": options.shares,
            "group": options.group,
            "stratify": options.stratify,
            "split_by": options.split_by,
            "time": options.time,
        },
        "seed": options.seed,
        "shuffle": options.shuffle,
        "shard_bytes": options.shard_bytes,
        "num_shards": options.num_shards,
        "compression": options.compression,
        "on_error": options.on_error,
        "resize": options.resize,
        **_tell_missing(options),
    }


def _refuse_mixture(source: object) -> None:
    """Refuse paths of which only some are TFRecords."""
    several = source if isinstance(source, list | tuple) else ()
    for each in several:
        if isinstance(each, str | os.PathLike) and not glob.has_magic(os.fspath(each)):
            refuse_missing(Path(each))
    for each in several:
        if is_tfrecord_source(each):
            raise OptionError(
                "source",
                expected="raw data alone or TFRecords alone",
                got=f"raw data, and TFRecords in {show(str(each))}",
                advice="Convert the raw data first, then both data sets together.",
            )


def _refuse_own_source(out: Path, paths: Sequence[Path]) -> None:
    """Refuse to write over what is being read."""
    place = out.resolve()
    for path in paths:
        if path.resolve().is_relative_to(place):
            raise PathError(
                "the output folder holds the source", path=out, advice="Choose another output folder."
            )
