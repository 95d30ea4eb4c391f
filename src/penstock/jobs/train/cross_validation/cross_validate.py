"""The cross-validation job: `penstock.cross_validate` in Python, and `penstock train --folds`.

In: a data set or raw data, optionally a model, and options. Out: a `CrossValidation` in its folder.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import OptionError, StateError, importing
from penstock.jobs.given_dataset import Declaration
from penstock.jobs.train.job import TrainJob, find_number
from penstock.jobs.train.run_folder.run_folder import choose_folder, describe_data
from penstock.jobs.train.run_folder.store_run import run_at
from penstock.jobs.train.train import in_folder, merge_options, open_data, read_known, recall_model
from penstock.model.presets import fill_in_preset
from penstock.settings.keywords import takes
from penstock.settings.model import ModelOptions
from penstock.settings.training import USUAL_FOLDS, CrossValidateCall, TrainCall, TrainOptions
from penstock.training.display import showing_progress
from penstock.training.progress import Watcher
from penstock.training.run_config import RunConfig, is_model_function, store_model
from penstock.training.run_files import CONFIG_NAME
from penstock.tuning.tuner import refuse_other_choices

if TYPE_CHECKING:
    from penstock.jobs.train.cross_validation.folds import CrossValidation  # reads and writes tables


@takes(CrossValidateCall)
def cross_validate(data: Any, *, options: CrossValidateCall) -> CrossValidation:
    """Train one model per fold, and score each on the fold that it was trained without.

    The records of the train and validation splits are divided into folds; a test split is not used. Each
    record is predicted once, by the model of its fold. A cross-validation that was killed at any moment can
    be resumed with `resume=True`, and ends with the same weights and predictions. The random state of Python,
    NumPy, Keras and the backend is restored at the end.

    Args:
        data: A `Dataset`, or the path of one or of TFRecords. Anything else that `convert` takes, such as a
            CSV or a DataFrame, is converted into the folder first. With `resume`, None stands for the data of
            the cross-validation.
        options: See below.

    Returns:
        Scores of each fold, their mean and standard deviation, and the predictions.

    Raises:
        OptionError: There are too few records, or groups of records, for so many folds; or an option is not
            valid.
        TrainingDataError: The models of some folds would not be trained on all classes.
        PathError: The folder is not empty.
        BusyError: Another process is training there.
        StoreError: The runs cannot be uploaded; the advice names the local folder that has them.
        StateError: The folder holds another cross-validation, or a single run.
        NonFiniteError: A step gave a loss that is not finite; it names the records.

    Example:
        ```python
        pets = ps.open("pets/", target="adopted")
        found = ps.cross_validate(pets, folds=5, out="runs/pets-folds", epochs=5)
        print(found.means["adopted"]["auc"], found.deviations["adopted"]["auc"])
        ```
    """
    folds = options.folds if "folds" in options.given else None
    job = TrainJob(data=data, options=options.narrow(TrainCall), folds=folds)
    with showing_progress(options.watcher, options.verbose) as shown:
        return run_cross_validation(job, shown)


def run_cross_validation(job: TrainJob, watcher: Watcher) -> CrossValidation:
    """Cross-validate; without a number of folds, the number of the run that is resumed, or the usual one."""
    with run_at(job.options.out, resume=job.options.resume, note=watcher.note) as run:
        local = job if run.folder is job.options.out else job.with_options(out=run.folder)
        return run.finish_folds(_train_in(choose_folder(run.folder, job.data), local, run.watch(watcher)))


def _train_in(folder: Path, job: TrainJob, watcher: Watcher) -> CrossValidation:
    if find_number(job, folder, "folds") is None:
        if job.options.resume and (folder / CONFIG_NAME).is_file():
            raise StateError(
                "run",
                path=folder,
                expected="a cross-validation",
                got="one run",
                advice=f"Continue it: `ps.train(None, out={str(folder)!r}, resume=True)`.",
            )
        job = replace(job, folds=USUAL_FOLDS)
    with in_folder(job, folder, watcher) as prepared:
        return run_folds(prepared, folder, watcher)


def run_folds(job: TrainJob, folder: Path, watcher: Watcher) -> CrossValidation:
    """Train and score the folds of a job whose data is stored."""
    # It reads and writes tables, which other runs do not need.
    with importing("cross-validation"):
        from penstock.jobs.train.cross_validation.folds import FoldTraining  # noqa: PLC0415

    known = read_known(job, folder)
    if known is not None:
        refuse_other_choices(folder, known, job.options)
    if job.options.model is not None and not is_model_function(job.options.model):
        advice = "Pass the function that builds it: `model=build`."
        expected = "a function that returns a new model for each fold"
        raise OptionError("model", expected=expected, got="one model", advice=advice)
    options, model_options = merge_options(job, known), recall_model(job, known)
    data = open_data(job, folder, known)
    config = known
    if config is None:
        built = None if job.options.model is not None else fill_in_preset(model_options or ModelOptions())
        described = describe_data(job, data, folder)
        config = replace(described, fields=job.fields, groups=job.groups, model=store_model(built))
    # Only those that were given: some have no effect on a compiled model, and are then refused.
    usual = TrainOptions()
    given = {name: each for name, each in options.list_given().items() if each != getattr(usual, name)}
    fold = replace(
        job,
        fields=config.fields,
        groups=config.groups,
        options=TrainCall(**given, model=job.options.model, model_options=model_options, resume=True),
        declaration=Declaration(),
        config=RunConfig(),
        folds=None,
    )
    number = find_number(job, folder, "folds") or 0
    return FoldTraining(data, folder, number, options, fold, config, watcher).run(resume=job.options.resume)
