"""`penstock verify`: whether files are sound."""

from __future__ import annotations

import argparse
import json

from penstock.cli.reading import add_json, add_reading, read_options
from penstock.cli.terminal import ProgressBar, format_count, format_size
from penstock.foundation.terminal import escape
from penstock.jobs.check.file_check import Fault
from penstock.jobs.check.verify import Verification, verify

SUMMARY = "check every byte of TFRecord files"
DESCRIPTION = """\
Check every byte of TFRecord files: the compressed stream, both CRCs of each record, and that each payload
parses, where the payloads are Examples. In a folder with a manifest, also that every shard has the size,
the records and the SHA-256 that the manifest says, and that its indexes are its own. Prints a line for each
fault, with the file, the record's number and the byte where it begins (counted in the inflated bytes of a
compressed file). Exit status 1 if there is any."""
EXAMPLE = "penstock verify pets/"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_reading(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """Check, print, and return the exit status."""
    with ProgressBar("verify") as bar:
        found = verify(args.paths, read_options(args), bar.show)
    if args.json:
        print(json.dumps(found.to_json()))
    else:
        print_verification(found)
    return 1 if found.faults else 0


def print_verification(found: Verification) -> None:
    """Print a line a fault, the sum of all, and what was not looked into."""
    for fault in found.faults:
        print(word_fault(fault))
    files = format_count(len(found.files), "file")
    summary = f"{files}, {format_count(found.num_records, 'record')}, {format_size(found.num_bytes)}"
    where = f" in {found.num_bad_files} of them" if len(found.files) > 1 and found.num_bad_files else ""
    print(f"{summary}: {format_count(len(found.faults), 'fault') + where if found.faults else 'sound'}")
    if found.num_other:
        print(
            "1 record that is no Example: only its frame was checked"
            if found.num_other == 1
            else f"{found.num_other:,} records that are no Examples: only their frames were checked"
        )
    if found.advice:
        print(escape(found.advice))
    if found.num_bad_files and found.num_records:
        print("'penstock repair PATH OUT' copies what is good.")


def word_fault(fault: Fault) -> str:
    """Write a fault as one line."""
    place = "" if fault.record is None else f" record {fault.record} at byte {fault.offset}:"
    return f"{escape(str(fault.path))}:{place} {escape(fault.what)}"
