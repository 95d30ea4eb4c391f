"""Reports: the job behind `penstock.write_report` and `penstock report`.

In: a data set or a run. Out: its figures as one object of dicts, lists and scalars, and a page drawn from it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict, Unpack

from penstock.dataset import Dataset
from penstock.dataset import open as open_dataset
from penstock.errors import NoSuchPathError, OptionError, StateError, importing
from penstock.foundation.keras_backend import importing_keras
from penstock.foundation.wording import check_keywords, show
from penstock.jobs.stored_data import open_as_trained
from penstock.report.data_report import OnProgress, describe_data
from penstock.report.options import ReportOptions
from penstock.report.page import draw_page
from penstock.score.importance import find_inputs
from penstock.shards.lock import OWNER_NAME
from penstock.storage.output_file import find_object, open_output, refuse_output
from penstock.storage.paths import PathLike
from penstock.storage.store_path import AnyPath, as_path, is_store_path
from penstock.transform.map import MapFunction

if TYPE_CHECKING:
    from penstock.training.run import Run  # imports Keras

USUAL_NAME: Final = "report.html"
_RUN_NAME: Final = "run.yaml"  # as `run_files.CONFIG_NAME`, whose module needs YAML

Source: TypeAlias = "Dataset | Run | PathLike | Sequence[PathLike]"
"""A data set, a run, the path of one, or paths of TFRecord files."""


class ReportChoices(TypedDict, total=False):
    """Keyword arguments of `penstock.write_report`: attributes of `ReportOptions`."""

    split: str | None
    records: int
    samples: int
    mistakes: int
    importance: bool
    importance_records: int
    seed: int
    overwrite: bool


def write_report(
    source: Source,
    out: PathLike | None = USUAL_NAME,
    *,
    data: Dataset | PathLike | None = None,
    model: Any = None,
    functions: Mapping[str, MapFunction] | None = None,
    **options: Unpack[ReportChoices],
) -> dict[str, Any]:
    """Write a report about a data set or a run as one HTML file.

    The page has no scripts and loads nothing from elsewhere. Of the data it shows distributions, missing
    values, balance and drift between splits, sample records, duplicates and warnings; of a run also scores,
    curves, the importance of inputs, the worst slices and mistakes, where the time went, and the model as a
    diagram. Figures about the data come from a sample of the records, whose size the page states.

    Args:
        source: A data set or a run, the path of one, or paths of TFRecord files.
        out: Path of the HTML file; None writes no file.
        data: Data set to evaluate a run on, or its path. Defaults to the data set of the run.
        model: The `keras.Model`, or a function that returns it, for a run with your own model.
        functions: Functions of the pipeline's maps by name, because no code is stored.
        options: Attributes of `penstock.options.ReportOptions`.

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
    check_keywords(options, [each.name for each in fields(ReportOptions)], "write_report")
    return run_report(source, out, ReportOptions(**options), data, model, functions)


def run_report(
    source: Source,
    out: PathLike | None,
    options: ReportOptions,
    data: Dataset | PathLike | None = None,
    model: Any = None,
    functions: Mapping[str, MapFunction] | None = None,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Make a report, and report progress; the arguments are those of `write_report`, with options as object.

    Raises:
        PenstockError: See `write_report`.
    """
    path = None if out is None else as_path(out)
    if path is not None:
        refuse_output(path, overwrite=options.overwrite)
    if hasattr(source, "predictor"):
        report = _report_run(source, data, options, on_progress)
    elif is_run(source):
        report = _report_folder(as_path(source), data, options, (model, functions), on_progress)  # type: ignore[arg-type]
    elif data is not None or model is not None:
        given = "data" if data is not None else "model"
        raise OptionError(given, field=given, expected="a run to report on", got=show(source))
    else:
        _refuse_unfinished(source)
        report = _report_data(source, options, on_progress)
    if path is not None:
        page = draw_page(report).encode()
        with open_output(path, overwrite=options.overwrite) as file:
            file.write(page)
    return report


def is_run(source: object) -> bool:
    """Whether a path is the folder of a run, an ensemble or a cross-validation."""
    if not isinstance(source, str | os.PathLike):
        return False
    path = as_path(source)
    return (path / _RUN_NAME).is_file() if isinstance(path, Path) else find_object(path / _RUN_NAME)


def _refuse_unfinished(source: object) -> None:
    """Raise an error for the folder of a run whose training has begun, and which has no settings yet."""
    if (
        isinstance(source, str | os.PathLike)
        and not is_store_path(source)
        and Path(source, OWNER_NAME).is_file()
    ):
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


def _report_data(source: Any, options: ReportOptions, on_progress: OnProgress | None) -> dict[str, Any]:
    if options.split is not None:
        expected = "none for a data set, whose report has all splits"
        raise OptionError("split", field="split", expected=expected, got=show(options.split))
    # Bad records are counted and named in the report, which is about the data as it is.
    dataset = (
        source if isinstance(source, Dataset) else open_dataset(_check_paths(source), on_error="collect")
    )
    data = describe_data(dataset, options, on_progress)
    names = [Path(path).resolve().name for path in data["paths"]]
    title = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    return _make("data", title or "empty data set", data=data)


def _report_folder(
    folder: AnyPath,
    data: Dataset | PathLike | None,
    options: ReportOptions,
    code: tuple[Any, Mapping[str, MapFunction] | None],
    on_progress: OnProgress | None,
) -> dict[str, Any]:
    with importing("write_report", "train"):
        from penstock.report.run_report import describe_folds, read_folds  # noqa: PLC0415 - YAML
        from penstock.training.run_files import copy_run, find_data  # noqa: PLC0415 - YAML

    files = folder if isinstance(folder, Path) else copy_run(folder)
    settings = read_folds(files)
    if settings is None:
        with importing_keras("write_report"):
            from penstock.training.run import open_run  # noqa: PLC0415 - imports Keras

        return _report_run(open_run(folder, *code), data, options, on_progress)
    stored = find_data(folder, settings)
    if isinstance(stored, Path) and not stored.exists():
        stored = folder / "folds"  # a copy of its records, by fold
    found, notes = _open_data(stored if data is None else data, {})
    described = None if found is None else describe_data(found, options, on_progress)
    folds = {**describe_folds(files, settings), "folder": str(folder)}
    return _make("folds", _name_folder(folder), folds=folds, data=described, notes=notes)


def _report_run(
    run: Any, data: Dataset | PathLike | None, options: ReportOptions, on_progress: OnProgress | None
) -> dict[str, Any]:
    from penstock.report.model_diagram import describe_model  # noqa: PLC0415 - of runs alone
    from penstock.report.run_report import (  # noqa: PLC0415 - as Keras
        choose_slices,
        choose_split,
        describe_evaluation,
        describe_training,
    )

    dataset, notes = _open_data(run.data if data is None else data, run.pipeline.schema)
    described = evaluation = None
    if dataset is not None:
        described = describe_data(dataset, options, on_progress)
        split = choose_split(dataset, options.split)
        if split is None:
            notes.append("The data set has no records to evaluate the run on.")
        else:
            slices = choose_slices(split.schema, find_inputs(run.pipeline), described)
            evaluation = describe_evaluation(run, split, slices, options, on_progress)
    model = getattr(run, "model", None)
    return _make(
        "run",
        _name_folder(getattr(run, "folder", Path("run"))),
        notes=notes,
        data=described,
        evaluation=evaluation,
        run=describe_training(run),
        model=None if model is None else describe_model(model),
    )


def _name_folder(folder: AnyPath) -> str:
    return folder.resolve().name if isinstance(folder, Path) else folder.name


def _open_data(data: Any, schema: Mapping[str, Any]) -> tuple[Dataset | None, list[str]]:
    """Open the data of a run; where it no longer exists, return a note."""
    if isinstance(data, Dataset):
        return data, []
    try:
        return open_as_trained(data, schema, "collect"), []
    except NoSuchPathError as error:
        note = (
            f"The data set {error.path} no longer exists, so that there are no scores and no figures about "
            "the data. Pass its new path: penstock report RUN --data DATASET."
        )
        return None, [note]


def _check_paths(source: object) -> Any:
    several = source if isinstance(source, list | tuple) else [source]
    if several and all(isinstance(each, str | os.PathLike) for each in several):
        return source
    expected = "a data set or a run, or its path"
    raise OptionError("source", field="source", expected=expected, got=show(source))
