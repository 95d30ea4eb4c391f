"""A run's folder: `run.yaml`, `pipeline.json`, `weights.safetensors`, `history.csv`, `state.json`.

In: the folder of a finished run. Out: a `Run` with its model and best weights, its pipeline, its tasks.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from penstock.errors import NotPicklableError, OptionError, PenstockError, StateError
from penstock.foundation.html import Html, display_safely, draw_curves, make_block, make_table
from penstock.foundation.json_text import write_json
from penstock.foundation.wording import count
from penstock.model.build import build_model
from penstock.model.compatibility import check_model
from penstock.model.keras_predictor import KerasPredictor
from penstock.model.logits import find_logits
from penstock.model.options import ModelOptions
from penstock.model.task import Task, find_tasks
from penstock.schema.schema import Schema
from penstock.storage.atomic import AtomicFile
from penstock.storage.paths import PathLike
from penstock.storage.store_path import AnyPath, StorePath, as_path
from penstock.training.average import average_models
from penstock.training.checkpoint import read_result
from penstock.training.history import list_metrics, pair_runs, read_history
from penstock.training.members import without_part_outputs
from penstock.training.precision import in_precision
from penstock.training.run_files import (
    CONFIG_NAME,
    FIELDS_NAME,
    MEMBER_NAME,
    PIPELINE_NAME,
    WEIGHTS_NAME,
    check_facts,
    copy_run,
    find_data,
    read_choices,
    read_count,
    read_run_config,
    refuse_other_folder,
)
from penstock.training.snapshot import copy_array, pair_weights
from penstock.training.tensor_file import read_tensors, write_tensors
from penstock.training.validation_choice import ValidationChoice
from penstock.transform.map import MapFunction
from penstock.transform.pipeline import Pipeline

_log = logging.getLogger("penstock")

_FINGERPRINT: Final = "pipeline"
_MOST_TARGETS: Final = 8
_MOST_MEMBERS: Final = 6
_MOST_CHARTS: Final = 6


@dataclass(frozen=True)
class Run:
    """A finished training run.

    Attributes:
        folder: Folder of the run, which may be in an object store.
        model: The Keras model, with the weights of the best epoch.
        pipeline: Pipeline that turns records into the inputs of the model.
        tasks: Task of each target.
        logits: Whether the model returns logits rather than probabilities, by target.
        history: Metrics of each epoch; empty for an ensemble, whose members have their own.
        settings: Content of `run.yaml`.
        choices: What was measured and chosen on the validation records, by target with classes.
        members: Runs of an ensemble, whose predictions `model` averages; empty for a single run.
        copy: Local copy of the folder, if it is in an object store; removed when the process ends.

    Example:
        ```python
        run = ps.train(pets, out="runs/pets", epochs=5)
        run.model.summary()
        run.history[-1]["val_loss"]
        ```
    """

    folder: AnyPath
    model: Any
    pipeline: Pipeline
    tasks: Mapping[str, Task]
    logits: Mapping[str, bool]
    history: list[dict[str, float]]
    settings: Mapping[str, Any]
    choices: Mapping[str, ValidationChoice] = field(default_factory=dict)
    members: Sequence[Run] = ()
    copy: Path | None = None

    @property
    def files(self) -> Path:
        """The local folder with the files of the run."""
        return self.copy if isinstance(self.folder, StorePath) and self.copy else Path(self.folder)

    @property
    def data(self) -> AnyPath | list[AnyPath]:
        """The path of the training data; a list of paths, if single files were given."""
        return find_data(self.folder, self.settings)

    def predictor(self) -> KerasPredictor:
        """Return a predictor for batches of the model's inputs; its probabilities are calibrated."""
        temperatures = {name: choice.temperature for name, choice in self.choices.items()}
        return KerasPredictor(self.model, self.pipeline, self.tasks, self.logits, temperatures)

    def __reduce__(self) -> tuple[Any, ...]:
        given = [] if isinstance(self.settings.get("model"), Mapping) else ["model=…"]
        given += ["functions={…}"] if self.pipeline.maps else []
        if given:
            code = "model" if "model=…" in given else "functions of the pipeline"
            raise NotPicklableError(
                f"the {code} of the run cannot be pickled or copied, as a run stores no code",
                path=self.folder,
                advice="Pass the path of its folder instead, and open the run from it: "
                f"ps.open_run({str(self.folder)!r}, {', '.join(given)}).",
            )
        folder = self.folder.resolve() if isinstance(self.folder, Path) else self.folder
        return _reopen, (str(folder), read_result(self.files)[1])

    def _repr_html_(self) -> str:
        return display_safely(repr(self), self._draw)

    def _draw(self) -> Html:
        """Return the curves of losses and metrics; of an ensemble, those of its members."""
        targets = [(task.name, task.describe()) for task in islice(self.tasks.values(), _MOST_TARGETS)]
        size = count(len(self.members), "member") if self.members else count(len(self.history), "epoch")
        runs = {each.folder.name: each.history for each in self.members[:_MOST_MEMBERS]}
        pairs = pair_runs({name: list_metrics(rows) for name, rows in (runs or {"": self.history}).items()})
        parts = [make_table(("target", "task"), targets, num_rows=len(self.tasks))]
        for name, curves in islice(pairs.items(), _MOST_CHARTS):
            parts.append(draw_curves(f"{name} by epoch", curves))
        return make_block(f"Run {self.folder}: {size}", *parts)

    def __repr__(self) -> str:
        targets = ", ".join(f"{task.name}: {task.describe()}" for task in self.tasks.values())
        size = count(len(self.members), "member") if self.members else count(len(self.history), "epoch")
        return f"Run({str(self.folder)!r}, {size}, {targets})"


def open_run(path: PathLike, model: Any = None, functions: Mapping[str, MapFunction] | None = None) -> Run:
    """Open a run: rebuild its model, and load its weights.

    The model of an ensemble averages its members, which are in `members`.

    Args:
        path: Folder of the run, which may be in an object store: its files, without checkpoints and data, are
            then copied to a temporary folder.
        model: The model, or a function that returns it, if the run was trained with a user's own: a run
            stores weights, never code. An ensemble needs a function.
        functions: Functions of the pipeline's maps, by name.

    Raises:
        NoSuchPathError: The folder holds no run.
        StateError: The run is not finished, or its files belong to different runs.
        OptionError: The model is needed and not given, or does not fit.

    Example:
        ```python
        run = ps.open_run("runs/pets")
        run.predictor()({"age": np.array([0.5, -1.0], np.float32)})  # by target, for batches of your own
        ```
    """
    folder = as_path(path)
    if isinstance(folder, Path):
        return _open_folder(folder, None, model, functions)
    copy = copy_run(folder)
    from penstock.storage.folder_copy import naming_original  # noqa: PLC0415 - loaded by `copy_run`

    with naming_original(copy, folder):
        return _open_folder(copy, folder, model, functions)


def _open_folder(
    folder: Path, origin: StorePath | None, model: Any, functions: Mapping[str, MapFunction] | None
) -> Run:
    """Open a run from its folder, or from a local copy of its folder in an object store."""
    if not (folder / CONFIG_NAME).is_file():
        raise refuse_other_folder(folder)
    settings = {**read_run_config(folder / CONFIG_NAME), **_read_fields(folder)}
    if "folds" in settings:
        raise _make_folds_error(folder)
    if "ensemble" in settings:
        return _open_ensemble(folder, origin, settings, model, functions)
    pipeline = Pipeline.load(folder / PIPELINE_NAME, functions)
    facts = settings.get("facts", {})
    check_facts(facts, folder / CONFIG_NAME)
    tasks = {
        name: task.restored(facts.get("targets", {}).get(name, {}))
        for name, task in find_tasks(pipeline).items()
    }
    if model is None:
        model = rebuild_model(folder / CONFIG_NAME, settings.get("model"), find_precision(settings), pipeline)
    else:
        model = take_model(model, find_precision(settings), pipeline, tasks)
    load_weights(folder, model, pipeline)
    logits = facts.get("logits") or find_logits(model, tasks, pipeline)
    choices = read_choices(facts, folder / CONFIG_NAME)
    history, copy = read_history(folder), None if origin is None else folder
    return Run(origin or folder, model, pipeline, tasks, logits, history, settings, choices, copy=copy)


FOLD_NAME: Final = "fold-{}"
"""Folder of a fold of a cross-validation, with its number from 1."""

OUT_OF_FOLD_NAME: Final = "predictions.parquet"
"""File of the out-of-fold predictions of a cross-validation."""


def _open_ensemble(
    folder: Path,
    origin: StorePath | None,
    settings: Mapping[str, Any],
    model: Any,
    functions: Mapping[str, MapFunction] | None,
) -> Run:
    """Open the members of an ensemble, and average them."""
    path = folder / CONFIG_NAME
    if read_result(folder)[0] != "finished":
        raise _make_unfinished_error(folder)
    if model is not None and not is_model_function(model):
        raise OptionError(
            "model",
            expected="a function that returns a new model for each member of the ensemble",
            got="one model",
            advice="Pass the function that builds it: model=build.",
        )
    number = read_count(settings, "ensemble", "members", path) or 0
    names = [MEMBER_NAME.format(each + 1) for each in range(number)]
    members = [
        _open_folder(folder / name, None if origin is None else origin / name, model, functions)
        for name in names
    ]
    found, stored = combine_digests([each.files for each in members]), read_result(folder)[1]
    if found != stored:
        raise StateError(
            "SHA-256 of the weights of the members",
            path=folder,
            expected=stored,
            got=found,
            advice="A member was trained again after that: train the ensemble in a new folder.",
        )
    made = make_ensemble(folder, settings, members)
    return made if origin is None else replace(made, folder=origin, copy=folder)


def make_ensemble(folder: Path, settings: Mapping[str, Any], members: Sequence[Run]) -> Run:
    """Return the run whose model averages the models of other runs with the same pipeline.

    Raises:
        StateError: The members have different pipelines.
    """
    first = members[0]
    for each in members:
        if each.pipeline.fingerprint() != first.pipeline.fingerprint():
            raise StateError(
                f"{PIPELINE_NAME} of a member",
                path=each.folder,
                expected=f"the pipeline of {first.folder.name}",
                got="another one",
                advice="Restore the folder of the ensemble.",
            )
    model = average_models(
        [each.model for each in members], first.pipeline, first.tasks, [each.logits for each in members]
    )
    choices = read_choices(settings.get("facts"), folder / CONFIG_NAME)
    logits = dict.fromkeys(first.tasks, False)
    return Run(folder, model, first.pipeline, first.tasks, logits, [], settings, choices, tuple(members))


def make_served_model(run: Run) -> Any:
    """Return the model of a run for predictions alone: without outputs that only training uses.

    It shares its weights with the model of the run.
    """
    models = [without_part_outputs(each.model, run.tasks) for each in run.members or (run,)]
    if not run.members:
        return models[0]
    return average_models(models, run.pipeline, run.tasks, [each.logits for each in run.members])


def combine_digests(folders: Sequence[Path]) -> str:
    """Return one SHA-256 for the weights of several runs."""
    digests = [str(read_result(each)[1]) for each in folders]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def is_model_function(model: Any) -> bool:
    """Whether a value is a function that returns a model, rather than a model, which is callable as well."""
    return callable(model) and not hasattr(model, "predict_on_batch")


def _reopen(folder: str, digest: str | None) -> Run:
    """Open a run that was pickled, if its weights are still the same."""
    path = as_path(folder)
    found = read_result(path if isinstance(path, Path) else copy_run(path))[1]
    if found != digest:
        raise StateError(
            "SHA-256 of the weights",
            path=folder,
            expected=f"{digest} (when the run was pickled)",
            got=found,
            advice="The run was trained again after that. Open it again: ps.open_run(…).",
        )
    return open_run(folder)


def save_fields(folder: Path, schema: Schema, plan: Mapping[str, Any] | None) -> None:
    """Write schema and conversion plan of the data, for predictions on raw rows.

    Raises:
        WriteError: The disk is full, or fails.
    """
    text = write_json({"schema": schema.to_json(), "plan": plan}, 1)
    with AtomicFile(folder / FIELDS_NAME, overwrite=True) as file:
        file.write(text.encode() + b"\n")


def _read_fields(folder: Path) -> dict[str, Any]:
    try:
        stored = json.loads((folder / FIELDS_NAME).read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise StateError("fields of the run", path=folder / FIELDS_NAME, expected="JSON", got=error) from None
    return {
        name: stored[name] for name in ("schema", "plan") if isinstance(stored, dict) and stored.get(name)
    }


def save_weights(folder: Path, model: Any, pipeline: Pipeline, name: str = WEIGHTS_NAME) -> str:
    """Write the weights of a model and the fingerprint of its pipeline; return the SHA-256 of the file.

    Raises:
        WriteError: The disk is full, or fails.
    """
    arrays = {f"{number}": copy_array(weight) for number, weight in enumerate(model.weights)}
    paths = {f"path {number}": str(weight.path) for number, weight in enumerate(model.weights)}
    return write_tensors(folder / name, arrays, {_FINGERPRINT: pipeline.fingerprint(), **paths})


def load_weights(folder: Path, model: Any, pipeline: Pipeline) -> None:
    """Set the weights of a model to those of a run.

    Raises:
        StateError: The run has no weights, or they belong to another pipeline or model.
    """
    path = folder / WEIGHTS_NAME
    if not path.is_file():
        raise _make_unfinished_error(folder)
    status, digest = read_result(folder)
    if status == "running":
        raise _make_unfinished_error(folder)
    if status == "failed":
        _log.warning("%s: the run failed; its weights are those before the failed step", folder)
    assign_weights(path, digest, model, pipeline)


def assign_weights(path: Path, digest: str | None, model: Any, pipeline: Pipeline) -> None:
    """Set the weights of a model to those of a file.

    Args:
        path: Path of the file.
        digest: Expected SHA-256 of the file; not checked if it is None.
        model: The model.
        pipeline: Pipeline that makes the inputs of the model.

    Raises:
        StateError: The file is damaged, or its weights belong to another pipeline or model.
    """
    arrays, texts = read_tensors(path, digest)
    if texts.get(_FINGERPRINT) != pipeline.fingerprint():
        raise StateError(
            f"{PIPELINE_NAME} for these weights",
            path=path,
            expected=f"pipeline {str(texts.get(_FINGERPRINT))[:12]}…, which they were trained with",
            got=f"{pipeline.fingerprint()[:12]}…",
            advice="Scales and vocabularies of another pipeline give wrong inputs: restore the run's own.",
        )
    weights = list(model.weights)
    names = [texts.get(f"path {number}", "") for number in range(len(arrays))]
    if list(arrays) != [f"{number}" for number in range(len(arrays))]:
        raise _make_model_error(path, "names of arrays", f"0 to {len(arrays) - 1}", "other names")
    for number, weight in zip(
        pair_weights(names, [str(each.path) for each in weights], path), weights, strict=True
    ):
        array = arrays[f"{number}"]
        if tuple(weight.shape) != array.shape:
            what = f"shape of weight {number}, {texts.get(f'path {number}')!r}"
            raise _make_model_error(path, what, array.shape, tuple(weight.shape))
        weight.assign(array)


def take_model(model: Any, precision: str | None, pipeline: Pipeline, tasks: Mapping[str, Task]) -> Any:
    """Return a user's own model, or what a function that returns it returns.

    Raises:
        OptionError: The model does not fit the pipeline.
    """
    if is_model_function(model):
        with in_precision(precision):
            model = model()
    check_model(model, pipeline, tasks)
    return model


def rebuild_model(path: Path, stored: object, precision: str | None, pipeline: Pipeline) -> Any:
    """Build a model from its stored options, without its weights.

    Args:
        path: Path of the file that holds the options, for errors.
        stored: The options; something else for a user's own model, which is not stored.
        precision: Precision of the run, or None.
        pipeline: Pipeline of the run.

    Raises:
        OptionError: The model is a user's own, or an option is not valid.
    """
    if not isinstance(stored, Mapping):
        raise OptionError(
            "model of the run",
            path=path,
            expected="the model that it was trained with",
            got="no model",
            advice="Pass it: open_run(…, model=…), evaluate(…, model=…), or --model FILE.py:FUNCTION.",
        )
    try:
        options = load_options(stored)
    except PenstockError as error:
        error.path = str(path)
        raise
    with in_precision(precision):
        return build_model(pipeline.schema, pipeline, options)


def load_options(stored: Mapping[str, Any]) -> ModelOptions:
    """Return the stored options of a model whose weights are stored as well.

    Raises:
        OptionError: There is no such option, or its value is not valid.
    """
    # The weights come from the run: the file of the initial weights may be gone.
    return ModelOptions.from_run({**stored, "image_weights": None, "fine_tune": False})


def find_precision(settings: Mapping[str, Any]) -> str | None:
    """Return the precision that a run was trained in; None if it is not stored."""
    options = settings.get("train")
    return options.get("precision") if isinstance(options, Mapping) else None


def _make_unfinished_error(folder: Path) -> StateError:
    advice = f"Continue it: penstock train --resume --out {folder}."
    return StateError("run", path=folder, expected="a finished run", got="an unfinished one", advice=advice)


def _make_folds_error(folder: Path) -> StateError:
    return StateError(
        "run",
        path=folder,
        expected="the folder of one run",
        got="a cross-validation, which has a model for each fold",
        advice=(
            f"Its scores are in {CONFIG_NAME}, its predictions in {OUT_OF_FOLD_NAME}. Use one fold, such as "
            f"{folder / FOLD_NAME.format(1)}, or train a model without --folds."
        ),
    )


def _make_model_error(path: Path, what: str, expected: object, got: object) -> StateError:
    advice = "Pass the model that the run was trained with."
    return StateError(what, path=path, expected=expected, got=got, advice=advice)
