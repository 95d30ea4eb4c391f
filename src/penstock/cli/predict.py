"""`penstock predict`: write predictions for new data to a file, or to stdout as CSV.

Everything else that is printed goes to stderr, so that the CSV can be piped.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Final

from penstock.cli.arguments import one_or_all, read_with_model
from penstock.cli.command import import_quietly
from penstock.cli.next_command import name_output, repeat_words, suggest_next, suggest_program
from penstock.cli.terminal import (
    ProgressBar,
    format_count,
    format_duration,
    print_notes,
    print_options,
    print_warning,
)
from penstock.errors import OptionError
from penstock.foundation.keras_backend import importing_keras
from penstock.foundation.terminal import escape
from penstock.foundation.wording import format_size
from penstock.jobs.predict.predict import PredictProgress, run_prediction
from penstock.jobs.predict.predictions import Predictions
from penstock.settings.advice import to_flags
from penstock.settings.command_line import Call
from penstock.settings.commands import PredictionFile
from penstock.settings.prediction import PredictOptions
from penstock.storage.paths import locate
from penstock.storage.store_path import is_url

_MAX_NAMED: Final = 10
_TEXTS: Final = (".csv", ".jsonl")


def run(call: Call) -> int:
    """Predict, print, and return the exit status."""
    options, out = read_with_model(call, PredictOptions), call.read(PredictionFile).out
    if call.common.json and out is None:
        raise OptionError(
            "--json",
            expected="--out FILE as well",
            got="none",
            advice="Without a file, stdout is the predictions as CSV.",
        )
    with importing_keras("penstock predict"):
        import_quietly("penstock.training.run_model")
    print_options(options.to_json())
    folder, *paths = call.arguments
    start = time.monotonic()
    with ProgressBar("predict") as bar:

        def update(progress: PredictProgress) -> None:
            bar.show_line(lambda seconds: _format_progress(progress, seconds))

        write = _print_bytes if out is None else None
        done = run_prediction(folder, one_or_all(paths), out, options, update, write)
    seconds = time.monotonic() - start
    status = 1 if done.num_skipped and not done.num_rows else 0  # all rows were skipped
    if call.common.json:
        print(json.dumps(_to_json(done, seconds)))
        return status
    _print_notes(done, is_collected=options.on_error == "collect")
    if out is not None:
        size = format_size(locate(done.out).find_size()) if done.out is not None else ""
        print(f"{format_count(done.num_rows, 'row')}, {size}, in {seconds:.1f} s: {escape(out)}")
    if not status:
        _suggest(call, done)
    return status


def _suggest(call: Call, done: Predictions) -> None:
    """Suggest to look at the file, or to write one."""
    if done.out is None:
        out = name_output(call.arguments[1], "-predicted.csv")
        suggest_next(call, "predict", *repeat_words(call, more=["--out", out]))
    elif not is_url(done.out) and done.out.suffix in _TEXTS:
        suggest_program(call, "head", "-n", "5", done.out)
    else:
        suggest_next(call, "convert", done.out, "--plan")


def _print_bytes(data: bytes | memoryview) -> None:
    sys.stdout.write(bytes(data).decode())


def _format_progress(progress: PredictProgress, seconds: float) -> str:
    """Return one line with rows, speed and the remaining time."""
    rate = progress.num_rows / seconds if seconds else 0.0
    parts = [f"predict {progress.num_rows:,} rows  {rate:,.0f}/s"]
    if progress.total_bytes and progress.num_bytes and seconds:
        left = seconds * (progress.total_bytes - progress.num_bytes) / progress.num_bytes
        parts.append(f"{progress.num_bytes / progress.total_bytes:.0%}  {format_duration(left)} left")
    if progress.num_skipped:
        parts.append(f"{progress.num_skipped:,} skipped")
    return "  ".join(parts)


def _print_notes(done: Predictions, *, is_collected: bool) -> None:
    print_notes(done.notes, done.cautions)
    for error in done.rejected[:_MAX_NAMED] if is_collected else ():  # others are in the log
        print_warning(f"skipped row: {error}")
    if done.num_skipped:
        total = format_count(done.num_rows + done.num_skipped, "row")
        print_warning(f"{done.num_skipped:,} of {total} skipped")


def _to_json(done: Predictions, seconds: float) -> dict[str, object]:
    return {
        "rows": done.num_rows,
        "skipped": done.num_skipped,
        "out": str(done.out),
        "columns": list(done.columns),
        "seconds": round(seconds, 3),
        "rejected": [to_flags(str(error)) for error in done.rejected],
        "notes": [*map(to_flags, done.notes)],
    }
