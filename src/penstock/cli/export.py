"""`penstock export`: write a trained model with its preprocessing as a folder to ship.

In: a run and a folder. Out: the folder, and the largest difference of each output from the run.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path
from typing import Any

from penstock.cli.next_command import name_output, suggest_next, suggest_python
from penstock.cli.terminal import ProgressBar, format_count
from penstock.dataset import open as open_dataset
from penstock.errors import PenstockError
from penstock.foundation.terminal import escape
from penstock.foundation.wording import format_size
from penstock.jobs.export.export import Export, run_export
from penstock.jobs.export.options import make_export_options
from penstock.jobs.model_file import load_model
from penstock.storage.store_path import as_path
from penstock.training.run_files import CONFIG_NAME, find_data, read_run_config


def run(args: argparse.Namespace) -> int:
    """Export, print, and return the exit status."""
    data = args.check_data
    options = make_export_options(
        format=args.format,
        check=not args.no_check,
        check_data=data[0] if data is not None and len(data) == 1 else data,
        overwrite=args.overwrite,
        model=None if args.model is None else partial(load_model, args.model),
    )
    start = time.monotonic()
    with ProgressBar("export") as bar:

        def show(step: str) -> None:
            bar.enter(step)
            bar.show_line(lambda _: f"export: {step}")

        done = run_export(args.folder, args.out, options, show)
    seconds = time.monotonic() - start
    if args.json:
        print(json.dumps(_to_json(done, seconds)))
        return 0
    _print(done, args.out, seconds)
    _suggest(args, done)
    return 0


def _suggest(args: argparse.Namespace, done: Export) -> None:
    """Suggest to use the export: on the data of the run if it is still there, or by a line of Python."""
    out = as_path(args.out)
    words = [] if done.format == "saved_model" else _find_rows(args)
    if done.format == "saved_model":
        served = f"tf.saved_model.load({str(out)!r}).signatures['serving_default']"
        suggest_python(args, f"import tensorflow as tf; print({served})")
    elif words:
        own = [] if args.model is None else ["--model", args.model]
        suggest_next(args, "predict", out, *words, "--out", name_output(args.out, "-predicted.csv"), *own)
    else:
        suggest_python(args, f"import penstock as ps; print(ps.Predictor({str(out)!r}))")


def _find_rows(args: argparse.Namespace) -> list[object]:
    """Return the data of the run, and the split to predict on, as words; nothing if it cannot be opened."""
    if args.check_data:
        return list(args.check_data)
    try:
        folder = as_path(args.folder)
        data = find_data(folder, read_run_config(folder / CONFIG_NAME) if isinstance(folder, Path) else {})
        splits = open_dataset(data).splits
    except (PenstockError, OSError):
        return []
    split = next((name for name in ("test", "validation") if name in splits), next(iter(splits)))
    return [*(data if isinstance(data, list) else [data]), "--split", split]


def _print(done: Export, out: str, seconds: float) -> None:
    check = done.check
    if check is not None:
        where = "in a new process" if check.is_fresh else "in this process, which has your code"
        print(f"check: {format_count(check.num_rows, 'row')} {where}, at most {check.tolerance:g} allowed")
        for name, difference in check.differences.items():
            print(f"  {escape(name)}: largest difference {difference:.2g}")
        for name, difference in check.images.items():
            print(
                f"  {escape(name)}: pixels of another decoder and resize differ by at most {difference:.3g}"
            )
    size = format_size(done.num_bytes)
    print(f"{done.format}, {len(done.files)} files, {size}, in {seconds:.1f} s: {escape(out)}")


def _to_json(done: Export, seconds: float) -> dict[str, Any]:
    check = done.check
    return {
        "out": str(done.folder),
        "format": done.format,
        "files": list(done.files),
        "bytes": done.num_bytes,
        "check": None
        if check is None
        else {
            "rows": check.num_rows,
            "differences": dict(check.differences),
            "tolerance": check.tolerance,
            "images": dict(check.images),
            "new_process": check.is_fresh,
        },
        "details": dict(done.details),
        "seconds": round(seconds, 3),
    }
