"""Raw data for `penstock train`; a module of its own, because only raw data needs pyarrow.

In: parsed arguments, and the table `convert` of a config file. Out: `RawData`, and its data set.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from penstock.cli.convert import ConversionDisplay, read_overrides
from penstock.cli.option_values import list_given
from penstock.cli.standard_input import STANDARD_INPUT, name_original
from penstock.cli.terminal import is_quiet, output_width, print_lines, print_note, print_warning
from penstock.dataset import Dataset
from penstock.dataset import open as open_dataset
from penstock.errors import OptionError
from penstock.foundation.wording import find_nearest
from penstock.jobs.train.raw_data import RawData, format_plan, list_more_notes, list_plan_warnings
from penstock.plan.plan import Plan
from penstock.plan.planner import PlanOverrides
from penstock.schema.declaration import ColumnDeclaration
from penstock.shards.options import ConvertOptions, make_options
from penstock.storage.store_path import is_store_path

_OPTIONS: Final = (
    *("split", "group", "stratify", "split_by", "time", "seed", "delimiter", "encoding", "missing", "nan"),
    "short_rows",
    *("header", "sheet", "decimal", "thousands"),
    "files_from",
)
_ROLES: Final = ("target", "weight", "id", "drop", "rename")


def read_raw(args: argparse.Namespace, table: Mapping[str, Any], source: Any) -> RawData:
    """Return the raw data and how to convert it; the command line overrides the config file.

    Raises:
        OptionError: An option is unknown or not valid.
        SchemaError: The plan file is not valid.
    """
    known = [each.name for each in dataclasses.fields(ConvertOptions)]
    for name in table:
        if name not in (*known, *_ROLES):
            nearest = find_nearest(str(name), (*known, *_ROLES))
            advice = f"Did you mean {nearest!r}?" if nearest else ""
            raise OptionError(f"convert.{name}", expected="an option of convert", got=name, advice=advice)
    choices = {name: value for name, value in table.items() if name in known and name != "drop"}
    choices |= list_given(args, _OPTIONS)
    options = make_options(**choices)
    overrides = _merge_overrides(read_overrides(args), table)
    return RawData(source, overrides, options, _describe(source, overrides, options))


def convert_raw(raw: RawData, out: Path, *, is_silent: bool = False) -> tuple[Dataset, list[str]]:
    """Convert, and show the plan and the progress.

    Args:
        raw: The raw data.
        out: The folder to write.
        is_silent: Whether to print neither plan nor warnings.

    Returns:
        The data set, and its warnings and notes.
    """
    shown: list[str] = []

    def show_plan(plan: Plan) -> None:
        shown.extend(list_plan_warnings(plan))
        if not is_silent:
            if not is_quiet():
                print_lines([*format_plan(plan, output_width()), ""])
                sys.stdout.flush()
            for warning in shown:
                print_warning(warning)

    display = ConversionDisplay()
    with display:
        done = raw.convert(out, show_plan, display.update)
    more = list_more_notes(done)
    for note in () if is_silent else more:
        print_note(note)
    return open_dataset(done.out), [*shown, *more]


def confirm_raw(raw: RawData, out: Path) -> None:
    """Compare raw data with the data set of a run, and show the progress.

    Raises:
        OptionError: The data set was made from other data, or with other options.
    """
    display = ConversionDisplay()
    with display:
        raw.confirm(out, display.update)


def _merge_overrides(given: PlanOverrides, table: Mapping[str, Any]) -> PlanOverrides:
    return dataclasses.replace(
        given,
        target=given.target or table.get("target"),
        weight=given.weight or table.get("weight"),
        id=given.id or table.get("id"),
        drop=(*given.drop, *table.get("drop", ())),
        rename={**table.get("rename", {}), **given.rename},
    )


def _describe(source: Any, overrides: PlanOverrides, options: ConvertOptions) -> dict[str, Any]:
    """Return the tables of run.yaml about the conversion: everything that is not a default."""
    usual = ConvertOptions()
    table: dict[str, Any] = {
        each.name: getattr(options, each.name)
        for each in dataclasses.fields(options)
        if getattr(options, each.name) != getattr(usual, each.name) and each.name not in ("resume", "plan")
    }
    for name in ("target", "weight", "id", "drop", "rename"):
        if getattr(overrides, name):
            table[name] = getattr(overrides, name)
    columns = dict((overrides.form or {}).get("columns", {}))
    for name, each in overrides.types.items():
        columns[name] = (
            {"type": each.type_name, **each.attributes}
            if isinstance(each, ColumnDeclaration)
            else {"type": each}
        )
    if columns:
        table["plan"] = {**(overrides.form or {}), "columns": columns}
    paths = [_name_path(each) for each in ([source] if isinstance(source, str) else source)]
    return {"source": paths if len(paths) > 1 else paths[0], "convert": table}


def _name_path(path: str) -> str:
    """Return the absolute path of a file; URLs and `-` as they are."""
    name = name_original(path)
    return name if is_store_path(name) or name == STANDARD_INPUT else os.path.abspath(name)  # noqa: PTH100
