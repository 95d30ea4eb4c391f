"""The model of a run: built again from `run.yaml`, or a user's own, with the weights of the run.

In: the folder of a run, its configuration and pipeline. Out: the Keras model; or the file of its weights.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import OptionError, StateError
from penstock.model.build import build_model
from penstock.model.compatibility import check_model
from penstock.model.logits import find_logits
from penstock.model.task import Task
from penstock.settings.model import ModelOptions
from penstock.training.keras_state import in_precision
from penstock.training.members import average_models, without_part_outputs
from penstock.training.run_config import RunConfig, StoredModel, is_model_function
from penstock.training.run_files import (
    CONFIG_NAME,
    PIPELINE_NAME,
    WEIGHTS_NAME,
    refuse_unfinished,
)
from penstock.training.run_state import read_result
from penstock.training.snapshot import copy_array, pair_weights
from penstock.training.tensor_file import read_tensors, write_tensors
from penstock.transform.pipeline import Pipeline

if TYPE_CHECKING:
    from penstock.training.run import Run

_log = logging.getLogger("penstock")

_FINGERPRINT: Final = "pipeline"


def load_model(
    folder: Path, config: RunConfig, model: Any, pipeline: Pipeline, tasks: Mapping[str, Task]
) -> tuple[Any, Mapping[str, bool]]:
    """Return the model of a run with its weights, and whether it returns logits, by target.

    `config`: content of its `run.yaml`. `model`: a user's own model, or a function that returns it; None to
    build the model.
    """
    if model is None:
        options = config.model.rebuild() if isinstance(config.model, StoredModel) else None
        model = rebuild_model(folder / CONFIG_NAME, options, config.train.precision, pipeline)
    else:
        model = take_model(model, config.train.precision, pipeline, tasks)
    load_weights(folder, model, pipeline)
    return model, config.facts.logits or find_logits(model, tasks, pipeline)


def make_served_model(run: Run) -> Any:
    """Return the model of a run for predictions alone: without outputs that only training uses.

    It shares its weights with the model of the run.
    """
    models = [without_part_outputs(each.model, run.tasks) for each in run.members or (run,)]
    if not run.members:
        return models[0]
    return average_models(models, run.pipeline, run.tasks, [each.logits for each in run.members])


def save_weights(folder: Path, model: Any, pipeline: Pipeline, name: str = WEIGHTS_NAME) -> str:
    """Write the weights of a model and the fingerprint of its pipeline; return the SHA-256 of the file."""
    arrays = {f"{number}": copy_array(weight) for number, weight in enumerate(model.weights)}
    paths = {f"path {number}": str(weight.path) for number, weight in enumerate(model.weights)}
    return write_tensors(folder / name, arrays, {_FINGERPRINT: pipeline.fingerprint(), **paths})


def load_weights(folder: Path, model: Any, pipeline: Pipeline) -> None:
    """Load the weights of a run into a model."""
    path = folder / WEIGHTS_NAME
    if not path.is_file():
        raise refuse_unfinished(folder)
    status, digest = read_result(folder)
    if status == "running":
        raise refuse_unfinished(folder)
    if status == "failed":
        _log.warning("%s: the run failed; its weights are those before the failed step", folder)
    assign_weights(path, digest, model, pipeline)


def assign_weights(path: Path, digest: str | None, model: Any, pipeline: Pipeline) -> None:
    """Load the weights of a file into a model.

    `digest`: expected SHA-256 of the file; not checked if it is None.
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
    """Return a user's own model, given as a model or as a function that returns it."""
    if is_model_function(model):
        with in_precision(precision):
            model = model()
    check_model(model, pipeline, tasks)
    return model


def rebuild_model(path: Path, options: ModelOptions | None, precision: str | None, pipeline: Pipeline) -> Any:
    """Build a model from its stored options, without its weights.

    Raises OptionError: the model is a user's own, which is not stored in the file at `path`.
    """
    if options is None:
        raise OptionError(
            "model of the run",
            path=path,
            expected="the model that it was trained with",
            got="no model",
            advice="Pass it: `model=build`.",
        )
    with in_precision(precision):
        return build_model(pipeline.schema, pipeline, options)


def _make_model_error(path: Path, what: str, expected: object, got: object) -> StateError:
    advice = "Pass the model that the run was trained with."
    return StateError(what, path=path, expected=expected, got=got, advice=advice)
