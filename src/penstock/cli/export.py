"""`penstock export`: write a trained model with its preprocessing as a folder to ship.

In: a run and a folder. Out: the folder, and the largest difference of each output from the run.
"""

from __future__ import annotations

import json
import time

from penstock.cli.arguments import one_or_all, read_with_model, repeat_model
from penstock.cli.next_command import name_output, suggest_next, suggest_python
from penstock.cli.terminal import ProgressBar, format_count
from penstock.dataset import open as open_dataset
from penstock.errors import PenstockError
from penstock.foundation.terminal import escape
from penstock.foundation.wording import format_size
from penstock.jobs.export.export import Export, run_export
from penstock.settings.command_line import Call
from penstock.settings.commands import CheckData
from penstock.settings.prediction import ExportOptions
from penstock.storage.store_path import as_path
from penstock.training.run_files import CONFIG_NAME, copy_run, find_data, read_config


def run(call: Call) -> int:
    """Export, print, and return the exit status."""
    folder, out = call.arguments
    data = list(call.read(CheckData).check_data)
    options = read_with_model(call, ExportOptions, check_data=one_or_all(data) if data else None)
    start = time.monotonic()
    with ProgressBar("export") as bar:

        def show(step: str) -> None:
            bar.enter(step)
            bar.show_line(lambda _: f"export: {step}")

        done = run_export(folder, out, options, show)
    seconds = time.monotonic() - start
    if call.common.json:
        print(json.dumps(_to_json(done, seconds)))
        return 0
    _print(done, out, seconds)
    _suggest(call, done)
    return 0


def _suggest(call: Call, done: Export) -> None:
    """Suggest to use the export: on the data of the run if it is still there, or by a line of Python."""
    out = as_path(call.arguments[1])
    words = [] if done.format == "saved_model" else _find_rows(call)
    if done.format == "saved_model":
        served = f"tf.saved_model.load({str(out)!r}).signatures['serving_default']"
        suggest_python(call, f"import tensorflow as tf; print({served})")
    elif words:
        predicted = name_output(out, "-predicted.csv")
        suggest_next(call, "predict", out, *words, "--out", predicted, *repeat_model(call))
    else:
        suggest_python(call, f"import penstock as ps; print(ps.Predictor({str(out)!r}))")


def _find_rows(call: Call) -> list[object]:
    """Return the data of the run, and the split to predict on, as words; nothing if it cannot be opened."""
    given = call.read(CheckData).check_data
    if given:
        return list(given)
    try:
        folder = as_path(call.arguments[0])
        data = find_data(folder, read_config(copy_run(folder) / CONFIG_NAME))
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
        if check.num_files:
            files = format_count(check.num_files, "JPEG or PNG file")
            print(f"  {files} of all kinds, made for the check: pixels as in the run")
    size = format_size(done.num_bytes)
    print(f"{done.format}, {len(done.files)} files, {size}, in {seconds:.1f} s: {escape(out)}")


def _to_json(done: Export, seconds: float) -> dict[str, object]:
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
            "made_files": check.num_files,
            "new_process": check.is_fresh,
        },
        "details": dict(done.details),
        "seconds": round(seconds, 3),
    }
