"""Raw data as the source of a conversion: rows of any source, and the plan of their columns.

In: a `Source`, and declarations of columns. Out: blocks of rows, and the requested data set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from penstock.encode.raw_rows import RawPlan, RawRows
from penstock.errors import OptionError
from penstock.foundation.wording import show, unknown_name
from penstock.jobs.convert.dataset_source import is_orderable
from penstock.plan.plan import ColumnPlan, Plan
from penstock.plan.planner import REQUESTED_DROPS, PlanOverrides, make_plan
from penstock.plan.survey import survey_column
from penstock.schema.scalar import Number, Text
from penstock.schema.schema import Schema
from penstock.settings.conversion import ConvertOptions
from penstock.settings.groups import Splits, StoredImages, TextFiles
from penstock.shards.request import request_raw
from penstock.shards.row_work import RowWork
from penstock.shards.splits.split import name_strata
from penstock.source.block import LARGE_BYTES, Block, PeekedSource, Source
from penstock.source.cutter import estimate_bytes

_NAMES_SPLITS: Final = "names the splits"
_RESIZED_ROWS: Final = 512


class RawSource:
    """Raw data that is ready to be converted; see `ConversionSource`."""

    plan: Plan

    def __init__(self, source: Source, overrides: PlanOverrides, options: ConvertOptions) -> None:
        """Read the first rows, and plan the columns."""
        self._source = PeekedSource(source, options.num_threads)
        plan = make_plan(self._source, overrides, options)
        self.plan, self.work, self._raw, self.split = prepare(plan, options, self._source.head)
        self.request = request_raw(
            self.plan, options, self.split, self.work.deferred_names, self._source.name
        )
        self.num_bytes = self._source.num_bytes
        self._is_resized = options.resize is not None

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user; complete once all rows were read."""
        return (*self._source.notes, *list_losses(self.plan), *self.plan.warnings)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Those notes of the source that are about values which were lost."""
        return self._source.cautions

    def blocks(self) -> Iterator[RawRows]:
        """Yield the rows, in smaller blocks if images are resized, as those stay in memory until written."""
        self._source.hash_ahead()
        for block in self._source.blocks():
            pieces = block.cut(_RESIZED_ROWS) if self._is_resized else (block,)
            yield from (RawRows(piece, self._raw) for piece in pieces)

    def finalize_schema(self, num_missing: Mapping[str, int]) -> Schema:
        """Return the schema, given the number of rows in which each field is missing."""
        return self.plan.finalize_schema(num_missing)

    def provenance(self) -> list[dict[str, Any]]:
        """Return the description of the source for the manifest."""
        return self._source.provenance()


def list_losses(plan: Plan) -> Iterator[str]:
    """Yield a note for each column that is left out without a request of the user."""
    for column, why in plan.dropped.items():
        if why not in (*REQUESTED_DROPS, _NAMES_SPLITS):
            yield f"{show(column)} is left out: {why}"


def prepare(
    plan: Plan, options: ConvertOptions, head: Sequence[Block]
) -> tuple[Plan, RowWork, RawPlan, Splits]:
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
    split = name_strata(options, schema)
    sides = [
        ColumnPlan(_find_column(name, plan, columns), name, Text(optional=True))
        for name in (split.group, split.strata)
        if name is not None and name not in schema
    ]
    if split.time is not None:
        sides += _plan_time(split.time, schema, plan, head)
    late = [each.name for each in plan if each.form == "path" or _is_heavy(each, head)]
    work = RowWork(schema, split, options.seed, late, {each.name: each.field for each in sides})
    raw = RawPlan(
        plan.columns, tuple(sides), split_by, options.narrow(StoredImages), options.narrow(TextFiles)
    )
    return plan, work, raw, split


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
        return [ColumnPlan(column, name, Number("int64", optional=True), "time", dates=profile.date_order)]
    raise OptionError(
        "time",
        field=name,
        expected="a column of numbers or dates",
        got=f"{show(name)}, a field of type {field.type_name!r}",
    )
