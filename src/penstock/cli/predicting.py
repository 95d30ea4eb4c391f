"""What `penstock predict` does with its arguments; loaded only when it runs, for it needs pyarrow.

In: parsed arguments. Out: a file and a summary of it, or a CSV on stdout. All else that is said goes to
stderr, so that the CSV can be piped.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any, Final

from penstock.cli.modelfile import load_model
from penstock.cli.quiet import import_quietly
from penstock.cli.terminal import ProgressBar, format_count, format_duration, format_size, print_message
from penstock.errors import OptionError
from penstock.foundation.keras_backend import importing_keras
from penstock.foundation.terminal import escape
from penstock.jobs.predict.options import PredictOptions, make_predict_options
from penstock.jobs.predict.predict import PredictProgress, run_prediction
from penstock.jobs.predict.predictions import Predictions

_CHOICES: Final = (
    *("split", "batch_size", "on_error", "max_rejects", "delimiter", "encoding", "short_rows"),
)
_MOST_NAMED: Final = 10


def run_predict(args: argparse.Namespace) -> int:
    """Predict, print, and return the exit status."""
    if args.json and args.out is None:
        raise OptionError(
            "--json",
            expected="--out FILE beside it",
            got="none",
            advice="Without a file, the predictions themselves are printed: as CSV.",
        )
    with importing_keras("penstock predict"):
        import_quietly("penstock.training.run")
    options = _read_arguments(args)
    data = args.paths[0] if len(args.paths) == 1 else args.paths
    began = time.monotonic()
    with _Display() as display:
        write = _print_bytes if args.out is None else None
        done = run_prediction(args.folder, data, args.out, options, display.tell, write)
    seconds = time.monotonic() - began
    status = 1 if done.num_skipped and not done.num_rows else 0  # no row is left
    if args.json:
        print(json.dumps(_to_json(done, seconds)))
        return status
    _tell(done)
    if args.out is not None:
        size = format_size(done.out.stat().st_size) if done.out is not None else ""
        print(f"{format_count(done.num_rows, 'row')}, {size}, in {seconds:.1f} s: {escape(args.out)}")
    return status


def _read_arguments(args: argparse.Namespace) -> PredictOptions:
    choices: dict[str, Any] = {
        name: getattr(args, name) for name in _CHOICES if getattr(args, name) is not None
    }
    if args.missing:
        choices["missing"] = ("", *args.missing)
    if args.model is not None:
        choices["model"] = load_model(args.model)
    return make_predict_options(**choices, keep=tuple(args.keep), overwrite=args.overwrite)


def _print_bytes(data: bytes) -> None:
    sys.stdout.write(bytes(data).decode())


class _Display(ProgressBar):
    """A line with rows, speed and the time that is left."""

    def __init__(self) -> None:
        super().__init__("predict")

    def tell(self, progress: PredictProgress) -> None:
        """Take notice of how far it has come."""
        self.show_line(lambda seconds: _write_line(progress, seconds))

    def __enter__(self) -> _Display:
        return self


def _write_line(progress: PredictProgress, seconds: float) -> str:
    rate = progress.num_rows / seconds if seconds else 0.0
    parts = [f"predict {progress.num_rows:,} rows  {rate:,.0f}/s"]
    if progress.total_bytes and progress.num_bytes and seconds:
        left = seconds * (progress.total_bytes - progress.num_bytes) / progress.num_bytes
        parts.append(f"{progress.num_bytes / progress.total_bytes:.0%}  {format_duration(left)} left")
    if progress.num_skipped:
        parts.append(f"{progress.num_skipped:,} left out")
    return "  ".join(parts)


def _tell(done: Predictions) -> None:
    for note in done.notes:
        print_message(f"note: {note}")
    for error in done.rejected[:_MOST_NAMED]:
        print_message(f"row left out: {error}")
    if done.num_skipped:
        total = format_count(done.num_rows + done.num_skipped, "row")
        print_message(f"note: {done.num_skipped:,} of {total} left out")


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
