"""Evaluation of a run on labelled data: the job behind `penstock.evaluate` and `penstock evaluate`.

In: a run, and stored or raw labelled data. Out: an `Evaluation`. Inputs are transformed by the pipeline of
the run, with its own statistics and vocabularies.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

from penstock.dataset import Dataset, Split
from penstock.dataset import open as open_dataset
from penstock.errors import NoSuchPathError, OptionError, PenstockError, UnknownNameError, importing
from penstock.filter.scan import find_empty_fields
from penstock.format.manifest import MANIFEST_NAME
from penstock.foundation.keras_backend import importing_keras
from penstock.foundation.wording import show, unknown_name
from penstock.jobs.given_dataset import open_as_trained
from penstock.jobs.predict.data_columns import WITHOUT_LABELS, note_empty
from penstock.jobs.predict.raw_layout import find_recipe
from penstock.model.task import Task
from penstock.schema.date import date_forms
from penstock.schema.field import Field
from penstock.score.evaluation import Evaluation
from penstock.score.evaluation_batches import Predict
from penstock.score.split_evaluation import evaluate_split
from penstock.score.split_predictions import OnProgress
from penstock.settings.keywords import takes
from penstock.settings.prediction import EvaluateCall, EvaluateOptions, PredictOptions
from penstock.source.recognition import is_dataset
from penstock.storage.paths import PathLike, find_real_path, is_there
from penstock.storage.store_path import AnyPath
from penstock.training.left_out import read_parts
from penstock.training.run import Run, open_run
from penstock.training.run_facts import HELD_OUT
from penstock.training.run_state import read_train_fingerprint
from penstock.transform.pipeline import Pipeline, without_targets, without_weights

USUAL_SPLIT: Final = "test"
_TASK_BATCHES: Final = 4  # of a task on Ray: a sample for the importance of inputs has few
_OTHER_SPLIT: Final = "Name another split: `split=NAME`."
_OTHER_DATA: Final = (
    "Evaluate on other labelled data, raw or stored: penstock evaluate RUN labelled.csv, in Python "
    "ps.evaluate(run, data)."
)


_TOO_GOOD: Final = "scores on new data may be lower"


@takes(EvaluateCall)
def evaluate(run: Run | PathLike, data: object = None, *, options: EvaluateCall) -> Evaluation:
    """Evaluate a run on a split: scores with intervals, importance of the inputs, the worst mistakes.

    Every record counts the same, even if the data has weights.

    Args:
        run: A run, or the path of its folder.
        data: A split; a data set, its path, or paths of TFRecords; or raw labelled data, as for `convert`.
            Raw rows are encoded like the data of the run, and rows without a label are left out. By default,
            the data set of the run.
        options: Options of the evaluation, and of reading raw data.

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
    return run_evaluation(run, data, options)


def run_evaluation(
    run: Run | PathLike, data: object, options: EvaluateCall, on_progress: OnProgress | None = None
) -> Evaluation:
    """Evaluate a run, and report progress; the arguments are as for `evaluate`."""
    opened = _open_run(run, options)
    recipe = find_recipe(opened.pipeline, opened.recorded, opened.data)

    thresholds = {
        name: choice.threshold for name, choice in opened.choices.items() if choice.threshold is not None
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
            for each in opened.members
        }
        return replace(found, members=members)

    if data is not None and not is_dataset(data):
        if options.split is not None:
            raise options.refuse("split", "none for raw data, which has no splits")
        pipeline = without_weights(opened.pipeline)
        # The modules that read raw data are imported only for raw data.
        with importing("evaluating raw data"):
            from penstock.jobs.evaluate.labelled import store_labelled  # noqa: PLC0415

        with (
            TemporaryDirectory(prefix="penstock-evaluate-") as temporary,
            _open_engine(opened, options) as predictor,
        ):
            # Tasks on Ray are no threads that read.
            how = options.narrow(PredictOptions, keep=options.slices, num_threads=None)
            rows = store_labelled(data, pipeline, opened.tasks, recipe, how, Path(temporary))
            found = rows.evaluate(lambda chosen: score(chosen, pipeline, predictor))
        notes = _note_source(opened, data)
    else:
        chosen, notes = _open_split(opened, data, options.split, recipe.schema)
        absent, cautions = list[str](), list[str]()
        _check_targets(opened.tasks, chosen)
        notes += _note_training(opened, chosen)
        inputs = without_weights(opened.pipeline)
        if not chosen.schema.keys() >= set(inputs.fields):
            with importing("evaluating without columns"):
                from penstock.jobs.predict.new_data import declare_absent, note_absent  # noqa: PLC0415

            is_allowed = options.allow_missing_columns
            chosen, absent = declare_absent(chosen, inputs, is_allowed=is_allowed)
            cautions += [note_absent(each) for each in absent]
        cautions += [note_empty(each) for each in _find_empty(chosen, inputs, absent)]
        notes += cautions
        with _open_engine(opened, options) as predictor:
            found = score(chosen, opened.pipeline, predictor)
        found = replace(found, missing_columns=tuple(absent), cautions=tuple(cautions))
    found = replace(found, notes=(*notes, *found.notes))
    forms = {**recipe.forms, **date_forms(recipe.schema)}
    return _add_parts(found, opened, recipe.schema).with_forms(forms)


@contextmanager
def _open_engine(run: Run, options: EvaluateOptions) -> Iterator[Callable[[Any], Predict]]:
    """Yield the function that returns what predicts with a run, here or on a cluster."""
    if options.engine == "local":
        yield lambda each: cast("Predict", each.predictor())
        return
    # Loaded late: Ray is an extra.
    from penstock.distributed.ray_cluster import Cluster  # noqa: PLC0415
    from penstock.distributed.ray_model import RayModel, find_model_folder  # noqa: PLC0415

    find_model_folder(run)  # refused before a cluster is started
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(options.address, options.num_threads))

        def open_model(each: Any) -> RayModel:
            model = RayModel(cluster, find_model_folder(each), max_batches=_TASK_BATCHES)
            return stack.enter_context(model)

        yield open_model


def _add_parts(evaluation: Evaluation, run: Run, schema: Mapping[str, Field]) -> Evaluation:
    """Return an evaluation with what the run has recorded about the parts of its inputs."""
    found = read_parts(run.config, schema)
    trials = {name: dict(found.scores.get(name, {})) for name in run.tasks} if found.scores else {}
    return replace(evaluation, part_trials=trials, left_out=found.left_out)


def _open_run(run: Run | PathLike, options: EvaluateCall) -> Run:
    if not isinstance(run, str | os.PathLike):
        if not isinstance(run, Run):
            raise OptionError("run", expected="a run, or the folder of one", got=show(run))
        return run
    with importing_keras("evaluate"):
        import penstock.training.run_model  # noqa: F401, PLC0415 - imports Keras

    return open_run(run, options.model, options.functions)


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


def _find_empty(split: Split, pipeline: Pipeline, absent: Sequence[str]) -> list[str]:
    """Return the inputs that are empty in all records, without those that are known to be absent."""
    if len(split) < 2:
        return []
    source = split.as_source()
    names = [name for name in without_targets(pipeline).fields if name not in absent]
    return find_empty_fields(source.rows, source.schema, names, source.strict)


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
    trained = read_train_fingerprint(run.files)
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
    trained = read_train_fingerprint(run.files)
    is_own = _is_own(run.data, split.paths)
    try:
        if trained is not None:
            # Without a manifest, files of equal names and sizes have the same fingerprint.
            has_manifest = split.manifest is not None
            has_manifest = has_manifest or all(is_there(path.parent / MANIFEST_NAME) for path in split.paths)
            is_known = is_own or has_manifest
            is_trained = is_known and split.as_source().fingerprint == trained
        else:
            is_trained = is_own and split.name == _name_trained(open_dataset(run.data))
    except PenstockError:
        return []  # the error is about files that are not in this split
    if not is_trained:
        return []
    is_held_out = run.config.facts.validation == HELD_OUT
    part = f", except for {run.config.train.hold_out:.0%} held out" if is_held_out else ""
    return [f"the model was trained on these records{part}: {_TOO_GOOD}"]


def _note_source(run: Run, data: object) -> list[str]:
    """Return a note if raw data is in the files that the data set of the run was made from."""
    own = _resolve_paths(run.config.source)
    is_own = not own.isdisjoint(_resolve_paths(data))
    return [f"the model was trained on rows of this data: {_TOO_GOOD}"] if is_own else []


def _resolve_paths(given: object) -> set[str]:
    several = given if isinstance(given, list | tuple) else [given]
    return {os.path.realpath(each) for each in several if isinstance(each, str | os.PathLike)}


def _name_trained(dataset: Dataset) -> str:
    return "train" if "train" in dataset else dataset.splits[0]


def _is_own(data: AnyPath | list[AnyPath], paths: Sequence[AnyPath]) -> bool:
    """Whether files have the paths, or are in the folder, of the data that a run was trained on."""
    own = {Path(find_real_path(path)) for path in (data if isinstance(data, list) else [data])}
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
