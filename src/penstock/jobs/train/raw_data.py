"""Raw data for training: converted into the folder of the run first.

In: a source, and what was declared about its columns. Out: the data set, and the settings of the conversion
for `run.yaml`.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from penstock.errors import CorruptRecordError, OptionError, SourceError
from penstock.foundation.terminal import escape, format_table
from penstock.jobs.convert.convert import Converted, list_losses, run_conversion
from penstock.plan.plan import Plan
from penstock.plan.planner import PlanOverrides
from penstock.shards.conversion import UNLABELLED, OnProgress
from penstock.shards.manifest import MANIFEST_NAME
from penstock.shards.options import ConvertOptions

_log = logging.getLogger("penstock")

_FEWEST_ROWS: Final = 2
_MOST_NAMED: Final = 10
_MAX_LISTED: Final = 60  # columns of a plan: more would scroll the rest of the output away


@dataclass(frozen=True)
class RawData:
    """Raw data that is converted before a model is trained on it.

    Attributes:
        source: Anything that `convert` takes.
        overrides: What was declared about the columns.
        options: Options of the conversion.
        tables: Source and options of the conversion, as tables of `run.yaml`.
    """

    source: Any
    overrides: PlanOverrides = field(default_factory=PlanOverrides)
    options: ConvertOptions = field(default_factory=ConvertOptions)
    tables: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Any, target: str | Sequence[str] | None, seed: int) -> RawData:
        """Return raw data for which only the target and the seed are given."""
        paths = [source] if isinstance(source, str | os.PathLike) else source
        is_path = isinstance(paths, list | tuple) and all(isinstance(p, str | os.PathLike) for p in paths)
        named = [os.path.abspath(each) for each in paths] if is_path else []  # noqa: PTH100
        tables: dict[str, Any] = {"source": named if len(named) > 1 else named[0]} if named else {}
        tables["convert"] = {"seed": seed, **({"target": target} if target is not None else {})}
        return cls(source, PlanOverrides(target=target), ConvertOptions(seed=seed), tables)

    def convert(
        self, out: Path, on_plan: Callable[[Plan], None], on_progress: OnProgress | None = None
    ) -> Converted:
        """Convert into a folder, and reuse what an interrupted run has left there.

        Args:
            out: The folder.
            on_plan: Called with the plan of the columns before rows are converted.
            on_progress: Called with the progress of the conversion.

        Raises:
            OptionError: No column is the target.
            SourceError: The data has a single row.
            PenstockError: See `convert`.
        """

        def check(plan: Plan) -> None:
            if not any(each.field.role == "target" for each in plan):
                names = ", ".join(each.column for each in plan.columns[:_MOST_NAMED])
                names += ", …" if len(plan.columns) > _MOST_NAMED else ""
                advice = f"Choose it with --target NAME, in Python target='NAME'. The columns are {names}."
                raise OptionError("target", expected="a column to predict", got="none", advice=advice)
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

    def confirm(self, out: Path, on_progress: OnProgress | None = None) -> None:
        """Check that the data set of a run that is resumed was made from this data.

        Raises:
            OptionError: The data set was made from other data, or in another way.
            PenstockError: See `convert`.
        """
        if not (out / MANIFEST_NAME).is_file():
            return  # opening the data set raises an error that names what is missing
        try:
            self._resume(out, on_progress)
        except OptionError as error:
            error.advice = (
                "To continue with the data of the run, omit the data argument (penstock train --resume --out "
                f"{shlex.quote(str(out.parent))}); for a new run, choose another folder."
            )
            raise

    def _resume(
        self, out: Path, on_progress: OnProgress | None, on_plan: Callable[[Plan], None] | None = None
    ) -> Converted:
        options = replace(self.options, resume=True)
        return run_conversion(self.source, out, self.overrides, options, on_progress, on_plan)


def format_plan(plan: Plan, width: int | None = None) -> list[str]:
    """Return the plan of the columns as the lines of a table; a plan of many columns is cut.

    Args:
        plan: The plan.
        width: Maximum width of the lines; that of the terminal by default.
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
    if any("'--" in warning for warning in warnings):
        _log.warning(
            "In Python, flags such as '--drop' and '--id' are arguments of ps.convert: convert the data with "
            "them first, then train on the data set."
        )


def list_plan_warnings(plan: Plan) -> list[str]:
    """Return the columns that a plan leaves out, and its warnings."""
    return [*list_losses(plan), *plan.warnings]


def list_more_notes(done: Converted) -> list[str]:
    """Return the notes of a conversion that are not shown with its plan or by training."""
    given = set() if done.plan is None else set(list_plan_warnings(done.plan))
    return [note for note in done.notes if note not in given and not note.endswith(UNLABELLED)]
