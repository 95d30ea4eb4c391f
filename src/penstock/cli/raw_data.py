"""Raw data for `penstock train`; a separate module, because only raw data needs pyarrow.

In: a `Call`, and the table `convert` of a file with settings. Out: `RawData`, and its data set.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from penstock.cli.arguments import read_declaration
from penstock.cli.convert import ConversionDisplay
from penstock.cli.standard_input import name_original
from penstock.cli.terminal import is_quiet, output_width, print_lines, print_notes, print_warning
from penstock.dataset import Dataset
from penstock.dataset import open as open_dataset
from penstock.jobs.train.raw_data import RawData, format_plan, list_more_notes, list_paths, list_plan_warnings
from penstock.plan.plan import Plan
from penstock.settings.command_line import Call
from penstock.settings.conversion import ConvertTable, RawFiles
from penstock.settings.groups import Roles
from penstock.source.recognition import STANDARD_INPUT


def read_raw(call: Call, known: ConvertTable | None, source: Any) -> RawData:
    """Return the raw data and how to convert it; flags override the table of a file."""
    known = known or ConvertTable()
    given = call.read(RawFiles).list_given() | call.read(Roles).list_given()
    if "drop" in given:
        given["drop"] += known.drop
    if "rename" in given:
        given["rename"] = {**known.rename, **given["rename"]}
    options = known.replace(**given)
    paths = [source] if isinstance(source, str) else source
    named = (STANDARD_INPUT,) if STANDARD_INPUT in map(name_original, paths) else list_paths(paths)
    return RawData(source, options, read_declaration(call).types, named)


def convert_raw(raw: RawData, out: Path, *, is_silent: bool = False) -> tuple[Dataset, list[str]]:
    """Convert, show the plan and the progress, and return the data set with its warnings and notes."""
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
    print_notes(() if is_silent else more, done.cautions)
    return open_dataset(done.out), [*shown, *more]


def confirm_raw(raw: RawData, out: Path) -> None:
    """Compare raw data with the data set of a run, and show the progress."""
    display = ConversionDisplay()
    with display:
        raw.confirm(out, display.update)
