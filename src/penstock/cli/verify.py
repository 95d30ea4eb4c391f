"""`penstock verify`: check whether files are intact."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from penstock.cli.next_command import name_output, repeat_words, suggest_next, suggest_use
from penstock.cli.option_values import read_options
from penstock.cli.terminal import ProgressBar, format_count
from penstock.foundation.terminal import escape
from penstock.foundation.wording import format_size
from penstock.jobs.check.file_check import Fault
from penstock.jobs.check.verify import Verification, verify
from penstock.read.options import ReadOptions
from penstock.shards.manifest import load_manifest
from penstock.storage.store_path import as_path


def run(args: argparse.Namespace) -> int:
    """Check, print, and return the exit status."""
    with ProgressBar("verify") as bar:
        found = verify(args.paths, read_options(args), bar.show)
    if args.json:
        print(json.dumps(found.to_json()))
    else:
        print_verification(found)
    _suggest(args, found)
    return 1 if found.faults else 0


def _suggest(args: argparse.Namespace, found: Verification) -> None:
    """Suggest to use intact files, or to repair damaged ones."""
    if found.num_bad_files and found.num_records:
        out = name_output(args.paths[0], "-repaired")
        suggest_next(args, "repair", *repeat_words(args, {"--out": 1}, ["--out", out]))
    elif not found.faults:
        suggest_use(args, repeat_words(args, {}), has_target=_knows_target(args))


def _knows_target(args: argparse.Namespace) -> bool:
    """Whether the only path is a data set with a target, which training reads without options."""
    if len(args.paths) > 1 or read_options(args) != ReadOptions():
        return False
    path = as_path(args.paths[0])
    manifest = None if isinstance(path, Path) and not path.is_dir() else load_manifest(path)
    return manifest is not None and bool(manifest.schema.targets)


def print_verification(found: Verification) -> None:
    """Print one line per fault, the totals, and what was not checked."""
    for fault in found.faults:
        print(format_fault(fault))
    files = format_count(len(found.files), "file")
    totals = f"{files}, {format_count(found.num_records, 'record')}, {format_size(found.num_bytes)}"
    where = f" in {found.num_bad_files} of them" if len(found.files) > 1 and found.num_bad_files else ""
    print(f"{totals}: {format_count(len(found.faults), 'fault') + where if found.faults else 'no faults'}")
    if found.num_other:
        records = format_count(found.num_other, "record")
        print(f"{records} without an Example: only the CRCs were checked")
    if found.advice:
        print(escape(found.advice))


def format_fault(fault: Fault) -> str:
    """Return a fault as one line."""
    where = "" if fault.record is None else f" record {fault.record} at byte {fault.offset}:"
    return f"{escape(str(fault.path))}:{where} {escape(fault.what)}"
