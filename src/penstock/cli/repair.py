"""`penstock repair`: copy the intact records of damaged files."""

from __future__ import annotations

import json

from penstock.cli.next_command import suggest_next
from penstock.cli.terminal import ProgressBar, format_count, print_message, print_note, print_table
from penstock.cli.verify import format_fault
from penstock.errors import OptionError
from penstock.foundation.terminal import escape
from penstock.foundation.wording import format_size
from penstock.jobs.check.repair import Repair, repair
from penstock.settings.command_line import Call
from penstock.settings.commands import RepairOutput
from penstock.settings.groups import ReadOptions


def run(call: Call) -> int:
    """Repair, print, and return the exit status."""
    output = call.read(RepairOutput)
    *paths, out = call.arguments if output.out is None else [*call.arguments, output.out]
    if not paths:
        advice = f"Run '{call.command.example}'."
        raise OptionError("output folder", expected="a folder", got="none", advice=advice)
    with ProgressBar("repair") as bar:
        done = repair(paths, out, call.read(ReadOptions), overwrite=output.overwrite, on_progress=bar.show)
    if call.common.json:
        print(json.dumps(done.to_json()))
    else:
        print_repair(done)
    for fault in done.failures:
        print_message(f"not repaired: {format_fault(fault)}")
    if any(file.failure is None for file in done.files):
        suggest_next(call, "verify", done.out)
    return 1 if done.failures or done.missing else 0


def print_repair(done: Repair) -> None:
    """Print the records kept and lost of each file, and each loss."""
    rows = [
        [f"{file.num_kept:,}", f"{file.num_lost:,}", format_size(file.num_bytes_lost), escape(str(file.path))]
        for file in done.files
        if file.failure is None
    ]
    header = ("kept", "lost", "bytes lost", "file")
    if rows:
        print_table(header, rows, right=header[:3])
    if done.losses:
        print("\nlost:")
    for loss in done.losses:
        print(f"  {format_fault(loss.fault)}")
    kept = f"kept {format_count(done.num_kept, 'record')} in {escape(str(done.out))}"
    if done.losses:
        print(f"\n{kept}; LOST {format_count(done.num_lost, 'record')} ({format_size(done.num_bytes_lost)})")
        files = "The damaged bytes and losses.jsonl are" if done.num_bytes_lost else "losses.jsonl is"
        print(f"{files} in {escape(str(done.quarantine))}")
    elif done.failures:
        print(f"\n{kept}; no record of the readable files was lost")
    else:
        print(f"\n{kept}; {'no record was lost' if done.notes else 'nothing was lost'}")
    for note in done.notes:
        print_note(note)
