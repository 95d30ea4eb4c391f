"""`penstock repair`: copies of files that hold their good records alone."""

from __future__ import annotations

import argparse
import json

from penstock.cli.reading import add_json, add_reading, read_options
from penstock.cli.terminal import ProgressBar, format_count, format_size, print_message, print_table
from penstock.cli.verify import word_fault
from penstock.errors import OptionError
from penstock.foundation.terminal import escape
from penstock.jobs.check.repair import Repair, repair

SUMMARY = "copy what is good of damaged files"
DESCRIPTION = """\
Write the good records of TFRecord files to files of the same names and compression in another folder, OUT.
The input is only read. What is damaged goes to OUT/quarantine, one file for each damaged one, and
OUT/quarantine/losses.jsonl says what was lost and why. Records that a manifest lists and no file has count
as lost, too. Exit status 1 if there are any, or if a file could not be repaired."""
EXAMPLE = "penstock repair pets/ mended/"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.usage = "penstock repair [options] PATH [PATH ...] OUT"
    add_reading(parser)
    # For the help alone: argparse gives every word to `paths`, and `run` takes the last of them.
    parser.add_argument(
        "last",
        nargs="?",
        default=argparse.SUPPRESS,
        metavar="OUT",
        help="the folder to write to; not the input's. It is made if it is not there",
    )
    parser.add_argument("--out", metavar="FOLDER", help="write there; then there is no OUT behind the paths")
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there already")
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Repair, print, and return the exit status."""
    *paths, out = args.paths if args.out is None else [*args.paths, args.out]
    if not paths:
        raise OptionError("output folder", expected="a folder", got="none", advice=f"Say '{EXAMPLE}'.")
    with ProgressBar("repair") as bar:
        done = repair(paths, out, read_options(args), overwrite=args.overwrite, on_progress=bar.show)
    if args.json:
        print(json.dumps(done.to_json()))
    else:
        print_repair(done)
    for fault in done.failures:
        print_message(f"not repaired: {word_fault(fault)}")
    return 1 if done.failures or done.missing else 0


def print_repair(done: Repair) -> None:
    """Print what became of each file, and what was lost."""
    rows = [
        [
            f"{file.num_kept:,}",
            f"{file.num_lost:,}",
            format_size(file.num_bytes_lost),
            escape(str(file.path)),
        ]
        for file in done.files
        if file.failure is None
    ]
    header = ("kept", "lost", "bytes lost", "file")
    if rows:
        print_table(header, rows, right=header[:3])
    if done.losses:
        print("\nlost:")
    for loss in done.losses:
        print(f"  {word_fault(loss.fault)}")
    kept = f"kept {format_count(done.num_kept, 'record')} in {escape(str(done.out))}"
    if done.losses:
        print(f"\n{kept}; LOST {format_count(done.num_lost, 'record')} ({format_size(done.num_bytes_lost)})")
        account = "losses.jsonl, which says why, is"
        contents = "their bytes, and losses.jsonl that says why, are" if done.num_bytes_lost else account
        print(f"{contents} in {escape(str(done.quarantine))}")
    else:
        lost = "no record was lost" if done.notes else "nothing was lost"
        print(f"\n{kept}; {'no record of the files read was lost' if done.failures else lost}")
    for note in done.notes:
        print(f"note: {escape(note)}")
