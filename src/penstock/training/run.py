"""A run's folder: `run.yaml`, `pipeline.json`, `weights.safetensors`, `history.csv`, `state.json`.

In: the folder of a finished run. Out: a `Run` with its model and best weights, its pipeline, its tasks.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import NotPicklableError, StateError
from penstock.foundation.html import Html, display_safely, draw_curves, make_block, make_line, make_table
from penstock.foundation.keras_backend import importing_keras
from penstock.foundation.wording import count
from penstock.model.task import Task, find_tasks
from penstock.storage.location import naming_original
from penstock.storage.paths import PathLike
from penstock.storage.store_path import AnyPath, as_path, resolve_path
from penstock.training.batch_fault import describe_batch_fault, find_batch_fault
from penstock.training.history import list_metrics, pair_runs, read_history
from penstock.training.left_out import LeftOutPart, describe_left_out, find_left_out
from penstock.training.recorded_data import RecordedData, read_fields
from penstock.training.run_config import RunConfig, check_model_function
from penstock.training.run_files import (
    CONFIG_NAME,
    MEMBER_NAME,
    PIPELINE_NAME,
    copy_run,
    find_data,
    read_config,
    refuse_other_folder,
    refuse_unfinished,
)
from penstock.training.run_state import read_result
from penstock.training.validation_choice import ValidationChoice
from penstock.transform.map import MapFunction
from penstock.transform.pipeline import Pipeline

if TYPE_CHECKING:
    from penstock.model.keras_predictor import KerasPredictor

_log = logging.getLogger("penstock")

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
        config: Content of `run.yaml`.
        recorded: Schema and conversion plan of the data, for predictions on raw rows.
        choices: Measurements and choices on the validation records, by target with classes.
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
    config: RunConfig
    recorded: RecordedData = field(default_factory=RecordedData)
    choices: Mapping[str, ValidationChoice] = field(default_factory=dict)
    members: Sequence[Run] = ()
    copy: Path | None = None

    @property
    def files(self) -> Path:
        """The local folder with the files of the run."""
        return self.copy or Path(self.folder)

    @property
    def data(self) -> AnyPath | list[AnyPath]:
        """The path of the training data; a list of paths, if single files were given."""
        return find_data(self.folder, self.config)

    @property
    def needs_model(self) -> bool:
        """Whether opening the folder takes a user's own model, whose code is not stored."""
        return self.config.is_own_model

    @property
    def left_out(self) -> tuple[LeftOutPart, ...]:
        """The parts of the inputs that the model does not read, with their fields and the reason."""
        return find_left_out(self.config, self.recorded.schema)

    def predictor(self) -> KerasPredictor:
        """Return a predictor for batches of the model's inputs; its probabilities are calibrated."""
        from penstock.model.keras_predictor import KerasPredictor  # noqa: PLC0415 - imports Keras, as the model

        temperatures = {name: choice.temperature for name, choice in self.choices.items()}
        return KerasPredictor(self.model, self.pipeline, self.tasks, self.logits, temperatures)

    def __reduce__(self) -> tuple[Any, ...]:
        given = ["model=…"] if self.needs_model else []
        given += ["functions={…}"] if self.pipeline.maps else []
        if given:
            code = "model" if "model=…" in given else "functions of the pipeline"
            raise NotPicklableError(
                f"the {code} of the run cannot be pickled or copied, as a run stores no code",
                path=self.folder,
                advice="Pass the path of its folder instead, and open the run from it: "
                f"ps.open_run({str(self.folder)!r}, {', '.join(given)}).",
            )
        return _reopen, (str(resolve_path(self.folder)), read_result(self.files)[1])

    @property
    def _size(self) -> str:
        """Number of members or epochs, as text."""
        return count(len(self.members), "member") if self.members else count(len(self.history), "epoch")

    def _repr_html_(self) -> str:
        return display_safely(repr(self), self._draw)

    def _draw(self) -> Html:
        """Return the curves of losses and metrics; for an ensemble, the curves of its members."""
        targets = [(task.name, task.describe()) for task in islice(self.tasks.values(), _MOST_TARGETS)]
        runs = {each.folder.name: each.history for each in self.members[:_MOST_MEMBERS]}
        pairs = pair_runs({name: list_metrics(rows) for name, rows in (runs or {"": self.history}).items()})
        parts = [make_table(("target", "task"), targets, num_rows=len(self.tasks))]
        parts += [make_line(line) for line in describe_left_out(self.left_out)]
        for name, curves in islice(pairs.items(), _MOST_CHARTS):
            parts.append(draw_curves(f"{name} by epoch", curves))
        return make_block(f"Run {self.folder}: {self._size}", *parts)

    def __repr__(self) -> str:
        targets = ", ".join(f"{task.name}: {task.describe()}" for task in self.tasks.values())
        return f"Run({str(self.folder)!r}, {self._size}, {targets})"


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
    files = copy_run(folder)
    with naming_original(files, folder):
        run = _open_folder(files, None if files == folder else folder, model, functions)
        if fault := find_batch_fault(run.config, run.pipeline, run.tasks.values()):
            _log.warning("%s", describe_batch_fault(fault, run.folder, run.config))
        return run


def _open_folder(
    folder: Path, origin: AnyPath | None, model: Any, functions: Mapping[str, MapFunction] | None
) -> Run:
    """Open a run from its folder, or from a local copy of its folder in an object store."""
    if not (folder / CONFIG_NAME).is_file():
        raise refuse_other_folder(folder)
    config = read_config(folder / CONFIG_NAME)
    if config.folds is not None:
        raise _make_folds_error(folder)
    recorded = read_fields(folder, config.reading)
    if config.ensemble is not None:
        return _open_ensemble(folder, origin, config, recorded, model, functions)
    pipeline = Pipeline.load(folder / PIPELINE_NAME, functions)
    facts = config.facts
    tasks = facts.restore_tasks(find_tasks(pipeline))
    with importing_keras("open_run"):
        from penstock.training.run_model import load_model  # noqa: PLC0415 - imports Keras

    model, logits = load_model(folder, config, model, pipeline, tasks)
    history, copy = read_history(folder), None if origin is None else folder
    return Run(
        folder=origin or folder,
        model=model,
        pipeline=pipeline,
        tasks=tasks,
        logits=logits,
        history=history,
        config=config,
        recorded=recorded,
        choices=facts.choices,
        copy=copy,
    )


FOLD_NAME: Final = "fold-{}"
"""Folder of a fold of a cross-validation, with its number from 1."""

OUT_OF_FOLD_NAME: Final = "predictions.parquet"
"""File of the out-of-fold predictions of a cross-validation."""


def _open_ensemble(
    folder: Path,
    origin: AnyPath | None,
    config: RunConfig,
    recorded: RecordedData,
    model: Any,
    functions: Mapping[str, MapFunction] | None,
) -> Run:
    """Open the members of an ensemble, and average them."""
    if read_result(folder)[0] != "finished":
        raise refuse_unfinished(folder)
    check_model_function(model)
    names = [MEMBER_NAME.format(each + 1) for each in range(config.ensemble or 0)]
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
    made = replace(make_ensemble(folder, config, members), recorded=recorded)
    return made if origin is None else replace(made, folder=origin, copy=folder)


def make_ensemble(folder: Path, config: RunConfig, members: Sequence[Run]) -> Run:
    """Return the run whose model averages the models of other runs with the same pipeline."""
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
    from penstock.training.members import average_models  # noqa: PLC0415 - imports Keras, as the members did

    model = average_models(
        [each.model for each in members], first.pipeline, first.tasks, [each.logits for each in members]
    )
    logits = dict.fromkeys(first.tasks, False)
    return Run(
        folder=folder,
        model=model,
        pipeline=first.pipeline,
        tasks=first.tasks,
        logits=logits,
        history=[],
        config=config,
        recorded=first.recorded,
        choices=config.facts.choices,
        members=tuple(members),
    )


def combine_digests(folders: Sequence[Path]) -> str:
    """Return one SHA-256 for the weights of several runs."""
    digests = [str(read_result(each)[1]) for each in folders]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def _reopen(folder: str, digest: str | None) -> Run:
    """Open a run that was pickled, if its weights are still the same."""
    found = read_result(copy_run(as_path(folder)))[1]
    if found != digest:
        raise StateError(
            "SHA-256 of the weights",
            path=folder,
            expected=f"{digest} (when the run was pickled)",
            got=found,
            advice="The run was trained again after that. Open it again: ps.open_run(…).",
        )
    return open_run(folder)


def _make_folds_error(folder: Path) -> StateError:
    return StateError(
        "run",
        path=folder,
        expected="the folder of one run",
        got="a cross-validation, which has a model for each fold",
        advice=(
            f"Its scores are in {CONFIG_NAME}, its predictions in {OUT_OF_FOLD_NAME}. Use one fold, such as "
            f"{folder / FOLD_NAME.format(1)}, or train one model on all records."
        ),
    )
