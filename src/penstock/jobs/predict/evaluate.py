"""Evaluation of a run on labelled data: the job behind `penstock.evaluate` and `penstock evaluate`.

In: a run, and stored or raw labelled data. Out: an `Evaluation`. Inputs are transformed by the pipeline of
the run, with its own statistics and vocabularies.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, Unpack, cast

from penstock.dataset import Dataset, Split
from penstock.dataset import open as open_dataset
from penstock.errors import (
    NoSuchPathError,
    OptionError,
    PenstockError,
    UnknownNameError,
    importing,
)
from penstock.foundation.keras_backend import importing_keras
from penstock.foundation.option_checks import EngineName, OnError
from penstock.foundation.wording import check_keywords, show, unknown_name
from penstock.jobs.predict.options import WITHOUT_LABELS, PredictOptions
from penstock.jobs.predict.raw_layout import find_recipe
from penstock.jobs.stored_data import is_stored, open_as_trained
from penstock.model.task import Task
from penstock.schema.field import Field
from penstock.schema.number_format import DecimalSeparator, ThousandsSeparator
from penstock.score.evaluation import Evaluation
from penstock.score.evaluation_batches import Predict
from penstock.score.options import EvaluateOptions
from penstock.score.split_evaluation import evaluate_split
from penstock.score.split_predictions import OnProgress
from penstock.shards.manifest import MANIFEST_NAME
from penstock.source.options import HeaderLine
from penstock.storage.paths import PathLike, find_real_path
from penstock.storage.store_path import AnyPath, StorePath
from penstock.training.run_files import HELD_OUT, read_train_fingerprint
from penstock.transform.map import MapFunction
from penstock.transform.pipeline import Pipeline

if TYPE_CHECKING:
    from penstock.training.run import Run  # imports Keras

USUAL_SPLIT: Final = "test"
_TASK_BATCHES: Final = 4  # of a task on Ray: a sample for the importance of inputs has few
READING: Final = (
    *("on_error", "max_rejects", "delimiter", "encoding", "missing", "short_rows", "files_from"),
    *("header", "sheet", "decimal", "thousands"),
)
"""Options of `PredictOptions` that an evaluation on raw data also takes."""

_OTHER_SPLIT: Final = "Name another split: --split NAME, in Python split=NAME."
_OTHER_DATA: Final = (
    "Evaluate on other labelled data, raw or stored: penstock evaluate RUN labelled.csv, in Python "
    "ps.evaluate(run, data)."
)


_TOO_GOOD: Final = "scores on new data may be lower"


class EvaluateChoices(TypedDict, total=False):
    """Keyword arguments of `penstock.evaluate`: attributes of `EvaluateOptions`, and options of reading."""

    batch_size: int | None
    slices: str | tuple[str, ...] | list[str]
    bootstrap: int
    importance: bool
    importance_records: int
    mistakes: int
    seed: int
    engine: EngineName
    address: str | None
    workers: int | None
    on_error: OnError
    max_rejects: int
    delimiter: str | None
    encoding: str
    missing: str | tuple[str, ...] | None
    decimal: DecimalSeparator | None
    thousands: ThousandsSeparator | None
    short_rows: Literal["raise", "fill"]
    header: HeaderLine | None
    sheet: str | None
    files_from: str | tuple[str, ...]


def evaluate(
    run: Run | PathLike,
    data: object = None,
    *,
    split: str | None = None,
    model: Any = None,
    functions: Mapping[str, MapFunction] | None = None,
    **options: Unpack[EvaluateChoices],
) -> Evaluation:
    """Evaluate a run on a split: scores with intervals, importance of the inputs, the worst mistakes.

    Every record counts the same, even if the data has weights.

    Args:
        run: A run, or the path of its folder.
        data: A split; a data set, its path, or paths of TFRecords; or raw labelled data, as for `convert`.
            Raw rows are encoded like the data of the run, and rows without a label are left out. By default,
            the data set of the run.
        split: Name of the split; by default "test", or the only split of data that is not the run's own.
        model: The `keras.Model`, or a function that returns it, for a run with your own model; an ensemble
            needs a function.
        functions: Functions of the pipeline's maps by name, because no code is stored. An open `Run` has them
            already.
        options: Attributes of `penstock.options.EvaluateOptions`; for raw data also `on_error`,
            `max_rejects`, `delimiter`, `encoding`, `missing`, `decimal`, `thousands`, `short_rows`, `header`,
            `sheet` and `files_from` of `predict`.

    Raises:
        UnknownNameError: The split does not exist, or a field that the model needs does not exist.
        SchemaError: The type of a field has changed since the run was trained.
        OptionError: An option is not valid.
        SourceError: Raw data cannot be read, or no row has a label.
        FieldError: A row is not valid, or its target is not a class of the run.

    Example:
        ```python
        found = ps.evaluate("runs/pets", slices=["age"])
        print(found)
        found.targets["adopted"]["auc"], found.importance
        ```
    """
    names = [each.name for each in fields(EvaluateOptions)]
    check_keywords(options, (*names, *READING), "evaluate")
    chosen = EvaluateOptions(**{name: value for name, value in options.items() if name in names})  # type: ignore[arg-type]
    reading = PredictOptions(**{name: value for name, value in options.items() if name in READING})  # type: ignore[arg-type]
    return run_evaluation(run, data, split, chosen, model, functions=functions, reading=reading)


def run_evaluation(
    run: Run | PathLike,
    data: object,
    split: str | None,
    options: EvaluateOptions,
    model: Any = None,
    on_progress: OnProgress | None = None,
    functions: Mapping[str, MapFunction] | None = None,
    reading: PredictOptions | None = None,
) -> Evaluation:
    """Evaluate a run, and report progress; the arguments are those of `evaluate`, with options as objects.

    Raises:
        PenstockError: See `evaluate`.
    """
    opened = _open_run(run, model, functions)
    folder = opened.data if isinstance(opened.data, Path | StorePath) else None
    recipe = find_recipe(opened.pipeline, getattr(opened, "settings", {}), folder)

    thresholds = {
        name: choice.threshold
        for name, choice in getattr(opened, "choices", {}).items()
        if choice.threshold is not None
    }

    def score(chosen: Split, pipeline: Pipeline, predictor: Callable[[Any], Predict]) -> Evaluation:
        found = evaluate_split(
            predictor(opened), pipeline, opened.tasks, chosen, options, on_progress, thresholds
        )
        plain = EvaluateOptions(
            batch_size=options.batch_size, bootstrap=0, importance=False, mistakes=0, seed=options.seed
        )
        members = {
            each.folder.name: evaluate_split(
                predictor(each), pipeline, opened.tasks, chosen, plain, on_progress
            ).targets
            for each in getattr(opened, "members", ())
        }
        return replace(found, members=members)

    if data is not None and not is_stored(data):
        if split is not None:
            expected = "none for raw data, which has no splits"
            raise OptionError("split", expected=expected, got=show(split))
        pipeline = opened.pipeline.without_weights()
        # The modules that read raw data are imported only for raw data.
        with importing("evaluating raw data"):
            from penstock.jobs.predict.labelled import store_labelled  # noqa: PLC0415

        with (
            TemporaryDirectory(prefix="penstock-evaluate-") as temporary,
            _open_engine(opened, options) as predictor,
        ):
            how = replace(reading or PredictOptions(), keep=options.slices)
            rows = store_labelled(data, pipeline, opened.tasks, recipe, how, Path(temporary))
            found = rows.evaluate(lambda chosen: score(chosen, pipeline, predictor))
        notes = _note_source(opened, data)
    else:
        chosen, notes = _open_split(opened, data, split, recipe.schema)
        _check_targets(opened.tasks, chosen)
        notes += _note_training(opened, chosen)
        with _open_engine(opened, options) as predictor:
            found = score(chosen, opened.pipeline, predictor)
    found = replace(found, notes=(*notes, *found.notes), **_recall_parts(opened))
    return found.with_forms(recipe.forms)


@contextmanager
def _open_engine(run: Run, options: EvaluateOptions) -> Iterator[Callable[[Any], Predict]]:
    """Yield the function that returns what predicts with a run, here or on a cluster.

    Raises:
        MissingPackageError: Ray is not installed.
        OptionError: There is no cluster at the address, or workers cannot open the run from its folder.
    """
    if options.engine == "local":
        yield lambda each: cast("Predict", each.predictor())
        return
    # Loaded late: Ray is an extra.
    from penstock.jobs.predict.ray_model import RayModel, find_model_folder  # noqa: PLC0415
    from penstock.jobs.ray_cluster import Cluster  # noqa: PLC0415

    find_model_folder(run)  # refused before a cluster is started
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(options.address, options.workers))

        def open_model(each: Any) -> RayModel:
            model = RayModel(cluster, find_model_folder(each), max_batches=_TASK_BATCHES)
            return stack.enter_context(model)

        yield open_model


def _recall_parts(run: Run) -> dict[str, Any]:
    """Return what the run has recorded about the parts of its inputs; what is not in that form is ignored."""
    facts = getattr(run, "settings", {}).get("facts")
    stored = facts.get("parts") if isinstance(facts, Mapping) else None
    if not isinstance(stored, Mapping):
        return {}
    trials: dict[str, dict[str, Any]] = {name: {} for name in run.tasks}
    for parts, trial in _as_table(stored.get("trials")).items():
        for target, value in _as_table(_as_table(trial).get("scores")).items():
            if target in trials and (value is None or isinstance(value, int | float)):
                trials[target][str(parts)] = value
    left_out = {
        str(part): [str(name) for name in fields]
        for part, fields in _as_table(stored.get("left_out")).items()
        if isinstance(fields, list)
    }
    return {"part_trials": trials, "left_out_parts": left_out}


def _as_table(given: object) -> Mapping[Any, Any]:
    return given if isinstance(given, Mapping) else {}


def _open_run(run: Run | PathLike, model: Any, functions: Mapping[str, MapFunction] | None) -> Run:
    if not isinstance(run, str | os.PathLike):
        if not hasattr(run, "predictor"):
            raise OptionError("run", expected="a run, or the folder of one", got=show(run))
        return run
    with importing_keras("evaluate"):
        from penstock.training.run import open_run  # noqa: PLC0415 - imports Keras

    return open_run(run, model, functions)


def _open_split(
    run: Run, data: Any, split: str | None, schema: Mapping[str, Field]
) -> tuple[Split, list[str]]:
    """Return the split, and notes about it."""
    if isinstance(data, Split):
        return data, _note_change(run, data)
    dataset = data if isinstance(data, Dataset) else _open_data(run, data, schema)
    name = split or USUAL_SPLIT
    if split is None and data is not None and len(dataset) == 1 and not _is_own(run.data, dataset.paths):
        name = dataset.splits[0]  # the data was passed for this evaluation
    if name not in dataset:
        there = ", ".join(show(each) for each in dataset.splits)
        raise UnknownNameError(
            f"no split {show(name)}",
            path=dataset.paths[0].parent if dataset.paths else None,
            field=name,
            expected="a split that the model was not trained on",
            got=there,
            advice=f"{_OTHER_SPLIT} {_OTHER_DATA}",
        )
    return dataset[name], _note_change(run, dataset)


def _check_targets(tasks: Mapping[str, Task], split: Split) -> None:
    for name in tasks:
        if name not in split.schema:
            known = unknown_name(name, split.schema)
            raise UnknownNameError(
                known.what,
                path=split.paths[0].parent,
                field=name,
                expected=f"the labels to compare predictions with, in a field {show(name)}",
                advice=f"{known.advice} {WITHOUT_LABELS}",
            )


def _note_change(run: Run, given: Dataset | Split) -> list[str]:
    """Return a note if the data set of the run was made again after the run was trained."""
    files = getattr(run, "files", getattr(run, "folder", None))
    trained = None if files is None else read_train_fingerprint(files)
    if trained is None or not _is_own(run.data, given.paths):
        return []
    try:
        dataset = given if isinstance(given, Dataset) else open_dataset(run.data)
        if dataset[_name_trained(dataset)].as_source().fingerprint == trained:
            return []
    except PenstockError:
        return []  # the error is about another split than the one that is evaluated
    return [
        "the data set was made again after the run was trained on it: the model may have seen these records, "
        "and then the scores are too good"
    ]


def _note_training(run: Run, split: Split) -> list[str]:
    """Return a note if a split is the one that the run was trained on."""
    files = getattr(run, "files", getattr(run, "folder", None))
    trained = None if files is None else read_train_fingerprint(files)
    is_own = _is_own(run.data, split.paths)
    try:
        if trained is not None:
            # Without a manifest, files of equal names and sizes have the same fingerprint.
            is_known = is_own or all(_has_manifest(path, split) for path in split.paths)
            is_trained = is_known and split.as_source().fingerprint == trained
        else:
            is_trained = is_own and split.name == _name_trained(open_dataset(run.data))
    except PenstockError:
        return []  # the error is about files that are not in this split
    if not is_trained:
        return []
    settings = getattr(run, "settings", {})
    info, options = settings.get("facts"), settings.get("train")
    is_held_out = isinstance(info, Mapping) and info.get("validation") == HELD_OUT
    share = options.get("hold_out") if is_held_out and isinstance(options, Mapping) else None
    part = f", except for {share:.0%} held out" if isinstance(share, float) else ""
    return [f"the model was trained on these records{part}: {_TOO_GOOD}"]


def _note_source(run: Run, data: object) -> list[str]:
    """Return a note if raw data is in the files that the data set of the run was made from."""
    own = _resolve_paths(getattr(run, "settings", {}).get("source"))
    is_own = not own.isdisjoint(_resolve_paths(data))
    return [f"the model was trained on rows of this data: {_TOO_GOOD}"] if is_own else []


def _resolve_paths(given: object) -> set[str]:
    several = given if isinstance(given, list | tuple) else [given]
    return {os.path.realpath(each) for each in several if isinstance(each, str | os.PathLike)}


def _name_trained(dataset: Dataset) -> str:
    return "train" if "train" in dataset else dataset.splits[0]


def _has_manifest(path: AnyPath, split: Split) -> bool:
    if not isinstance(path, Path):
        return split.manifest is not None
    return (path.parent / MANIFEST_NAME).exists()


def _is_own(data: AnyPath | Sequence[AnyPath], paths: Sequence[AnyPath]) -> bool:
    """Whether files have the paths, or are in the folder, of the data that a run was trained on."""
    own = {Path(find_real_path(path)) for path in ([data] if isinstance(data, Path | StorePath) else data)}
    # A data set that was written to an object store has its shards in a folder next to its manifest.
    real = [Path(find_real_path(path)) for path in paths]
    return all(not own.isdisjoint((path, path.parent, path.parent.parent)) for path in real)


def _open_data(run: Run, data: PathLike | Sequence[PathLike] | None, schema: Mapping[str, Field]) -> Dataset:
    try:
        return open_as_trained(run.data if data is None else data, schema)
    except NoSuchPathError as error:
        if data is not None:
            raise
        raise NoSuchPathError(
            "the data set that the run was trained on no longer exists",
            path=error.path,
            advice=f"Pass its new path: penstock evaluate RUN DATASET. {_OTHER_DATA}",
        ) from error
