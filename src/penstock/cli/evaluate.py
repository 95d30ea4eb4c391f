"""`penstock evaluate`: how good a trained model is, where, and by which inputs."""

from __future__ import annotations

import argparse

from penstock.cli.interrupt import loading
from penstock.cli.reading import add_json
from penstock.cli.splitting import add_text_files
from penstock.foundation.keras_backend import importing_keras
from penstock.score.options import EvaluateOptions

SUMMARY = "say how good a trained model is, and which inputs matter"
DESCRIPTION = """\
Predict a split that the model was not trained on, and print scores with 95 % intervals, each class, which
inputs matter (how much the main score drops when the values of a field are those of other records), and the
worst mistakes with what the model was given. DATA is labelled data: a data set or TFRecords, or raw data as
'penstock predict' takes it, with the columns of the targets; the data set of the run, if not given. Rows
without a label are left out. All records count alike."""
EXAMPLE = "penstock evaluate runs/pets labelled.csv --slice breed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    usual = EvaluateOptions()
    parser.add_argument("folder", metavar="RUN", help="the folder that 'penstock train' wrote")
    parser.add_argument(
        "paths", nargs="*", metavar="DATA", help="labelled data (default: the data set of the run)"
    )
    parser.add_argument(
        "--split", metavar="NAME", help="which split of a data set (default: test, or the only one of DATA)"
    )
    parser.add_argument(
        "--slice",
        action="append",
        default=[],
        metavar="FIELD",
        help="scores by the values of a field, also of one that is no input; may be given again",
    )
    _add_number(parser, "--mistakes", usual.mistakes, "how many of the worst mistakes to show")
    _add_number(parser, "--bootstrap", usual.bootstrap, "resamples for the intervals; 0 for none")
    parser.add_argument(
        "--no-importance", action="store_true", help="do not measure which inputs matter, which takes longest"
    )
    _add_number(
        parser, "--importance-records", usual.importance_records, "on how many records that is measured"
    )
    parser.add_argument(
        "--batch-size", type=int, metavar="N", help="records predicted at once (default: 256, or 16 MiB)"
    )
    _add_number(parser, "--seed", usual.seed, "of resamples and permutations")
    parser.add_argument(
        "--model", metavar="FILE:FUNCTION", help="the function that returns the model, if it is your own"
    )
    parser.add_argument(
        "--on-error",
        choices=("raise", "skip", "collect"),
        help="what a row of raw data gets that does not fit (default: raise)",
    )
    parser.add_argument("--max-rejects", type=int, metavar="N", help="give up after so many (default: 1000)")
    add_text_files(parser, can_store=False)
    add_json(parser)


def _add_number(parser: argparse.ArgumentParser, flag: str, default: int, text: str) -> None:
    parser.add_argument(flag, type=int, default=default, metavar="N", help=f"{text} (default: {default})")


def run(args: argparse.Namespace) -> int:
    """Evaluate, print, and return the exit status."""
    # Keras and TensorFlow are loaded when it runs: `--help` is there at once.
    with loading(), importing_keras("penstock evaluate"):
        from penstock.cli.quiet import import_quietly  # noqa: PLC0415

        import_quietly("penstock.training.run")
        from penstock.cli.evaluating import run_evaluate  # noqa: PLC0415

    return run_evaluate(args)
