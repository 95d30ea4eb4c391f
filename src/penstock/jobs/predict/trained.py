"""What a prediction needs of a run or an export, and opening one from its folder, which may be in a store."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from numpy.typing import NDArray

from penstock.errors import NoSuchPathError, OptionError
from penstock.export.manifest import MANIFEST_NAME, copy_export, is_export, open_export
from penstock.foundation.keras_backend import importing_keras
from penstock.foundation.wording import show
from penstock.model.task import Task
from penstock.storage.store_path import as_path
from penstock.training.run_files import CONFIG_NAME, copy_run
from penstock.transform.map import MapFunction
from penstock.transform.pipeline import Pipeline


class Trained(Protocol):
    """What a prediction needs: a `Run`, or an `ExportedModel`."""

    @property
    def pipeline(self) -> Pipeline:
        """Pipeline that makes the inputs of the model."""

    @property
    def tasks(self) -> Mapping[str, Task]:
        """Task of each target."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings of the run: `schema`, `plan` and `convert`."""

    def predictor(self) -> Callable[[Mapping[str, NDArray[Any]]], Mapping[str, NDArray[Any]]]:
        """Return a function from the inputs of a batch to predictions by target."""


def open_trained(run: object, model: Any, functions: Mapping[str, MapFunction] | None) -> Trained:
    """Return a run or an export; a folder is opened.

    Args:
        run: A run, an export, or the path of the folder of one.
        model: The user's own model, or a function that returns it, if it needs one.
        functions: Functions of the pipeline's maps, by name.

    Raises:
        NoSuchPathError: The folder is neither a run nor an export.
        OptionError: `run` is something else; or a model or a function is needed and not given.
        ExportError: A file of the export has changed.
    """
    if not isinstance(run, str | os.PathLike):
        if not hasattr(run, "predictor"):
            raise OptionError("run", expected="a run, or the folder of one", got=show(run))
        return cast("Trained", run)
    folder = as_path(run)
    if not isinstance(folder, Path):
        copy = copy_export(folder)
        if copy is not None:
            from penstock.storage.folder_copy import naming_original  # noqa: PLC0415 - loaded with the copy

            with naming_original(copy, folder):
                return open_export(copy, model, functions)
        copy_run(folder)  # before Keras is imported; `open_run` uses the same copy
    elif is_export(folder):
        return open_export(folder, model, functions)
    elif not (folder / CONFIG_NAME).is_file():  # before Keras is imported, which takes seconds
        raise NoSuchPathError(
            f"is neither a run nor an export (it has neither {CONFIG_NAME} nor {MANIFEST_NAME})"
            if folder.is_dir()
            else "no such folder",
            path=folder,
            advice="Pass a folder that 'penstock train --out' or 'penstock export' wrote.",
        )
    with importing_keras("predict"):
        from penstock.training.run import open_run  # noqa: PLC0415 - imports Keras

    return open_run(folder, model, functions)
