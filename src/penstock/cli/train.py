"""`penstock train`: train a model, and print its best epoch; or print the model without training it."""

from __future__ import annotations

import io
import json
import os
import shlex
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.cli.arguments import one_or_all, read_declaration
from penstock.cli.next_command import repeat_words, suggest_next
from penstock.cli.run_summary import print_folds, print_run
from penstock.cli.target_check import read_known
from penstock.cli.terminal import (
    format_count,
    is_quiet,
    print_detail,
    print_message,
    print_note,
    print_options,
    print_table,
)
from penstock.distributed.workers import connecting
from penstock.errors import (
    CorruptRecordError,
    NoSuchPathError,
    OptionError,
    PathError,
    PenstockError,
    importing,
)
from penstock.foundation.terminal import escape
from penstock.jobs.given_dataset import Declaration
from penstock.jobs.model_file import load_model
from penstock.jobs.train.cross_validation.cross_validate import run_folds
from penstock.jobs.train.job import TrainJob, check_job, find_number
from penstock.jobs.train.run_folder.run_folder import (
    can_reuse_data,
    choose_folder,
    claim_folder,
    discard_unusable_data,
)
from penstock.jobs.train.run_folder.store_run import LocalRun, run_at
from penstock.jobs.train.train import plan_run, plan_training, run_plan
from penstock.model.build import build_model
from penstock.model.design import write_model
from penstock.settings.advice import to_flags
from penstock.settings.command_line import Call
from penstock.settings.commands import Config, Folds, OwnModel
from penstock.settings.conversion import RawFiles
from penstock.settings.groups import Columns, StoreCache
from penstock.settings.model import ModelOptions
from penstock.settings.training import RunOutput, TrainCall
from penstock.source.recognition import is_dataset
from penstock.storage.atomic import AtomicFile
from penstock.storage.cache import BYTES_VARIABLE
from penstock.training.display import TrainingDisplay
from penstock.training.keras_state import in_precision, seeded
from penstock.training.run import Run
from penstock.training.run_config import OWN_MODEL, RunConfig, StoredModel
from penstock.training.run_files import CONFIG_NAME, DATA_NAME, read_config
from penstock.training.run_state import STATE_NAME

if TYPE_CHECKING:
    from penstock.jobs.train.cross_validation.folds import CrossValidation  # reads and writes tables

_OF_STORED_DATA: Final = ("drop", "seed")
"""Options of raw data that training on a data set has, too."""
_MODEL_FLAGS: Final = [each for each in ModelOptions.list_settings() if each.flag]


def run(call: Call) -> int:
    """Train, print, and return the exit status."""
    most = call.read(StoreCache).store_cache_bytes
    if most is not None:
        os.environ[BYTES_VARIABLE] = str(most)  # the processes of workers inherit it
    config, output, own = read_known(call), call.read(RunOutput), call.read(OwnModel)
    if own.show_model or own.write_model is not None:
        return _show_model(call, config, own)
    warnings: list[str] = []
    with run_at(output.out, resume=output.resume, note=print_note) as run:
        local = output if run.folder is output.out else output.replace(out=run.folder)
        done = _train_in_folder(call, config, local, warnings, run)
        done = run.finish(done) if isinstance(done, Run) else run.finish_folds(done)
    if isinstance(done, Run):
        print_options(done.config.train.to_json(only_given=True))
        print_run(done, call, warnings)
    else:
        print_folds(done, call, warnings)
    print_detail(f"settings: {done.folder / CONFIG_NAME}")
    return 0


def _train_in_folder(
    call: Call, config: RunConfig, output: RunOutput, warnings: list[str], run: LocalRun
) -> Run | CrossValidation:
    """Train in the local folder of a run."""
    job = _read_job(call, config, output)
    paths = _list_paths(call, config)
    folder = choose_folder(output.out, paths[0] if paths else None)
    if output.resume and output.out is None:
        raise output.refuse("resume", "`out=RUN` as well", "none", "Name the folder of the run: `out=RUN`.")
    if output.resume and not (folder / CONFIG_NAME).is_file():
        if not paths:
            advice = (
                "Pass the folder of a run, or data to train on: a run that was interrupted may need it again."
            )
            raise NoSuchPathError(f"not a run folder (no {CONFIG_NAME})", path=folder, advice=advice)
        shown = run.name_folder(folder)
        is_begun = (folder / STATE_NAME).is_file()  # the run chooses its inputs after its first training
        print_note(f"{shown}: continuing" if is_begun else f"{shown} contains no run yet: starting a new one")
    try:
        check_job(job, folder)  # before anything is converted
    except PenstockError as error:
        path = call.read(Config).config
        error.path = error.path or (None if path is None else str(path))
        raise
    with claim_folder(folder, may_hold=output.resume), connecting(job.launcher):
        existed_before = (folder / DATA_NAME).is_dir()
        removed: list[Path] = []
        try:
            with discard_unusable_data(folder) as removed:
                data = one_or_all(paths) if paths else None
                return _train(call, config, replace(job, data=data), folder, warnings, run)
        except (Exception, KeyboardInterrupt) as error:
            _advise(folder, error, removed, run, existed_before=existed_before)
            raise


def _train(
    call: Call, config: RunConfig, job: TrainJob, folder: Path, warnings: list[str], run: LocalRun
) -> Run | CrossValidation:
    """Train, and add the warnings about data and model to a list."""
    paths = _list_paths(call, config)
    if not (job.options.resume and (folder / CONFIG_NAME).is_file()):
        job, found = _find_data(call, config, job, folder)
        warnings += found
    elif paths and not is_dataset(paths):
        if call.arguments:
            _confirm_data(call, folder)
        job = replace(job, data=folder / DATA_NAME)
    with _CollectingDisplay(warnings) as shown:
        display = run.watch(shown)
        if find_number(job, folder, "folds") is not None:
            return run_folds(job, folder, display)
        plan = plan_run(job, folder, display)
        warnings += plan.pipeline.warnings
        return run_plan(job, plan, folder, display)


class _CollectingDisplay(TrainingDisplay):
    """A display that also collects the notes in a list."""

    def __init__(self, notes: list[str]) -> None:
        super().__init__(io.StringIO() if is_quiet() else None)
        self._notes = notes

    def note(self, text: str) -> None:
        """Write a line that stays."""
        self._notes.append(text)
        super().note(to_flags(text))


def _advise(
    folder: Path, error: BaseException, removed: list[Path], run: LocalRun, *, existed_before: bool
) -> None:
    """Print how to continue after an error or an interrupt."""
    out = run.name_folder(folder)
    named = shlex.quote(str(out))
    has_run = (folder / CONFIG_NAME).is_file()
    names_path = isinstance(error, OptionError | CorruptRecordError) and error.path  # advice about the data
    if isinstance(error, KeyboardInterrupt) and has_run:
        error.add_note(f"To continue: penstock train --resume --out {named}")
    elif isinstance(error, KeyboardInterrupt):
        error.add_note(f"To continue, run the same command with --resume --out {named}.")
    elif can_reuse_data(error, folder):
        print_message(
            f"The converted data is kept in {out / DATA_NAME}. Fix the problem below, then add "
            f"--resume --out {named} to reuse it."
        )
    elif folder / DATA_NAME in removed:
        print_message(f"{out / DATA_NAME} was removed: the corrected command converts again.")
    elif existed_before and not has_run and not names_path:
        print_message(
            f"{out / DATA_NAME} is from an earlier call: to convert again, remove it, or use another "
            "folder with --out."
        )


def _read_job(call: Call, config: RunConfig, output: RunOutput) -> TrainJob:
    train, is_several = config.train, False
    if output.resume and output.out is not None and (Path(output.out) / CONFIG_NAME).is_file():
        path = Path(output.out) / CONFIG_NAME
        stored = read_config(path)
        train = stored.train.replace(**train.list_given())
        is_several = stored.ensemble is not None or stored.folds is not None
    known = {**train.list_given(), "ensemble": config.ensemble, "target": config.target}
    options = call.read(TrainCall, **known).replace(out=output.out)
    job = TrainJob(
        options=options,
        folds=call.read(Folds, folds=config.folds).folds,
        fields={**config.fields, **dict.fromkeys(call.read(Columns).drop)},
        groups=config.groups,
        declaration=replace(read_declaration(call), target=None) or Declaration(fields=config.declared),
    )
    several = (options.ensemble, job.folds, options.precision, job.launcher)
    is_function = is_several or any(each is not None for each in several)
    model = _load_model(call, config, job, is_function=is_function)
    return job.with_options(model=model, model_options=_read_model_options(call, config))


def _load_model(call: Call, config: RunConfig, job: TrainJob, *, is_function: bool) -> Any:
    """Return the user's own model, or the function that makes it; None without `--model`."""
    own = call.read(OwnModel)
    if own.model is None:
        if config.model == OWN_MODEL:
            advice = "The file does not contain the code of the model: add --model FILE.py:FUNCTION."
            path = call.read(Config).config
            raise OptionError("model", path=path, expected="options", got="'own'", advice=advice)
        return None
    if call.list_given(ModelOptions):
        raise OptionError("--model", expected="your own model, or options to build one", got="both")
    with seeded(job.options.seed), in_precision(job.options.precision):
        model = load_model(own.model)
    if not is_function or own.show_model or own.write_model is not None:
        return model
    # Each member, fold or worker needs a separate model, and layers take their precision when created.
    # Workers may have another working folder.
    return partial(load_model, own.model if job.launcher is None else str(Path(own.model).absolute()))


def _read_model_options(call: Call, config: RunConfig) -> ModelOptions | None:
    """Return the options of a model that is built, without options of the file that follow from given ones.

    The `run.yaml` of a run has all options: whether its encoder was fine-tuned depends on its weights, and on
    whether they are fixed.
    """
    given = call.list_given(ModelOptions)
    stored = dict(config.model.options) if isinstance(config.model, StoredModel) else {}
    if "freeze_image" in given:
        stored.pop("fine_tune", None)
    elif "image_weights" in given and stored.get("image_weights") is None:
        stored = {name: each for name, each in stored.items() if name not in ("freeze_image", "fine_tune")}
    return call.read(ModelOptions, **stored) if stored or given else None


def _list_paths(call: Call, config: RunConfig) -> list[str]:
    """Return the given paths, or the paths of a config file; if data was converted, of the raw data."""
    stored = config.source or config.data or ()
    return list(call.arguments) or ([stored] if isinstance(stored, str) else list(stored))


def _find_data(call: Call, config: RunConfig, job: TrainJob, folder: Path) -> tuple[TrainJob, list[str]]:
    """Return the job with its data set, which is converted if necessary, and warnings."""
    paths = _list_paths(call, config)
    if not paths:
        advice = "Run 'penstock train pets.csv --target adopted', or 'penstock train --resume --out RUN'."
        raise OptionError("DATA", expected="data to train on", got="none", advice=advice)
    if is_dataset(paths):
        _refuse_raw_options(call)
        return replace(job, data=one_or_all(paths)), []
    # Only raw data needs pyarrow.
    with importing("penstock train on raw data"):
        from penstock.cli.raw_data import convert_raw, read_raw  # noqa: PLC0415

    raw = read_raw(call, config.convert, one_or_all(paths))
    own = call.read(OwnModel)
    is_training = not own.show_model and own.write_model is None
    data, warnings = convert_raw(raw, folder / DATA_NAME, is_silent=call.common.json or not is_training)
    if is_training:
        counts = ", ".join(f"{name} {len(data[name]):,}" for name in data.splits)
        print_note(f"converted to {folder / DATA_NAME}: {counts}")
    # The conversion had that target; dropped columns are not in the data.
    fields = {name: each for name, each in job.fields.items() if name in data.schema}
    return replace(job, data=data, fields=fields, config=raw.config).with_options(target=None), warnings


def _confirm_data(call: Call, folder: Path) -> None:
    """Compare raw data with the data set that the run was started with."""
    with importing("penstock train on raw data"):
        from penstock.cli.raw_data import confirm_raw, read_raw  # noqa: PLC0415

    path = folder / CONFIG_NAME
    stored = read_config(path)
    confirm_raw(read_raw(call, stored.convert, one_or_all(call.arguments)), folder / DATA_NAME)


def _show_model(call: Call, config: RunConfig, own: OwnModel) -> int:
    """Print the model, or write it as code."""
    job = _read_job(call, config, call.read(RunOutput))
    path, is_json = None if own.write_model is None else Path(own.write_model), call.common.json
    if path is not None and path.exists():
        raise PathError("already exists", path=path, advice="Choose another file name.")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        job, _ = _find_data(call, config, job, folder)
        plan = plan_training(job.with_options(resume=False), folder)
        schema, pipeline, options = plan.pipeline.schema, plan.pipeline, plan.model_options
        if path is not None:
            with AtomicFile(path) as file:
                file.write(write_model(schema, pipeline, options).encode())
            if not is_json:
                print(f"Wrote {escape(str(own.write_model))}. Edit it, then train it.")
        if own.show_model:
            _print_model(job.options.model or build_model(schema, pipeline, options), is_json=is_json)
    built = [] if path is None else [each.flag for each in _MODEL_FLAGS]
    model = [] if path is None else ["--model", f"{own.write_model}:build"]
    words = repeat_words(call, ["--show-model", "--write-model", *built], model)
    suggest_next(call, "train", *words)
    return 0


def _print_model(model: Any, *, is_json: bool) -> None:
    num_weights = int(model.count_params())
    if is_json:
        layers = [{"name": each.name, "kind": type(each).__name__} for each in model.layers]
        print(json.dumps({"parameters": num_weights, "layers": layers}))
        return
    rows = [
        [layer.name, type(layer).__name__, str(_shape(layer)), f"{layer.count_params():,}"]
        for layer in model.layers
    ]
    header = ["layer", "kind", "output", "parameters"]
    print_table(header, rows, right=header[3:])
    print(f"\n{format_count(num_weights, 'parameter')} in {format_count(len(rows), 'layer')}")


def _shape(layer: Any) -> Any:
    """Return the shape of the output of a layer, without the batch dimension."""
    output: Any = getattr(layer, "output", None)
    return output.shape[1:] if hasattr(output, "shape") else "?"


def _refuse_raw_options(call: Call) -> None:
    for each in RawFiles.list_settings():
        if each.flag in call.values and each.name not in _OF_STORED_DATA:
            advice = "The data is already converted: use 'penstock convert' to convert it differently."
            raise OptionError(each.flag, expected="raw data", got="a data set", advice=advice)
