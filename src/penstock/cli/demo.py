"""`penstock demo`: a walk through what Penstock does, on a small data set of its own."""

from __future__ import annotations

import argparse

from penstock.cli.interrupt import loading
from penstock.cli.reading import add_json
from penstock.errors import importing

SUMMARY = "go from raw files to a trained model and a report, in about a minute"
DESCRIPTION = """\
Write a table of flowers with a photo of each, convert it to a data set, look into that, train a model on all
inputs, evaluate it, ask it about new rows, and compare it with models that see one input alone. Each step
shows what you would type. The report is written beside the rest."""
EXAMPLE = "penstock demo --out meadow-demo"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument(
        "--out", metavar="FOLDER", help="where to write (default: a new folder for temporary files)"
    )
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument(
        "--data",
        action="store_true",
        help="train nothing: load batches instead, resume, measure, leave a bad row out, damage and repair; "
        "takes seconds, and needs no framework",
    )
    parts.add_argument("--full", action="store_true", help="show both")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Walk through the steps, print each, and return the exit status.

    Raises:
        MissingPackageError: What converts raw data, or trains, is not installed.
    """
    # What reads raw data is loaded by this command and `convert` alone: the others work without pyarrow.
    with loading(), importing("penstock demo", "convert"):
        from penstock.cli.walk import run_demo  # noqa: PLC0415
    return run_demo(args)
