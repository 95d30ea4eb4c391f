"""`penstock predict`: a trained model's predictions for new data."""

from __future__ import annotations

import argparse

from penstock.cli.interrupt import loading
from penstock.cli.reading import add_json
from penstock.cli.splitting import add_text_files
from penstock.errors import importing

SUMMARY = "predict on new data with a trained run"
DESCRIPTION = """\
Predict on new data with the model and the preprocessing of a run. DATA is a CSV, TSV, Parquet, JSON-lines
or Arrow file, several or a glob; images, or a folder of them; or a data set or TFRecords, with --split. It
needs the columns that the model was trained on, but for its targets. The output has a row for each row of
the data, in order: its id, or its number from 0, or the path of the image; then the label and the
probabilities of each target, or its number. Without --out it is printed as CSV."""
EXAMPLE = "penstock predict runs/pets new_pets.csv --out adopted.parquet --keep name"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("folder", metavar="RUN", help="the folder that 'penstock train' wrote")
    parser.add_argument("paths", nargs="+", metavar="DATA", help="what to predict on")
    parser.add_argument("--out", metavar="FILE", help="write a .parquet, .csv or .jsonl instead of printing")
    parser.add_argument("--overwrite", action="store_true", help="replace a file that is there")
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="COLUMN",
        help="carry a column into the output; may be given again",
    )
    parser.add_argument("--split", metavar="NAME", help="which split of a data set")
    parser.add_argument(
        "--on-error",
        choices=("raise", "skip", "collect"),
        help="what a row gets that does not fit; collect: named at the end (default: raise)",
    )
    parser.add_argument("--max-rejects", type=int, metavar="N", help="give up after so many (default: 1000)")
    parser.add_argument("--batch-size", type=int, metavar="N", help="rows that the model sees at once")
    parser.add_argument(
        "--model", metavar="FILE:FUNCTION", help="a function that makes the model, for a run of your own one"
    )
    add_text_files(parser, can_store=False)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Predict, print, and return the exit status."""
    # What reads raw data, and Keras, are loaded when the command runs: its help needs neither.
    with loading(), importing("penstock predict", "convert"):
        from penstock.cli.predicting import run_predict  # noqa: PLC0415

    return run_predict(args)
