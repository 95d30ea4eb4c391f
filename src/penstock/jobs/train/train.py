"""The training job: `penstock.train` in Python and `penstock train` on the command line.

In: a data set or raw data, optionally a model, and options. Out: a `Run` in its folder.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.dataset import Dataset, open_with_target
from penstock.dataset import open as open_dataset
from penstock.distributed.workers import connecting
from penstock.errors import OptionError, StateError, UnknownNameError, importing
from penstock.foundation.wording import show
from penstock.jobs.given_dataset import Declaration, open_declared
from penstock.jobs.train.division import hold_out_records
from penstock.jobs.train.ensemble import EnsembleTraining, check_members
from penstock.jobs.train.job import TrainJob, check_job, find_number
from penstock.jobs.train.run_folder.run_folder import (
    choose_folder,
    claim_folder,
    describe_run,
    discard_unusable_data,
)
from penstock.jobs.train.run_folder.store_run import run_at
from penstock.plan.plan import Plan
from penstock.settings.conversion import ConvertTable
from penstock.settings.keywords import takes
from penstock.settings.model import ModelOptions
from penstock.settings.training import TrainCall, TrainOptions
from penstock.source.recognition import is_dataset
from penstock.training.assembly import is_compiled_by_owner
from penstock.training.display import showing_progress
from penstock.training.fit import Fit
from penstock.training.keras_state import in_precision, restored_random_state, seeded
from penstock.training.loaders import HeldOut, find_hold_out, find_validation
from penstock.training.progress import MemberWatcher, Watcher
from penstock.training.run import Run
from penstock.training.run_config import RunConfig, StoredModel, is_model_function
from penstock.training.run_files import (
    CONFIG_NAME,
    DATA_NAME,
    MEMBER_NAME,
    PIPELINE_NAME,
    find_data,
    read_config,
)
from penstock.training.train_plan import COMPILED, TrainPlan
from penstock.transform.pipeline import Pipeline
from penstock.tuning.pipeline_fitter import PipelineFitter, check_image_encoder, refuse_image_options
from penstock.tuning.tuner import Tuner, recall_choices, recall_losses, refuse_other_choices

_log = logging.getLogger("penstock")


@takes(TrainCall)
def train(data: Any, *, options: TrainCall) -> Run:
    """Train a model on a data set, and store the results in a run folder.

    A run that was killed at any moment can be resumed with `resume=True`. On the CPU of one machine it ends
    with exactly the weights of an uninterrupted run. The random state of Python, NumPy, Keras and the
    backend is restored at the end.

    Args:
        data: A `Dataset`, or the path of one or of TFRecords: the model is trained on its split "train", and
            its split "validation" decides which epoch is the best. Anything else that `convert` takes, such
            as a CSV or a DataFrame, is converted into the run's folder first. With `resume`, None stands
            for the data of the run.
        options: See below.

    Raises:
        OptionError: The model does not fit the data, or an option is not valid.
        WorkerError: Workers ended again and again without progress.
        PathError: The folder is not empty.
        BusyError: Another process is training there.
        StoreError: The run cannot be uploaded; the advice names the local folder that has it.
        StateError: The folder holds a different run.
        NonFiniteError: A step gave a loss that is not finite; it names the records.

    Example:
        ```python
        pets = ps.open("pets/", target="adopted")
        run = ps.train(pets, out="runs/pets", epochs=5)
        print(run.history[-1]["val_loss"])
        ```
    """
    job = TrainJob(data=data, options=options)
    with showing_progress(options.watcher, options.verbose) as shown:
        return run_training(job, shown)


def run_training(job: TrainJob, watcher: Watcher) -> Run:
    """Train, and return the run."""
    with run_at(job.options.out, resume=job.options.resume, note=watcher.note) as run:
        local = job if run.folder is job.options.out else job.with_options(out=run.folder)
        return run.finish(_train_in(choose_folder(run.folder, job.data), local, run.watch(watcher)))


def _train_in(folder: Path, job: TrainJob, watcher: Watcher) -> Run:
    with in_folder(job, folder, watcher) as prepared:
        if find_number(prepared, folder, "folds") is not None:
            raise StateError(
                "run",
                path=folder,
                expected="the folder of one run",
                got="a cross-validation",
                advice=f"Continue it: `ps.cross_validate(None, out={str(folder)!r}, resume=True)`.",
            )
        return run_plan(prepared, plan_run(prepared, folder, watcher), folder, watcher)


@contextmanager
def in_folder(job: TrainJob, folder: Path, watcher: Watcher) -> Iterator[TrainJob]:
    """Lock the folder of a job, and return the job with its raw data converted."""
    check_job(job, folder)  # before anything is converted
    claim = claim_folder(folder, may_hold=job.options.resume)
    with claim, connecting(job.launcher), discard_unusable_data(folder):
        is_raw = job.data is not None and not is_dataset(job.data)
        yield _convert(job, folder, watcher) if is_raw else job


def run_plan(job: TrainJob, plan: TrainPlan, folder: Path, watcher: Watcher) -> Run:
    """Choose what trials on validation decide, and train one model, or the members of an ensemble."""
    number = find_number(job, folder, "ensemble")
    launcher = job.launcher
    if launcher is not None:
        launcher = replace(launcher, function=plan.make_model)
    with restored_random_state():
        if number is None:
            tuned, shown = tune(job, plan, folder, watcher)
            fit = Fit(tuned, folder, shown, tuple(job.options.callbacks), launcher)
            return fit.run(resume=job.options.resume)
        check_members(plan, number)
        members = MemberWatcher(watcher)
        tuned, shown = tune(job, plan, folder, members, MEMBER_NAME.format(1))
        fit = Fit(tuned, folder, shown, launcher=launcher)
        return EnsembleTraining(fit, number, members).run(resume=job.options.resume)


def tune(
    job: TrainJob, plan: TrainPlan, folder: Path, watcher: Watcher, member: str = ""
) -> tuple[TrainPlan, Watcher]:
    """Return the plan with its choices, and the watcher of the run; a run that has started keeps its choices.

    `member`: folder of the first member of an ensemble, in the folder of the run.
    """
    if plan.chosen is not None:
        return plan, watcher
    fitter = None
    if job.options.pipeline is None:
        fitter = make_fitter(job, plan.data, plan.options, plan.held_out)
    can_fit = job.launcher is None and not job.options.callbacks
    tuner = Tuner(folder / member, watcher, fitter, can_fit=can_fit)
    tuned = tuner.choose(plan)
    config = describe_run(job, plan.data, tuned.pipeline, folder, None)
    return replace(tuned, config=config), tuner.watcher


def make_fitter(
    job: TrainJob, data: Dataset, options: TrainOptions, held_out: HeldOut | None
) -> PipelineFitter:
    """Return what fits the pipeline of a job."""
    given = (data, options, job.fields, job.groups, held_out)
    return PipelineFitter(*given, is_built=job.options.model is None)


def _convert(job: TrainJob, folder: Path, watcher: Watcher) -> TrainJob:
    """Convert the raw data of a job into the folder of the run, and return a job with that data set."""
    # The readers of raw data are imported only when they are needed.
    with importing("training on raw data"):
        from penstock.jobs.train.raw_data import (  # noqa: PLC0415
            RawData,
            format_plan,
            list_more_notes,
            list_paths,
            log_plan,
        )

    if job.options.resume and (folder / CONFIG_NAME).is_file():
        options = read_config(folder / CONFIG_NAME).convert or ConvertTable()
        options = options if job.options.target is None else options.replace(target=job.options.target)
        RawData(job.data, options).confirm(folder / DATA_NAME)
        return replace(job, data=folder / DATA_NAME)
    options = ConvertTable(seed=job.options.seed)
    options = options if job.options.target is None else options.replace(target=job.options.target)
    raw = RawData(job.data, options, paths=list_paths(job.data))

    def show_plan(plan: Plan) -> None:
        watcher.columns(format_plan(plan))
        log_plan(plan)

    done = raw.convert(folder / DATA_NAME, show_plan)
    for note in list_more_notes(done):
        _log.warning("%s", note)
    return replace(job, data=open_dataset(done.out), config=raw.config).with_options(target=None)


def plan_run(job: TrainJob, folder: Path, watcher: Watcher) -> TrainPlan:
    """Return the plan of one run; a note names an option that has no effect on its data."""
    plan = plan_training(job, folder)
    held = find_validation(plan.data)
    if plan.options.hold_out and held is not None:
        watcher.note(
            f"`hold_out={plan.options.hold_out:g}` has no effect: the data has split {held!r} to validate "
            "with. To hold records out, use data without that split."
        )
    return plan


def plan_training(job: TrainJob, folder: Path) -> TrainPlan:
    """Open the data, fit the pipeline, check the options, and return the plan of the training."""
    known = read_known(job, folder)
    if known is not None:
        refuse_other_choices(folder, known, job.options)
    data = open_data(job, folder, known)
    options = merge_options(job, known)
    pipeline = job.options.pipeline
    if pipeline is not None:
        refuse_image_options(job.options)
    model, make_model = _make_own_model(job, options)
    share = find_hold_out(data, options)
    held_out = hold_out_records(data, share, options.num_threads) if share else None
    if pipeline is not None and not isinstance(options.parts, str):
        expected = "'auto' or 'all', as a pipeline is given"
        advice = "Leave it out, and pass a pipeline of the inputs to use."
        raise OptionError("parts", expected=expected, got=show(options.parts), advice=advice)
    if pipeline is None and known is not None:
        pipeline = Pipeline.load(folder / PIPELINE_NAME)
    if known is None:
        check_image_encoder(data.schema, job.options.model_options)
    if pipeline is None:
        pipeline = make_fitter(job, data, options, held_out).fit()
    if model is not None and is_compiled_by_owner(model):
        _refuse_compiling(job.options)
    model_options = recall_model(job, known)
    if known is not None and model is None and known.is_own_model:
        advice = "Pass the model again: `model=build`."
        raise OptionError(
            "model", expected="the model that the run was started with", got="none", advice=advice
        )
    return TrainPlan(
        data=data,
        pipeline=pipeline,
        options=options,
        model=model,
        model_options=model_options,
        make_model=make_model,
        config=describe_run(job, data, pipeline, folder, known),
        losses={} if known is None else recall_losses(known),
        chosen=None if known is None else recall_choices(known),
        held_out=held_out,
    )


def _make_own_model(job: TrainJob, options: TrainOptions) -> tuple[Any, Callable[[], Any] | None]:
    """Return the user's own model, and the function that returned it, if there is one."""
    if is_model_function(job.options.model):
        with seeded(options.seed), in_precision(options.precision):
            return job.options.model(), job.options.model
    if job.options.model is not None and options.precision is not None:
        raise OptionError(
            "precision",
            field="precision",
            expected="a function that returns the model, as layers are created with their precision",
            got="a model",
            advice="Pass the function that builds it: `model=build`.",
        )
    return job.options.model, None


def read_known(job: TrainJob, folder: Path) -> RunConfig | None:
    """Return the `run.yaml` of a run that is resumed; None for a new run."""
    is_known = job.options.resume and (folder / CONFIG_NAME).is_file()
    return read_config(folder / CONFIG_NAME) if is_known else None


def merge_options(job: TrainJob, known: RunConfig | None) -> TrainOptions:
    """Return the options of a run: the given ones, and for others those with which it was started."""
    given = job.options.narrow(TrainOptions)
    return given if known is None else known.train.replace(**given.list_given())


def recall_model(job: TrainJob, known: RunConfig | None) -> ModelOptions | None:
    """Return the given options of a model, else the options of the resumed run."""
    given = job.options.model_options
    if given is not None or known is None or not isinstance(known.model, StoredModel):
        return given
    return known.model.read()


def _refuse_compiling(options: TrainOptions) -> None:
    """Refuse options that have no effect on a model that is already compiled."""
    for name in COMPILED:
        if name in options.given:
            advice = "Remove this option, or pass the model without calling compile()."
            expected = "no value, because the model is already compiled"
            raise options.refuse(name, expected, advice=advice)


def open_data(job: TrainJob, folder: Path, known: RunConfig | None) -> Dataset:
    """Open the data of a job; without data, the data of the run that is resumed."""
    data = job.data
    if data is None:
        if known is None or known.data is None:
            advice = "Give a data set, or continue a run: `ps.train(None, out=RUN, resume=True)`."
            raise StateError(
                "data", path=folder, expected="a data set to train on", got="none", advice=advice
            )
        data = find_data(folder, known)
    known = known or RunConfig()
    target = job.options.target or known.target
    if isinstance(data, Dataset):
        return data if target is None else open_with_target(data, target)
    if not isinstance(data, str | os.PathLike | list | tuple):
        expected = "a data set, or the path of one"
        advice = "Convert other data first: ps.convert(frame, 'pets/', target='adopted')."
        raise OptionError("data", expected=expected, got=show(data), advice=advice)
    declared = job.declaration or Declaration(fields=known.declared)
    try:
        if not declared:
            opened = open_dataset(data)
            return opened if target is None else open_with_target(opened, target)
        return open_declared(data, replace(declared, target=target))
    except UnknownNameError as error:
        error.path = str(data)
        raise
