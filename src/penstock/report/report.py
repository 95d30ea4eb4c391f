"""Reports: the job behind `penstock.write_report` and `penstock report`.

In: a data set or a run. Out: its figures as one object of dicts, lists and scalars, and a page drawn from it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from penstock.dataset import Dataset
from penstock.dataset import open as open_dataset
from penstock.errors import NoSuchPathError, OptionError, StateError, importing
from penstock.foundation.keras_backend import importing_keras
from penstock.foundation.wording import show
from penstock.jobs.given_dataset import open_as_trained
from penstock.report.data_report import OnProgress, describe_data
from penstock.report.page import draw_page
from penstock.score.importance import find_inputs
from penstock.settings.keywords import takes
from penstock.settings.prediction import ReportCall
from penstock.shards.staging.lock import OWNER_NAME
from penstock.storage.paths import PathLike, is_missing, locate
from penstock.storage.store_path import AnyPath, as_path, name_folder

if TYPE_CHECKING:
    from penstock.training.run import Run  # imports Keras

USUAL_NAME: Final = "report.html"
_RUN_NAME: Final = "run.yaml"  # as `run_files.CONFIG_NAME`, whose module needs YAML

Source: TypeAlias = "Dataset | Run | PathLike | Sequence[PathLike]"
"""A data set, a run, the path of one, or paths of TFRecord files."""


@takes(ReportCall)
def write_report(source: Source, out: PathLike | None = USUAL_NAME, *, options: ReportCall) -> dict[str, Any]:
    """Write a report about a data set or a run as one HTML file.

    The page has no scripts and loads nothing from elsewhere. Of the data it shows distributions, missing
    values, balance and drift between splits, sample records, duplicates and warnings; of a run also scores,
    curves, the importance of inputs, the worst slices and mistakes, where the time went, and the model as a
    diagram. Figures about the data come from a sample of the records, whose size the page states.

    Args:
        source: A data set or a run, the path of one, or paths of TFRecord files.
        out: Path of the HTML file; None writes no file.
        options: Attributes of `penstock.options.ReportOptions`. For a run also `data`, a data set to evaluate
            it on, or its path; `allow_missing_columns`, as for `evaluate`; `model`, the `keras.Model` or a
            function that returns it, if it is your own; and `functions` of the pipeline's maps by name,
            because no code is stored.

    Returns:
        All figures of the report, as dicts, lists and scalars that JSON can hold.

    Raises:
        PathError: The file exists, and `overwrite` is not set; or it is a folder.
        OptionError: An option is not valid, or the model of a run is needed and not given.
        PenstockError: The data or the run cannot be opened.

    Example:
        ```python
        found = ps.write_report("runs/pets", "pets.html")
        [warning["text"] for warning in found["data"]["warnings"]], found["evaluation"]["targets"]
        ```
    """
    return run_report(source, out, options)


def run_report(
    source: Source, out: PathLike | None, options: ReportCall, on_progress: OnProgress | None = None
) -> dict[str, Any]:
    """Make a report, and report progress; the arguments are as for `write_report`."""
    path = None if out is None else as_path(out)
    if path is not None:
        locate(path).refuse_output(overwrite=options.overwrite)
    if hasattr(source, "predictor"):
        report = _report_run(cast("Run", source), options, on_progress)
    elif is_run(source):
        report = _report_folder(as_path(source), options, on_progress)  # type: ignore[arg-type]
    elif options.data is not None or options.model is not None:
        given = "data" if options.data is not None else "model"
        raise options.refuse(given, "a run to report on", show(source))
    else:
        _refuse_unfinished(source)
        report = _report_data(source, options, on_progress)
    if path is not None:
        page = draw_page(report).encode()
        with locate(path).creating(overwrite=options.overwrite) as file:
            file.write(page)
    return report


def is_run(source: object) -> bool:
    """Whether a path is the folder of a run, an ensemble or a cross-validation."""
    if not isinstance(source, str | os.PathLike):
        return False
    return (locate(source) / _RUN_NAME).exists()


def _refuse_unfinished(source: object) -> None:
    """Raise an error for the folder of a run whose training has begun, and which has no settings yet."""
    # In a store, nothing is asked for it: no file has the name of a URL.
    if isinstance(source, str | os.PathLike) and Path(source, OWNER_NAME).is_file():
        raise StateError(
            "run",
            path=source,
            expected="a finished one",
            got="one whose training has just begun",
            advice="Wait until it is finished.",
        )


def _make(kind: str, title: str, **parts: Any) -> dict[str, Any]:
    usual = dict.fromkeys(("data", "evaluation", "run", "model", "folds"))
    return {"version": version("penstock"), "kind": kind, "title": title, "notes": [], **usual, **parts}


def _report_data(source: Any, options: ReportCall, on_progress: OnProgress | None) -> dict[str, Any]:
    if options.split is not None:
        raise options.refuse("split", "none for a data set, whose report has all splits")
    # Bad records are counted and named in the report, which is about the data as it is.
    dataset = (
        source if isinstance(source, Dataset) else open_dataset(_check_paths(source), on_error="collect")
    )
    data = describe_data(dataset, options, on_progress)
    names = [Path(path).resolve().name for path in data["paths"]]
    title = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    return _make("data", title or "empty data set", data=data)


def _report_folder(folder: AnyPath, options: ReportCall, on_progress: OnProgress | None) -> dict[str, Any]:
    with importing("write_report", "train"):
        from penstock.report.run_report import describe_folds, read_folds  # noqa: PLC0415 - YAML
        from penstock.training.run_files import copy_run, find_data  # noqa: PLC0415 - YAML

    files = copy_run(folder)
    config = read_folds(files)
    if config is None:
        with importing_keras("write_report"):
            import penstock.training.run_model  # noqa: F401, PLC0415 - imports Keras
            from penstock.training.run import open_run  # noqa: PLC0415 - imports YAML

        return _report_run(open_run(folder, options.model, options.functions), options, on_progress)
    stored = find_data(folder, config)
    if not isinstance(stored, list) and is_missing(stored):
        stored = folder / "folds"  # a copy of its records, by fold
    found, notes = _open_data(stored if options.data is None else options.data, {})
    described = None if found is None else describe_data(found, options, on_progress)
    folds = {**describe_folds(files, config), "folder": str(folder)}
    return _make("folds", name_folder(folder), folds=folds, data=described, notes=notes)


def _report_run(run: Run, options: ReportCall, on_progress: OnProgress | None) -> dict[str, Any]:
    from penstock.report.model_diagram import describe_model  # noqa: PLC0415 - of runs alone
    from penstock.report.run_report import (  # noqa: PLC0415 - as Keras
        choose_slices,
        choose_split,
        describe_evaluation,
        describe_training,
    )

    dataset, notes = _open_data(run.data if options.data is None else options.data, run.pipeline.schema)
    described = evaluation = None
    if dataset is not None:
        described = describe_data(dataset, options, on_progress)
        split = choose_split(dataset, options.split)
        if split is None:
            notes.append("The data set has no records to evaluate the run on.")
        else:
            slices = choose_slices(split.schema, find_inputs(run.pipeline), described)
            evaluation = describe_evaluation(run, split, slices, options, on_progress)
    return _make(
        "run",
        name_folder(run.folder),
        notes=notes,
        data=described,
        evaluation=evaluation,
        run=describe_training(run),
        model=None if run.model is None else describe_model(run.model, run.left_out),
    )


def _open_data(data: Any, schema: Mapping[str, Any]) -> tuple[Dataset | None, list[str]]:
    """Open the data of a run; where it no longer exists, return a note."""
    if isinstance(data, Dataset):
        return data, []
    try:
        return open_as_trained(data, schema, "collect"), []
    except NoSuchPathError as error:
        note = (
            f"The data set {error.path} no longer exists, so that there are no scores and no figures about "
            "the data. Pass its new path: `data=DATASET`."
        )
        return None, [note]


def _check_paths(source: object) -> Any:
    several = source if isinstance(source, list | tuple) else [source]
    if several and all(isinstance(each, str | os.PathLike) for each in several):
        return source
    expected = "a data set or a run, or its path"
    raise OptionError("source", field="source", expected=expected, got=show(source))
