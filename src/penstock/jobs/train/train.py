"""From a data set to a trained model: the job behind `penstock.train` and `penstock train`.

In: a data set, a model or none, choices. Out: a `Run` in a folder of its own.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Unpack

from penstock.dataset import Dataset
from penstock.dataset import open as open_dataset
from penstock.errors import (
    BusyError,
    FieldError,
    OptionError,
    PathError,
    PenstockError,
    SchemaError,
    SourceError,
    StateError,
    TrainingDataError,
    UnknownNameError,
    importing,
)
from penstock.foundation.wording import show
from penstock.jobs.stored_data import Declaration, is_stored, open_declared
from penstock.model.options import ModelOptions
from penstock.plan.plan import Plan
from penstock.schema.field import Field
from penstock.schema.json_form import VERSION, dump_fields, load_fields
from penstock.shards.destination import find_staging
from penstock.shards.lock import WriterLock
from penstock.shards.manifest import MANIFEST_NAME
from penstock.storage.atomic import write_failure
from penstock.storage.paths import PathLike
from penstock.training.display import TrainingDisplay
from penstock.training.options import TrainChoices, make_options
from penstock.training.progress import Watcher
from penstock.training.run import DATA_NAME, PIPELINE_NAME, Run, find_data
from penstock.training.run_files import CONFIG_NAME, read_run_config
from penstock.training.train import COMPILED, Training, find_hold_out, is_compiled_by_owner
from penstock.transform.pipeline import Pipeline

_log = logging.getLogger("penstock")

RUNS: Final = "runs"
"""Where runs go that were given no folder."""


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
    model_options: ModelOptions | None = None,
    **options: Unpack[TrainChoices],
) -> Run:
    """Train a model on a data set, and leave everything in a run folder.

    Killed at any moment and called again with `resume=True`, it ends with the same weights, bit for bit on
    the CPU of one machine, as if nothing had happened. The random state of Python, NumPy, Keras and the
    backend is restored at the end.

    Args:
        data: A `Dataset`, or the path of one or of TFRecords: the model is trained on its split "train", and
            its split "validation" decides which epoch is the best. Anything else that `convert` takes, such
            as a CSV or a DataFrame, is converted into the run's folder first. None, with `resume`, is the
            data of the run.
        model: A Keras model whose inputs have the names of the pipeline's inputs. If not given, a model is
            built for the data. A compiled model is trained as it is; others get the optimizer and losses of
            `options`.
        pipeline: The preprocessing from records to inputs; fitted to the data set, if not given.
        out: The folder to write; a new one in `runs/`, if not given.
        target: What to predict, if the data does not say.
        resume: Whether to go on where a run in that folder was killed. Choices that are not given again are
            those of the run; others must be the same.
        callbacks: More callbacks of Keras. What they hold in plain attributes is resumed, too.
        watcher: Who hears of it; a display on stderr, if not given.
        model_options: How to build the model.
        **options: Everything else; see `penstock.options.TrainOptions`.

    Raises:
        OptionError: The model does not fit the data, or a choice cannot be.
        PathError: The folder holds something.
        BusyError: Another process is training there.
        StateError: The run in that folder is another one.
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
        choices=options,
        resume=resume,
        callbacks=callbacks,
    )
    if watcher is not None:
        return run_training(job, watcher)
    with TrainingDisplay() as display:
        return run_training(job, display)


@dataclass(frozen=True, kw_only=True)
class TrainJob:
    """What is to be trained.

    Attributes:
        data: A data set, or the path of one; None is that of the run that is resumed.
        out: The folder; a new one, if not given.
        model: A user's own, or None.
        pipeline: Fitted, or None.
        fields: What `Pipeline.fit` is told of fields, if it is to be fitted.
        groups: Of inputs, likewise.
        model_options: How to build a model.
        choices: Of `TrainOptions`.
        target: What to predict, if the data does not say.
        declaration: What is declared about the fields of TFRecords.
        settings: Further tables for `run.yaml`.
        resume: Whether to go on with a run.
        callbacks: Of Keras.
    """

    data: Any = None
    out: PathLike | None = None
    model: Any = None
    pipeline: Pipeline | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    groups: Mapping[str, Any] = field(default_factory=dict)
    model_options: ModelOptions | None = None
    choices: Mapping[str, Any] = field(default_factory=dict)
    target: str | Sequence[str] | None = None
    declaration: Declaration = field(default_factory=Declaration)
    settings: Mapping[str, Any] = field(default_factory=dict)
    resume: bool = False
    callbacks: Sequence[Any] = ()


def run_training(job: TrainJob, watcher: Watcher) -> Run:
    """Train, and return the run.

    Raises:
        PenstockError: See `train`.
    """
    folder = choose_folder(job.out, job.data)
    make_options(**job.choices)  # before anything is converted
    with claim_folder(folder, may_hold=job.resume), discard_unusable_data(folder):
        if job.data is not None and not is_stored(job.data):
            job = _convert(job, folder, watcher)
        return prepare_training(job, folder, watcher).run(resume=job.resume)


def _convert(job: TrainJob, folder: Path, watcher: Watcher) -> TrainJob:
    """Return a job whose raw data is converted into the run's folder; its columns are shown."""
    # What reads raw data is loaded for raw data alone.
    with importing("training on raw data"):
        from penstock.jobs.train.raw_data import (  # noqa: PLC0415
            RawData,
            format_plan,
            list_more_notes,
            log_plan,
        )

    if job.resume and (folder / CONFIG_NAME).is_file():
        known = _read_table(read_run_config(folder / CONFIG_NAME), "convert")
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
    """Return what is ready to be trained in a folder: data opened, pipeline fitted, choices checked."""
    known: Mapping[str, Any] = {}
    if job.resume and (folder / CONFIG_NAME).is_file():
        known = read_run_config(folder / CONFIG_NAME)
    choices = {**_read_table(known, "train"), **job.choices}
    data = _open_data(job, folder, known)
    options = make_options(**choices)
    pipeline = job.pipeline
    if pipeline is None and known:
        pipeline = Pipeline.load(folder / PIPELINE_NAME)
    if pipeline is None:
        share = find_hold_out(data, options)
        part = (share, 1.0) if share else None
        pipeline = Pipeline.fit_config(data, {"fields": job.fields, "groups": job.groups}, part=part)
    if job.model is not None and is_compiled_by_owner(job.model):
        _refuse_compiling(job.choices)
    model_options = job.model_options
    if model_options is None and isinstance(known.get("model"), Mapping):
        model_options = ModelOptions.from_json(known["model"])
    if known and job.model is None and not isinstance(known.get("model"), Mapping):
        advice = "Pass it again: ps.train(data, model=model, resume=True, …), or --model FILE.py:FUNCTION."
        raise OptionError("model", expected="the model that the run began with", got="none", advice=advice)
    return Training(
        data=data,
        pipeline=pipeline,
        folder=folder,
        options=options,
        model=job.model,
        model_options=model_options,
        settings=_describe(job, data, pipeline, folder, known),
        callbacks=tuple(job.callbacks),
        watcher=watcher,
    )


def _refuse_compiling(choices: Mapping[str, Any]) -> None:
    """Refuse choices that do not count, as the model's owner has made them."""
    for name in COMPILED:
        if name in choices:
            advice = "Leave it out, or give the model before compile()."
            expected = "nothing, as the model is compiled"
            raise OptionError(name, expected=expected, got=show(choices[name]), advice=advice)


def choose_folder(out: PathLike | None, data: Any) -> Path:
    """Return the folder of a run: what was said, or a name in `runs/` that is free."""
    if out is not None:
        return Path(out)
    source = data.paths[0].parent if isinstance(data, Dataset) and data.paths else data
    is_path = isinstance(source, str | os.PathLike)
    stem = Path(source).resolve().name.split(".")[0] if is_path else ""
    base = Path(RUNS) / (stem or "run")
    number = 1
    folder = base
    while folder.exists():
        number += 1
        folder = base.with_name(f"{base.name}-{number}")
    return folder


@contextmanager
def claim_folder(folder: Path, *, may_hold: bool) -> Iterator[None]:
    """Have a folder for oneself; one in which nothing came to be is gone at the end.

    Raises:
        PathError: It holds something, and may not.
        BusyError: Somebody else has it.
        WriteError: It cannot be made.
    """
    if folder.exists() and not may_hold and (not folder.is_dir() or any(folder.iterdir())):
        advice = "Go on with the run there: --resume, in Python resume=True; or name another folder."
        raise PathError("is there, and is not empty", path=folder, advice=advice)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_failure(folder, error) from error
    try:
        lock = WriterLock(folder)
    except BusyError:
        raise
    except OSError as error:
        raise write_failure(folder, error) from error
    try:
        yield
    finally:
        lock.release()
        with contextlib.suppress(OSError):
            folder.rmdir()  # only an empty one goes


@contextmanager
def discard_unusable_data(folder: Path) -> Iterator[list[Path]]:
    """Remove the data that was converted in this context if the error is about the data.

    The corrected call needs other data, or the same data converted in another way, and finds the folder of
    the run free. What was in the folder before stays, and so does the data of a run that has begun.

    Yields:
        A list that receives the folders that are removed.
    """
    there = {path for path in _list_converted(folder) if path.exists()}
    removed: list[Path] = []
    try:
        yield removed
    except PenstockError as error:
        if not (folder / CONFIG_NAME).is_file() and _is_about_data(error, folder):
            for path in _list_converted(folder):
                if path.is_dir() and path not in there:
                    shutil.rmtree(path, ignore_errors=True)
                    removed.append(path)
        raise


def can_reuse_data(error: BaseException, folder: Path) -> bool:
    """Whether the data that was converted for a run is of use to the corrected call after an error."""
    if not (folder / DATA_NAME / MANIFEST_NAME).is_file() or (folder / CONFIG_NAME).is_file():
        return False
    if not isinstance(error, PenstockError):
        return True
    is_inside = error.path is not None and Path(error.path).resolve().is_relative_to(
        (folder / DATA_NAME).resolve()
    )
    return not is_inside and not _is_about_data(error, folder)


def _is_about_data(error: PenstockError, folder: Path) -> bool:
    """Whether an error is corrected by other data, or by another conversion."""
    kinds: tuple[type[PenstockError], ...] = (FieldError, SchemaError, SourceError, TrainingDataError)
    if not (folder / DATA_NAME).is_dir():  # it was not converted yet
        kinds = (*kinds, OptionError, UnknownNameError)
    return isinstance(error, kinds)


def _list_converted(folder: Path) -> list[Path]:
    """Return where the data of a run is, finished or not."""
    return [folder / DATA_NAME, find_staging(folder / DATA_NAME)]


def _open_data(job: TrainJob, folder: Path, known: Mapping[str, Any]) -> Dataset:
    data = job.data
    if data is None:
        if "data" not in known:
            advice = "Name a data set, or with --resume the folder of a run: --out RUN."
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


def recall_fields(tables: Mapping[str, Any]) -> dict[str, Field]:
    """Return the fields that were declared, as `run.yaml` has them."""
    form = _read_table(tables, "declared")
    return dict(load_fields({"version": VERSION, "fields": form})) if form else {}


def _describe_declared(job: TrainJob, data: Dataset) -> dict[str, Any]:
    """Return what was declared as `run.yaml` has it: fields in the form of a schema, all attributes known."""
    given = job.declaration
    names = dict.fromkeys([*given.types, *given.fields, *filter(None, (given.weight, given.id))])
    chosen = {name: data.schema[name] for name in names if name in data.schema}
    return {"declared": dict(dump_fields(chosen)["fields"])} if chosen else {}


def _describe(
    job: TrainJob, data: Dataset, pipeline: Pipeline, folder: Path, known: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the first tables of `run.yaml`."""
    if known:
        return {name: table for name, table in known.items() if name not in ("model", "train", "facts")}
    paths = [data.paths[0].parent] if data.manifest is not None else list(data.paths)
    inside = folder / DATA_NAME
    is_inside = inside.is_dir() and paths[0].resolve() == inside.resolve()
    named = [os.fspath(path.resolve()) for path in paths]
    told = DATA_NAME if is_inside else named if len(named) > 1 else named[0]
    tables: dict[str, Any] = {"data": told, **job.settings}
    targets = list(data.schema.targets)
    if "convert" not in tables and targets:
        tables["target"] = targets if len(targets) > 1 else targets[0]
    if "convert" not in tables:
        tables |= _describe_declared(job, data)
    form = pipeline.to_json()
    # What each field becomes, without what was fitted; functions over columns are no settings.
    tables["fields"] = {name: _list_choices(form["transforms"].get(name)) for name in data.schema}
    if form.get("groups"):
        tables["groups"] = {each["name"]: each["members"] for each in form["groups"]}
    return tables


def _list_choices(form: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if form is None else {name: each for name, each in form.items() if name != "fitted"}


def _read_table(tables: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    table = tables.get(name, {})
    return table if isinstance(table, Mapping) else {}
