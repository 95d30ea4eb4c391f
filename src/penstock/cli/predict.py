"""`penstock predict`: write predictions for new data to a file, or to stdout as CSV.

Everything else that is printed goes to stderr, so that the CSV can be piped.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, Final

from penstock.cli.command import import_quietly
from penstock.cli.next_command import name_output, repeat_words, suggest_next, suggest_program
from penstock.cli.option_values import list_given
from penstock.cli.terminal import (
    ProgressBar,
    format_count,
    format_duration,
    print_note,
    print_options,
    print_warning,
)
from penstock.errors import OptionError
from penstock.foundation.keras_backend import importing_keras
from penstock.foundation.terminal import escape
from penstock.foundation.wording import format_size
from penstock.jobs.model_file import load_model
from penstock.jobs.predict.options import PredictOptions, make_predict_options
from penstock.jobs.predict.predict import PredictProgress, run_prediction
from penstock.jobs.predict.predictions import Predictions
from penstock.storage.output_file import find_size

_OPTIONS: Final = (
    *("split", "batch_size", "on_error", "max_rejects", "delimiter", "encoding", "missing", "short_rows"),
    *("header", "sheet", "decimal", "thousands", "files_from"),
    *("engine", "address", "workers"),
)
_MAX_NAMED: Final = 10
_TEXTS: Final = (".csv", ".jsonl")


def run(args: argparse.Namespace) -> int:
    """Predict, print, and return the exit status."""
    if args.json and args.out is None:
        raise OptionError(
            "--json",
            expected="--out FILE as well",
            got="none",
            advice="Without a file, stdout is the predictions as CSV.",
        )
    with importing_keras("penstock predict"):
        import_quietly("penstock.training.run")
    options = _read_options(args)
    print_options(vars(options))
    data = args.paths[0] if len(args.paths) == 1 else args.paths
    start = time.monotonic()
    with _PredictionDisplay() as display:
        write = _print_bytes if args.out is None else None
        done = run_prediction(args.folder, data, args.out, options, display.update, write)
    seconds = time.monotonic() - start
    status = 1 if done.num_skipped and not done.num_rows else 0  # all rows were skipped
    if args.json:
        print(json.dumps(_to_json(done, seconds)))
        return status
    _print_notes(done)
    if args.out is not None:
        size = format_size(find_size(done.out)) if done.out is not None else ""
        print(f"{format_count(done.num_rows, 'row')}, {size}, in {seconds:.1f} s: {escape(args.out)}")
    if not status:
        _suggest(args, done)
    return status


def _suggest(args: argparse.Namespace, done: Predictions) -> None:
    """Suggest to look at the file, or to write one."""
    if args.out is None:
        out = name_output(args.paths[0], "-predicted.csv")
        suggest_next(args, "predict", *repeat_words(args, {}, ["--out", out]))
    elif isinstance(done.out, Path) and done.out.suffix in _TEXTS:
        suggest_program(args, "head", "-n", "5", done.out)
    else:
        suggest_next(args, "convert", done.out, "--plan")


def _read_options(args: argparse.Namespace) -> PredictOptions:
    given = list_given(args, _OPTIONS)
    if args.model is not None:
        given["model"] = partial(load_model, args.model)
    return make_predict_options(**given, keep=tuple(args.keep), overwrite=args.overwrite, resume=args.resume)


def _print_bytes(data: bytes | memoryview) -> None:
    sys.stdout.write(bytes(data).decode())


class _PredictionDisplay(ProgressBar):
    """One line with rows, speed and the remaining time."""

    def __init__(self) -> None:
        super().__init__("predict")

    def update(self, progress: PredictProgress) -> None:
        """Show the progress."""
        self.show_line(lambda seconds: _format_progress(progress, seconds))


def _format_progress(progress: PredictProgress, seconds: float) -> str:
    rate = progress.num_rows / seconds if seconds else 0.0
    parts = [f"predict {progress.num_rows:,} rows  {rate:,.0f}/s"]
    if progress.total_bytes and progress.num_bytes and seconds:
        left = seconds * (progress.total_bytes - progress.num_bytes) / progress.num_bytes
        parts.append(f"{progress.num_bytes / progress.total_bytes:.0%}  {format_duration(left)} left")
    if progress.num_skipped:
        parts.append(f"{progress.num_skipped:,} skipped")
    return "  ".join(parts)


def _print_notes(done: Predictions) -> None:
    for note in done.notes:
        print_note(note)
    for error in done.rejected[:_MAX_NAMED]:
        print_warning(f"skipped row: {error}")
    if done.num_skipped:
        total = format_count(done.num_rows + done.num_skipped, "row")
        print_warning(f"{done.num_skipped:,} of {total} skipped")


def _to_json(done: Predictions, seconds: float) -> dict[str, Any]:
    return {
        "rows": done.num_rows,
        "skipped": done.num_skipped,
        "out": str(done.out),
        "columns": list(done.columns),
        "seconds": round(seconds, 3),
        "rejected": [str(error) for error in done.rejected],
        "notes": list(done.notes),
    }
