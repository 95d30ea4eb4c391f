"""A run or an export for predictions, and opening one from its folder, which may be in a store.

`Trained` is the protocol of a run; `PredictionSetup` adds the parts that all predictions share.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from penstock.errors import NoSuchPathError, OptionError
from penstock.export.formats import ExportedModel
from penstock.export.manifest import MANIFEST_NAME, copy_export, open_export
from penstock.foundation.keras_backend import importing_keras
from penstock.foundation.wording import show
from penstock.jobs.predict.new_rows import choose_batch_size
from penstock.jobs.predict.predictions import Answer
from penstock.jobs.predict.raw_layout import Recipe, find_recipe
from penstock.model.task import Task
from penstock.storage.location import naming_original
from penstock.storage.store_path import AnyPath, as_path
from penstock.training.recorded_data import RecordedData
from penstock.training.run import Run, open_run
from penstock.training.run_files import CONFIG_NAME, copy_run
from penstock.training.validation_choice import Predict
from penstock.transform.map import MapFunction
from penstock.transform.pipeline import Pipeline, without_targets


class Trained(Protocol):
    """What a prediction needs: a `Run`, or an `ExportedModel`."""

    @property
    def pipeline(self) -> Pipeline:
        """Pipeline that makes the inputs of the model."""

    @property
    def tasks(self) -> Mapping[str, Task]:
        """Task of each target."""

    @property
    def folder(self) -> AnyPath:
        """Folder of the run or the export."""

    @property
    def files(self) -> Path:
        """The local folder with its files."""

    @property
    def data(self) -> AnyPath | list[AnyPath] | None:
        """The data of a run; None for an export."""

    @property
    def recorded(self) -> RecordedData:
        """Schema and conversion plan of the data."""

    @property
    def needs_model(self) -> bool:
        """Whether opening the folder takes a user's own model."""

    def predictor(self) -> Predict:
        """Return a function from the inputs of a batch to predictions by target."""


@dataclass(frozen=True)
class PredictionSetup:
    """A model with the parts that all predictions share; any number of threads may use it.

    Attributes:
        trained: The run or the export.
        inputs: Pipeline of the inputs of the model.
        recipe: How the data of the run was encoded.
        batch_size: Number of rows per call of the model, if no option declares it.
        answers: Output columns of each target.
        predictor: Returns a function from the inputs of a batch to predictions by target.
    """

    trained: Trained
    inputs: Pipeline
    recipe: Recipe
    batch_size: int
    answers: Mapping[str, Answer]
    predictor: Callable[[], Predict]


def make_setup(trained: Trained) -> PredictionSetup:
    """Return the setup of a run or an export."""
    inputs = without_targets(trained.pipeline)
    return PredictionSetup(
        trained,
        inputs,
        find_recipe(trained.pipeline, trained.recorded, trained.data),
        choose_batch_size(inputs),
        {name: Answer(task) for name, task in trained.tasks.items()},
        trained.predictor,
    )


def open_trained(run: object, model: Any, functions: Mapping[str, MapFunction] | None) -> Trained:
    """Return a run or an export; a folder is opened.

    `run`: a run, an export, or the path of the folder of one. `model`: the user's own model, or a function
    that returns it, if it needs one.
    """
    if not isinstance(run, str | os.PathLike):
        if not isinstance(run, Run | ExportedModel):
            raise OptionError("run", expected="a run, or the folder of one", got=show(run))
        return run
    folder = as_path(run)
    files = copy_export(folder)
    if files is not None:
        with naming_original(files, folder):
            return open_export(files, model, functions)
    files = copy_run(folder)  # before Keras is imported, which takes seconds; `open_run` uses the same copy
    if not (files / CONFIG_NAME).is_file():
        raise NoSuchPathError(
            f"is neither a run nor an export (it has neither {CONFIG_NAME} nor {MANIFEST_NAME})"
            if files.is_dir()
            else "no such folder",
            path=folder,
            advice="Pass a folder that `ps.train(data)` or `ps.export_model(run, out)` wrote.",
        )
    with importing_keras("predict"):
        import penstock.training.run_model  # noqa: F401, PLC0415 - imports Keras

    return open_run(folder, model, functions)
