"""`penstock demo`: run the example program about flowers, and print its output or its figures as JSON."""

from __future__ import annotations

import io
import json
import sys
import tempfile
import time
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from penstock.cli.command import import_quietly
from penstock.cli.dispatch import run_words
from penstock.cli.next_command import is_installed, suggest_next
from penstock.cli.terminal import format_duration, is_quiet, print_message
from penstock.errors import PathError, PenstockError, importing
from penstock.examples import flowers
from penstock.foundation.keras_backend import importing_keras
from penstock.foundation.terminal import LiveLines, escape
from penstock.settings.command_line import Call
from penstock.settings.commands import Tour
from penstock.storage.store_path import take_local_path


def run(call: Call) -> int:
    """Run the program, print it, and return the exit status."""
    started = time.monotonic()
    tour = call.read(Tour)
    out = take_local_path(tour.out or tempfile.gettempdir(), "--out")
    if tour.out and out.exists() and (not out.is_dir() or any(out.iterdir())):
        advice = "Choose a folder that does not exist yet."
        raise PathError("already exists and is not empty", path=tour.out, advice=advice)
    with importing("penstock demo", "convert"):  # a missing package is reported before anything is written
        import_quietly("penstock.jobs.convert.convert")
    if not tour.data:
        with importing("penstock demo", "report"):
            import_quietly("penstock.report.page")
            import_quietly("penstock.report.charts")
        with LiveLines() as lines, importing_keras("penstock demo"):
            lines.draw(["Loading Keras"])
            import_quietly("penstock.jobs.evaluate.evaluate")
            import_quietly("penstock.jobs.train.train")
    folder = out if tour.out else Path(tempfile.mkdtemp(prefix="penstock-demo-"))
    folder.mkdir(parents=True, exist_ok=True)
    is_silent = call.common.json or is_quiet()
    results = run_program(folder, is_json=is_silent, trains=not tour.data, explores=tour.data or tour.full)
    seconds = time.monotonic() - started
    if call.common.json:
        print(json.dumps({**results, "seconds": round(seconds, 1)}))
        return 0
    if "report" in results:
        print(f"Done in {format_duration(seconds)}. The report: {escape(results['report'])}")
    print(f"Everything is in {escape(str(folder))}. Delete the folder when you no longer need it.")
    used = Path(results["run"]) if "run" in results else folder.absolute() / "flowers"
    # The viewer shows data and predictions of a run.
    can_view = is_installed("starlette", "uvicorn", "jinja2")
    suggest_next(call, "view" if can_view else "evaluate" if "run" in results else "inspect", used)
    return 0


def run_program(
    folder: Path, *, is_json: bool = False, trains: bool = True, explores: bool = False, **sizes: int
) -> dict[str, Any]:
    """Run the program in an empty folder, and return its figures; with `is_json`, print nothing.

    `sizes` are `num_flowers` and `epochs`, if other than usual.
    """
    with ExitStack() as stack:
        stack.enter_context(chdir(folder))
        stream = io.StringIO() if is_json else sys.stdout
        stack.enter_context(redirect_stdout(stream))
        stack.enter_context(redirect_stderr(stream))  # notes and errors belong between the results

        def run_line(line: str) -> dict[str, Any]:
            print(f"$ penstock {line}\n", flush=True)
            printed = io.StringIO()
            found: dict[str, Any] = {}
            with redirect_stdout(printed if is_json else stream):
                try:
                    run_words([*line.split(), *["--json"] * is_json])
                    found = json.loads(printed.getvalue()) if is_json else {}
                except PenstockError as error:
                    print_message(f"error: {error}")
                    found = {"error": str(error)}
            print(flush=True)
            return found

        print(f"Working in {escape(str(Path.cwd()))}\n")
        num_flowers = sizes.get("num_flowers", 3000 if trains else 300)
        results, answers = flowers.convert_flowers(run_line, num_flowers)
        results |= flowers.train_models(run_line, answers, sizes.get("epochs", 8)) if trains else {}
        return results | (flowers.explore_data(run_line) if explores else {})
