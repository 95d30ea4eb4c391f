"""Raw data on its way to a model: converted into the run's own folder first.

In: a source, and what was told of it. Out: the data set, and what `run.yaml` says of how it was made.
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
    """What is converted before a model is trained on it.

    Attributes:
        source: Anything that `convert` takes.
        told: Of its columns.
        options: How to convert it.
        tables: The same for `run.yaml`.
    """

    source: Any
    told: PlanOverrides = field(default_factory=PlanOverrides)
    options: ConvertOptions = field(default_factory=ConvertOptions)
    tables: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Any, target: str | Sequence[str] | None, seed: int) -> RawData:
        """Return raw data of which no more is known than what is to be predicted."""
        paths = [source] if isinstance(source, str | os.PathLike) else source
        is_path = isinstance(paths, list | tuple) and all(isinstance(p, str | os.PathLike) for p in paths)
        named = [os.path.abspath(each) for each in paths] if is_path else []  # noqa: PTH100
        tables: dict[str, Any] = {"source": named if len(named) > 1 else named[0]} if named else {}
        tables["convert"] = {"seed": seed, **({"target": target} if target is not None else {})}
        return cls(source, PlanOverrides(target=target), ConvertOptions(seed=seed), tables)

    def convert(
        self, out: Path, on_plan: Callable[[Plan], None], on_progress: OnProgress | None = None
    ) -> Converted:
        """Convert into a folder; what a killed run has left there is taken as far as it goes.

        Args:
            out: The folder.
            on_plan: Called with what becomes of each column, before rows are converted.
            on_progress: Called with how far it has come.

        Raises:
            OptionError: Nothing is to be predicted.
            SourceError: The data has a single row.
            PenstockError: See `convert`.
        """

        def check(plan: Plan) -> None:
            if not any(each.field.role == "target" for each in plan):
                names = ", ".join(each.column for each in plan.columns[:_MOST_NAMED])
                advice = f"Name it: --target NAME, in Python target='NAME'. There are {names}."
                raise OptionError("target", expected="a column to predict", got="none", advice=advice)
            on_plan(plan)

        try:
            done = self._resume(out, on_progress, check)
        except OptionError as error:
            if error.path is not None:  # of the data set, or of the unfinished one
                error.advice = f"Remove {error.path} to convert again, or name another folder for the run."
            raise
        except CorruptRecordError as error:  # a shard of the data set that is there
            error.advice = f"Remove {out} to convert again, or name another folder for the run."
            raise
        if done.manifest.num_records < _FEWEST_ROWS:
            shutil.rmtree(done.out)  # nothing can be trained on it: a later call starts anew
            is_path = isinstance(self.source, str | os.PathLike)
            raise SourceError(
                "rows to train on",
                path=os.fspath(self.source) if is_path else None,
                expected=f"at least {_FEWEST_ROWS}, of which a model can learn what differs",
                got=done.manifest.num_records,
                advice="Check that the data is complete.",
            )
        return done

    def confirm(self, out: Path, on_progress: OnProgress | None = None) -> None:
        """Compare the data with the data set that a run was begun with, which is to be resumed.

        Raises:
            OptionError: The data set was made from other data, or in another way.
            PenstockError: See `convert`.
        """
        if not (out / MANIFEST_NAME).is_file():
            return  # opening it names what is missing
        try:
            self._resume(out, on_progress)
        except OptionError as error:
            error.advice = (
                "Leave out the data to continue with that of the run (penstock train --resume --out "
                f"{shlex.quote(str(out.parent))}), or name another folder for a new run."
            )
            raise

    def _resume(
        self, out: Path, on_progress: OnProgress | None, on_plan: Callable[[Plan], None] | None = None
    ) -> Converted:
        options = replace(self.options, resume=True)
        return run_conversion(self.source, out, self.told, options, on_progress, on_plan)


def format_plan(plan: Plan) -> list[str]:
    """Return a table of what becomes of each column, as lines; of a wide source, of its first columns."""
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
    lines = format_table(("column", "type", "role", "values", "because"), rows)
    if len(plan) > _MAX_LISTED:
        lines.append(f"… and {len(plan) - _MAX_LISTED:,} more: 'penstock convert --plan' prints all")
    return lines


def log_plan(plan: Plan) -> None:
    """Log as warnings what a person should check about a plan."""
    warnings = list_plan_warnings(plan)
    for warning in warnings:
        _log.warning("%s", warning)
    if any("'--" in warning for warning in warnings):
        _log.warning(
            "flags such as '--drop' and '--id' are arguments of ps.convert: convert with them first, "
            "and train on the data set"
        )


def list_plan_warnings(plan: Plan) -> list[str]:
    """Return what a person should check about a plan: columns that are left out, and warnings."""
    return [*list_losses(plan), *plan.warnings]


def list_more_notes(done: Converted) -> list[str]:
    """Return the notes of a conversion that neither its plan has given nor training will give."""
    given = set() if done.plan is None else set(list_plan_warnings(done.plan))
    return [note for note in done.notes if note not in given and not note.endswith(UNLABELLED)]
