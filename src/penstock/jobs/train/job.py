"""The arguments of a training job, checked before anything is converted or trained.

In: what a caller passes to `penstock.train` or `penstock train`. Out: a `TrainJob`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from penstock.batch.options import check_shares
from penstock.errors import OptionError, StateError
from penstock.foundation.wording import show
from penstock.jobs.stored_data import Declaration
from penstock.jobs.train.ensemble import check_number
from penstock.jobs.train.workers import WorkerPlan
from penstock.model.options import ModelOptions
from penstock.storage.paths import PathLike
from penstock.training.options import make_options
from penstock.training.run import is_model_function
from penstock.training.run_files import CONFIG_NAME, read_count, read_run_config
from penstock.transform.pipeline import Pipeline


@dataclass(frozen=True, kw_only=True)
class TrainJob:
    """Arguments of one training run.

    Attributes:
        data: A data set, the path of one, or raw data; None for the data of the run that is resumed.
        out: Folder of the run; a new one if None.
        model: The user's own Keras model, a function that returns a new one, or None to build one.
        pipeline: A fitted pipeline, or None to fit one.
        fields: Settings of fields for `Pipeline.fit_config`, used if a pipeline is fitted.
        groups: Groups of inputs for `Pipeline.fit_config`, used if a pipeline is fitted.
        model_options: How to build a model.
        ensemble: Number of models to train and average, or None for a single run.
        folds: Number of folds of a cross-validation, or None.
        choices: Options of `TrainOptions` that were given.
        target: Name of the target, or several, if the data set does not declare it.
        declaration: What is declared about the fields of TFRecords.
        settings: Additional tables for `run.yaml`.
        resume: Whether to continue the run in the folder.
        callbacks: Additional Keras callbacks.
        plan: How many workers train, and where; None for this process.
    """

    data: Any = None
    out: PathLike | None = None
    model: Any = None
    pipeline: Pipeline | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    groups: Mapping[str, Any] = field(default_factory=dict)
    model_options: ModelOptions | None = None
    ensemble: int | None = None
    folds: int | None = None
    choices: Mapping[str, Any] = field(default_factory=dict)
    target: str | Sequence[str] | None = None
    declaration: Declaration = field(default_factory=Declaration)
    settings: Mapping[str, Any] = field(default_factory=dict)
    resume: bool = False
    callbacks: Sequence[Any] = ()
    plan: WorkerPlan | None = None


_SEVERAL: Final[Mapping[str, str]] = {"ensemble": "members", "folds": "number"}
"""Options that train several models, and the key of their number in `run.yaml`."""


def check_job(job: TrainJob, folder: Path) -> None:
    """Check the options of a job, and that a run which is resumed consists of as many runs.

    Raises:
        OptionError: An option is not valid.
        StateError: The folder holds another kind of run.
    """
    options = make_options(**job.choices)
    if job.plan is not None:
        _check_plan(job, job.plan, options.batch_size)
    if job.ensemble is not None and job.folds is not None:
        raise OptionError(
            "folds",
            field="folds",
            expected="either folds or ensemble",
            got=f"folds={show(job.folds)} and ensemble={show(job.ensemble)}",
            advice="Leave one out: folds estimate the scores on new records, an ensemble predicts better. "
            "For both, train twice, in two folders.",
        )
    for name in _SEVERAL:
        given = getattr(job, name)
        if given is not None:
            check_number(name, given)
        if job.resume and (folder / CONFIG_NAME).is_file():
            stored = _read_number(folder, name)
            if given is not None and given != stored:
                raise StateError(
                    f"{name} of the run",
                    path=folder / CONFIG_NAME,
                    expected=f"no {name}" if stored is None else stored,
                    got=given,
                    advice="Resume with the value that the run was started with, or start a new run.",
                )
        if find_number(job, folder, name) is None:
            continue
        if job.callbacks:
            advice = "Callbacks keep state from one run to the next: train single runs with them."
            raise OptionError("callbacks", expected=f"none with {name}", got="some", advice=advice)
        if name == "folds" and job.pipeline is not None:
            advice = "It was fitted to records of all folds. Each fold fits its own: leave it out."
            raise OptionError("pipeline", expected="none with folds", got="a fitted pipeline", advice=advice)


def _check_plan(job: TrainJob, plan: WorkerPlan, batch_size: int | None) -> None:
    """Refuse what several workers cannot do."""
    plan.check()
    if batch_size is not None:
        check_shares(batch_size, plan.num_workers, "workers")
    refused = {
        "callbacks": (bool(job.callbacks), "none", "They run in this process: train without workers."),
        "folds": (job.folds is not None, "none", "Train the folds one by one, without workers."),
        "model": (
            job.model is not None and not is_model_function(job.model),
            "a function that returns the model, as each worker builds its own",
            "Pass the function that builds it: model=build.",
        ),
    }
    for name, (is_given, expected, advice) in refused.items():
        if is_given:
            raise OptionError(
                name,
                field=name,
                expected=f"{expected}, with several workers or devices",
                got=show(getattr(job, name)),
                advice=advice,
            )


def find_number(job: TrainJob, folder: Path, name: str) -> int | None:
    """Return the number of models of an ensemble, or of folds: the given one, or that of the resumed run."""
    given: int | None = getattr(job, name)
    if given is None and job.resume and (folder / CONFIG_NAME).is_file():
        return _read_number(folder, name)
    return given


def _read_number(folder: Path, name: str) -> int | None:
    path = folder / CONFIG_NAME
    return read_count(read_run_config(path), name, _SEVERAL[name], path)
