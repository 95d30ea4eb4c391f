"""`penstock train`: from a data set, or from raw data, to a trained model in a run folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from penstock.cli.interrupt import loading
from penstock.cli.planning import add_planning
from penstock.cli.reading import add_json
from penstock.cli.splitting import add_splitting, add_text_files
from penstock.foundation.keras_backend import importing_keras
from penstock.storage.paths import refuse_missing
from penstock.training.options import TrainOptions

SUMMARY = "train a model on a data set, or on raw data"
DESCRIPTION = """\
Train a multi-input Keras model: built for the data, or your own. DATA is a data set or TFRecords; or raw data
(a CSV, Parquet or JSON-lines file, a folder of images), which is converted first, into the run folder. A run
that was killed goes on with --resume, and ends with the same weights. RUN holds run.yaml, pipeline.json,
weights.safetensors, history.csv and state.json; then see 'penstock evaluate' and 'penstock predict'."""
EXAMPLE = "penstock train pets.csv --target adopted --out runs/pets"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    usual = TrainOptions()
    parser.usage = "penstock train [options] DATA [DATA ...] [--out RUN]"
    parser.add_argument("paths", nargs="*", metavar="DATA", help="a data set, TFRecords, or raw data")
    parser.add_argument("--out", metavar="RUN", help="the folder to write (default: a new one in runs/)")
    parser.add_argument("--resume", action="store_true", help="go on where the run in --out was killed")
    parser.add_argument("--config", metavar="FILE", help="settings as run.yaml has them; options come first")
    _add_training(parser.add_argument_group("training"), usual)
    _add_model(parser.add_argument_group("model"))
    add_planning(parser)
    parser.add_argument("--plan-file", metavar="FILE", help="do with columns what an edited plan says")
    add_splitting(parser)
    add_text_files(parser)
    add_json(parser)


def _add_training(group: argparse._ArgumentGroup, usual: TrainOptions) -> None:
    def add(flag: str, kind: type, metavar: str, text: str, default: object) -> None:
        group.add_argument(flag, type=kind, metavar=metavar, help=f"{text} (default: {default})")

    add("--epochs", int, "N", "how many at most", usual.epochs)
    add("--batch-size", int, "N", "records of a step", "at least 50 steps an epoch")
    add("--learning-rate", float, "X", "the highest", usual.learning_rate)
    add("--weight-decay", float, "X", "how much weights shrink", usual.weight_decay)
    add("--optimizer", str, "NAME", "adamw, adam, sgd, rmsprop or lion", usual.optimizer)
    add("--clip", float, "X", "the greatest norm of gradients; 0 for any", usual.clip)
    add("--patience", int, "N", "stop after N epochs without a better one; -1 for never", usual.patience)
    add("--monitor", str, "NAME", "which number of the history decides the best epoch", usual.monitor)
    add("--hold-out", float, "X", "to validate with, if there is no split for it", usual.hold_out)
    group.add_argument(
        "--unlabelled",
        choices=("drop", "error"),
        help=f"records without a target: leave them out, or refuse the data (default: {usual.unlabelled})",
    )
    add("--seed", int, "N", "of everything random, and of the splits of raw data", usual.seed)
    group.add_argument(
        "--class-weights",
        choices=("auto", "balanced", "none"),
        help="whether rare classes count more; auto: if one is rarer than half an equal share",
    )
    group.add_argument(
        "--loss-weights",
        type=_parse_weights,
        metavar="NAME=X",
        help="how much the loss of each target counts, with commas between them (default: 1)",
    )
    group.add_argument("--cache", metavar="PLACE", help="keep decoded data: memory, or a folder")
    group.add_argument("--num-threads", type=int, metavar="N", help="that make batches (default: the cores)")


def _add_model(group: argparse._ArgumentGroup) -> None:
    styles = ("pool", "gru", "conv", "transformer")
    group.add_argument("--model", metavar="FILE:FUNCTION", help="train the model that a function returns")
    group.add_argument("--preset", choices=("small", "base"), help="sizes of the model that is built")
    group.add_argument("--text-encoder", choices=styles, help="how texts become vectors (default: pool)")
    group.add_argument("--sequence-encoder", choices=styles, help="how sequences do (default: conv)")
    group.add_argument(
        "--image-encoder", metavar="NAME", help="cnn, or a model of keras.applications, such as MobileNetV2"
    )
    group.add_argument("--image-weights", metavar="FILE", help="weights for that, without its top")
    group.add_argument("--dropout", type=float, metavar="X", help="part of the units left out at random")
    group.add_argument("--l2", type=float, metavar="X", help="what weights cost, squared (default: 0)")
    group.add_argument("--show-model", action="store_true", help="print the model, and train nothing")
    group.add_argument(
        "--write-model", metavar="FILE", help="write the model as Keras code to edit, and train nothing"
    )


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


def run(args: argparse.Namespace) -> int:
    """Train, print, and return the exit status."""
    for path in args.paths:
        if not any(sign in path for sign in "*?["):
            refuse_missing(Path(path))
    # Keras and TensorFlow are loaded when it runs: `--help` is there at once, and so are the simplest errors.
    with loading(), importing_keras("penstock train"):
        from penstock.cli.quiet import import_quietly  # noqa: PLC0415

        import_quietly("penstock.jobs.train.train")
        from penstock.cli.training import run_train  # noqa: PLC0415

    return run_train(args)
