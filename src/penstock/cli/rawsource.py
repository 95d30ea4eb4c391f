"""Raw data as `penstock train` is told of it; loaded only for raw data, for it needs pyarrow.

In: parsed arguments, and the table `convert` of a config file. Out: `RawData`.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from penstock.cli.converting import ConversionDisplay
from penstock.cli.overrides import read_overrides
from penstock.cli.terminal import print_message
from penstock.dataset import Dataset
from penstock.dataset import open as open_dataset
from penstock.errors import OptionError
from penstock.foundation.wording import find_nearest
from penstock.jobs.train.raw_data import RawData, format_plan, list_more_notes, list_plan_warnings
from penstock.plan.plan import Plan
from penstock.plan.planner import PlanOverrides
from penstock.schema.declaration import Told
from penstock.shards.options import ConvertOptions, make_options

_OPTIONS: Final = (
    *("split", "group", "stratify", "split_by", "time", "seed", "delimiter", "encoding", "nan", "short_rows"),
)
_ROLES: Final = ("target", "weight", "id", "drop", "rename")


def read_raw(args: argparse.Namespace, table: Mapping[str, Any], source: Any) -> RawData:
    """Return the raw data that is meant; what the command line says comes before the file.

    Raises:
        OptionError: Something cannot be told.
        SchemaError: A plan file is none.
    """
    known = [each.name for each in dataclasses.fields(ConvertOptions)]
    for name in table:
        if name not in (*known, *_ROLES):
            nearest = find_nearest(str(name), (*known, *_ROLES))
            advice = f"Did you mean {nearest!r}?" if nearest else ""
            raise OptionError(f"convert.{name}", expected="an option of convert", got=name, advice=advice)
    choices = {name: value for name, value in table.items() if name in known and name != "drop"}
    choices |= {name: getattr(args, name) for name in _OPTIONS if getattr(args, name, None) is not None}
    if args.missing:
        choices["missing"] = ("", *args.missing)
    options = make_options(**choices)
    told = _read_told(args, table)
    return RawData(source, told, options, _describe(source, told, options))


def convert_raw(raw: RawData, out: Path, *, is_silent: bool = False) -> tuple[Dataset, list[str]]:
    """Convert, with a display of the plan and of how far it has come.

    Args:
        raw: What to convert.
        out: The folder to write.
        is_silent: Whether plan and warnings are not printed.

    Returns:
        The data set, and what a person should know about it.
    """
    shown: list[str] = []

    def show_plan(plan: Plan) -> None:
        shown.extend(list_plan_warnings(plan))
        if not is_silent:
            print("\n".join(format_plan(plan)), end="\n\n", flush=True)
            for warning in shown:
                print_message(f"warning: {warning}")

    display = ConversionDisplay()
    with display:
        done = raw.convert(out, show_plan, display.tell)
    more = list_more_notes(done)
    for note in () if is_silent else more:
        print_message(f"note: {note}")
    return open_dataset(done.out), [*shown, *more]


def confirm_raw(raw: RawData, out: Path) -> None:
    """Compare raw data with the data set of a run, with a display of how far that has come.

    Raises:
        OptionError: The data set was made from other data, or in another way.
    """
    display = ConversionDisplay()
    with display:
        raw.confirm(out, display.tell)


def _read_told(args: argparse.Namespace, table: Mapping[str, Any]) -> PlanOverrides:
    told = read_overrides(args)
    return dataclasses.replace(
        told,
        target=told.target or table.get("target"),
        weight=told.weight or table.get("weight"),
        id=told.id or table.get("id"),
        drop=(*told.drop, *table.get("drop", ())),
        rename={**table.get("rename", {}), **told.rename},
    )


def _describe(source: Any, told: PlanOverrides, options: ConvertOptions) -> dict[str, Any]:
    """Return what run.yaml says of the conversion: what is not as it always is."""
    usual = ConvertOptions()
    table: dict[str, Any] = {
        each.name: getattr(options, each.name)
        for each in dataclasses.fields(options)
        if getattr(options, each.name) != getattr(usual, each.name) and each.name not in ("resume", "plan")
    }
    for name in ("target", "weight", "id", "drop", "rename"):
        if getattr(told, name):
            table[name] = getattr(told, name)
    columns = dict((told.form or {}).get("columns", {}))
    for name, each in told.types.items():
        columns[name] = (
            {"type": each.type_name, **each.attributes} if isinstance(each, Told) else {"type": each}
        )
    if columns:
        table["plan"] = {**(told.form or {}), "columns": columns}
    paths = [os.path.abspath(each) for each in ([source] if isinstance(source, str) else source)]  # noqa: PTH100
    return {"source": paths if len(paths) > 1 else paths[0], "convert": table}
