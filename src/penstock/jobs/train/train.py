"""The training job: `penstock.train` in Python and `penstock train` on the command line.

In: a data set or raw data, optionally a model, and options. Out: a `Run` in a folder of its own.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, get_args, overload

from penstock.dataset import Dataset
from penstock.dataset import open as open_dataset
from penstock.errors import (
    OptionError,
    StateError,
    UnknownNameError,
    importing,
)
from penstock.foundation.wording import show
from penstock.jobs.stored_data import Declaration, is_stored, open_declared
from penstock.jobs.train.choices import (
    choose_on_trials,
    read_table,
    recall_losses,
    refuse_other_choices,
)
from penstock.jobs.train.ensemble import EnsembleTraining
from penstock.jobs.train.image_fields import check_image_encoder, refuse_image_options, set_images
from penstock.jobs.train.input_parts import select_parts
from penstock.jobs.train.job import TrainJob, check_job, find_number
from penstock.jobs.train.repeated_texts import note_repeated_texts
from penstock.jobs.train.run_description import describe_data, describe_run, recall_fields
from penstock.jobs.train.run_folder import choose_folder, claim_folder, discard_unusable_data
from penstock.jobs.train.stored_run import stored_run
from penstock.jobs.train.workers import Engine, connecting, make_plan
from penstock.model.options import ModelOptions
from penstock.plan.plan import Plan
from penstock.storage.paths import PathLike
from penstock.storage.store_path import StorePath, as_path
from penstock.training.display import TrainingDisplay
from penstock.training.loaders import find_hold_out
from penstock.training.options import TrainChoices, make_options
from penstock.training.precision import in_precision
from penstock.training.progress import SilentWatcher, Watcher
from penstock.training.random_state import seeded
from penstock.training.run import Run, is_model_function
from penstock.training.run_files import (
    CONFIG_NAME,
    DATA_NAME,
    OWN_MODEL,
    PIPELINE_NAME,
    find_data,
    read_run_config,
)
from penstock.training.train import COMPILED, Training, is_compiled_by_owner
from penstock.transform.pipeline import Pipeline

if TYPE_CHECKING:
    from penstock.jobs.train.folds import CrossValidation  # reads raw data and writes tables

_log = logging.getLogger("penstock")

Verbosity: TypeAlias = Literal[0, 1, 2]


@overload
def train(
    data: Any,
    *,
    model: Any = None,
    pipeline: Pipeline | None = None,
    out: PathLike | None = None,
    target: str | Sequence[str] | None = None,
    resume: bool = False,
    callbacks: Sequence[Any] = (),
    watcher: Watcher | None = None,
    verbose: Verbosity | None = None,
    model_options: ModelOptions | None = None,
    ensemble: int | None = None,
    folds: None = None,
    engine: Engine = "local",
    num_workers: int | None = None,
    num_devices: int | None = None,
    address: str | None = None,
    **options: Unpack[TrainChoices],
) -> Run: ...
@overload
def train(
    data: Any,
    *,
    folds: int,
    model: Any = None,
    pipeline: Pipeline | None = None,
    out: PathLike | None = None,
    target: str | Sequence[str] | None = None,
    resume: bool = False,
    callbacks: Sequence[Any] = (),
    watcher: Watcher | None = None,
    verbose: Verbosity | None = None,
    model_options: ModelOptions | None = None,
    ensemble: int | None = None,
    engine: Literal["local"] = "local",
    num_workers: None = None,
    num_devices: None = None,
    address: None = None,
    **options: Unpack[TrainChoices],
) -> CrossValidation: ...


def train(  # noqa: PLR0913 - what is trained and what with; how is in the options
    data: Any,
    *,
    model: Any = None,
    pipeline: Pipeline | None = None,
    out: PathLike | None = None,
    target: str | Sequence[str] | None = None,
    resume: bool = False,
    callbacks: Sequence[Any] = (),
    watcher: Watcher | None = None,
    verbose: Verbosity | None = None,
    model_options: ModelOptions | None = None,
    ensemble: int | None = None,
    folds: int | None = None,
    engine: Engine = "local",
    num_workers: int | None = None,
    num_devices: int | None = None,
    address: str | None = None,
    **options: Unpack[TrainChoices],
) -> Run | CrossValidation:
    """Train a model on a data set, and store the results in a run folder.

    A run that was killed at any moment can be resumed with `resume=True`. On the CPU of one machine it ends
    with exactly the weights of an uninterrupted run. The random state of Python, NumPy, Keras and the
    backend is restored at the end.

    Args:
        data: A `Dataset`, or the path of one or of TFRecords: the model is trained on its split "train", and
            its split "validation" decides which epoch is the best. Anything else that `convert` takes, such
            as a CSV or a DataFrame, is converted into the run's folder first. With `resume`, None stands
            for the data of the run.
        model: A Keras model whose inputs have the names of the pipeline's inputs. If not given, a model is
            built for the data. A compiled model is trained as it is; others get the optimizer and losses of
            `options`. Or a function that returns a new model, which an ensemble needs.
        pipeline: The preprocessing from records to inputs; fitted to the data set, if not given.
        out: The folder to write; a new one in `runs/`, if not given. In an object store, files are uploaded
            when they are complete, from a temporary folder.
        target: Name of the target, or several, if the data set does not declare it.
        resume: Whether to continue an interrupted run in that folder. Options that are not given again
            are those of the run; others must be the same.
        callbacks: Additional Keras callbacks. The state in their plain attributes is restored on resume.
        watcher: Object that is notified of the progress; by default, a display on stderr or in a notebook.
        verbose: What is shown instead: 0 for nothing, not even warnings, unless you have configured logging;
            1, the default, for a line that is updated and one line per epoch; 2 for one plain line per epoch.
        model_options: How to build the model.
        ensemble: Number of models to train, with the seeds `seed`, `seed + 1`, …; predictions are their
            average. Each is a complete run in a folder of its own, `member-1` and so on.
        folds: Number of folds of a cross-validation over the train and validation splits; a test split is not
            used. Each record is predicted by a model that was trained without its fold. Each fold is a
            complete run in a folder of its own, `fold-1` and so on. Returns a `CrossValidation`, with the
            mean and the standard deviation of each score.
        engine: What runs several workers: processes of this machine ("local"), or a Ray cluster ("ray").
        num_workers: Number of processes that train the model together, each on its part of every batch. The
            result is that of one process with the same batch size, except for rounding. Needs the JAX backend
            of Keras. If one is killed, all start again from the last checkpoint.
        num_devices: Number of devices of each worker. Several devices of this machine need no `num_workers`.
        address: Address of the Ray cluster, or "auto" for the one that runs on this machine; by default that
            in the variable RAY_ADDRESS, or a new one on this machine.
        **options: Everything else; see `penstock.options.TrainOptions`.

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
    if not isinstance(callbacks, list | tuple):
        raise OptionError("callbacks", expected="a list of callbacks", got=show(callbacks))
    job = TrainJob(
        data=data,
        target=target,
        out=out,
        model=model,
        pipeline=pipeline,
        model_options=model_options,
        ensemble=ensemble,
        folds=folds,
        choices=options,
        resume=resume,
        callbacks=callbacks,
        plan=make_plan(num_workers, engine, address, num_devices),
    )
    if verbose not in (None, *get_args(Verbosity)) or isinstance(verbose, bool):
        raise OptionError("verbose", field="verbose", expected="0, 1 or 2", got=show(verbose))
    if watcher is not None:
        if verbose is not None:
            expected, advice = "none, as a watcher is given", "The watcher decides what is shown."
            raise OptionError("verbose", field="verbose", expected=expected, got=verbose, advice=advice)
        return run_training(job, watcher)
    if verbose == 0:
        with quiet_log():
            return run_training(job, SilentWatcher())
    with TrainingDisplay(is_live=verbose != 2) as display:
        return run_training(job, display)


@contextmanager
def quiet_log() -> Iterator[None]:
    """Keep log messages off stderr; handlers that the program has configured still get them."""
    if _log.hasHandlers():
        yield
        return
    # Without any handler, Python itself writes warnings to stderr.
    handler = logging.NullHandler()
    _log.addHandler(handler)
    try:
        yield
    finally:
        _log.removeHandler(handler)


def run_training(job: TrainJob, watcher: Watcher) -> Run | CrossValidation:
    """Train, and return the run, or the result of a cross-validation.

    Raises:
        PenstockError: See `train`.
    """
    if job.out is not None and isinstance(out := as_path(job.out), StorePath):
        with stored_run(out, resume=job.resume, note=watcher.note) as stored:
            return stored.finish(run_training(replace(job, out=stored.folder), stored.watch(watcher)))
    folder = choose_folder(job.out, job.data)
    check_job(job, folder)  # before anything is converted
    with claim_folder(folder, may_hold=job.resume), connecting(job.plan), discard_unusable_data(folder):
        if job.data is not None and not is_stored(job.data):
            job = _convert(job, folder, watcher)
        if find_number(job, folder, "folds") is not None:
            return run_folds(job, folder, watcher)
        return run_prepared(job, prepare_training(job, folder, watcher))


def run_prepared(job: TrainJob, training: Training) -> Run:
    """Train one model, or the members of an ensemble.

    Raises:
        PenstockError: See `train`.
    """
    number = find_number(job, training.folder, "ensemble")
    if number is None:
        return training.run(resume=job.resume)
    return EnsembleTraining(training, number).run(resume=job.resume)


def run_folds(job: TrainJob, folder: Path, watcher: Watcher) -> CrossValidation:
    """Cross-validate: train one model per fold.

    Raises:
        PenstockError: See `train`.
    """
    # It reads and writes tables, which other runs do not need.
    with importing("cross-validation"):
        from penstock.jobs.train.folds import FoldTraining  # noqa: PLC0415

    known: Mapping[str, Any] = {}
    if job.resume and (folder / CONFIG_NAME).is_file():
        known = read_run_config(folder / CONFIG_NAME)
        refuse_other_choices(folder, known, job.choices)
    if job.model is not None and not is_model_function(job.model):
        advice = "Pass the function that builds it: model=build."
        expected = "a function that returns a new model for each fold"
        raise OptionError("model", expected=expected, got="one model", advice=advice)
    options = make_options(**{**read_table(known, "train"), **job.choices})
    data = _open_data(job, folder, known)
    model_options = job.model_options
    if model_options is None and isinstance(known.get("model"), Mapping):
        model_options = ModelOptions.from_run(known["model"])
    settings = dict(known)
    if not known:
        settings = {
            **describe_data(job, data, folder),
            "fields": dict(job.fields),
            "groups": dict(job.groups),
        }
        chosen = (model_options or ModelOptions()).resolved().to_json()
        settings["model"] = chosen if job.model is None else OWN_MODEL
    usual = make_options().to_json()
    # Only those that were given: some have no effect on a compiled model, and are then refused.
    choices = {name: each for name, each in options.to_json().items() if each != usual[name]}
    one = replace(
        job,
        fields=read_table(settings, "fields"),
        groups=read_table(settings, "groups"),
        model_options=model_options,
        choices=choices,
        target=None,
        declaration=Declaration(),
        settings={},
        folds=None,
        resume=True,
    )

    def prepare(data: Dataset, folder: Path, watcher: Watcher) -> Training:
        return prepare_training(replace(one, data=data), folder, watcher)

    number = find_number(job, folder, "folds") or 0
    return FoldTraining(data, folder, number, options, prepare, settings, watcher).run(resume=job.resume)


def _convert(job: TrainJob, folder: Path, watcher: Watcher) -> TrainJob:
    """Convert the raw data of a job into the folder of the run, and return a job with that data set."""
    # The readers of raw data are imported only when they are needed.
    with importing("training on raw data"):
        from penstock.jobs.train.raw_data import (  # noqa: PLC0415
            RawData,
            format_plan,
            list_more_notes,
            log_plan,
        )

    if job.resume and (folder / CONFIG_NAME).is_file():
        known = read_table(read_run_config(folder / CONFIG_NAME), "convert")
        raw = RawData.of(job.data, job.target or known.get("target"), seed=int(known.get("seed", 0)))
        raw.confirm(folder / DATA_NAME)
        return replace(job, data=folder / DATA_NAME)
    raw = RawData.of(job.data, job.target, seed=int(job.choices.get("seed", 0)))

    def show_plan(plan: Plan) -> None:
        watcher.columns(format_plan(plan))
        log_plan(plan)

    done = raw.convert(folder / DATA_NAME, show_plan)
    for note in list_more_notes(done):
        _log.warning("%s", note)
    return replace(job, data=open_dataset(done.out), settings=dict(raw.tables), target=None)


def prepare_training(job: TrainJob, folder: Path, watcher: Watcher) -> Training:
    """Open the data, fit the pipeline, check the options, and return the training that is ready to run."""
    known: Mapping[str, Any] = {}
    if job.resume and (folder / CONFIG_NAME).is_file():
        known = read_run_config(folder / CONFIG_NAME)
    choices = {**read_table(known, "train"), **job.choices}
    if known:
        refuse_other_choices(folder, known, job.choices)
    data = _open_data(job, folder, known)
    options = make_options(**choices)
    pipeline = job.pipeline
    if pipeline is not None:
        refuse_image_options(job.choices)
    make_model = job.model if is_model_function(job.model) else None
    if make_model is not None:
        with seeded(options.seed), in_precision(options.precision):
            job = replace(job, model=make_model())
    elif job.model is not None and options.precision is not None:
        raise OptionError(
            "precision",
            field="precision",
            expected="a function that returns the model, as layers are created with their precision",
            got="a model",
            advice="Pass the function that builds it: model=build.",
        )

    def fit(more: Mapping[str, Any]) -> Pipeline:
        share = find_hold_out(data, options)
        fields = set_images(data.schema, {**job.fields, **more}, options)
        settings = {"fields": fields, "groups": job.groups}
        fitted = Pipeline.fit_config(data, settings, part=(share, 1.0) if share else None)
        return select_parts(fitted, options.parts)

    if pipeline is not None and not isinstance(options.parts, str):
        expected = "'auto' or 'all', as a pipeline is given"
        advice = "Leave it out, and pass a pipeline of the inputs to use."
        raise OptionError("parts", expected=expected, got=show(options.parts), advice=advice)
    if pipeline is None and known:
        pipeline = Pipeline.load(folder / PIPELINE_NAME)
    if not known:
        check_image_encoder(data.schema, job.model_options)
    if pipeline is None:
        pipeline = fit({})
    if job.model is not None and is_compiled_by_owner(job.model):
        _refuse_compiling(job.choices)
    model_options = job.model_options
    if model_options is None and isinstance(known.get("model"), Mapping):
        model_options = ModelOptions.from_run(known["model"])
    if known and job.model is None and not isinstance(known.get("model"), Mapping):
        advice = (
            "Pass the model again: ps.train(data, model=model, resume=True, …), or --model FILE.py:FUNCTION."
        )
        raise OptionError(
            "model", expected="the model that the run was started with", got="none", advice=advice
        )

    def choose(training: Training) -> Training:
        for note in note_repeated_texts(training.data, training.pipeline):
            training.watcher.note(note)
        given = set(training.pipeline.targets if job.pipeline is not None else job.fields)
        chosen = choose_on_trials(training, fit, given, has_pipeline=job.pipeline is not None)
        return replace(chosen, settings=describe_run(job, data, chosen.pipeline, folder, {}))

    return Training(
        data=data,
        pipeline=pipeline,
        folder=folder,
        options=options,
        model=job.model,
        model_options=model_options,
        settings=describe_run(job, data, pipeline, folder, known),
        callbacks=tuple(job.callbacks),
        watcher=watcher,
        make_model=make_model,
        losses=recall_losses(known),
        numbers=read_table(read_table(known, "facts"), "numbers"),
        parts=read_table(read_table(known, "facts"), "parts"),
        choose=None if known else choose,
        launch=None if job.plan is None else replace(job.plan, function=make_model).launch,
    )


def _refuse_compiling(choices: Mapping[str, Any]) -> None:
    """Refuse options that have no effect on a model that is already compiled."""
    for name in COMPILED:
        if name in choices:
            advice = "Remove this option, or pass the model without calling compile()."
            expected = "no value, because the model is already compiled"
            raise OptionError(name, expected=expected, got=show(choices[name]), advice=advice)


def _open_data(job: TrainJob, folder: Path, known: Mapping[str, Any]) -> Dataset:
    data = job.data
    if data is None:
        if "data" not in known:
            advice = "Give a data set, or continue a run with --resume --out RUN."
            raise StateError(
                "data", path=folder, expected="a data set to train on", got="none", advice=advice
            )
        data = find_data(folder, known)
    if isinstance(data, Dataset):
        return data
    if not isinstance(data, str | os.PathLike | list | tuple):
        expected = "a data set, or the path of one"
        advice = "Convert other data first: ps.convert(frame, 'pets/', target='adopted')."
        raise OptionError("data", expected=expected, got=show(data), advice=advice)
    declared = job.declaration or Declaration(fields=recall_fields(known))
    target = job.target or known.get("target")
    if not declared:
        opened = open_dataset(data)
        if target is None or opened.schema.targets == tuple([target] if isinstance(target, str) else target):
            return opened
    try:
        return open_declared(data, replace(declared, target=target))
    except UnknownNameError as error:
        error.path = str(data)
        raise
