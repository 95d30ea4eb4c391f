"""Raw data for training: converted into the folder of the run first.

In: a source, and what was declared about its columns. Out: the data set, and the settings of the conversion
for `run.yaml`.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from penstock.errors import CorruptRecordError, OptionError, SourceError
from penstock.format.manifest import MANIFEST_NAME
from penstock.foundation.terminal import escape, format_table
from penstock.jobs.convert.convert import Converted, plan_conversion, run_conversion
from penstock.jobs.convert.raw_source import list_losses
from penstock.plan.plan import Plan
from penstock.plan.plan_file import read_plan
from penstock.plan.planner import PlanOverrides
from penstock.schema.declaration import ColumnDeclaration, TypeName
from penstock.settings.conversion import ConvertTable
from penstock.shards.conversion import UNLABELLED, OnProgress
from penstock.storage.store_path import is_url
from penstock.training.run_config import RunConfig

_log = logging.getLogger("penstock")

_FEWEST_ROWS: Final = 2
_MOST_NAMED: Final = 10
_MAX_LISTED: Final = 60  # columns of a plan: more would scroll the rest of the output away


@dataclass(frozen=True)
class RawData:
    """Raw data that is converted before a model is trained on it.

    Attributes:
        source: Anything that `convert` takes.
        options: Options of the conversion, and roles of columns.
        types: Types of columns, which take precedence over a plan.
        paths: Paths or URLs of the source, for `run.yaml`; none for data of other kinds.
    """

    source: Any
    options: ConvertTable = field(default_factory=ConvertTable)
    types: Mapping[str, TypeName | ColumnDeclaration] = field(default_factory=dict)
    paths: tuple[str, ...] = ()

    @property
    def config(self) -> RunConfig:
        """The source and the options that were given, for `run.yaml`."""
        options, paths = self.options, self.paths
        if options.plan is not None or self.types:  # the content, as the file of a plan may be gone
            options = options.replace(plan=self._make_plan())
        source = paths if len(paths) > 1 else paths[0] if paths else None
        return RunConfig(source=source, convert=options)

    def _make_plan(self) -> dict[str, Any]:
        """Return the plan with the types of columns."""
        form = {} if self.options.plan is None else read_plan(self.options.plan)
        columns = dict(form.get("columns", {}))
        for name, each in self.types.items():
            whole = each if isinstance(each, ColumnDeclaration) else ColumnDeclaration(each)
            columns[name] = {"type": whole.type_name, **whole.attributes}
        return {**form, "columns": columns}

    @property
    def _overrides(self) -> PlanOverrides:
        roles = self.options
        return PlanOverrides(types=self.types, target=roles.target, weight=roles.weight, id=roles.id)

    def convert(
        self, out: Path, on_plan: Callable[[Plan], None], on_progress: OnProgress | None = None
    ) -> Converted:
        """Convert into a folder, and reuse what an interrupted run has left there.

        `on_plan`: called with the plan of the columns before rows are converted.
        """

        def check(plan: Plan) -> None:
            _check_target(plan)
            on_plan(plan)

        try:
            done = self._resume(out, on_progress, check)
        except OptionError as error:
            if error.path is not None:  # the path of the data set, or of an unfinished one
                error.advice = f"Remove {error.path} to convert again, or choose another folder for the run."
            raise
        except CorruptRecordError as error:  # a shard of the existing data set
            error.advice = f"Remove {out} to convert again, or choose another folder for the run."
            raise
        if done.manifest.num_records < _FEWEST_ROWS:
            shutil.rmtree(done.out)  # too small to train on: a later call converts again
            is_path = isinstance(self.source, str | os.PathLike)
            raise SourceError(
                "number of rows to train on",
                path=os.fspath(self.source) if is_path else None,
                expected=f"at least {_FEWEST_ROWS}",
                got=done.manifest.num_records,
                advice="Check that the data is complete.",
            )
        return done

    def check_target(self) -> None:
        """Check that there is a target among the columns; only the first rows are read."""
        _check_target(plan_conversion(self.source, self._overrides, self.options))

    def confirm(self, out: Path, on_progress: OnProgress | None = None) -> None:
        """Check that the data set of a run that is resumed was made from this data."""
        if not (out / MANIFEST_NAME).is_file():
            return  # opening the data set raises an error that names the missing file
        try:
            self._resume(out, on_progress)
        except OptionError as error:
            error.advice = (
                "To continue with the data of the run, leave out the data: "
                f"`ps.train(None, out={str(out.parent)!r}, resume=True)`; for a new run, choose another "
                "folder."
            )
            raise

    def _resume(
        self, out: Path, on_progress: OnProgress | None, on_plan: Callable[[Plan], None] | None = None
    ) -> Converted:
        options = self.options.replace(resume=True)
        return run_conversion(self.source, out, self._overrides, options, on_progress, on_plan)


def list_paths(source: Any) -> tuple[str, ...]:
    """Return the absolute paths of files, and URLs as they are; nothing for data of other kinds."""
    given = source if isinstance(source, list | tuple) else [source]
    if not all(isinstance(each, str | os.PathLike) for each in given):
        return ()
    paths = map(os.fspath, given)
    return tuple(each if is_url(each) else os.path.abspath(each) for each in paths)  # noqa: PTH100 - keeps links


def _check_target(plan: Plan) -> None:
    if not any(each.field.role == "target" for each in plan):
        names = ", ".join(each.column for each in plan.columns[:_MOST_NAMED])
        names += ", …" if len(plan.columns) > _MOST_NAMED else ""
        advice = f"Choose it: `target=NAME`. The columns are {names}."
        raise OptionError("target", expected="a column to predict", got="none", advice=advice)


def format_plan(plan: Plan, width: int | None = None) -> list[str]:
    """Return the plan of the columns as the lines of a table; a plan of many columns is cut.

    `width`: maximum width of the lines; by default the width of the terminal.
    """
    rows = [
        [
            escape(each.column),
            each.field.type_name,
            each.field.role,
            escape(each.field.describe()),
            each.reason,
        ]
        for each in plan.columns[:_MAX_LISTED]
    ]
    lines = format_table(("column", "type", "role", "values", "because"), rows, width=width)
    if len(plan) > _MAX_LISTED:
        lines.append(f"… and {len(plan) - _MAX_LISTED:,} more: 'penstock convert --plan' lists all columns")
    return lines


def log_plan(plan: Plan) -> None:
    """Log the warnings of a plan, and the columns that it leaves out."""
    warnings = list_plan_warnings(plan)
    for warning in warnings:
        _log.warning("%s", warning)
    if any("=" in warning.partition("`")[2] for warning in warnings):
        _log.warning("These are arguments of ps.convert: convert the data first, then train on the data set.")


def list_plan_warnings(plan: Plan) -> list[str]:
    """Return the columns that a plan leaves out, and its warnings."""
    return [*list_losses(plan), *plan.warnings]


def list_more_notes(done: Converted) -> list[str]:
    """Return the notes of a conversion that are not shown with its plan or by training."""
    given = set() if done.plan is None else set(list_plan_warnings(done.plan))
    return [note for note in done.notes if note not in given and not note.endswith(UNLABELLED)]
