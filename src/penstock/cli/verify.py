"""`penstock verify`: check whether files are intact."""

from __future__ import annotations

import json

from penstock.cli.next_command import has_model_fields, name_output, repeat_words, suggest_next, suggest_use
from penstock.cli.terminal import ProgressBar, format_count
from penstock.format.manifest import load_manifest
from penstock.foundation.terminal import escape
from penstock.foundation.wording import format_size
from penstock.jobs.check.file_check import Fault
from penstock.jobs.check.verify import Verification, verify
from penstock.settings.command_line import Call
from penstock.settings.groups import ReadOptions
from penstock.storage.paths import may_be_folder
from penstock.storage.store_path import as_path


def run(call: Call) -> int:
    """Check, print, and return the exit status."""
    with ProgressBar("verify") as bar:
        found = verify(call.arguments, call.read(ReadOptions), bar.show)
    if call.common.json:
        print(json.dumps(found.to_json()))
    else:
        print_verification(found)
    _suggest(call, found)
    return 1 if found.faults else 0


def _suggest(call: Call, found: Verification) -> None:
    """Suggest to use intact files, or to repair damaged ones."""
    if found.num_bad_files and found.num_records:
        out = name_output(call.arguments[0], "-repaired")
        suggest_next(call, "repair", *repeat_words(call, more=["--out", out]))
    elif not found.faults:
        suggest_use(call, repeat_words(call), has_target=_knows_target(call))


def _knows_target(call: Call) -> bool:
    """Whether the only path is a data set with a target, which training reads without options."""
    if len(call.arguments) > 1 or call.read(ReadOptions) != ReadOptions():
        return False
    path = as_path(call.arguments[0])
    manifest = load_manifest(path) if may_be_folder(path) else None
    return manifest is not None and has_model_fields(manifest.schema)


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
