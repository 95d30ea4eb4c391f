"""`penstock demo`: a walk through what Penstock does, on a small data set of its own."""

from __future__ import annotations

import argparse

from penstock.cli.reading import add_json
from penstock.errors import MissingPackageError

SUMMARY = "show in a few seconds what Penstock does"
DESCRIPTION = """\
Write a table of flowers with a photo of each, convert it to a data set with one command, look into that, load
batches of it as a model would, stop and go on in the middle of an epoch, measure that, leave a bad row out,
damage the data set, find the damage and repair it. Each step shows what you would type."""
EXAMPLE = "penstock demo --out meadow-demo"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument(
        "--out", metavar="FOLDER", help="where to write (default: a new folder for temporary files)"
    )
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Walk through the steps, print each, and return the exit status.

    Raises:
        MissingPackageError: What converts raw data is not installed.
    """
    # What reads raw data is loaded by this command and `convert` alone: the others work without pyarrow.
    try:
        from penstock.cli.walk import run_demo  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingPackageError.from_import(error, "penstock demo") from error
    return run_demo(args)
