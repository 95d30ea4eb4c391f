"""`penstock report`: write a report about a data set or a run as HTML, or print its figures as JSON."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Final

from penstock.cli.command import import_quietly
from penstock.cli.next_command import list_paths, suggest_next, suggest_program, suggest_python
from penstock.cli.option_values import list_given
from penstock.cli.terminal import ProgressBar, format_count, print_note
from penstock.foundation.keras_backend import importing_keras
from penstock.foundation.terminal import escape
from penstock.foundation.wording import format_size
from penstock.jobs.model_file import load_model
from penstock.report.options import ReportOptions
from penstock.report.report import USUAL_NAME, is_run, run_report
from penstock.storage.output_file import find_size
from penstock.storage.store_path import AnyPath, as_path

_OPENERS: Final = ("open",) if sys.platform == "darwin" else ("xdg-open",)
_OPTIONS: Final = ("split", "records", "samples", "mistakes", "importance_records", "seed")


def run(args: argparse.Namespace) -> int:
    """Write the report, print where it is, and return the exit status."""
    options = ReportOptions(
        **list_given(args, _OPTIONS), importance=not args.no_importance, overwrite=args.overwrite
    )
    # The figures are the output of --json; a file is written as well if it is named.
    out = args.out if args.out is not None or args.json else USUAL_NAME
    source = args.paths[0] if len(args.paths) == 1 else args.paths
    model = None if args.model is None else partial(load_model, args.model)
    if is_run(source):
        with importing_keras("penstock report"):
            import_quietly("penstock.training.run")
    with ProgressBar("report") as bar:

        def show(what: str, done: int, total: int) -> None:
            bar.enter(what)
            bar.show_line(lambda _: f"{what}: {done:,} of {total:,}")

        report = run_report(source, out, options, args.data, model, on_progress=show)
    if args.json:
        print(json.dumps(report, allow_nan=False))
        return 0
    if report["data"]:
        warnings = report["data"]["warnings"]
        print(format_count(len(warnings), "warning") + " about the data" + (":" if warnings else "."))
        for each in warnings:
            print(f"  {escape(each['text'])}")
    for note in report["notes"]:
        print_note(note)
    print(f"{escape(str(out))}, {format_size(find_size(as_path(out)))}: open it in a browser.")
    _suggest(args, as_path(out))
    return 0


def _suggest(args: argparse.Namespace, out: AnyPath) -> None:
    """Suggest to open the page."""
    opener = next((name for name in _OPENERS if shutil.which(name)), None)
    if not isinstance(out, Path):
        suggest_next(args, "view", *list_paths(args))
    elif opener is not None:
        suggest_program(args, opener, out)
    else:
        suggest_python(args, f"import webbrowser; webbrowser.open({out.absolute().as_uri()!r})")
