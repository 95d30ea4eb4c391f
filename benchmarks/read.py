"""Measures how fast Penstock reads TFRecords, against its peers, in interleaved rounds.

In: data sets that TensorFlow wrote (made when missing). Out: tables, and every figure in results/read.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from arena import Score, hold_rounds
from booth import Order
from contestants import ENTRIES
from datasets import HERE, ensure_written, list_datasets
from machine import describe_machine
from table import format_dataset, format_derived, format_notes, list_entries

ENTRY_NAMES = [entry.name for entry in ENTRIES]
DATASET_NAMES = ["T", "S", "B"]


def parse_arguments() -> argparse.Namespace:
    """Read the command line; a name that does not exist ends the program with status 2."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, help="passes of each contestant (default 5, quick 1)")
    parser.add_argument("--datasets", default=",".join(DATASET_NAMES), help="default: %(default)s")
    parser.add_argument("--contestants", default=",".join(ENTRY_NAMES), help="default: %(default)s")
    parser.add_argument("--cores", help="default: 1,2; quick 2")
    parser.add_argument("--quick", action="store_true", help="small data: does it run, not how fast is it")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 5)
    arguments.datasets = arguments.datasets.split(",")
    arguments.contestants = arguments.contestants.split(",")
    for name in arguments.datasets:
        if name not in DATASET_NAMES:
            parser.error(f"unknown data set {name!r}: expected some of {', '.join(DATASET_NAMES)}")
    for name in arguments.contestants:
        if name not in ENTRY_NAMES:
            parser.error(f"unknown contestant {name!r}: expected some of {', '.join(ENTRY_NAMES)}")
    available = len(os.sched_getaffinity(0))
    usual = {min(2, available)} if arguments.quick else {1, min(2, available)}
    choices = [str(num_cores) for num_cores in range(1, available + 1)]
    asked = arguments.cores.split(",") if arguments.cores else [str(num_cores) for num_cores in sorted(usual)]
    if not set(asked) <= set(choices):
        parser.error(f"expected numbers of cores from 1 to {available}, got {arguments.cores}")
    arguments.cores = [int(text) for text in asked]
    return arguments


def write_results(path: Path, score: Score, arguments: argparse.Namespace) -> None:
    """Keep every raw figure, so that another table can be made from it."""
    results = {
        "machine": describe_machine(),
        "arguments": vars(arguments),
        "openings": [[*key, seconds] for key, seconds in score.openings.items()],
        "failures": [[*key, reason] for key, reason in score.failures.items()],
        "turns": [asdict(turn) for turn in score.turns],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n")


def main() -> int:
    """Run the benchmark; 1 if any contestant failed."""
    arguments = parse_arguments()
    total = Score()
    specs = list_datasets(arguments.quick)
    for name in arguments.datasets:
        entries = list_entries(name, arguments.contestants)
        ensure_written(sorted({name, *(entry.reads[name] for entry in entries)}), arguments.quick)
        orders = [Order(entry.name, name, n, arguments.quick) for n in arguments.cores for entry in entries]
        score = hold_rounds(orders, arguments.rounds, len(orders) if arguments.quick else 1)
        for num_cores in arguments.cores:
            print(format_dataset(score, specs[name], num_cores, entries), end="\n\n", flush=True)
        total.turns += score.turns
        total.openings |= score.openings
        total.failures |= score.failures
    if arguments.quick:
        print("QUICK RUN on little data: it shows that everything runs, not how fast.", end="\n\n")
    for text in (format_derived(total, arguments.datasets, arguments.cores), format_notes(total)):
        if text:
            print(text, end="\n\n")
    for (entry, dataset, num_cores), reason in total.failures.items():
        print(f"FAILED {entry} on {dataset}, {num_cores} core(s): {reason}", file=sys.stderr)
    name = "read-quick.json" if arguments.quick else "read.json"
    write_results(HERE / "results" / name, total, arguments)
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
