"""How good a run is: the job behind `penstock.evaluate` and `penstock evaluate`.

In: a run, and the data to judge it by. Out: an `Evaluation`. Inputs go through the run's own pipeline,
whatever the statistics and vocabularies of the data are.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypedDict, Unpack

from penstock.dataset import Dataset, Split
from penstock.dataset import open as open_dataset
from penstock.errors import (
    NoSuchPathError,
    NotTFRecordError,
    OptionError,
    PenstockError,
    UnknownNameError,
    importing,
)
from penstock.jobs.declaration import open_as_trained
from penstock.jobs.recipe import find_recipe
from penstock.model.facts import read_trained
from penstock.model.score.engine import evaluate_split
from penstock.model.score.evaluation import Evaluation
from penstock.model.score.judging import OnProgress
from penstock.model.score.options import EvaluateOptions
from penstock.model.task import Task
from penstock.schema.field import Field
from penstock.schema.nearest import check_keywords
from penstock.schema.refusal import show
from penstock.storage.paths import PathLike
from penstock.transform.map import MapFunction
from penstock.transform.pipeline import Pipeline

Data: TypeAlias = Split | Dataset | PathLike | Sequence[PathLike] | None

_CONVERT = (
    "Convert it first, whole: penstock convert SOURCE OUT --target NAME --split test=1.0; then say "
    "penstock evaluate RUN OUT. Without scores: penstock predict RUN SOURCE."
)


class EvaluatedRun(Protocol):
    """What is needed of a run."""

    @property
    def pipeline(self) -> Pipeline:
        """What turns columns into arrays."""

    @property
    def tasks(self) -> Mapping[str, Task]:
        """What is predicted."""

    @property
    def data(self) -> Path | list[Path]:
        """The path of the data set that it was trained on, or those of several files."""

    def predictor(self) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
        """Return what turns input arrays into outputs by target."""


class EvaluateChoices(TypedDict, total=False):
    """The keywords of `penstock.evaluate`: the attributes of `EvaluateOptions`."""

    batch_size: int | None
    slices: str | tuple[str, ...] | list[str]
    bootstrap: int
    importance: bool
    importance_records: int
    mistakes: int
    seed: int


def evaluate(
    run: EvaluatedRun | PathLike,
    data: Data = None,
    *,
    split: str = "test",
    model: Any = None,
    functions: Mapping[str, MapFunction] | None = None,
    **options: Unpack[EvaluateChoices],
) -> Evaluation:
    """Say how good a run is on a split: scores with intervals, which inputs matter, the worst mistakes.

    Every record counts alike, also where the data has weights.

    Args:
        run: A run, or its folder.
        data: A split; or a data set, or the path of one, or paths of TFRecords, of which a split is taken;
            that of the run, if not given.
        split: The name of that split.
        model: The `keras.Model`, for a run of a model of one's own.
        functions: Those of the pipeline's maps, by name: no code is stored. A run that is open has them.
        options: Everything else; see `EvaluateOptions`.

    Raises:
        UnknownNameError: There is no such split, or a field that the model needs is not there.
        SchemaError: A field is not what it was when the run was trained.
        OptionError: A choice has a value that it cannot have, or the data is raw.
        FieldError: A record has a target that the run does not know.

    Example:
        ```python
        found = ps.evaluate("runs/pets", slices=["breed"])
        print(found)
        found.targets["adopted"]["auc"], found.importance
        ```
    """
    check_keywords(options, (each.name for each in fields(EvaluateOptions)), "evaluate")
    chosen = EvaluateOptions(**options)  # type: ignore[arg-type]
    return run_evaluation(run, data, split, chosen, model, functions=functions)


def run_evaluation(
    run: EvaluatedRun | PathLike,
    data: Data,
    split: str,
    options: EvaluateOptions,
    model: Any = None,
    on_progress: OnProgress | None = None,
    functions: Mapping[str, MapFunction] | None = None,
) -> Evaluation:
    """Evaluate, and say how far it is; the arguments are those of `evaluate`.

    Raises:
        PenstockError: See `evaluate`.
    """
    opened = _open_run(run, model, functions)
    folder = opened.data if isinstance(opened.data, Path) else None
    recipe = find_recipe(opened.pipeline, getattr(opened, "settings", {}), folder)
    chosen, notes = _open_split(opened, data, split, recipe.schema)
    found = evaluate_split(opened.predictor(), opened.pipeline, opened.tasks, chosen, options, on_progress)
    return replace(found, notes=(*notes, *found.notes)).with_forms(recipe.forms)


def _open_run(
    run: EvaluatedRun | PathLike, model: Any, functions: Mapping[str, MapFunction] | None
) -> EvaluatedRun:
    if not isinstance(run, str | os.PathLike):
        if not hasattr(run, "predictor"):
            raise OptionError("run", expected="a run, or the folder of one", got=show(run))
        return run
    with importing("evaluate", "train"):
        from penstock.model.run import open_run  # noqa: PLC0415 - Keras, when asked for

    return open_run(run, model, functions)


def _open_split(
    run: EvaluatedRun, data: Data, split: str, schema: Mapping[str, Field]
) -> tuple[Split, list[str]]:
    """Return the split, and what to know about it."""
    if isinstance(data, Split):
        return data, _note_change(run, data)
    dataset = data if isinstance(data, Dataset) else _open_data(run, data, schema)
    if split not in dataset:
        there = ", ".join(show(name) for name in dataset.splits)
        raise UnknownNameError(
            f"no split {show(split)}",
            path=dataset.paths[0].parent if dataset.paths else None,
            field=split,
            advice=f"There are {there}." if len(dataset) > 1 else f"There is {there}.",
        )
    return dataset[split], _note_change(run, dataset)


def _note_change(run: EvaluatedRun, given: Dataset | Split) -> list[str]:
    """Say so if the run's own data set is not any more what the run was trained on."""
    folder = getattr(run, "folder", None)
    trained = None if folder is None else read_trained(folder)
    if trained is None or not _is_own(run.data, given.paths):
        return []
    try:
        dataset = given if isinstance(given, Dataset) else open_dataset(run.data)
        name = "train" if "train" in dataset else dataset.splits[0]
        if dataset[name].as_source().fingerprint == trained:
            return []
    except PenstockError:
        return []  # of another split than the one that is evaluated
    return [
        "the data set was made anew since the run was trained on it: the model may have seen these records, "
        "and then the scores are too good"
    ]


def _is_own(data: Path | Sequence[Path], paths: Sequence[Path]) -> bool:
    """Whether files are in the place of those that a run was trained on."""
    own = {path.resolve() for path in ([data] if isinstance(data, Path) else data)}
    return all(not own.isdisjoint((path.resolve(), path.resolve().parent)) for path in paths)


def _open_data(
    run: EvaluatedRun, data: PathLike | Sequence[PathLike] | None, schema: Mapping[str, Field]
) -> Dataset:
    path = run.data if data is None else data
    if not isinstance(path, str | os.PathLike | list | tuple):
        expected = "a split, a data set, or the path of one"
        raise OptionError("data", expected=expected, got=show(data), advice=_CONVERT)
    try:
        return open_as_trained(path, schema)
    except NotTFRecordError as error:
        expected = "a data set, or TFRecords"
        raise OptionError(
            "data", path=error.path, expected=expected, got="a file that is none", advice=_CONVERT
        ) from error
    except NoSuchPathError as error:
        if data is not None:
            raise
        advice = "The run was trained on it. Name where it is now: penstock evaluate RUN DATASET."
        raise NoSuchPathError("the data set is not there any more", path=error.path, advice=advice) from error
