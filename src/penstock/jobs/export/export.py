"""From a run to a folder to ship: the job behind `penstock.export_model` and `penstock export`.

In: a trained run, and options. Out: a complete folder that agrees with the run; after an error, none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.errors import OptionError, PenstockError
from penstock.export.formats import FORMATS, Format
from penstock.export.manifest import EXPORT, ExportManifest, write_manifest
from penstock.foundation.wording import count, show
from penstock.jobs.export.check import CheckResult, check_export
from penstock.jobs.predict.raw_layout import complete_recorded, find_recipe
from penstock.settings.keywords import takes
from penstock.settings.prediction import ExportOptions
from penstock.storage.atomic import write_failure
from penstock.storage.paths import PathLike, locate
from penstock.storage.store_path import AnyPath, as_path
from penstock.training.run import Run, open_run


@dataclass(frozen=True)
class Export:
    """A model that was exported.

    Attributes:
        folder: Folder of the export.
        format: Format of the export.
        files: Names of its files.
        num_bytes: Size of its files in bytes.
        check: Result of the check; None if there was none.
        details: What the format has recorded in `export.json`, such as inputs and outputs.
    """

    folder: AnyPath
    format: str
    files: tuple[str, ...]
    num_bytes: int
    check: CheckResult | None
    details: Mapping[str, object]

    def __repr__(self) -> str:
        checked = "not checked"
        if self.check is not None:
            difference = max(self.check.differences.values(), default=0.0)
            rows = count(self.check.num_rows, "row")
            checked = f"largest difference on {rows}: {difference:.2g}"
        return f"Export({str(self.folder)!r}, {self.format!r}, {count(len(self.files), 'file')}, {checked})"


@takes(ExportOptions)
def export_model(run: Run | PathLike, out: PathLike, *, options: ExportOptions) -> Export:
    """Export the model of a run with its preprocessing, and check that it predicts as the run does.

    Formats:

    - "bundle": a folder for `penstock.Predictor`, with weights, pipeline and schema, and with the code of the
      model for reading. It contains nothing that is executed or unpickled.
    - "onnx": an ONNX model behind the pipeline, for `penstock.Predictor` on ONNX Runtime, without Keras.
    - "saved_model": a TensorFlow SavedModel that takes raw values by name and needs no Penstock.

    Args:
        run: A run, or the path of its folder.
        out: Folder to write, which may be in an object store. It appears when it is complete and has been
            checked.
        options: Attributes of `penstock.options.ExportOptions`.

    Raises:
        ExportError: The export differs from the run; `field` names the first field that does.
        OptionError: The run cannot be exported in this format.
        PathError: The folder already exists, and `overwrite` is False.
        WriteError: The disk is full, or fails.

    Example:
        ```python
        ps.export_model("runs/pets", "served/pets", format="bundle")
        ps.Predictor("served/pets").predict({"name": "Ada", "age": 4.5})
        ```
    """
    return run_export(run, out, options)


def run_export(
    run: Run | PathLike, out: PathLike, options: ExportOptions, on_step: Callable[[str], None] | None = None
) -> Export:
    """Export a run; the arguments are as for `export_model`.

    `on_step`: called with a text for each step that takes seconds.
    """
    folder = as_path(out)
    locate(folder).check_folder(EXPORT, overwrite=options.overwrite)  # before anything is loaded
    trained = _open_run(run, options)
    # The data, in whose manifest a run may have its schema and its plan, is not exported.
    trained = replace(trained, recorded=complete_recorded(trained.recorded, trained.data))
    chosen = FORMATS[options.format]
    result, report = None, on_step or (lambda _: None)
    with locate(folder).replacing_folder(EXPORT, overwrite=options.overwrite) as hidden:
        report(f"write {chosen.name}")
        details, made = _write(chosen, trained, folder, hidden)
        num_bytes = sum(path.stat().st_size for path in hidden.rglob("*") if path.is_file())
        if options.check:
            report("check it against the run, in a new process")
            recipe = find_recipe(trained.pipeline, trained.recorded, None)
            result = check_export(trained, recipe, chosen, hidden, options)
    return Export(folder, chosen.name, tuple(made.files), num_bytes, result, details)


def _write(
    chosen: Format, run: Run, folder: AnyPath, hidden: Path
) -> tuple[Mapping[str, object], ExportManifest]:
    """Write the files of an export, and return its details and its manifest."""
    try:
        details = chosen.load().write(run, hidden)
        return details, write_manifest(hidden, chosen.name, details)
    except PenstockError:
        raise
    except OSError as error:  # of a library that writes files itself
        failed = Path(folder) if locate(folder).has_folders else hidden  # on the disk that is full
        raise write_failure(failed, error) from error


def _open_run(run: Run | PathLike, options: ExportOptions) -> Run:
    if isinstance(run, str | os.PathLike):
        return open_run(run, options.model, options.functions)
    if not isinstance(run, Run):
        raise OptionError("run", expected="a run, or the folder of one", got=show(run))
    return run
