"""Arguments of the commands for models: train, evaluate, predict, export, report and demo.

In: parsers. Out: their arguments and help, and the modules that run the commands. Imports nothing large.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Final

from penstock.cli.command import Command
from penstock.cli.option_groups import (
    add_columns,
    add_json,
    add_model_function,
    add_on_error,
    add_splits,
    add_store_cache,
    add_text_files,
)
from penstock.foundation.keras_backend import VARIABLE
from penstock.report.options import ReportOptions
from penstock.score.options import EvaluateOptions
from penstock.training.options import TrainOptions

_RUN_HELP: Final = "run folder, written by 'penstock train'; may be in an object store"
_OWN_MODEL_HELP: Final = "function that returns the model, if the run trained your own"


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.usage = "penstock train [options] DATA [DATA ...] [--out RUN]"
    parser.add_argument("paths", nargs="*", metavar="DATA", help="a data set, TFRecords, or raw data")
    parser.add_argument(
        "--out",
        metavar="RUN",
        help="run folder to write, also in an object store (default: a new one in runs/)",
    )
    parser.add_argument("--resume", action="store_true", help="continue the interrupted run in --out")
    parser.add_argument(
        "--config", metavar="FILE", help="settings in the form of run.yaml; options override them"
    )
    _add_training(parser.add_argument_group("training"))
    _add_model(parser.add_argument_group("model"))
    _add_workers(
        parser.add_argument_group("several workers or devices", "They need the JAX backend of Keras.")
    )
    add_columns(parser)
    add_splits(parser)
    add_text_files(parser)
    add_store_cache(parser)
    add_json(parser)


def _add_workers(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--workers", type=int, metavar="N", help="train with N processes, which share each batch (default: 1)"
    )
    group.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="where they run: on this machine, or on a Ray cluster (default: local)",
    )
    group.add_argument(
        "--address",
        metavar="ADDRESS",
        help="Ray cluster; auto: the one of this machine (default: RAY_ADDRESS, or a new one for the run)",
    )
    group.add_argument(
        "--devices",
        type=int,
        metavar="N",
        help="devices of each process, such as GPUs (default: 1, or with --workers all it has)",
    )


def _check_train(args: argparse.Namespace) -> None:
    """Find paths that do not exist, and choose the backend of several workers, before Keras is loaded."""
    _check_paths(args)
    if args.engine != "local" or (args.workers or 1) > 1 or (args.devices or 1) > 1:
        # Only JAX trains over several processes. A backend that the user has chosen is refused later.
        os.environ.setdefault(VARIABLE, "jax")


def _add_training(group: argparse._ArgumentGroup) -> None:
    usual = TrainOptions()

    def add(flag: str, kind: type, metavar: str, text: str, default: object) -> None:
        group.add_argument(flag, type=kind, metavar=metavar, help=f"{text} (default: {default})")

    add(
        "--epochs",
        int,
        "N",
        "maximum number of epochs",
        "20 to 60, for about 2,000 steps; 15 without validation; with images 10 to 80, or 40 without "
        "validation, for 90,000 of them",
    )
    add(
        "--batch-size",
        int,
        "N",
        "records per step",
        "16 to 256, for 50 steps per epoch; with images 32 at least",
    )
    add("--learning-rate", float, "X", "maximum learning rate", usual.learning_rate)
    group.add_argument(
        "--schedule",
        choices=("constant", "cosine", "one_cycle"),
        help="learning rate after it has risen (default: one_cycle for data with images, else constant)",
    )
    add(
        "--averaging",
        float,
        "X",
        "momentum of the average of weights; 0: no average",
        "0.99; 0 with one_cycle",
    )
    add("--weight-decay", float, "X", "weight decay", "0.01; 0.05 with images")
    add("--optimizer", str, "NAME", "adamw, adam, sgd, rmsprop or lion", usual.optimizer)
    add("--clip", float, "X", "maximum norm of the gradients; 0: no limit", usual.clip)
    add("--patience", int, "N", "stop after N epochs without improvement; -1: never", "8; -1 with one_cycle")
    add("--monitor", str, "NAME", "metric that decides which epoch is the best", usual.monitor)
    add("--hold-out", float, "X", "share to validate with if there is no validation split", usual.hold_out)
    group.add_argument(
        "--unlabelled",
        choices=("drop", "error"),
        help=f"records without a target: drop them, or stop with an error (default: {usual.unlabelled})",
    )
    add("--seed", int, "N", "random seed, also for splitting raw data", usual.seed)
    group.add_argument(
        "--ensemble", type=int, metavar="N", help="train N models with the next seeds, and average them"
    )
    group.add_argument(
        "--folds", type=int, metavar="N", help="cross-validate: N runs, each scored on the part it leaves out"
    )
    group.add_argument(
        "--class-weights",
        choices=("none", "balanced", "auto"),
        help="weight rare classes up; auto: only if one is rarer than half an equal share (default: none)",
    )
    group.add_argument(
        "--loss-weights",
        type=_parse_weights,
        metavar="NAME=X",
        help="weight of the loss of each target, separated by commas (default: 1)",
    )
    group.add_argument(
        "--target-scale",
        choices=("auto", "linear", "log"),
        help="scale of targets of numbers; auto: log if they are skewed, unless it is worse on validation "
        "(default: auto)",
    )
    group.add_argument(
        "--number-loss",
        choices=("auto", "squared", "huber"),
        help="loss of targets of numbers; auto: the better one on validation, if tails are heavy "
        "(default: auto)",
    )
    group.add_argument(
        "--image-size",
        type=_parse_size,
        metavar="N|HxW",
        help="height and width of images (default: that of all images, or else the medians; at most 160)",
    )
    group.add_argument(
        "--augment",
        choices=("none", "light", "flip"),
        help="random changes of training images: small shifts and brightness, or also mirrored left to "
        "right (default: light)",
    )
    group.add_argument(
        "--parts",
        type=_parse_parts,
        metavar="auto|all|NAMES",
        help="kinds of inputs: table, text, image, sequence, tensor, separated by commas; auto: those that "
        "lower the validation loss (default: auto)",
    )
    group.add_argument(
        "--precision",
        choices=("float32", "bfloat16"),
        help="bfloat16: layers compute in half precision, weights stay float32 (default: float32)",
    )
    group.add_argument("--cache", metavar="memory|FOLDER", help="keep decoded data for later epochs")
    group.add_argument(
        "--num-threads", type=int, metavar="N", help="threads that load data (default: one per core)"
    )


def _add_model(group: argparse._ArgumentGroup) -> None:
    encoders = ("pool", "gru", "conv", "transformer")
    add_model_function(group, "train your own model, returned by a function in a Python file")
    group.add_argument("--preset", choices=("small", "base"), help="size of the model (default: base)")
    group.add_argument(
        "--text-encoder", choices=("ngrams", *encoders), help="encoder of texts (default: ngrams)"
    )
    group.add_argument("--sequence-encoder", choices=encoders, help="encoder of sequences (default: conv)")
    group.add_argument(
        "--image-encoder",
        metavar="NAME",
        help="resnet, cnn, or a model of keras.applications, such as MobileNetV2 (default: resnet)",
    )
    group.add_argument(
        "--image-weights",
        metavar="FILE",
        help="weights of the image encoder, without its top layers: fine-tuned after the other layers",
    )
    group.add_argument(
        "--freeze-image", action="store_const", const=True, help="keep those weights fixed instead"
    )
    group.add_argument("--dropout", type=float, metavar="X", help="dropout rate")
    group.add_argument("--l2", type=float, metavar="X", help="L2 penalty on weights (default: 0)")
    group.add_argument("--show-model", action="store_true", help="print the model without training it")
    group.add_argument(
        "--write-model", metavar="FILE", help="write the model as editable Keras code without training it"
    )


def _parse_size(text: str) -> tuple[int, int]:
    sides = text.lower().split("x")
    if len(sides) > 2 or not all(side.isdecimal() and int(side) for side in sides):
        raise argparse.ArgumentTypeError(
            f"expected one number, or height x width, such as 96 or 96x128, got {text!r}"
        )
    return int(sides[0]), int(sides[-1])


def _parse_parts(text: str) -> str | list[str]:
    return text if text in ("auto", "all") else [part.strip() for part in text.split(",")]


def _parse_weights(text: str) -> dict[str, float]:
    weights = {}
    for part in text.split(","):
        name, equals, number = part.rpartition("=")
        try:
            weights[name] = float(number)
        except ValueError:
            equals = ""
        if not name or not equals:
            raise argparse.ArgumentTypeError(f"expected NAME=X, such as price=0.5, got {part!r}")
    return weights


def _check_paths(args: argparse.Namespace) -> None:
    """Find paths that do not exist before Keras is loaded, which takes seconds."""
    for path in args.paths:
        if not any(sign in path for sign in "*?["):
            _refuse_missing(path)


def _refuse_missing(path: str) -> None:
    from penstock.storage.paths import refuse_missing  # noqa: PLC0415 - NumPy, which the help does not need
    from penstock.storage.store_path import as_path  # noqa: PLC0415 - as above

    found = as_path(path)
    if isinstance(found, Path):  # objects are looked up when they are opened
        refuse_missing(found)


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    usual = EvaluateOptions()

    def add(flag: str, default: int, text: str) -> None:
        parser.add_argument(flag, type=int, default=default, metavar="N", help=f"{text} (default: {default})")

    parser.add_argument("folder", metavar="RUN", help=_RUN_HELP)
    parser.add_argument(
        "paths", nargs="*", metavar="DATA", help="labelled data (default: the data set of the run)"
    )
    parser.add_argument(
        "--split", metavar="NAME", help="split of a data set (default: test, or the only one of DATA)"
    )
    parser.add_argument(
        "--slice",
        action="append",
        default=[],
        metavar="FIELD",
        help="also print scores by the values of a field, which need not be an input; repeatable",
    )
    add("--mistakes", usual.mistakes, "number of worst mistakes to show")
    add("--bootstrap", usual.bootstrap, "resamples for the intervals; 0: no intervals")
    parser.add_argument(
        "--no-importance",
        action="store_true",
        help="do not measure the importance of inputs, which takes most of the time",
    )
    add("--importance-records", usual.importance_records, "records to measure the importance on")
    parser.add_argument(
        "--batch-size", type=int, metavar="N", help="records per prediction step (default: 256, or 16 MiB)"
    )
    add("--seed", usual.seed, "random seed of resamples and permutations")
    add_model_function(parser, _OWN_MODEL_HELP)
    add_on_error(parser, "invalid rows of raw data", collect="")
    _add_engine(parser, "number of tasks on Ray")
    add_text_files(parser, can_store=False)
    add_json(parser)


def _add_engine(parser: argparse.ArgumentParser, workers: str) -> None:
    parser.add_argument("--engine", choices=("local", "ray"), help="predict here, or on a Ray cluster")
    parser.add_argument(
        "--address", metavar="HOST:PORT", help="the Ray cluster (default: RAY_ADDRESS, or a new one here)"
    )
    parser.add_argument("--workers", type=int, metavar="N", help=workers)


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="RUN", help=_RUN_HELP)
    parser.add_argument("paths", nargs="+", metavar="DATA", help="data to predict on")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="write a .parquet, .csv or .jsonl file, also to an object store, not stdout",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    parser.add_argument("--resume", action="store_true", help="continue a run with --engine ray")
    _add_engine(parser, "number of threads, or of tasks on Ray")
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="COLUMN",
        help="copy a column of the data to the output; repeatable",
    )
    parser.add_argument("--split", metavar="NAME", help="split of a data set")
    add_on_error(parser, "invalid rows", collect=" for the report at the end")
    parser.add_argument("--batch-size", type=int, metavar="N", help="rows per prediction step")
    add_model_function(parser, _OWN_MODEL_HELP)
    add_text_files(parser, can_store=False)
    add_json(parser)


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="RUN", help=_RUN_HELP)
    parser.add_argument("out", metavar="OUT", help="folder to write, also in an object store")
    parser.add_argument(
        "--format",
        choices=("bundle", "onnx", "saved_model"),
        default="bundle",
        help="bundle: for ps.Predictor; onnx: for ps.Predictor without Keras; saved_model: for TensorFlow "
        "without Penstock (default: bundle)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing export")
    parser.add_argument(
        "--no-check",
        action="store_true",
        help="do not compare the export with the run, on 256 rows in a new process",
    )
    parser.add_argument(
        "--check-data",
        action="append",
        metavar="DATA",
        help="data for the check, as for 'penstock predict'; repeatable (default: the data of the run)",
    )
    add_model_function(parser, _OWN_MODEL_HELP)
    add_json(parser)


def _check_run(args: argparse.Namespace) -> None:
    """Find a run that does not exist before Keras is loaded."""
    _refuse_missing(args.folder)


def _add_report(parser: argparse.ArgumentParser) -> None:
    usual = ReportOptions()

    def add(flag: str, default: int, text: str) -> None:
        parser.add_argument(flag, type=int, metavar="N", help=f"{text} (default: {default:,})")

    parser.add_argument(
        "paths", nargs="+", metavar="SOURCE", help="a data set, TFRecord files, or a run folder"
    )
    parser.add_argument("--out", metavar="FILE", help="HTML file to write (default: report.html)")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")
    add("--records", usual.records, "most records of each split that figures about the data come from")
    add("--samples", usual.samples, "number of sample records to show")
    group = parser.add_argument_group("runs")
    group.add_argument("--data", metavar="DATASET", help="data to evaluate on (default: the run's own)")
    group.add_argument(
        "--split", metavar="NAME", help="split to evaluate on (default: test, else validation)"
    )
    group.add_argument(
        "--no-importance",
        action="store_true",
        help="do not measure the importance of inputs, which takes most of the time",
    )
    for flag, default, text in (
        ("--mistakes", usual.mistakes, "number of worst mistakes to show"),
        ("--importance-records", usual.importance_records, "records to measure the importance on"),
        ("--seed", usual.seed, "random seed of intervals and permutations"),
    ):
        group.add_argument(flag, type=int, metavar="N", help=f"{text} (default: {default:,})")
    add_model_function(group, _OWN_MODEL_HELP)
    add_json(parser)


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", metavar="FOLDER", help="folder to write (default: a new folder for temporary files)"
    )
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument(
        "--data",
        action="store_true",
        help="train no model; instead load batches, resume, measure speed, skip a bad row, damage and "
        "repair: takes seconds and needs no framework",
    )
    parts.add_argument("--full", action="store_true", help="show both")
    add_json(parser)


TRAIN: Final = Command(
    module="penstock.cli.train",
    summary="train a model on a data set, or on raw data",
    description="""\
Train a multi-input Keras model, built for the data or your own. DATA is a data set or TFRecords, or raw data
(a CSV, Parquet or JSON-lines file, or a folder of images), which is first converted into the run folder. An
interrupted run continues with --resume, and ends with the same weights. The run folder contains run.yaml,
pipeline.json, weights.safetensors, history.csv and state.json. Use it with 'penstock evaluate' and 'penstock
predict'.""",
    example="penstock train pets.csv --target adopted --out runs/pets",
    add_arguments=_add_train,
    keras="penstock.jobs.train.train",
    check=_check_train,
    main_options="--target --id --drop --out --epochs --batch-size --seed --model --show-model --resume",
)
EVALUATE: Final = Command(
    module="penstock.cli.evaluate",
    summary="score a trained model, and measure which inputs matter",
    description="""\
Predict on a split that the model was not trained on, and print scores with 95 % confidence intervals, scores
per class, the importance of each input (how much the main score drops when its values are shuffled among the
records), and the worst mistakes with their inputs. DATA is labelled data: a data set or TFRecords, or raw
data with the columns of the targets; by default, the data set of the run. Rows without a label are left out.
All records have the same weight.""",
    example="penstock evaluate runs/pets labelled.csv --slice breed",
    add_arguments=_add_evaluate,
    keras="penstock.training.run",
    main_options="--split --slice --mistakes --no-importance --bootstrap --batch-size --on-error --model",
)
PREDICT: Final = Command(
    module="penstock.cli.predict",
    summary="predict on new data with a trained model",
    description="""\
Predict on new data with the model and the preprocessing of a run. DATA is a CSV, TSV, Parquet, JSON-lines or
Arrow file, several files or a glob pattern; images, or a folder of images; or a data set or TFRecords, with
--split. It needs the columns that the model was trained on, except the targets. The output has one row per
row of DATA, in order: its id, its number from 0 or the path of the image, then for each target the label and
the probabilities, or the number. Without --out it is printed as CSV.""",
    example="penstock predict runs/pets new_pets.csv --out adopted.parquet --keep name",
    add_arguments=_add_predict,
    extra="convert",
    main_options="--out --overwrite --keep --split --on-error --batch-size --model",
)
EXPORT: Final = Command(
    module="penstock.cli.export",
    summary="write a trained model with its preprocessing as a folder to ship",
    description="""\
Write the model of a run, with its preprocessing, as a folder that is used elsewhere: a bundle for
ps.Predictor, an ONNX file for ps.Predictor without Keras, or a SavedModel that takes raw values by name and
is served by TensorFlow alone. Then compare it with the run on 256 rows, in a new process, and print the
largest difference of each output. If an output differs by more than 1e-5 (1e-3 where TensorFlow decodes
images), nothing is written.""",
    example="penstock export runs/pets served/pets/1 --format saved_model",
    add_arguments=_add_export,
    keras="penstock.training.run",
    check=_check_run,
)
REPORT: Final = Command(
    module="penstock.cli.report",
    summary="write a report about a data set or a run as one HTML page",
    description="""\
Write one HTML file that needs no network and has no scripts. Of a data set: distributions of all fields,
missing values, balance and drift between splits, sample records with pictures, duplicates, and warnings, such
as a column that determines the target. Of a run also: scores, curves, calibration, the importance of inputs,
the worst slices and mistakes, where the time went, and the model as a diagram. Figures about the data come
from a sample, whose size the page states. With --json the figures are printed as JSON, and the file is
written only if --out names it.""",
    example="penstock report runs/pets --out pets.html",
    add_arguments=_add_report,
    extra="report",
)
DEMO: Final = Command(
    module="penstock.cli.demo",
    summary="go from raw files to a trained model and a report, in about a minute",
    description="""\
Write a table of flowers with a photo of each, convert it to a data set, inspect it, train a model on all
inputs, evaluate it, predict new rows, and compare it with models that see one kind of input. Each step
shows what you would type. The program is penstock/examples/flowers.py in the installed package.""",
    example="penstock demo --out flowers-demo",
    add_arguments=_add_demo,
)
