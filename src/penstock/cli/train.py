"""`penstock train`: train a model, and print its best epoch; or print the model without training it."""

from __future__ import annotations

import argparse
import io
import json
import os
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.cli.next_command import repeat_words, suggest_next
from penstock.cli.option_values import flatten, list_given, read_declaration
from penstock.cli.run_summary import print_folds, print_run
from penstock.cli.terminal import (
    format_count,
    is_quiet,
    print_detail,
    print_message,
    print_note,
    print_options,
    print_table,
)
from penstock.errors import (
    CorruptRecordError,
    NoSuchPathError,
    OptionError,
    PathError,
    PenstockError,
    importing,
)
from penstock.foundation.terminal import escape
from penstock.jobs.model_file import load_model
from penstock.jobs.stored_data import Declaration, is_stored
from penstock.jobs.train.job import TrainJob, check_job, find_number
from penstock.jobs.train.run_description import recall_fields
from penstock.jobs.train.run_folder import (
    can_reuse_data,
    choose_folder,
    claim_folder,
    discard_unusable_data,
)
from penstock.jobs.train.stored_run import StoredRun, stored_run
from penstock.jobs.train.train import prepare_training, run_folds, run_prepared
from penstock.jobs.train.workers import connecting, make_plan
from penstock.model.build import build_model
from penstock.model.code import write_model
from penstock.model.options import ModelOptions
from penstock.storage.atomic import AtomicFile
from penstock.storage.range_cache import BYTES_VARIABLE
from penstock.storage.store_path import StorePath, as_path
from penstock.training.display import TrainingDisplay
from penstock.training.options import make_options
from penstock.training.precision import in_precision
from penstock.training.progress import SilentWatcher, Watcher
from penstock.training.random_state import seeded
from penstock.training.run import Run
from penstock.training.run_files import CONFIG_NAME, DATA_NAME, OWN_MODEL, read_run_config

if TYPE_CHECKING:
    from penstock.jobs.train.folds import CrossValidation  # reads and writes tables

_TRAIN: Final = (
    *("epochs", "batch_size", "learning_rate", "schedule", "averaging", "weight_decay", "optimizer", "clip"),
    *("patience", "monitor"),
    *("hold_out", "unlabelled", "seed", "class_weights", "loss_weights", "cache", "num_threads"),
    *("target_scale", "number_loss", "parts", "image_size", "augment", "precision"),
)
_RAW: Final = (
    *("split", "group", "stratify", "split_by", "time", "plan_file", "delimiter", "encoding", "missing"),
    *("nan", "short_rows", "header", "sheet", "decimal", "thousands", "files_from", "rename"),
)
_MODEL: Final = {
    "preset": "preset",
    "text_encoder": "text",
    "sequence_encoder": "sequence",
    "image_encoder": "image",
    "image_weights": "image_weights",
    "freeze_image": "freeze_image",
    "dropout": "dropout",
    "l2": "l2",
}


def run(args: argparse.Namespace) -> int:
    """Train, print, and return the exit status."""
    if args.store_cache_bytes is not None:
        os.environ[BYTES_VARIABLE] = str(args.store_cache_bytes)  # the processes of workers inherit it
    config = {} if args.config is None else read_run_config(args.config)
    if args.show_model or args.write_model:
        return _show_model(args, config, _read_job(args, config), args.paths or _find_source(config))
    warnings: list[str] = []
    out = None if args.out is None else as_path(args.out)
    if isinstance(out, StorePath):
        with stored_run(out, resume=args.resume, note=print_note) as stored:
            local = argparse.Namespace(**{**vars(args), "out": str(stored.folder)})
            done = stored.finish(_train_in_folder(local, config, warnings, stored))
    else:
        done = _train_in_folder(args, config, warnings)
    if isinstance(done, Run):
        print_options(done.settings["train"])
        print_run(done, args, warnings)
    else:
        print_folds(done, args, warnings)
    print_detail(f"settings: {done.folder / CONFIG_NAME}")
    return 0


def _train_in_folder(
    args: argparse.Namespace,
    config: Mapping[str, Any],
    warnings: list[str],
    stored: StoredRun | None = None,
) -> Run | CrossValidation:
    """Train in a local folder; `stored` is the run in an object store whose files the folder has."""
    job = _read_job(args, config)
    paths = args.paths or _find_source(config)
    folder = choose_folder(args.out, paths[0] if paths else None)
    if args.resume and args.out is None:
        raise OptionError("--resume", expected="--out RUN as well", got="none", advice="Add --out RUN.")
    if args.resume and not (folder / CONFIG_NAME).is_file():
        if not paths:
            advice = "Pass the folder of a run, or data to train on."
            raise NoSuchPathError(f"not a run folder (no {CONFIG_NAME})", path=folder, advice=advice)
        shown = folder if stored is None else stored.out
        print_note(f"{shown} contains no run yet: starting a new one")
    try:
        check_job(job, folder)  # before anything is converted
    except PenstockError as error:
        error.path = error.path or args.config
        raise
    with claim_folder(folder, may_hold=args.resume), connecting(job.plan):
        existed_before = (folder / DATA_NAME).is_dir()
        removed: list[Path] = []
        try:
            with discard_unusable_data(folder) as removed:
                data = _one(paths) if paths else None
                return _train(args, config, replace(job, data=data), folder, warnings, stored)
        except (Exception, KeyboardInterrupt) as error:
            _advise(folder, error, removed, stored, existed_before=existed_before)
            raise


def _train(
    args: argparse.Namespace,
    config: Mapping[str, Any],
    job: TrainJob,
    folder: Path,
    warnings: list[str],
    stored: StoredRun | None,
) -> Run | CrossValidation:
    """Train, and add the warnings about data and model to a list."""
    paths = args.paths or _find_source(config)
    if not (args.resume and (folder / CONFIG_NAME).is_file()):
        data, tables, found = _find_data(args, config, paths, folder)
        warnings += found
        fields = _select_fields(job, data) if tables else job.fields
        job = replace(job, data=data, fields=fields, settings=tables)
    elif paths and not is_stored(paths):
        if args.paths:
            _confirm_data(args, folder)
        job = replace(job, data=folder / DATA_NAME)
    with _CollectingDisplay(warnings) as shown:
        display: Watcher = shown if stored is None else stored.watch(shown)
        if find_number(job, folder, "folds") is not None:
            return run_folds(job, folder, display)
        training = prepare_training(job, folder, display)
        warnings += training.pipeline.warnings
        return run_prepared(job, training)


class _CollectingDisplay(TrainingDisplay):
    """A display that also collects the notes in a list."""

    def __init__(self, notes: list[str]) -> None:
        super().__init__(io.StringIO() if is_quiet() else None)
        self._notes = notes

    def note(self, text: str) -> None:
        """Write a line that stays."""
        self._notes.append(text)
        super().note(text)


def _advise(
    folder: Path,
    error: BaseException,
    removed: list[Path],
    stored: StoredRun | None,
    *,
    existed_before: bool,
) -> None:
    """Print how to continue after an error or an interrupt."""
    out = folder if stored is None else stored.out
    named = shlex.quote(str(out))
    has_run = (folder / CONFIG_NAME).is_file()
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
    elif existed_before and not has_run and not _names_path(error):
        print_message(
            f"{out / DATA_NAME} is from an earlier call: to convert again, remove it, or use another "
            "folder with --out."
        )


def _names_path(error: BaseException) -> bool:
    """Whether an error names a file, so that its advice is about the data."""
    return isinstance(error, OptionError | CorruptRecordError) and bool(error.path)


def _read_job(args: argparse.Namespace, config: Mapping[str, Any]) -> TrainJob:
    choices = _table(config, "train")
    ensemble, folds = _table(config, "ensemble").get("members"), _table(config, "folds").get("number")
    is_several = False
    if args.resume and args.out is not None and (Path(args.out) / CONFIG_NAME).is_file():
        stored = read_run_config(Path(args.out) / CONFIG_NAME)
        choices = {**_table(stored, "train"), **choices}
        is_several = "ensemble" in stored or "folds" in stored
    choices |= list_given(args, _TRAIN)
    ensemble = ensemble if args.ensemble is None else args.ensemble
    folds = folds if args.folds is None else args.folds
    if args.patience == -1:
        choices["patience"] = None
    given = {own: getattr(args, flag) for flag, own in _MODEL.items() if getattr(args, flag) is not None}
    form = {**_recall_model(config, given), **given}
    plan = make_plan(args.workers, args.engine, args.address, args.devices)
    model = None
    if args.model is not None:
        if given:
            raise OptionError("--model", expected="your own model, or options to build one", got="both")
        options = make_options(**choices)
        with seeded(options.seed), in_precision(options.precision):
            model = load_model(args.model)
        is_function = any(each is not None for each in (ensemble, folds, options.precision, plan))
        if (is_function or is_several) and not (args.show_model or args.write_model):
            # Each member, fold or worker needs a model of its own, and layers take their precision when
            # created. Workers may have another working folder.
            model = partial(load_model, args.model if plan is None else str(Path(args.model).absolute()))
    elif config.get("model") == OWN_MODEL:
        advice = "The file does not contain the code of the model: add --model FILE.py:FUNCTION."
        raise OptionError("model", path=args.config, expected="options", got="'own'", advice=advice)
    dropped = dict.fromkeys(flatten(args.drop))
    declared = read_declaration(args)
    return TrainJob(
        out=args.out,
        model=model,
        fields={**_table(config, "fields"), **dropped},
        groups=_table(config, "groups"),
        model_options=ModelOptions.from_json(form) if form else None,
        ensemble=ensemble,
        folds=folds,
        choices=choices,
        target=declared.target or config.get("target"),
        declaration=replace(declared, target=None) or Declaration(fields=recall_fields(config)),
        resume=args.resume,
        plan=plan,
    )


def _recall_model(config: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a model in a config file, without those that follow from given ones.

    The `run.yaml` of a run has them all: whether its encoder was fine-tuned depends on weights and freezing.
    """
    stored = _table(config, "model")
    if "freeze_image" in given:
        stored.pop("fine_tune", None)
    elif "image_weights" in given and stored.get("image_weights") is None:
        stored = {name: each for name, each in stored.items() if name not in ("freeze_image", "fine_tune")}
    return stored


def _select_fields(job: TrainJob, data: Any) -> dict[str, Any]:
    """Return the settings of fields that data which was converted here has: dropped columns are not in it."""
    return {name: each for name, each in job.fields.items() if name in data.schema}


def _find_source(config: Mapping[str, Any]) -> list[str]:
    """Return the paths of the data in a config file; if it was converted, those of the raw data."""
    given = config.get("source", config.get("data", []))
    return list(given) if isinstance(given, list) else [given]


def _find_data(
    args: argparse.Namespace, config: Mapping[str, Any], paths: list[str], folder: Path
) -> tuple[Any, dict[str, Any], list[str]]:
    """Return the data set, converted if necessary, tables about that for run.yaml, and warnings."""
    if not paths:
        advice = "Run 'penstock train pets.csv --target adopted', or 'penstock train --resume --out RUN'."
        raise OptionError("DATA", expected="data to train on", got="none", advice=advice)
    if is_stored(paths):
        _refuse_raw_options(args)
        return _one(paths), {}, []
    # Only raw data needs pyarrow.
    with importing("penstock train on raw data"):
        from penstock.cli.raw_data import convert_raw, read_raw  # noqa: PLC0415

    raw = read_raw(args, _table(config, "convert"), _one(paths))
    is_training = not (args.show_model or args.write_model)
    data, warnings = convert_raw(raw, folder / DATA_NAME, is_silent=args.json or not is_training)
    if is_training:
        counts = ", ".join(f"{name} {len(data[name]):,}" for name in data.splits)
        print_note(f"converted to {folder / DATA_NAME}: {counts}")
    return data, dict(raw.tables), warnings


def _confirm_data(args: argparse.Namespace, folder: Path) -> None:
    """Compare raw data with the data set that the run was started with.

    Raises:
        OptionError: The data set was made from other data, or with other options.
    """
    with importing("penstock train on raw data"):
        from penstock.cli.raw_data import confirm_raw, read_raw  # noqa: PLC0415

    table = _table(read_run_config(folder / CONFIG_NAME), "convert")
    confirm_raw(read_raw(args, table, _one(args.paths)), folder / DATA_NAME)


def _show_model(args: argparse.Namespace, config: Mapping[str, Any], job: TrainJob, paths: list[str]) -> int:
    """Print the model, or write it as code."""
    if args.write_model is not None:
        if Path(args.write_model).exists():
            raise PathError("already exists", path=args.write_model, advice="Choose another file name.")
        if job.model is not None:
            raise OptionError("--write-model", expected="no --model", got="--model")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data, tables, _ = _find_data(args, config, paths, folder)
        fields = _select_fields(job, data) if tables else job.fields
        shown = replace(job, data=data, fields=fields, resume=False)
        training = prepare_training(shown, folder, SilentWatcher())
        schema, pipeline, options = training.pipeline.schema, training.pipeline, training.model_options
        if args.write_model is not None:
            with AtomicFile(Path(args.write_model)) as file:
                file.write(write_model(schema, pipeline, options).encode())
            if not args.json:
                print(f"Wrote {escape(args.write_model)}. Edit it, then train it.")
        if args.show_model:
            _print_model(job.model or build_model(schema, pipeline, options), is_json=args.json)
    built = dict.fromkeys((f"--{flag.replace('_', '-')}" for flag in _MODEL), 1) | {"--freeze-image": 0}
    own = {} if args.write_model is None else built
    model = [] if args.write_model is None else ["--model", f"{args.write_model}:build"]
    suggest_next(args, "train", *repeat_words(args, {"--show-model": 0, "--write-model": 1, **own}, model))
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


def _refuse_raw_options(args: argparse.Namespace) -> None:
    for option in _RAW:
        if getattr(args, option):
            flag = f"--{option.replace('_', '-')}"
            advice = "The data is already converted: use 'penstock convert' to convert it differently."
            raise OptionError(flag, expected="raw data", got="a data set", advice=advice)


def _one(paths: list[str]) -> Any:
    return paths[0] if len(paths) == 1 else paths


def _table(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = config.get(name, {})
    return dict(table) if isinstance(table, Mapping) else {}
