"""`penstock report`: write a report about a data set or a run as HTML, or print its figures as JSON."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Final

from penstock.cli.arguments import one_or_all, read_with_model
from penstock.cli.command import import_quietly
from penstock.cli.next_command import list_paths, suggest_next, suggest_program, suggest_python
from penstock.cli.terminal import ProgressBar, format_count, print_note
from penstock.foundation.keras_backend import importing_keras
from penstock.foundation.terminal import escape
from penstock.foundation.wording import format_size
from penstock.report.report import USUAL_NAME, is_run, run_report
from penstock.settings.advice import to_flags
from penstock.settings.command_line import Call
from penstock.settings.commands import ReportFile
from penstock.settings.prediction import ReportCall
from penstock.storage.paths import locate
from penstock.storage.store_path import AnyPath, as_path, is_url

_OPENERS: Final = ("open",) if sys.platform == "darwin" else ("xdg-open",)


def run(call: Call) -> int:
    """Write the report, print where it is, and return the exit status."""
    file = call.read(ReportFile)
    options = read_with_model(call, ReportCall, data=file.data)
    # The figures are the output of --json; a file is written as well if it is named.
    out = None if call.common.json and file.out is None else file.out or USUAL_NAME
    source = one_or_all(call.arguments)
    if is_run(source):
        with importing_keras("penstock report"):
            import_quietly("penstock.training.run_model")
    with ProgressBar("report") as bar:
        report = run_report(source, out, options, bar.show_stage)
    if call.common.json or out is None:
        print(json.dumps(report, allow_nan=False))
        return 0
    if report["data"]:
        warnings = report["data"]["warnings"]
        print(format_count(len(warnings), "warning") + " about the data" + (":" if warnings else "."))
        for each in warnings:
            print(f"  {escape(to_flags(each['text']))}")
    for note in report["notes"]:
        print_note(note)
    print(f"{escape(str(out))}, {format_size(locate(out).find_size())}: open it in a browser.")
    _suggest(call, as_path(out))
    return 0


def _suggest(call: Call, out: AnyPath) -> None:
    """Suggest to open the page."""
    opener = next((name for name in _OPENERS if shutil.which(name)), None)
    if is_url(out):  # which no program here opens
        suggest_next(call, "view", *list_paths(call))
    elif opener is not None:
        suggest_program(call, opener, out)
    else:
        suggest_python(call, f"import webbrowser; webbrowser.open({Path(out).absolute().as_uri()!r})")
